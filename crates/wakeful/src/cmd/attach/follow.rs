//! The loop: lets the session look at what the link knows, does what it says, and shows it.
//!
//! When to connect, and what is current, is not decided here: that is the link's.

use std::{collections::HashMap, time::Duration};

use anyhow::bail;
use tokio::{
    sync::{
        broadcast::{Receiver, error::RecvError},
        mpsc,
    },
    time::{Instant as Moment, sleep_until, timeout},
};
use wakeful_client::{clock, runtime::Client};
use wakeful_link::{
    Change, Failure, Link, boundary::Token, platform::PlatformState, threads::ConsumerId,
};
use wakeful_wire::{
    HostId,
    rpc::{ClientId, ThreadId},
};

use super::{
    bar::{self, Bar},
    outbox::Sending,
    program::Program,
    screen::{Screen, Sink},
    session::{Act, End, Input, Moment as At, Rows, Said, Session, View},
};

/// What is new is shown at most this often, so that a fast stream is written in few pieces.
const SHOWN_EVERY: Duration = Duration::from_millis(25);
/// How often a line that changes by time is drawn.
const TICK: Duration = Duration::from_secs(1);

/// What the loop works with.
#[derive(Debug)]
pub(super) struct Follow<'a, S, C> {
    /// What knows the host.
    pub(super) client: &'a Client,
    /// The host.
    pub(super) host: HostId,
    /// Decides.
    pub(super) session: Session,
    /// Prints.
    pub(super) screen: Screen<S>,
    /// The bottom row of the terminal; nothing where there is no terminal.
    pub(super) bar: Option<Bar>,
    /// What a person does.
    pub(super) inputs: &'a mut mpsc::Receiver<Input>,
    /// Draws the ids of prompts.
    pub(super) fresh: C,
}

/// What is under way.
#[derive(Debug, Default)]
struct UnderWay {
    /// Who looks at the shown thread.
    consumer: Option<ConsumerId>,
    calls: HashMap<Token, Sending>,
    program: Program,
}

/// Why the loop goes on.
enum Woken {
    Changed(Result<Change, RecvError>),
    Input(Input),
    Time,
}

