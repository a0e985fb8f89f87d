//! A small world around a link: hosts, a platform, wires and a store, in virtual time.
//!
//! The world carries the link's effects out, and brings back what comes of them after the time that
//! each takes. It moves from one moment at which something happens to the next, so hours cost
//! nothing. After each step it is checked that nothing is there twice that may be there once, and
//! that whatever the link shows is what its hosts wrote.

mod carry;
mod checks;
mod host;
mod log;
mod platform;
mod requests;
mod sockets;
mod store;
mod trace;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use uuid::Uuid;
use wakeful_wire::{
    EnvId, HostId, Phase, UserName,
    rpc::{Call, EventBody, Omissions, ThreadId, ThreadPrompt},
};

use self::{
    host::Out,
    log::Wrote,
    requests::Arrived,
    sockets::{Down, Line},
    trace::Trace,
};
pub(super) use self::{
    host::{Host, Manner, Reach},
    log::{client, thread},
    platform::Platform,
    store::Store,
};
use crate::{
    AttemptId, Change, ConnectionPhase, ConnectionState, Instant, Link, Options,
    authorization::Secret,
    effect::{AskId, At},
    http::Reply,
    platform::StreamId,
    registry::{Account, Entry, Persisted},
    route::{Address, Route, Routes},
    supervisor::Foreground,
};

pub(super) const PLATFORM: &str = "https://wakeful.example";

/// How long the way takes, one way.
#[derive(Debug, Clone)]
pub(super) struct Wires {
    /// In milliseconds.
    pub(super) latency: u64,
    /// Up to so much more, drawn for each.
    pub(super) jitter: u64,
    /// Whether sockets of this client stay open and carry nothing, until it opens new ones.
    pub(super) chance: crate::Chance,
}

/// Something that is going to happen.
#[derive(Debug)]
enum Happening {
    /// A socket reaches its host.
    Dial(u64),
    /// A frame reaches the host.
    Up(u64, String),
    /// The host hears that a socket is gone.
    UpClosed(u64),
    /// Something reaches the client's end of a socket.
    Down(u64, Down),
    /// The host does something to a socket of its own accord.
    Ends(u64, u16),
    /// A request reaches whoever it is sent to.
    Arrives(Arrived),
    /// An answer reaches the client.
    Answer(AskId, Reply),
    /// The store has done its oldest job.
    Stores,
    /// A stream of changes reaches the platform.
    Follows(StreamId),
    /// What the stream says reaches the client.
    Says(StreamId, platform::Says),
    /// An environment is where it was on its way to.
    Turns(EnvId, Phase),
    /// Sessions may have ended.
    Expires(HostId),
    /// Each host says that it is alive, and so does the platform.
    Beats,
}

/// The world.
#[derive(Debug)]
pub(super) struct World {
    /// The time of the world, in milliseconds. The link's own clock stands still while it sleeps.
    pub(super) time: u64,
    /// How long the link has slept.
    slept: u64,
    pub(super) link: Link,
    pub(super) wires: Wires,
    pub(super) hosts: BTreeMap<HostId, Host>,
    pub(super) platform: Platform,
    pub(super) store: Store,
    /// What the link told, since it was last taken.
    pub(super) told: Vec<Change>,
    pub(super) trace: Trace,
    queue: BTreeMap<(u64, u64), Happening>,
    drawn: u64,
    lines: BTreeMap<u64, Line>,
    asks: BTreeSet<AskId>,
    /// What came for a link that sleeps.
    deferred: Option<VecDeque<Happening>>,
    dirty: BTreeSet<(HostId, Option<ThreadId>)>,
    /// Prompts that were given, by number.
    pub(super) prompted: u64,
    /// Checks that cost much are made once in so many steps.
    pub(super) check_each: u64,
    steps: u64,
}

/// How the tests' client connects, unless they say otherwise.
pub(super) fn options() -> Options {
    Options {
        key: "thumbprint".to_owned(),
        label: "a test".to_owned(),
        tickets: false,
        page: None,
        keep_alive: false,
        persist: true,
        omit: Omissions { families: true, older_settled: true },
    }
}

pub(super) fn address(text: &str) -> Address {
    Address::new(text).expect("an address")
}

pub(super) fn user(name: &str) -> UserName {
    UserName::new(name).expect("a name")
}

pub(super) fn account(name: &str) -> Account {
    Account { platform: address(PLATFORM), user: user(name) }
}

pub(super) fn host_id(number: u128) -> HostId {
    HostId::from_uuid(Uuid::from_u128(0xa000 + number))
}

impl World {
    /// A world without hosts, and a link that has not started.
    pub(super) fn new(seed: u64, options: Options) -> Self {
        let mut world = Self {
            time: 0,
            slept: 0,
            link: Link::new(Instant(0), seed, options),
            wires: Wires { latency: 20, jitter: 0, chance: crate::Chance::seeded(seed ^ 0x5eed) },
            hosts: BTreeMap::new(),
            platform: Platform::default(),
            store: Store::default(),
            told: Vec::new(),
            trace: Trace::default(),
            queue: BTreeMap::new(),
            drawn: 0,
            lines: BTreeMap::new(),
            asks: BTreeSet::new(),
            deferred: None,
            dirty: BTreeSet::new(),
            prompted: 0,
            check_each: 1,
            steps: 0,
        };
        world.later(15_000, Happening::Beats);
        world
    }

