//! How many attempts of all hosts may be under way.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use wakeful_wire::HostId;

use crate::{AttemptId, Instant};

/// So many attempts are under way at once, of all hosts together.
pub const PLACES: usize = 5;

/// Of these, so many are for attempts that a person waits for.
pub const PLACES_URGENT: usize = 1;

/// So many attempts that nobody waits for may begin at once after a rest.
pub const BURST: u32 = 10;

/// Of these, one more each time this much has passed.
pub const REFILL: Duration = Duration::from_secs(1);

/// After so many urgent ones in a row one of the others has its turn, so that nothing a person
/// does in one place keeps another host waiting for ever.
pub const URGENT_IN_A_ROW: u32 = 4;

/// What lets attempts begin, for all hosts of a client. Each host has one wish in line for each of
/// its attempts (at most two), so the lines are no longer than twice the hosts.
///
/// Urgent wishes come first and need a place; the others need a place and a token. Within a class
/// who asks first is served first: a host whose attempts fail quickly stands in line again behind
/// every other.
#[derive(Debug)]
pub struct Budget {
    under_way: BTreeMap<(HostId, AttemptId), Class>,
    urgent: VecDeque<(HostId, AttemptId)>,
    others: VecDeque<(HostId, AttemptId)>,
    urgent_in_a_row: u32,
    tokens: u32,
    /// Up to when tokens have been counted.
    counted: Instant,
    granted: VecDeque<(HostId, AttemptId)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Urgent,
    Other,
}

impl Budget {
    /// A budget that has rested.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self {
            under_way: BTreeMap::new(),
            urgent: VecDeque::new(),
            others: VecDeque::new(),
            urgent_in_a_row: 0,
            tokens: BURST,
            counted: now,
            granted: VecDeque::new(),
        }
    }

    /// A host wants to begin an attempt. `urgent`: a person waits for it. A wish that is known
    /// already changes nothing.
    pub fn want(&mut self, now: Instant, host: HostId, attempt: AttemptId, urgent: bool) {
        let wish = (host, attempt);
        let known = self.under_way.contains_key(&wish)
            || self.urgent.contains(&wish)
            || self.others.contains(&wish);
        if !known {
            let line = if urgent { &mut self.urgent } else { &mut self.others };
            line.push_back(wish);
        }
        self.handle_timeout(now);
    }

    /// An attempt is over, whatever became of it, or is not wanted any more. Unknown ones are
    /// nothing.
    pub fn finished(&mut self, now: Instant, host: HostId, attempt: AttemptId) {
        let wish = (host, attempt);
        self.under_way.remove(&wish);
        for line in [&mut self.urgent, &mut self.others, &mut self.granted] {
            line.retain(|other| *other != wish);
        }
        self.handle_timeout(now);
    }

    /// A host is gone, and all that it wanted and began.
    pub fn forget(&mut self, now: Instant, host: HostId) {
        self.under_way.retain(|(other, _), _| *other != host);
        for line in [&mut self.urgent, &mut self.others, &mut self.granted] {
            line.retain(|(other, _)| *other != host);
        }
        self.handle_timeout(now);
    }

    /// The next attempt that may begin. To be called after each other call until it gives nothing.
    pub fn poll_granted(&mut self) -> Option<(HostId, AttemptId)> {
        self.granted.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called: when a token comes that
    /// somebody waits for. Who waits for a place is served by [`finished`](Self::finished).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waits = !self.others.is_empty() && self.has_place(Class::Other) && self.tokens == 0;
        waits.then(|| self.counted.after(REFILL))
    }

    /// Lets begin what may. May be called early, late and again.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.refill(now);
        while let Some(class) = self.next_class() {
            let line = match class {
                Class::Urgent => &mut self.urgent,
                Class::Other => &mut self.others,
            };
            let Some(wish) = line.pop_front() else { return };
            match class {
                Class::Urgent => self.urgent_in_a_row = self.urgent_in_a_row.saturating_add(1),
                Class::Other => {
                    self.urgent_in_a_row = 0;
                    self.tokens = self.tokens.saturating_sub(1);
                }
            }
            self.under_way.insert(wish, class);
            self.granted.push_back(wish);
        }
    }

    /// Whose turn it is, if anybody may begin.
    fn next_class(&self) -> Option<Class> {
        let other = !self.others.is_empty() && self.tokens > 0 && self.has_place(Class::Other);
        let urgent = !self.urgent.is_empty() && self.has_place(Class::Urgent);
        let turn = self.urgent_in_a_row >= URGENT_IN_A_ROW;
        match (urgent, other) {
            (true, true) => Some(if turn { Class::Other } else { Class::Urgent }),
            (true, false) => Some(Class::Urgent),
            (false, true) => Some(Class::Other),
            (false, false) => None,
        }
    }

    fn has_place(&self, class: Class) -> bool {
        let taken = self.under_way.len();
        let others = self.under_way.values().filter(|other| **other == Class::Other).count();
        match class {
            Class::Urgent => taken < PLACES,
            Class::Other => taken < PLACES && others < PLACES - PLACES_URGENT,
        }
    }

    fn refill(&mut self, now: Instant) {
        let step = REFILL.as_millis();
        let elapsed = now.since(self.counted).as_millis() / step;
        let whole = u32::try_from(elapsed).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(whole).min(BURST);
        self.counted = if self.tokens == BURST {
            self.counted.max(now)
        } else {
            self.counted.after(REFILL.saturating_mul(whole))
        };
    }
}