impl<S, C> Follow<'_, S, C>
where
    S: Sink,
    C: FnMut() -> ClientId,
{
    /// Follows until there is a reason to end, and returns that.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(super) async fn run(mut self) -> anyhow::Result<End> {
        let mut changes = self.client.changes();
        let mut under_way = UnderWay::default();
        self.fit()?;
        let ended = self.follow(&mut changes, &mut under_way).await;
        let closed = self.screen.close();
        self.give_row_back()?;
        closed.and(ended)
    }

    async fn follow(
        &mut self,
        changes: &mut Receiver<Change>,
        under_way: &mut UnderWay,
    ) -> anyhow::Result<End> {
        loop {
            self.look(under_way)?;
            let moves = self.show()?;
            if let Some(end) = self.session.finished() {
                return Ok(end);
            }
            if self.act(under_way) {
                continue;
            }
            let shown = Moment::now();
            let woken = self.wait(changes, moves).await;
            let mut more = !matches!(woken, Woken::Time);
            self.take(woken, under_way)?;
            // What comes close together is looked at together.
            while more {
                let next = timeout_left(shown, changes).await;
                more = next.is_some();
                if let Some(change) = next {
                    self.take(Woken::Changed(change), under_way)?;
                }
            }
        }
    }

    async fn wait(&mut self, changes: &mut Receiver<Change>, moves: bool) -> Woken {
        let due = self.client.with(|_, now| {
            let at = self.session.poll_timeout();
            at.map(|at| now.until(at).max(Duration::from_millis(1)))
        });
        let tick = moves.then_some(TICK);
        let until = due.into_iter().chain(tick).min();
        let timer = async {
            match until {
                Some(until) => sleep_until(Moment::now() + until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            change = changes.recv() => Woken::Changed(change),
            input = next(self.inputs) => Woken::Input(input),
            () = timer => Woken::Time,
        }
    }

    fn take(&mut self, woken: Woken, under_way: &mut UnderWay) -> anyhow::Result<()> {
        match woken {
            Woken::Changed(Ok(Change::Answered { token, outcome, .. })) => {
                if let Some(sending) = under_way.calls.remove(&token) {
                    self.session.handle_answered(sending, outcome);
                }
            }
            Woken::Changed(Err(RecvError::Lagged(_))) => {
                under_way.calls.clear();
                self.session.handle_overlooked();
            }
            Woken::Changed(Err(RecvError::Closed)) => bail!("the client ended"),
            // The rest is read from the link, whatever it was that changed.
            Woken::Changed(Ok(_)) | Woken::Time => {}
            Woken::Input(Input::Resized) => self.fit()?,
            Woken::Input(input) => self.input(input),
        }
        Ok(())
    }

    fn input(&mut self, input: Input) {
        let (host, session) = (self.host, &mut self.session);
        let fresh = (self.fresh)();
        self.client.with(|link, now| {
            let shell = link.shell(host);
            let list = shell.and_then(|shell| shell.list.as_ref());
            let rows: Rows = list.map_or_else(Vec::new, |list| list.rows().cloned().collect());
            let thread = session.thread().and_then(|thread| link.thread(host, thread));
            let at = At { now, clock: clock::now(), fresh, rows, thread };
            session.handle_input(input, at);
        });
    }

    /// Lets the session look at what the link knows.
    fn look(&mut self, under_way: &mut UnderWay) -> anyhow::Result<()> {
        let host = self.host;
        let Self { client, session, screen, .. } = self;
        let programs = screen.is_for_programs();
        let lines = client.with(|link, now| {
            let thread = session.thread();
            let items = match thread.filter(|_| programs) {
                Some(thread) => link.take_tapped(host, thread),
                None => Vec::new(),
            };
            let state = thread.and_then(|thread| link.thread(host, thread));
            session.look(&View {
                now,
                connection: link.connection(host),
                platform: platform_failure(link),
                shell: link.shell(host),
                thread: state,
            });
            under_way.program.lines(items, state)
        })?;
        // A program hears of a connection before what came by it.
        self.say()?;
        self.screen.lines(&lines)
    }

    fn say(&mut self) -> anyhow::Result<()> {
        while let Some(said) = self.session.poll_said() {
            match said {
                Said::Changes(changes) => self.screen.changes(&changes)?,
                Said::Note(text) => self.screen.note(&text)?,
                Said::Standing(connection, text) => {
                    // Where there is a line for it, it is told there.
                    let text = text.filter(|_| !self.bar.as_ref().is_some_and(Bar::is_there));
                    self.screen.standing(connection, text.as_deref())?;
                }
            }
        }
        Ok(())
    }

    /// Shows what there is to show; whether that changes by time alone.
    fn show(&mut self) -> anyhow::Result<bool> {
        self.say()?;
        let Some(bar) = self.bar.as_mut().filter(|bar| bar.is_there()) else { return Ok(false) };
        let (host, session) = (self.host, &self.session);
        let (text, moves) =
            self.client.with(|link, now| session.line(now, clock::now(), link.connection(host)));
        let drawn = bar.draw(&text);
        self.screen.raw(&drawn)?;
        Ok(moves)
    }

    /// Fits the bottom row to the terminal.
    fn fit(&mut self) -> anyhow::Result<()> {
        let Some(bar) = &mut self.bar else { return Ok(()) };
        let rows = bar::rows();
        // Setting it up needs a line of its own.
        self.screen.close()?;
        let written = bar.resize(rows);
        self.screen.raw(&written)
    }

    fn give_row_back(&mut self) -> anyhow::Result<()> {
        let written = self.bar.as_mut().map(Bar::close).unwrap_or_default();
        self.screen.raw(&written)
    }

    /// Does what the session wants; whether that was anything.
    fn act(&mut self, under_way: &mut UnderWay) -> bool {
        let (client, host) = (self.client, self.host);
        let mut acted = false;
        while let Some(act) = self.session.poll_act() {
            acted = true;
            match act {
                Act::Call(sending, call) => {
                    let token = client.with(|link, now| link.call(now, host, *call));
                    match token {
                        Some(token) => drop(under_way.calls.insert(token, sending)),
                        None => self.session.handle_overlooked(),
                    }
                }
                Act::Show(thread) => {
                    if let Err(failure) = self.mount(thread, under_way) {
                        self.session.handle_not_shown(&failure);
                    }
                }
                Act::LoadOlder(thread) => {
                    client.with(|link, now| link.load_older(now, host, thread));
                }
                Act::Wake => drop(client.with(|link, now| link.intend(now, host))),
                Act::Retry => drop(client.with(|link, now| link.retry(now, host))),
                Act::Active => client.with(|link, now| link.handle_active(now, host)),
            }
        }
        acted
    }

    /// Looks at a thread, and no longer at the one before.
    fn mount(&self, thread: ThreadId, under_way: &mut UnderWay) -> Result<(), Failure> {
        let (host, programs) = (self.host, self.screen.is_for_programs());
        let before = under_way.consumer.take();
        let mounted = self.client.with(|link, now| {
            let mounted = link.mount(now, host, thread);
            if let Some(before) = before {
                link.unmount(now, host, before);
            }
            if programs {
                link.tap(host, thread);
            }
            mounted
        });
        under_way.consumer = Some(mounted?);
        Ok(())
    }
}

/// Another change that comes before the next look is due.
async fn timeout_left(
    shown: Moment,
    changes: &mut Receiver<Change>,
) -> Option<Result<Change, RecvError>> {
    let left = SHOWN_EVERY.checked_sub(shown.elapsed())?;
    timeout(left, changes.recv()).await.ok()
}

/// What keeps the platforms from saying which environments there are.
fn platform_failure(link: &Link) -> Option<&Failure> {
    link.platforms().filter_map(|address| link.platform(address)).find_map(|state| match state {
        PlatformState::Backoff { last_failure, .. } | PlatformState::Blocked(last_failure) => {
            Some(last_failure)
        }
        PlatformState::Opening { last_failure } => last_failure.as_ref(),
        PlatformState::Idle | PlatformState::Following | PlatformState::Offline => None,
    })
}

/// What a person does next; waits for ever where nobody is.
async fn next(inputs: &mut mpsc::Receiver<Input>) -> Input {
    match inputs.recv().await {
        Some(input) => input,
        None => std::future::pending().await,
    }
}