    /// A host that this client is paired with, at an address.
    pub(super) fn paired(&mut self, name: &'static str, at: &str) -> HostId {
        let id = host_id(self.hosts.len() as u128 + 1);
        self.hosts.insert(id, Host::new(id, name, None, at.to_owned()));
        let routes = Routes::of(Route::new(address(at)));
        self.store.keep(Entry::paired(id, name.to_owned(), routes), &format!("refresh.{name}"));
        id
    }

    /// An environment of the platform that is ready.
    pub(super) fn environment(&mut self, name: &'static str) -> HostId {
        let id = host_id(self.hosts.len() as u128 + 1);
        let env = EnvId::from_uuid(id.uuid());
        let at = format!("{PLATFORM}/api/host/{env}");
        self.hosts.insert(id, Host::new(id, name, Some(env), at));
        self.platform.environments.insert(env, (name, Phase::Ready));
        id
    }

    /// Starts the link with what the store has. Somebody may be signed in at the platform.
    pub(super) fn start(&mut self, signed_in: Option<&str>) {
        self.platform.user = signed_in.map(user);
        let persisted = Persisted {
            entries: self.store.entries.values().cloned().collect(),
            uncleared: self.store.uncleared.iter().copied().collect(),
            accounts: signed_in.map(account).into_iter().collect(),
        };
        let secrets: Vec<_> = self
            .store
            .refresh
            .iter()
            .map(|(host, token)| (*host, Secret::new(token.clone())))
            .collect();
        let now = self.now();
        self.link.start(now, persisted, secrets);
        self.carry();
    }

    /// The client ends, and another one begins with what was stored.
    pub(super) fn reopen(&mut self, seed: u64, options: Options) {
        let now = self.now();
        self.link.close(now);
        self.carry();
        self.run_until(|world| world.link.is_closed());
        self.lines.clear();
        self.asks.clear();
        self.queue.retain(|_, happening| {
            matches!(
                happening,
                Happening::UpClosed(_)
                    | Happening::Turns(..)
                    | Happening::Expires(_)
                    | Happening::Beats
                    | Happening::Stores
            )
        });
        self.store.finish();
        self.link = Link::new(now, seed, options);
        let signed_in = self.platform.user.clone();
        self.start(signed_in.as_ref().map(UserName::as_str));
    }

    /// The link's clock.
    pub(super) const fn now(&self) -> Instant {
        Instant(self.time - self.slept)
    }

    /// Does something with the link, and carries out what follows.
    pub(super) fn act<R>(&mut self, act: impl FnOnce(&mut Link, Instant) -> R) -> R {
        let now = self.now();
        let done = act(&mut self.link, now);
        self.carry();
        self.check();
        done
    }

    fn later(&mut self, milliseconds: u64, happening: Happening) {
        self.drawn += 1;
        self.queue.insert((self.time + milliseconds, self.drawn), happening);
    }

    fn way(&mut self) -> u64 {
        let jitter = Duration::from_millis(self.wires.jitter);
        let drawn = self.wires.chance.between(Duration::ZERO, jitter).as_millis();
        self.wires.latency + u64::try_from(drawn).unwrap_or(0)
    }

    /// When something happens next.
    fn next_at(&self) -> Option<u64> {
        let queued = self.queue.keys().next().map(|(at, _)| *at);
        let due = self.link.poll_timeout().filter(|_| self.deferred.is_none());
        let due = due.map(|due| (due.0 + self.slept).max(self.time));
        [queued, due].into_iter().flatten().min()
    }

    /// Lets the next thing happen, if that is not after `until`. False if it is.
    pub(super) fn step(&mut self, until: u64) -> bool {
        let Some(at) = self.next_at().filter(|at| *at <= until) else { return false };
        self.time = self.time.max(at);
        self.steps += 1;
        match self.queue.first_entry().filter(|entry| entry.key().0 <= self.time) {
            Some(entry) => {
                let happening = entry.remove();
                self.happen(happening);
            }
            None => {
                let now = self.now();
                self.link.handle_timeout(now);
                let due = self.link.poll_timeout();
                assert!(due.is_none_or(|due| due > now), "a deadline that never passes: {due:?}");
            }
        }
        self.carry();
        self.check();
        true
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.time + u64::try_from(time.as_millis()).expect("a short time");
        while self.step(until) {}
        self.time = until;
    }

    pub(super) fn pass_ms(&mut self, milliseconds: u64) {
        self.pass(Duration::from_millis(milliseconds));
    }

