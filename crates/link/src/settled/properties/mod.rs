//! Hosts that never rest, clients that hear of it late, and answers in any order: the count is right
//! once everything has been heard, and the shelf is the beginning of the whole at every moment.

use proptest::prelude::*;
use wakeful_wire::{
    Timestamp,
    rpc::{Counts, RowCursor, Seq},
};

use super::{
    frontier::{HostRows, is_above, line, shelf},
    *,
};
use crate::{
    Chance, FailureReason,
    families::sample::{apply, thread},
};

mod host;

use host::Host;

/// One host and what a client knows of it.
struct Pair {
    host: Host,
    settled: SettledThreads,
    shell: ShellRows,
    at: u64,
    generation: u64,
    connected: bool,
    /// Reads on their way to the host.
    asked: Vec<Read>,
    /// Answers on their way back.
    answers: Vec<(Read, Result<ReadAnswer, Failure>)>,
}

impl Pair {
    fn new(number: u64, chance: &mut Chance) -> Self {
        let mut host = Host::new(number);
        for _ in 0..chance.draw() % 60 {
            host.live(chance);
        }
        Self {
            host,
            settled: SettledThreads::new(),
            shell: ShellRows::new(),
            at: 0,
            generation: 0,
            connected: false,
            asked: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn gather(&mut self) {
        while let Some(action) = self.settled.poll_action() {
            match action {
                Action::Read(read) => self.asked.push(read),
                // A cancelled read may be answered all the same.
                Action::Cancel(_) | Action::Changed => {}
            }
        }
    }

    fn connect(&mut self, now: Instant, resume: bool) {
        self.connected = true;
        self.generation += 1;
        let (basis, older) = if resume && self.at > 0 {
            // What a resumed list began with is long past, and must not count.
            let cut = Some(Timestamp(1_001));
            (Basis::Resumed, OlderSettled { cut, ..OlderSettled::default() })
        } else {
            self.shell = self.host.snapshot();
            self.at = self.host.seq;
            (Basis::Snapshot, self.host.older())
        };
        self.settled.handle_generation(now, self.generation, basis, Seq(self.at), Some(&older));
        self.gather();
    }

    fn disconnect(&mut self, now: Instant) {
        self.connected = false;
        self.settled.handle_generation(now, 0, Basis::Resumed, Seq(self.at), None);
        self.gather();
    }

    /// The list hears of a few changes.
    fn hear(&mut self, now: Instant, many: usize) -> bool {
        let Some((seq, rows, removed)) = self.host.changes_after(self.at, many) else {
            return false;
        };
        let changes =
            ChangedRows { from: Seq(self.at), seq: Seq(seq), rows: &rows, removed: &removed };
        self.settled.handle_changes(now, &self.shell, changes);
        apply(&mut self.shell, changes);
        self.at = seq;
        self.gather();
        true
    }

    /// The host answers one of the reads.
    fn serve(&mut self, chance: &mut Chance, fails: bool) {
        let Some(place) = pick(self.asked.len(), chance) else { return };
        let read = self.asked.swap_remove(place);
        let answer = match &read.what {
            _ if fails => Err(Failure::new(FailureReason::Network, "gone")),
            ReadWhat::Counts => {
                let counts = Counts { seq: Seq(self.host.seq), older_settled: self.host.older() };
                Ok(ReadAnswer::Counts(counts))
            }
            ReadWhat::Settled { below, .. } => Ok(ReadAnswer::Rows(self.host.page(*below))),
            ReadWhat::Family { .. } | ReadWhat::Search { .. } => unreachable!("never asked here"),
        };
        self.answers.push((read, answer));
    }

    /// One answer arrives.
    fn deliver(&mut self, now: Instant, chance: &mut Chance) {
        let Some(place) = pick(self.answers.len(), chance) else { return };
        let (read, answer) = self.answers.swap_remove(place);
        self.settled.handle_read(now, read.id, read.generation, answer);
        self.gather();
    }

    fn has_heard_all(&self) -> bool {
        self.connected && self.host.changes_after(self.at, 1).is_none()
    }
}

fn pick(many: usize, chance: &mut Chance) -> Option<usize> {
    let many = u64::try_from(many).unwrap();
    Some(usize::try_from(chance.draw().checked_rem(many)?).unwrap())
}

/// The shelf begins as the whole begins, as far as hosts go whose settled threads can all be known.
fn check_shelf(pairs: &[Pair]) {
    let rows = pairs.iter().enumerate().map(|(host, pair)| HostRows {
        host,
        holds_at: pair.settled.holds_at(),
        rows: pair.settled.rows(&pair.shell),
    });
    let shelf = shelf(rows);
    let counts = |pair: &Pair| {
        let failed = matches!(pair.settled.pages(), PageState::Failed(_));
        let tried =
            matches!(pair.settled.pages(), PageState::Loading) && pair.settled.holds_at().is_none();
        pair.has_heard_all() && !failed && !tried
    };
    if pairs.iter().any(|pair| pair.connected && !pair.has_heard_all()) {
        return;
    }
    let mut whole: Vec<_> =
        pairs.iter().filter(|pair| counts(pair)).flat_map(|pair| pair.host.settled()).collect();
    whole.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
    let listed: Vec<_> = shelf
        .rows
        .iter()
        .filter(|(host, _)| counts(&pairs[*host]))
        .filter_map(|(_, row)| place(row))
        .collect();
    assert!(whole.starts_with(&listed), "{listed:?} does not begin {whole:?}");
    if shelf.line.is_none() {
        assert_eq!(whole, listed);
    }
}

fn run(seed: u64, steps: usize) {
    let mut chance = Chance::seeded(seed);
    let mut now = Instant(0);
    let mut pairs: Vec<_> = (1..=3).map(|number| Pair::new(number, &mut chance)).collect();
    for _ in 0..steps {
        let place = pick(pairs.len(), &mut chance).unwrap();
        let pair = &mut pairs[place];
        match chance.draw() % 16 {
            0..=2 => pair.host.live(&mut chance),
            3..=5 if pair.connected => {
                pair.hear(now, 1 + pick(4, &mut chance).unwrap());
            }
            6 | 7 => pair.settled.load_more(now),
            8 | 9 => pair.serve(&mut chance, false),
            10 if chance.draw().is_multiple_of(4) => pair.serve(&mut chance, true),
            11 | 12 => pair.deliver(now, &mut chance),
            13 if chance.draw().is_multiple_of(4) => {
                if pair.connected {
                    pair.disconnect(now);
                } else {
                    pair.connect(now, !chance.draw().is_multiple_of(3));
                }
            }
            14 if !pair.connected => pair.connect(now, true),
            15 => {
                for pair in pairs.iter_mut().filter(|pair| pair.connected) {
                    while pair.hear(now, 4) {}
                }
                check_shelf(&pairs);
                // Now and then, so that a later read does not hide what an earlier change missed.
                if pairs[place].connected && chance.draw().is_multiple_of(2) {
                    rest(&mut pairs[place], now, &mut chance);
                }
                continue;
            }
            _ => now = now.after(std::time::Duration::from_millis(chance.draw() % 700)),
        }
        let pair = &mut pairs[place];
        pair.settled.handle_timeout(now);
        pair.gather();
        check_shelf(&pairs);
    }
    for pair in &mut pairs {
        rest(pair, now, &mut chance);
    }
    check_shelf(&pairs);
}

/// Everything is heard and answered: what is counted is what is settled.
fn rest(pair: &mut Pair, mut now: Instant, chance: &mut Chance) {
    if !pair.connected {
        pair.connect(now, true);
    }
    for _ in 0..200 {
        while pair.hear(now, 3) {}
        while !pair.asked.is_empty() || !pair.answers.is_empty() {
            pair.serve(chance, false);
            pair.deliver(now, chance);
        }
        let Some(at) = pair.settled.poll_timeout() else {
            let whole = u64::try_from(pair.host.settled().len()).unwrap();
            assert_eq!(pair.settled.count(&pair.shell), whole);
            return;
        };
        now = now.max(at);
        pair.settled.handle_timeout(now);
        pair.gather();
    }
    panic!("it never rests");
}

#[test]
fn counts_and_shelf_are_right_for_any_order_of_changes_answers_and_losses() {
    for seed in 0..400 {
        run(seed, 300);
    }
}

/// One host: when its threads were settled, how many its list holds, and how many rows a page has.
fn hosts() -> impl Strategy<Value = Vec<(Vec<u8>, usize, usize)>> {
    prop::collection::vec((prop::collection::vec(0_u8..40, 0..20), 0_usize..20, 1_usize..5), 1..5)
}

proptest! {
    #[test]
    fn the_merged_list_begins_as_the_whole_for_any_order_of_pages(
        hosts in hosts(),
        order in prop::collection::vec(0_usize..5, 0..40),
    ) {
        // Each host's places, newest first, and how many of them are here.
        let mut known: Vec<(Vec<RowCursor>, usize, usize)> = Vec::new();
        for (host, (moments, here, page)) in hosts.into_iter().enumerate() {
            let places = moments.into_iter().enumerate().map(|(number, at)| RowCursor {
                at: Timestamp(u64::from(at)),
                thread: thread(u64::try_from(number * 10 + host).unwrap()),
            });
            let mut places: Vec<_> = places.collect();
            places.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
            let here = here.clamp(usize::from(!places.is_empty()), places.len().max(1));
            known.push((places, here, page));
        }
        let mut whole: Vec<_> = known.iter().flat_map(|(places, ..)| places).copied().collect();
        whole.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
        let mut longest = 0;
        for turn in std::iter::once(None).chain(order.into_iter().map(Some)) {
            if let Some((places, here, page)) = turn.and_then(|host| known.get_mut(host)) {
                *here = (*here + *page).min(places.len());
            }
            let frontier = |(places, here, _): &(Vec<RowCursor>, usize, usize)| {
                places.get(*here).and_then(|_| places.get(here.checked_sub(1)?)).copied()
            };
            let line = line(known.iter().map(frontier));
            let here = known.iter().flat_map(|(places, here, _)| places.iter().take(*here));
            let mut listed: Vec<_> = here.copied().filter(|place| is_above(*place, line)).collect();
            listed.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
            prop_assert!(whole.starts_with(&listed));
            prop_assert!(listed.len() >= longest, "a page never shortens the list");
            longest = listed.len();
            if line.is_none() {
                prop_assert_eq!(&whole, &listed);
            }
        }
    }
}
