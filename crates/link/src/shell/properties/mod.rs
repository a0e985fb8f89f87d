//! Any order of answers, items, losses and deadlines, against a host that keeps a list.

mod host;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use proptest::prelude::*;
use wakeful_wire::{
    host::{Capabilities, capability},
    rpc::{Omissions, ShellItem},
};

use self::host::{Event, Feed, Host};
use super::{Action, CachedShell, FetchId, Fetched, GAP_GRACE, Shell, ShellList, bench};
use crate::{DataStatus, FailureReason, Instant};

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    Write(Event),
    Restart {
        release: u8,
        lost: usize,
    },
    Prepare,
    Unprepare,
    Connect {
        families: bool,
    },
    Disconnect,
    /// The host answers the oldest read; the answer is on its way.
    Read,
    /// An answer arrives: the oldest or the newest.
    Arrive {
        newest: bool,
        fails: bool,
    },
    /// The host sends the next item.
    Send {
        most: usize,
    },
    /// Items arrive together.
    Deliver {
        many: usize,
    },
    Fail,
    End,
    Defect,
    Head,
    Pass(u64),
    Saved,
    Cached,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let event = prop_oneof![
        4 => (0..16_u128).prop_map(Event::Put),
        2 => (0..16_u128).prop_map(Event::Remove),
        1 => Just(Event::Content),
    ];
    let step = prop_oneof![
        8 => event.prop_map(Step::Write),
        1 => (1..3_u8, 0..6_usize).prop_map(|(release, lost)| Step::Restart { release, lost }),
        3 => Just(Step::Prepare),
        1 => Just(Step::Unprepare),
        3 => any::<bool>().prop_map(|families| Step::Connect { families }),
        1 => Just(Step::Disconnect),
        4 => Just(Step::Read),
        4 => (any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(newest, fails)| Step::Arrive { newest, fails }),
        8 => (1..4_usize).prop_map(|most| Step::Send { most }),
        8 => (1..4_usize).prop_map(|many| Step::Deliver { many }),
        1 => Just(Step::Fail),
        1 => Just(Step::End),
        1 => Just(Step::Defect),
        2 => Just(Step::Head),
        3 => (0..12_000_u64).prop_map(Step::Pass),
        2 => Just(Step::Saved),
        1 => Just(Step::Cached),
    ];
    prop::collection::vec(step, 0..120)
}

/// A list, its host, and what is between them.
struct World {
    host: Host,
    shell: Shell,
    now: Instant,
    connected: bool,
    /// Reads that the host has not answered.
    asked: BTreeMap<FetchId, (Omissions, Option<String>)>,
    /// Answers on their way, ended reads included.
    answers: VecDeque<(FetchId, Fetched)>,
    /// The read that is awaited.
    awaited: Option<FetchId>,
    feed: Option<Feed>,
    items: VecDeque<ShellItem>,
    saving: bool,
    stored: Option<CachedShell>,
    generation: u64,
    /// The subscription was made to lose something that no head has shown yet.
    lost: bool,
}

impl World {
    fn new(stored: bool) -> Self {
        let host = Host::new();
        let cached = bench::cached(host.snapshot(bench::NONE), Some("1.5.0"));
        let stored = stored.then(|| CachedShell { build: "1".to_owned(), ..cached });
        Self {
            host,
            shell: Shell::new(bench::FAMILIES, true),
            now: Instant(5_000),
            connected: false,
            asked: BTreeMap::new(),
            answers: VecDeque::new(),
            awaited: None,
            feed: None,
            items: VecDeque::new(),
            saving: false,
            stored,
            generation: 0,
            lost: false,
        }
    }

