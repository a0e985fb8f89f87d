//! The platform's clock: what `now` means in every stored moment.
//!
//! Wall clocks jump. Idle timeouts must not: a jump forward would suspend everything, a jump back
//! would make everything immortal (case C19). So the wall clock is read once, and from then on the
//! monotonic boot-time clock is counted. Across a restart of the platform within one boot of the
//! machine the anchor is read back from the store, so even a wall clock that was set while the
//! platform was down moves nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use wakeful_wire::Timestamp;

/// Where the platform's time was pinned to the machine's boot-time clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The boot in which it was pinned.
    pub boot_id: String,
    /// The boot-time clock then, in milliseconds.
    pub boot_ms: u64,
    /// The platform's time then.
    pub time: Timestamp,
}

/// The platform's clock.
#[derive(Debug, Clone)]
pub struct PlatformClock {
    anchor: Anchor,
}

impl PlatformClock {
    /// A clock that goes on from `stored`, if that was pinned in this boot; else one that is pinned
    /// to the wall clock now.
    #[must_use]
    pub fn resume(stored: Option<Anchor>) -> Self {
        Self::resume_at(stored, boot_id(), boot_ms(), wall())
    }

    fn resume_at(stored: Option<Anchor>, boot_id: String, boot_ms: u64, wall: Timestamp) -> Self {
        let anchor = match stored {
            Some(anchor) if anchor.boot_id == boot_id && anchor.boot_ms <= boot_ms => anchor,
            _ => Anchor { boot_id, boot_ms, time: wall },
        };
        Self { anchor }
    }

    /// The anchor, to be stored.
    #[must_use]
    pub const fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    /// The time now. Never goes back while the machine runs.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.at(boot_ms())
    }

    fn at(&self, boot_ms: u64) -> Timestamp {
        self.anchor.time.after(Duration::from_millis(boot_ms.saturating_sub(self.anchor.boot_ms)))
    }
}

fn boot_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds * 1_000 + nanos / 1_000_000
}

/// The wall clock, for what a program on the other side compares with its own.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(wakeful_wire::time::millis(since))
}

/// The id of this boot of the machine; empty where the kernel does not tell.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(boot: &str, boot_ms: u64, time: u64) -> Anchor {
        Anchor { boot_id: boot.into(), boot_ms, time: Timestamp(time) }
    }

    #[test]
    fn a_wall_clock_that_was_set_meanwhile_moves_nothing() {
        let stored = Some(anchor("b", 1_000, 50_000));
        for wall in [0, 50_000, 9_000_000_000] {
            let clock =
                PlatformClock::resume_at(stored.clone(), "b".into(), 4_000, Timestamp(wall));
            assert_eq!(clock.at(4_000), Timestamp(53_000), "wall clock at {wall}");
        }
    }

    #[test]
    fn another_boot_pins_it_anew() {
        let stored = Some(anchor("b", 1_000, 50_000));
        let clock = PlatformClock::resume_at(stored, "c".into(), 10, Timestamp(70_000));
        assert_eq!(clock.at(15), Timestamp(70_005));
    }

    #[test]
    fn it_goes_on() {
        let clock = PlatformClock::resume(None);
        let first = clock.now();
        assert!(clock.now() >= first);
        let resumed = PlatformClock::resume(Some(clock.anchor().clone()));
        assert!(resumed.now() >= first && resumed.now().since(first) < Duration::from_secs(60));
    }
}
