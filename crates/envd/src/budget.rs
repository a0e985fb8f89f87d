//! How often a program that ends is started again.

use std::{collections::VecDeque, time::Duration};

use crate::surface::Tick;

/// The numbers of a [`Budget`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct BudgetPolicy {
    /// How many restarts fit in a window.
    pub(crate) restarts: usize,
    /// How long a restart counts.
    pub(crate) window: Duration,
    /// The wait before the first restart; each further one in the window doubles it.
    pub(crate) first: Duration,
    /// The longest wait.
    pub(crate) longest: Duration,
}

impl Default for BudgetPolicy {
    fn default() -> Self {
        Self {
            restarts: 5,
            window: Duration::from_secs(60),
            first: Duration::from_millis(100),
            longest: Duration::from_secs(5),
        }
    }
}

/// What to do about a program that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterEnd {
    /// Start it again after this wait.
    Restart(Duration),
    /// It ended too often: leave it until somebody asks.
    GiveUp,
}

/// Counts the restarts of one program in a sliding window.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    policy: BudgetPolicy,
    recent: VecDeque<Tick>,
}

impl Budget {
    pub(crate) fn new(policy: BudgetPolicy) -> Self {
        Self { policy, recent: VecDeque::new() }
    }

    /// The numbers it keeps to.
    pub(crate) const fn policy(&self) -> &BudgetPolicy {
        &self.policy
    }

    /// The program ended at `now`. A restart that is answered is also counted.
    pub(crate) fn ended(&mut self, now: Tick) -> AfterEnd {
        while self.recent.front().is_some_and(|at| now.saturating_sub(*at) >= self.policy.window) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.policy.restarts {
            return AfterEnd::GiveUp;
        }
        let doublings = u32::try_from(self.recent.len()).unwrap_or(u32::MAX).min(16);
        self.recent.push_back(now);
        AfterEnd::Restart(self.policy.first.saturating_mul(1 << doublings).min(self.policy.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn waits_double_until_the_budget_is_spent() {
        let mut budget = Budget::new(BudgetPolicy::default());
        let waits = [100, 200, 400, 800, 1600];
        for wait in waits {
            assert_eq!(budget.ended(ms(1000)), AfterEnd::Restart(ms(wait)));
        }
        assert_eq!(budget.ended(ms(1000)), AfterEnd::GiveUp);
    }

    #[test]
    fn a_wait_never_exceeds_the_longest() {
        let policy = BudgetPolicy { restarts: 40, ..BudgetPolicy::default() };
        let mut budget = Budget::new(policy);
        let last = (0..40).map(|_| budget.ended(ms(0))).last();
        assert_eq!(last, Some(AfterEnd::Restart(policy.longest)));
    }

    #[test]
    fn a_restart_counts_for_one_window_and_no_longer() {
        let mut budget = Budget::new(BudgetPolicy::default());
        for at in 0..5 {
            assert!(matches!(budget.ended(ms(at)), AfterEnd::Restart(_)));
        }
        assert_eq!(budget.ended(ms(59_999)), AfterEnd::GiveUp);
        // The restart at 0 has left the window: one is free again, at the longest wait so far.
        assert_eq!(budget.ended(ms(60_000)), AfterEnd::Restart(ms(1600)));
        assert_eq!(budget.ended(ms(60_000)), AfterEnd::GiveUp);
        // All have left it: the waits begin anew.
        assert_eq!(budget.ended(ms(200_000)), AfterEnd::Restart(ms(100)));
    }
}
