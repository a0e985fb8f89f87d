//! The link, running: its effects are carried out on tokio, and what comes of them is brought back.
//!
//! One task carries effects out, in their order; whatever takes time runs in a task of its own and
//! brings its answer back. Views read the link under its lock, which nobody holds over a wait.

mod carry;
mod events;
mod freshness;
mod socket;
mod store;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, broadcast, mpsc},
    task::AbortHandle,
    time::Instant as Moment,
};
use wakeful_link::{
    Change, Instant, Link, Options,
    effect::{AskId, At},
    platform::StreamId,
    registry::{Account, Persisted},
    route::Address,
};
use wakeful_wire::{HostId, Timestamp};

use self::{carry::Carrier, freshness::Freshness, store::Store};
use crate::{
    credentials::{ClientKey, PairedHosts},
    http::Sender,
    socket::Outbox,
};

/// How many changes a view may be behind. One that is further behind is told so and reads anew.
const CHANGES_MAX: usize = 4_096;
/// How long an end may take to store what has changed.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// What a client runs with.
#[derive(Debug)]
pub struct Setup {
    /// This installation's key.
    pub key: Arc<ClientKey>,
    /// The hosts that it is paired with.
    pub paired: PairedHosts,
    /// Where lists and threads are kept between runs; nowhere if absent.
    pub cache: Option<PathBuf>,
    /// Who is signed in, with the token.
    pub accounts: Vec<(Account, String)>,
    /// What this client calls itself in a host's list of sessions.
    pub label: String,
    /// If there, only these hosts are connected to.
    pub focus: Option<Vec<HostId>>,
    /// Whether running threads are followed although nobody looks at them.
    pub keep_alive: bool,
}

/// What else a client may start with.
#[derive(Debug, Default)]
pub struct Terms {
    /// Accounts that are signed in here and take no part. What is kept of their environments is
    /// neither used nor touched; whatever belongs to nobody goes.
    pub others: Vec<Account>,
    /// Whether hosts leave nothing out of their lists. Such lists are of no use to a client that
    /// does with less, so the two should not share a cache.
    pub whole_lists: bool,
}

/// A running client. Cheap to clone; it runs until it is closed, or until the last clone is gone.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// Dropped with the last clone.
    _running: Arc<Running>,
}

#[derive(Debug)]
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    link: Mutex<Link>,
    origin: Moment,
    sender: Sender,
    /// There may be effects, or another deadline.
    stirred: Notify,
    changes: broadcast::Sender<Change>,
    outboxes: Mutex<HashMap<(At, wakeful_link::AttemptId), Outbox>>,
    freshness: Mutex<Freshness>,
    closed: AtomicBool,
    ended: Notify,
}

