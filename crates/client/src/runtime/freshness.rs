//! When the lists of hosts were last what the hosts had.

use std::collections::{HashMap, HashSet};

use wakeful_wire::{HostId, Timestamp};

/// When each host's list was last what the host had. Bounded by the hosts that the link knows.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    live: HashSet<HostId>,
    as_of: HashMap<HostId, Timestamp>,
}

impl Freshness {
    /// What an earlier run noted.
    pub(super) fn load(&mut self, host: HostId, at: Timestamp) {
        self.as_of.entry(host).or_insert(at);
    }

    /// A host's list is live at this moment, or is not. The moment is to be noted where it has just
    /// stopped being live.
    pub(super) fn see(&mut self, host: HostId, is_live: bool, now: Timestamp) -> bool {
        if is_live {
            self.live.insert(host);
            return false;
        }
        let stopped = self.live.remove(&host);
        if stopped {
            self.as_of.insert(host, now);
        }
        stopped
    }

    /// When a list that is not live was so last.
    pub(super) fn as_of(&self, host: HostId) -> Option<Timestamp> {
        self.as_of.get(&host).copied()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_list_is_as_old_as_the_moment_at_which_it_stopped_being_live() {
        let host = HostId::from_uuid(Uuid::from_u64_pair(1, 1));
        let mut freshness = Freshness::default();
        assert_eq!(freshness.as_of(host), None);
        freshness.load(host, Timestamp(5));
        assert!(!freshness.see(host, false, Timestamp(10)));
        assert_eq!(freshness.as_of(host), Some(Timestamp(5)), "nothing was confirmed");
        assert!(!freshness.see(host, true, Timestamp(20)));
        assert!(freshness.see(host, false, Timestamp(30)));
        assert!(!freshness.see(host, false, Timestamp(40)));
        assert_eq!(freshness.as_of(host), Some(Timestamp(30)));
        freshness.load(host, Timestamp(5));
        assert_eq!(freshness.as_of(host), Some(Timestamp(30)), "what is newer stands");
    }
}