    fn step(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Write(event) => self.host.write(event),
            Step::Restart { release, lost } => {
                self.step(Step::Disconnect);
                self.host.restart(release, lost);
            }
            Step::Prepare => self.shell.handle_prepared(now),
            Step::Unprepare => self.shell.handle_unprepared(now),
            Step::Connect { families } => self.connect(families),
            Step::Disconnect => {
                self.connected = false;
                self.shell.handle_disconnected(now);
            }
            Step::Read => {
                if let Some((id, (omit, etag))) = self.asked.pop_first() {
                    self.answers.push_back((id, self.host.read(omit, etag.as_deref())));
                }
            }
            Step::Arrive { newest, fails } => {
                let answer =
                    if newest { self.answers.pop_back() } else { self.answers.pop_front() };
                if let Some((id, fetched)) = answer {
                    let failure = bench::failure(FailureReason::Platform);
                    let result = if fails { Err(failure) } else { Ok(fetched) };
                    self.awaited = self.awaited.filter(|awaited| *awaited != id);
                    self.shell.handle_fetched(now, id, result);
                }
            }
            Step::Send { most } => {
                if let Some(feed) = &mut self.feed {
                    self.items.extend(feed.poll(&self.host, most));
                }
            }
            Step::Deliver { many } => {
                let many = many.min(self.items.len());
                let items: Vec<_> = self.items.drain(..many).collect();
                self.shell.handle_items(now, items);
            }
            Step::Fail => self.fail(),
            Step::End => {
                if self.feed.take().is_some() {
                    self.items.clear();
                    let failure = bench::failure(FailureReason::Overloaded);
                    self.shell.handle_subscription_ended(now, failure);
                }
            }
            Step::Defect => {
                if self.items.pop_front().is_some() {
                    let failure = bench::failure(FailureReason::Remote);
                    self.shell.handle_defect(now, failure);
                }
            }
            Step::Head => {
                if self.connected {
                    self.shell.handle_head(now, self.host.cursor());
                }
            }
            Step::Pass(millis) => self.pass(Duration::from_millis(millis)),
            Step::Saved => {
                if std::mem::take(&mut self.saving) {
                    self.shell.handle_saved(now);
                }
            }
            Step::Cached => self.shell.handle_cached(now, self.stored.take()),
        }
        self.act();
        self.check();
    }

    fn connect(&mut self, families: bool) {
        let mut capabilities = Capabilities::and(&[]);
        if !families {
            capabilities.0.remove(capability::SHELL_THREAD_FAMILIES);
        }
        self.connected = true;
        let release = Host::release_text(self.host.release);
        self.shell.handle_connected(self.now, &capabilities, release, self.host.cursor());
    }

    fn fail(&mut self) {
        if self.feed.is_some() {
            self.items.clear();
            let failure = bench::failure(FailureReason::Remote);
            self.shell.handle_subscription_failed(self.now, failure);
            self.act();
            self.subscribe();
        }
    }

    fn subscribe(&mut self) {
        let input = self.shell.subscription_input();
        self.items.clear();
        self.feed = Some(Feed::new(input.omit, input.cursor));
        self.shell.handle_started(self.now);
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now.after(time);
        for _ in 0..100 {
            let Some(due) = self.shell.poll_timeout().filter(|due| *due <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(due);
            self.shell.handle_timeout(self.now);
            self.act();
            self.check();
        }
        panic!("a deadline that never passes: {:?}", self.shell);
    }

    /// Does what the list wants, as its parent would.
    fn act(&mut self) {
        while let Some(action) = self.shell.poll_action() {
            match action {
                Action::Fetch { id, omit, etag } => {
                    assert_eq!(self.awaited.replace(id), None, "one read at a time");
                    self.asked.insert(id, (omit, etag));
                }
                Action::CancelFetch { id } => {
                    assert_eq!(self.awaited.take(), Some(id), "a read that is not awaited");
                }
                Action::Subscribe => {
                    assert!(self.connected, "without a session");
                    assert!(self.feed.is_none(), "twice");
                    assert_eq!(self.awaited, None, "an answer could land on its rows");
                    self.subscribe();
                }
                Action::Unsubscribe => {
                    assert!(self.feed.take().is_some(), "there is none");
                    self.items.clear();
                }
                Action::Resubscribe => {
                    assert!(self.feed.is_some(), "there is none");
                    self.lost = false;
                    self.subscribe();
                }
                Action::Save(cached) => {
                    assert!(!std::mem::replace(&mut self.saving, true), "one save at a time");
                    self.check_rows(&ShellList::of(cached.snapshot));
                }
                Action::Changed => {}
            }
        }
    }

    /// Whatever was changed for the last time up to the place is in the rows, and nothing is in
    /// them that never was.
    fn check_rows(&self, list: &ShellList) {
        let cursor = list.cursor();
        let log = &self.host.logs[&cursor.epoch.0];
        for row in list.rows() {
            let (id, seq) = (bench::number(row.id), row.seq.0);
            assert!(log.has(id, seq) && seq <= cursor.seq.0, "{id}@{seq} at {cursor:?}");
        }
        for (id, (seq, listed)) in log.newest() {
            let held = list.row(bench::thread(id)).map(|row| row.seq.0);
            let left_out = list.omitted().families && id % 2 == 1;
            if seq <= cursor.seq.0 && !(left_out && held.is_none()) {
                assert_eq!(held, listed.then_some(seq), "{id} at {cursor:?}");
            }
        }
    }

    fn check(&mut self) {
        let state = self.shell.state();
        assert!(state.generation >= self.generation, "a number comes twice");
        self.generation = state.generation;
        if let Some(list) = &state.list {
            if !self.lost {
                self.check_rows(list);
            }
        } else {
            assert!(!state.verified);
        }
        let live = state.status == DataStatus::Live;
        assert!(self.connected || !live && !state.verified, "without a session");
        assert!(!live || state.generation > 0 && state.error.is_none());
    }

    /// Whether the list shows what the host has, as this release makes it.
    fn is_current(&self) -> bool {
        let Some(list) = &self.shell.state().list else { return false };
        let release = Host::release_text(self.host.release);
        self.host.newest().into_iter().all(|(id, (seq, listed))| {
            let row = list.row(bench::thread(id));
            let left_out = list.omitted().families && id % 2 == 1 && row.is_none();
            let same = row.map(|row| (row.seq.0, row.agent.as_str()));
            left_out || same == listed.then_some((seq, release))
        })
    }

    /// Whether everything was delivered.
    fn is_quiet(&self) -> bool {
        let feed = self.feed.as_ref().is_none_or(|feed| feed.is_idle(&self.host));
        feed && self.items.is_empty() && self.asked.is_empty() && self.answers.is_empty()
    }

    /// Delivers everything that there is to deliver.
    fn settle(&mut self) {
        for _ in 0..200 {
            if self.is_quiet() {
                return;
            }
            self.step(Step::Read);
            self.step(Step::Arrive { newest: false, fails: false });
            self.step(Step::Send { most: 3 });
            self.step(Step::Deliver { many: 3 });
        }
        panic!("there is always more to deliver");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Also what was not delivered is nowhere called delivered: each step checks it.
    #[test]
    fn a_list_never_shows_what_its_place_does_not_stand_for_and_ends_where_the_host_is(
        stored in any::<bool>(),
        steps in steps(),
        families in any::<bool>(),
    ) {
        let mut world = World::new(stored);
        for step in steps {
            world.step(step);
            if world.is_quiet() && world.shell.state().status == DataStatus::Live {
                prop_assert!(world.is_current(), "live, but not what the host has");
            }
        }
        world.step(Step::Connect { families });
        world.settle();
        // What a defect made wait.
        world.step(Step::Pass(400_000));
        world.settle();
        prop_assert_eq!(world.shell.state().status, DataStatus::Live);
        prop_assert!(world.is_current());
        prop_assert_eq!(&world.shell.state().error, &None);
    }

    /// A host that forgets to send changes is found out by the next head.
    #[test]
    fn a_missed_change_is_brought_after_the_next_head(
        before in prop::collection::vec((0..16_u128, any::<bool>()), 0..8),
        missed in prop::collection::vec((0..16_u128, any::<bool>()), 1..8),
    ) {
        let event = |(id, put): (u128, bool)| if put { Event::Put(id) } else { Event::Remove(id) };
        let mut world = World::new(false);
        world.step(Step::Cached);
        world.step(Step::Connect { families: false });
        world.settle();
        for change in before {
            world.step(Step::Write(event(change)));
            world.settle();
        }
        for change in missed {
            world.step(Step::Write(event(change)));
        }
        world.lost = world.feed.as_mut().unwrap().lose(&world.host);
        world.settle();
        prop_assert!(!world.is_current() || world.shell.state().cursor() != Some(world.host.cursor()));
        world.step(Step::Head);
        world.pass(GAP_GRACE);
        world.settle();
        prop_assert!(world.is_current());
        prop_assert_eq!(world.shell.state().cursor(), Some(world.host.cursor()));
        prop_assert_eq!(world.shell.state().status, DataStatus::Live);
    }
}