    /// Lets things happen until something holds, for an hour at most.
    pub(super) fn run_until(&mut self, holds: impl Fn(&Self) -> bool) {
        let until = self.time + 3_600_000;
        while !holds(self) {
            assert!(self.step(until), "it never came to be; {:?}", self.phases());
        }
    }

    /// The machine sleeps: the link does nothing and its clock stands still, the world goes on.
    pub(super) fn sleep(&mut self, time: Duration) {
        let began = self.time;
        self.deferred = Some(VecDeque::new());
        self.pass(time);
        self.slept += self.time - began;
        let deferred = self.deferred.take().unwrap_or_default();
        self.act(|link, now| link.handle_foreground(now, Foreground::after(time)));
        for happening in deferred {
            self.happen(happening);
            self.carry();
            self.check();
        }
    }

    fn happen(&mut self, happening: Happening) {
        let is_for_link = matches!(
            happening,
            Happening::Down(..) | Happening::Answer(..) | Happening::Stores | Happening::Says(..)
        );
        if let (true, Some(deferred)) = (is_for_link, &mut self.deferred) {
            deferred.push_back(happening);
            return;
        }
        let now = self.now();
        match happening {
            Happening::Dial(line) => self.dialled(line),
            Happening::Up(line, text) => self.heard(line, &text),
            Happening::UpClosed(line) => self.left(line),
            Happening::Down(line, down) => self.down(now, line, down),
            Happening::Ends(line, code) => self.ends(line, code),
            Happening::Arrives(arrived) => self.arrives(arrived),
            Happening::Answer(ask, reply) => {
                if self.asks.remove(&ask) {
                    self.trace.answer(self.time, &reply);
                    self.link.handle_reply(now, ask, reply);
                }
            }
            Happening::Stores => self.stores(now),
            Happening::Follows(stream) => self.follows(stream),
            Happening::Says(stream, says) => self.says(now, stream, says),
            Happening::Turns(env, phase) => self.turns(env, phase),
            Happening::Expires(host) => self.expires(host),
            Happening::Beats => self.beats(),
        }
    }

    fn host_mut(&mut self, host: HostId) -> &mut Host {
        self.hosts.get_mut(&host).expect("a host")
    }

    pub(super) fn host(&self, host: HostId) -> &Host {
        &self.hosts[&host]
    }

    /// A host is changed by the test.
    pub(super) fn set(&mut self, host: HostId, set: impl FnOnce(&mut Host)) {
        set(self.host_mut(host));
    }

    /// Something is written to a host's log.
    pub(super) fn write(&mut self, host: HostId, write: impl FnOnce(&mut log::Log) -> Wrote) {
        let written = self.host_mut(host);
        let wrote = write(&mut written.log);
        let out = written.publish(&wrote);
        self.send_out(host, out);
    }

    pub(super) fn create(&mut self, host: HostId, thread: ThreadId) {
        self.write(host, |log| log.create(thread));
    }

    pub(super) fn text(&mut self, host: HostId, thread: ThreadId, text: &str) {
        self.write(host, |log| log.text(thread, text));
    }

    pub(super) fn body(&mut self, host: HostId, thread: ThreadId, body: EventBody) {
        self.write(host, |log| log.write(thread, body));
    }

    /// The host ends and starts anew at once: open sockets are cut without a word.
    pub(super) fn restart(&mut self, host: HostId, lost: u64) {
        self.cut(host);
        self.host_mut(host).log.restart(lost);
    }

    /// A person sends a prompt.
    pub(super) fn prompt(&mut self, host: HostId, thread: ThreadId) {
        self.prompted += 1;
        let prompt = wakeful_wire::rpc::Prompt::text(client(self.prompted), "do it");
        let call = Call::ThreadPrompt(ThreadPrompt { thread, prompt });
        self.act(|link, now| link.call(now, host, call));
    }

    pub(super) fn state(&self, host: HostId) -> ConnectionState {
        self.link.connection(host).cloned().unwrap_or_default()
    }

    pub(super) fn phase(&self, host: HostId) -> ConnectionPhase {
        self.state(host).phase
    }

    fn phases(&self) -> Vec<(&'static str, ConnectionState)> {
        self.hosts.values().map(|host| (host.name, self.state(host.id))).collect()
    }

    pub(super) fn is_live(&self, host: HostId) -> bool {
        self.link.shell(host).is_some_and(|shell| shell.status == crate::DataStatus::Live)
    }

    pub(super) fn until_live(&mut self, host: HostId) {
        self.run_until(|world| world.is_live(host));
    }

    /// The sockets of a host that the client has not given up, opened or being opened.
    pub(super) fn open_lines(&self, host: HostId) -> Vec<(At, AttemptId)> {
        let held = self.lines.values().filter(|line| line.at.host == host && !line.is_given_up());
        held.map(|line| (line.at, line.attempt)).collect()
    }

    /// How often something was told that passes.
    pub(super) fn told(&self, passes: impl Fn(&Change) -> bool) -> usize {
        self.told.iter().filter(|change| passes(change)).count()
    }
}
