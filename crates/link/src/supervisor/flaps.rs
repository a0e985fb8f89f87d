//! Sessions that end soon after they began.

use crate::Failure;

/// From so many short sessions in a row on, the connection is said to keep ending.
pub const FLAPS_TOLD: u32 = 3;

/// A failed check is followed by an attempt without a wait, but by no more than this many without
/// a lasting session or a person's sign in between: then the ladder's waits hold.
pub const HASTES_MOST: u8 = 3;

/// What is known of the last sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct Flaps {
    short: u32,
    hastes: u8,
}

impl Flaps {
    /// A session ended by itself or by a failed check.
    pub(super) const fn ended(&mut self, lasting: bool) {
        if lasting {
            self.short = 0;
            self.hastes = 0;
        } else {
            self.short = self.short.saturating_add(1);
        }
    }

    /// A person is there.
    pub(super) const fn attended(&mut self) {
        self.hastes = 0;
    }

    /// Whether an attempt may begin without a wait; counts it.
    pub(super) const fn haste(&mut self) -> bool {
        let may = self.hastes < HASTES_MOST;
        if may {
            self.hastes += 1;
        }
        may
    }

    /// Why the last session ended, with the pattern where there is one.
    pub(super) fn told(&self, mut failure: Failure) -> Failure {
        if self.short >= FLAPS_TOLD {
            failure.detail = format!("the connection keeps ending: {}", failure.detail);
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureReason;

    #[test]
    fn the_third_short_session_in_a_row_is_told_and_a_lasting_one_ends_the_row() {
        let mut flaps = Flaps::default();
        let told =
            |flaps: &Flaps| flaps.told(Failure::new(FailureReason::Transport, "gone")).detail;
        for _ in 0..2 {
            flaps.ended(false);
            assert_eq!(told(&flaps), "gone");
        }
        flaps.ended(false);
        assert_eq!(told(&flaps), "the connection keeps ending: gone");
        flaps.ended(true);
        assert_eq!(told(&flaps), "gone");
    }

    #[test]
    fn haste_is_bounded_until_a_person_or_a_lasting_session_comes() {
        let mut flaps = Flaps::default();
        let hastes = |flaps: &mut Flaps| (0..5).filter(|_| flaps.haste()).count();
        assert_eq!(hastes(&mut flaps), 3);
        flaps.ended(false);
        assert_eq!(hastes(&mut flaps), 0);
        flaps.attended();
        assert_eq!(hastes(&mut flaps), 3);
        flaps.ended(true);
        assert_eq!(hastes(&mut flaps), 3);
    }
}
