//! Random lives of a whole client: frames and losses, cuts and sleeps, other accounts, restarts,
//! renewals, people who come and go. Whatever happens, what is shown is what a host wrote up to the
//! place that is held with it, no host has two sockets where one is due, nothing that was given once
//! arrives twice, and in the end everything is there.
//!
//! `WAKEFUL_STEPS` says how many steps in all, `WAKEFUL_SEED` which run is the first.

use std::{collections::BTreeMap, time::Duration};

use wakeful_wire::{
    HostId,
    rpc::{EventBody, ThreadId},
};

use super::world::{Manner, PLATFORM, Reach, World, account, address, options, thread, user};
use crate::{
    Chance, ConnectionPhase, DataStatus, Network,
    authorization::Secret,
    registry::Entry,
    route::{Route, Routes},
    supervisor::Foreground,
    threads::ConsumerId,
};

/// Runs that once failed; they run always.
const KEPT: &[u64] = &[];

/// Steps of one run.
const RUN: u64 = 1_000;

const PAIRED: [(&str, &str); 2] =
    [("kitchen", "http://127.0.0.1:4747"), ("attic", "https://attic.example")];

/// One run.
struct Life {
    world: World,
    draw: Chance,
    hosts: Vec<HostId>,
    /// The threads of each host, by number; never reused.
    threads: BTreeMap<HostId, Vec<ThreadId>>,
    consumers: Vec<(HostId, ConsumerId)>,
    made: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut draw = Chance::seeded(seed);
        let mut options = options();
        options.keep_alive = draw.draw().is_multiple_of(2);
        options.tickets = draw.draw().is_multiple_of(3);
        let mut world = World::new(seed, options);
        world.check_each = 3;
        world.wires.jitter = draw.draw() % 50;
        world.store.takes = [0, 5, 300][usize::try_from(draw.draw() % 3).unwrap()];
        let mut hosts: Vec<_> = PAIRED.iter().map(|(name, at)| world.paired(name, at)).collect();
        hosts.push(world.environment("cellar"));
        hosts.push(world.environment("garden"));
        for host in &hosts {
            let life = [90, 600, 3_600][usize::try_from(draw.draw() % 3).unwrap()];
            world.set(*host, |host| host.token_life = Duration::from_secs(life));
        }
        let threads = hosts.iter().map(|host| (*host, Vec::new())).collect();
        let mut life = Self { world, draw, hosts, threads, consumers: Vec::new(), made: 0 };
        for place in 0..life.hosts.len() {
            life.create(life.hosts[place]);
        }
        life.world.start(Some("ada"));
        life
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.draw.draw() % bound
    }

    fn any_host(&mut self) -> HostId {
        let place = self.below(self.hosts.len() as u64);
        self.hosts[usize::try_from(place).unwrap()]
    }

    fn any_paired(&mut self) -> usize {
        usize::try_from(self.below(PAIRED.len() as u64)).unwrap()
    }

    fn any_environment(&mut self) -> HostId {
        let place = PAIRED.len() as u64 + self.below(self.hosts.len() as u64 - PAIRED.len() as u64);
        self.hosts[usize::try_from(place).unwrap()]
    }

    /// A thread that is there at this moment.
    fn any_thread(&mut self, host: HostId) -> Option<ThreadId> {
        let log = &self.world.host(host).log;
        let is_there = |id: &&ThreadId| log.thread(**id).is_some_and(|thread| !thread.deleted);
        let there: Vec<_> = self.threads[&host].iter().filter(is_there).copied().collect();
        let place = self.below(there.len().max(1) as u64);
        there.get(usize::try_from(place).unwrap()).copied()
    }

    fn create(&mut self, host: HostId) {
        self.made += 1;
        let id = thread(self.made);
        self.threads.get_mut(&host).unwrap().push(id);
        self.world.create(host, id);
    }

    /// The host writes something, if it runs.
    fn write(&mut self, host: HostId) {
        if self.world.phase_of(host).is_some_and(|phase| phase != wakeful_wire::Phase::Ready) {
            return;
        }
        let what = self.below(24);
        let Some(id) = self.any_thread(host) else { return self.create(host) };
        let now = self.world.host(host).log.thread(id).expect("it is there").clone();
        match what {
            0 if self.threads[&host].len() < 6 => self.create(host),
            1 if now.turn.is_none() => self.world.body(host, id, EventBody::Deleted {}),
            2 if now.archived_at.is_none() => self.world.body(host, id, EventBody::Archived {}),
            2 => self.world.body(host, id, EventBody::Restored {}),
            3 if now.pinned => self.world.body(host, id, EventBody::Unpinned {}),
            3 => self.world.body(host, id, EventBody::Pinned {}),
            4..=7 if now.turn.is_some() => self.world.write(host, |log| log.turn_ended(id)),
            4..=9 if now.turn.is_none() => self.world.write(host, |log| log.turn_started(id)),
            _ => self.world.text(host, id, "word"),
        }
    }

    fn step(&mut self) {
        let host = self.any_host();
        match self.below(100) {
            0..=29 => self.write(host),
            30..=33 => {
                for _ in 0..self.below(30) {
                    self.write(host);
                }
            }
            34..=37 => self.world.cut(host),
            38..=40 => self.world.kill(host),
            41..=43 => {
                let reach = match self.below(4) {
                    0 => Reach::Refuses,
                    1 => Reach::Silent,
                    2 => Reach::Busy(Duration::from_secs(5)),
                    _ => Reach::Up,
                };
                self.world.set(host, |host| host.reach = reach);
            }
            44..=46 => self.world.set(host, |host| host.reach = Reach::Up),
            47 => {
                let manner = match self.below(4) {
                    0 => Manner::Closes(Duration::from_secs(1), 1011),
                    1 => Manner::SaysNothing,
                    2 => Manner::Forbids(503),
                    _ => Manner::Serves,
                };
                self.world.set(host, |host| host.manner = manner);
            }
            48..=49 => self.world.set(host, |host| host.manner = Manner::Serves),
            50..=51 => {
                let lost = if self.below(3) == 0 { self.below(8) } else { 0 };
                self.world.restart(host, lost);
            }
            52..=53 => {
                let asleep = [100, 5_000, 29_000, 40_000][usize::try_from(self.below(4)).unwrap()];
                self.world.sleep(Duration::from_millis(asleep));
            }
            54..=56 => {
                let network = match self.below(3) {
                    0 => Network::Offline,
                    _ => Network::Online,
                };
                self.world.act(|link, now| link.handle_network(now, network));
            }
            57..=58 => self.world.act(|link, now| link.handle_path_changed(now)),
            59..=60 => {
                let long = self.below(4) == 0;
                let foreground = if long { Foreground::Long } else { Foreground::Desk };
                self.world.act(|link, now| link.handle_foreground(now, foreground));
            }
            61..=63 => {
                let latency = [1, 20, 200, 700, 2_500][usize::try_from(self.below(5)).unwrap()];
                self.world.wires.latency = latency;
            }
            64..=68 => self.mount(host),
            69..=71 => {
                let place =
                    usize::try_from(self.below(self.consumers.len().max(1) as u64)).unwrap();
                if place < self.consumers.len() {
                    let (host, consumer) = self.consumers.remove(place);
                    self.world.act(|link, now| link.unmount(now, host, consumer));
                }
            }
            72..=74 => {
                if let Some(id) = self.any_thread(host) {
                    self.world.prompt(host, id);
                }
            }
            75..=76 => {
                self.world.act(|link, now| link.retry(now, host));
            }
            77..=78 => {
                self.world.act(|link, now| link.intend(now, host));
            }
            79 => {
                let _refused = self.world.act(|link, now| link.pause(now, host));
            }
            80..=81 => {
                let _refused = self.world.act(|link, now| link.resume(now, host));
            }
            82..=83 => {
                let host = self.any_environment();
                self.world.put_to_sleep(host);
            }
            84 => {
                let host = self.any_environment();
                self.world.wake(host);
            }
            85 => {
                let works = self.below(2) == 0;
                self.world.set(host, |host| host.exchanges = works);
            }
            86 => {
                // Its tokens are believed no longer, its sockets go on.
                let now = self.world.time;
                self.world.set(host, |host| {
                    host.sessions.values_mut().for_each(|session| session.until = now);
                });
            }
            87 => {
                let host = self.any_environment();
                self.world.revoke_all(host);
            }
            88 => self.change_account(),
            89 => {
                let reach = if self.below(2) == 0 { Reach::Up } else { Reach::Silent };
                self.world.platform.reach = reach;
                self.world.end_stream();
            }
            90 => self.remove_and_register(),
            91 => self.reopen(),
            92 => {
                if let Some(id) = self.any_thread(host) {
                    let _known = self.world.act(|link, now| link.absence(now, host, id));
                    let _full = self.world.act(|link, now| link.mount_family(now, host, id));
                }
            }
            93 => self.world.act(|link, now| link.search(now, host, "soup", 20)),
            94 => self.world.act(|link, now| link.handle_active(now, host)),
            _ => self.world.pass(Duration::from_secs(30)),
        }
        let pause = [0, 1, 30, 400, 3_000][usize::try_from(self.below(5)).unwrap()];
        self.world.pass_ms(pause);
        self.world.told.clear();
    }

    fn mount(&mut self, host: HostId) {
        if self.consumers.len() > 12 {
            return;
        }
        if let Some(id) = self.any_thread(host)
            && let Ok(consumer) = self.world.act(|link, now| link.mount(now, host, id))
        {
            self.consumers.push((host, consumer));
        }
    }

    fn change_account(&mut self) {
        match self.below(3) {
            0 => {
                self.world.platform.user = None;
                let platform = address(PLATFORM);
                let _ended = self.world.act(|link, now| link.sign_out(now, &platform));
            }
            1 => self.sign_in("ada"),
            _ => self.sign_in("bea"),
        }
        let environments = &self.hosts[PAIRED.len()..];
        self.consumers.retain(|(host, _)| !environments.contains(host));
    }

    fn sign_in(&mut self, name: &str) {
        self.world.platform.user = Some(user(name));
        self.world.act(|link, now| link.sign_in(now, account(name)));
        for host in &self.hosts[PAIRED.len()..] {
            self.world.store.cleared.remove(host);
        }
    }

    fn remove_and_register(&mut self) {
        let place = self.any_paired();
        let (host, (name, at)) = (self.hosts[place], PAIRED[place]);
        if self.world.act(|link, now| link.remove(now, host)).is_err() {
            return;
        }
        self.consumers.retain(|(of, _)| *of != host);
        self.world.pass(Duration::from_secs(2));
        let token = format!("refresh.{name}");
        let entry = Entry::paired(host, name.to_owned(), Routes::of(Route::new(address(at))));
        self.world.store.refresh.insert(host, token.clone());
        let _refused = self.world.act(|link, now| link.register(now, entry, Secret::new(token)));
    }

    /// The client ends and begins anew.
    fn reopen(&mut self) {
        self.world.check_store();
        let mut options = options();
        options.keep_alive = self.below(2) == 0;
        let seed = self.draw.draw();
        self.world.reopen(seed, options);
        self.consumers.clear();
    }

    /// All is well from now on: in the end everything is there.
    fn settle(&mut self) {
        self.world.platform.reach = Reach::Up;
        self.world.platform.grants = true;
        self.world.wires.latency = 20;
        self.world.wires.jitter = 0;
        for host in self.hosts.clone() {
            self.world.set(host, |host| {
                (host.reach, host.manner, host.exchanges) = (Reach::Up, Manner::Serves, true);
            });
        }
        self.world.act(|link, now| link.handle_network(now, Network::Online));
        if self.world.platform.user.is_none() {
            self.sign_in("ada");
        }
        self.world.act(|link, now| link.handle_foreground(now, Foreground::Long));
        for host in self.hosts.clone() {
            let _refused = self.world.act(|link, now| link.resume(now, host));
        }
        self.world.pass(Duration::from_secs(30));
        for host in self.hosts.clone() {
            self.world.act(|link, now| link.intend(now, host));
        }
        let hosts = self.hosts.clone();
        self.world.run_until(|world| hosts.iter().all(|host| world.is_live(*host)));
        self.world.pass(Duration::from_secs(60));
        for host in hosts {
            assert_eq!(self.world.phase(host), ConnectionPhase::Connected);
            self.world.check_all_is_shown(host);
            let shown = self.world.link.shown(host).map(|list| list.rows().count());
            let live = self.world.link.shell(host).and_then(|shell| shell.list.as_ref());
            assert_eq!(
                shown,
                live.map(|list| list.rows().count()),
                "what is shown is what there is"
            );
            let twice = self.world.host(host).prompts.values().filter(|times| **times > 1).count();
            assert_eq!(twice, 0, "a prompt was sent twice");
        }
        self.world.check_store();
    }
}

