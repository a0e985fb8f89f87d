//! How long sessions and tokens live, and how many sessions there may be.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The lifetimes and bounds of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionPolicy {
    /// The life of an access token. A token never outlives its session.
    pub access_token: Duration,
    /// The life of a session that a grant began. Its client renews by another grant.
    pub granted: Duration,
    /// The life of a paired session since its last renewal.
    pub paired: Duration,
    /// Sessions at a time. One too many drops one that is over, or the oldest unconnected one of
    /// the same subject; where there is neither, it is refused.
    pub sessions_max: usize,
}

impl Default for SessionPolicy {
    fn default() -> Self {
        Self {
            access_token: Duration::from_secs(3_600),
            granted: Duration::from_secs(3_600),
            paired: 30 * DAY,
            sessions_max: 1_024,
        }
    }
}

/// A lifetime or bound that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` must be {expected}")]
pub struct PolicyError {
    /// Which one.
    pub field: &'static str,
    /// What it may be.
    pub expected: &'static str,
}

impl SessionPolicy {
    /// Checks it, before anything is started with it.
    ///
    /// # Errors
    /// For a life of less than a second or more than a year, and for a bound of none.
    pub fn check(&self) -> Result<(), PolicyError> {
        let lives = [
            ("access_token", self.access_token),
            ("granted", self.granted),
            ("paired", self.paired),
        ];
        for (field, life) in lives {
            if life < Duration::from_secs(1) || life > 366 * DAY {
                return Err(PolicyError { field, expected: "between a second and 366 days" });
            }
        }
        if self.sessions_max == 0 || self.sessions_max > 65_536 {
            return Err(PolicyError { field: "sessions_max", expected: "between 1 and 65536" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_makes_no_sense_is_refused() {
        let good = SessionPolicy::default();
        assert_eq!(good.check(), Ok(()));
        assert_eq!(good.granted, Duration::from_secs(3_600));
        assert_eq!(good.paired, 30 * DAY);
        let table = [
            SessionPolicy { access_token: Duration::ZERO, ..good },
            SessionPolicy { granted: Duration::from_millis(999), ..good },
            SessionPolicy { paired: Duration::MAX, ..good },
            SessionPolicy { sessions_max: 0, ..good },
            SessionPolicy { sessions_max: usize::MAX, ..good },
        ];
        for bad in table {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