impl Shared {
    pub(crate) fn now(&self) -> Instant {
        let passed = self.origin.elapsed().as_millis();
        Instant(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// Lets the link take something in.
    pub(crate) fn put<R>(&self, take: impl FnOnce(&mut Link, Instant) -> R) -> R {
        let mut link = self.link.lock();
        // Read under the lock, so that the link's time never goes back.
        let now = self.now();
        let taken = take(&mut link, now);
        drop(link);
        self.stirred.notify_one();
        taken
    }
}

impl Client {
    /// Starts a client.
    ///
    /// # Errors
    /// What is kept here cannot be read, or no HTTP client can be built.
    pub async fn start(setup: Setup) -> anyhow::Result<Self> {
        Self::start_with(setup, Terms::default()).await
    }

    /// Starts a client on further terms.
    ///
    /// # Errors
    /// Like [`Self::start`].
    pub async fn start_with(setup: Setup, terms: Terms) -> anyhow::Result<Self> {
        let sender = Sender::new(Arc::clone(&setup.key))?;
        for (account, token) in &setup.accounts {
            sender.sign_in(account.platform.clone(), Some(token))?;
        }
        let store = Store::open(setup.cache.as_deref(), setup.paired).await?;
        let mut kept = store.kept().await?;
        let is_other = |account: &Account| terms.others.contains(account);
        kept.entries.retain(|entry| !entry.target.account().is_some_and(is_other));
        let options = Options {
            key: setup.key.thumbprint(),
            label: setup.label,
            tickets: false,
            page: None,
            keep_alive: setup.keep_alive,
            persist: true,
            omit: wakeful_wire::rpc::Omissions {
                families: !terms.whole_lists,
                older_settled: !terms.whole_lists,
            },
        };
        let mut seed = [0; 8];
        getrandom::fill(&mut seed)?;
        let mut link = Link::new(Instant(0), u64::from_ne_bytes(seed), options);
        if let Some(focus) = setup.focus {
            link.focus(focus);
        }
        let persisted = Persisted {
            entries: kept.entries,
            uncleared: kept.uncleared,
            accounts: setup.accounts.into_iter().map(|(account, _)| account).collect(),
        };
        link.start(Instant(0), persisted, kept.secrets);
        let shared = Arc::new(Shared {
            link: Mutex::new(link),
            origin: Moment::now(),
            sender: sender.clone(),
            stirred: Notify::new(),
            changes: broadcast::channel(CHANGES_MAX).0,
            outboxes: Mutex::default(),
            freshness: Mutex::default(),
            closed: AtomicBool::new(false),
            ended: Notify::new(),
        });
        let storing = store.run(Arc::downgrade(&shared));
        let carrier = Carrier::new(Arc::downgrade(&shared), sender, storing);
        let running = tokio::spawn(carrier.run()).abort_handle();
        Ok(Self { shared, _running: Arc::new(Running(running)) })
    }

    /// Reads the link, or does something with it. The lock is held meanwhile: nothing in `look` may
    /// wait.
    pub fn with<R>(&self, look: impl FnOnce(&mut Link, Instant) -> R) -> R {
        self.shared.put(look)
    }

    /// Somebody signed in at a platform, in the place of whoever was before; or has another token.
    ///
    /// # Errors
    /// The token cannot stand in a header; nothing has changed then.
    pub fn sign_in(&self, account: Account, token: &str) -> anyhow::Result<()> {
        self.shared.sender.sign_in(account.platform.clone(), Some(token))?;
        self.with(|link, now| link.sign_in(now, account));
        Ok(())
    }

    /// Somebody signed out of a platform: its environments go with everything that is kept of
    /// them. Paired hosts and other platforms are not touched.
    ///
    /// # Errors
    /// The client has ended.
    pub fn sign_out(&self, platform: &Address) -> anyhow::Result<()> {
        self.with(|link, now| link.sign_out(now, platform))?;
        self.shared.sender.sign_in(platform.clone(), None)
    }

    /// What changes from now on. A view that is too slow is told that it missed something, and
    /// reads anew.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// When a host's list, which is not live now, was so last. Absent where it is not known.
    #[must_use]
    pub fn cached_at(&self, host: HostId) -> Option<Timestamp> {
        self.shared.freshness.lock().as_of(host)
    }

    /// Ends the client: what has changed is stored, within [`CLOSE_TIME`].
    pub async fn close(&self) {
        self.shared.put(Link::close);
        let ended = async {
            loop {
                let told = self.shared.ended.notified();
                if self.shared.closed.load(Ordering::Acquire) {
                    return;
                }
                told.await;
            }
        };
        let _in_time = tokio::time::timeout(CLOSE_TIME, ended).await;
    }
}

/// What a client has under way.
#[derive(Debug, Default)]
struct UnderWay {
    sockets: HashMap<(At, wakeful_link::AttemptId), AbortHandle>,
    asks: HashMap<AskId, AbortHandle>,
    events: HashMap<(Address, StreamId), AbortHandle>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        for task in self.sockets.values().chain(self.asks.values()).chain(self.events.values()) {
            task.abort();
        }
    }
}

type Storing = mpsc::UnboundedSender<store::Job>;