/// One run of this many steps.
fn run(seed: u64, steps: u64) {
    let mut life = Life::new(seed);
    for number in 0..steps {
        life.step();
        if number % 250 == 249 {
            life.settle();
        }
    }
    life.settle();
    assert!(
        life.world.link.shell(life.hosts[0]).is_some_and(|shell| shell.status == DataStatus::Live)
    );
}

#[expect(clippy::disallowed_methods, reason = "how far to search is said from outside")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn try_run(seed: u64, steps: u64) {
    let run = std::panic::catch_unwind(|| run(seed, steps));
    assert!(run.is_ok(), "the run with WAKEFUL_SEED={seed} failed; see above");
}

/// A part of the search: every fourth run, from the `part`th on.
fn search(part: u64) {
    let first = setting("WAKEFUL_SEED", 0);
    let runs = setting("WAKEFUL_STEPS", 100_000).div_ceil(RUN);
    for seed in (first + part..first + runs.max(part + 1)).step_by(4) {
        try_run(seed, RUN);
    }
}

#[test]
fn a_random_life_ends_with_everything_there_first_quarter() {
    search(0);
}

#[test]
fn a_random_life_ends_with_everything_there_second_quarter() {
    search(1);
}

#[test]
fn a_random_life_ends_with_everything_there_third_quarter() {
    search(2);
}

#[test]
fn a_random_life_ends_with_everything_there_fourth_quarter() {
    search(3);
}

#[test]
fn lives_that_once_ended_badly_end_well() {
    KEPT.iter().for_each(|seed| try_run(*seed, RUN));
}
