//! When a token or session was last seen, kept no finer than a step.
//!
//! A crowd of requests with one credential must not become a crowd of writes: whoever is first in a
//! step writes, the others know that it was written.

use std::{collections::HashMap, time::Duration};

use wakeful_wire::Timestamp;

/// The most credentials that are remembered; beyond, all are forgotten, which costs a write each.
const REMEMBERED_MAX: usize = 16_384;

/// Which sightings were written lately.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    written: HashMap<String, Timestamp>,
}

impl Sightings {
    /// Whether this sighting is to be written: the one that is stored is a step old, and nobody
    /// has taken it upon themselves meanwhile. Asking takes it.
    pub(super) fn take(
        &mut self,
        id: &str,
        stored: Option<Timestamp>,
        now: Timestamp,
        step: Duration,
    ) -> bool {
        let known = self.written.get(id).copied();
        let last = known.max(stored);
        if last.is_some_and(|last| now.since(last) < step) {
            return false;
        }
        if self.written.len() >= REMEMBERED_MAX {
            self.written.clear();
        }
        self.written.insert(id.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_crowd_one_writes_in_each_step() {
        let step = Duration::from_secs(60);
        let mut sightings = Sightings::default();
        let mut take = |id: &str, stored: Option<u64>, now: u64| {
            sightings.take(id, stored.map(Timestamp), Timestamp(now), step)
        };
        assert!(take("a", None, 1_000));
        assert!(!take("a", None, 1_000), "another of the same crowd, which read before the write");
        assert!(!take("a", Some(1_000), 60_999));
        assert!(take("a", Some(1_000), 61_000));
        assert!(!take("b", Some(1_000), 2_000), "known from before a restart");
        for n in 0..REMEMBERED_MAX {
            take(&n.to_string(), None, 61_000);
        }
        assert!(sightings.written.len() <= REMEMBERED_MAX);
    }
}
