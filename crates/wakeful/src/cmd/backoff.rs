//! The pauses between tries of the same thing.

use std::time::Duration;

/// The first pause.
const FIRST: Duration = Duration::from_millis(250);

/// Pauses that double up to a bound, over a bounded or unbounded number of tries.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
    left: Option<u32>,
}

impl Backoff {
    /// So many pauses, each of at most `longest`.
    pub(super) const fn tries(pauses: u32, longest: Duration) -> Self {
        Self { next: FIRST, longest, left: Some(pauses) }
    }

    /// Pauses without end, each of at most `longest`.
    pub(super) const fn endless(longest: Duration) -> Self {
        Self { next: FIRST, longest, left: None }
    }

    /// The next pause; nothing when it was tried often enough.
    pub(super) fn pause(&mut self) -> Option<Duration> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        Some(pause)
    }

    /// Begins with the shortest pause again: something has worked.
    pub(super) const fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_bound_and_end() {
        let mut backoff = Backoff::tries(4, Duration::from_millis(700));
        let pauses: Vec<_> = std::iter::from_fn(|| backoff.pause()).collect();
        assert_eq!(
            pauses.iter().map(Duration::as_millis).collect::<Vec<_>>(),
            [250, 500, 700, 700]
        );
        let mut endless = Backoff::endless(Duration::from_secs(1));
        assert!((0..100).all(|_| endless.pause().is_some()));
        endless.reset();
        assert_eq!(endless.pause(), Some(FIRST));
    }
}
