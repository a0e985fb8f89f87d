//! Holding: how long a request waits for its environment, and how many may wait.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use wakeful_wire::EnvId;

use crate::intent::Visit;

/// How long a page load by GET is held before it gets the waking page.
pub const PAGE_PATIENCE: Duration = Duration::from_secs(1);

/// How many requests may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For one environment.
    pub per_env: u32,
    /// In this gateway.
    pub total: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_env: 16_384, total: 65_536 }
    }
}

/// What becomes of a request whose environment is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long it is held from its arrival; zero for not at all.
    pub hold: Duration,
    /// What it gets when that is over.
    pub then: Then,
}

/// What a held request gets in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The waking page, which goes on by itself.
    WakingPage,
    /// 503 with `Retry-After`; a browser's socket is closed with 4503.
    Unavailable,
}

/// How long a visit is held. `wakes` is its intent, `budget` the wake budget. What does not wake
/// is not held, whatever it is.
#[must_use]
pub fn patience(visit: Visit, wakes: bool, budget: Duration) -> Patience {
    match (visit, wakes) {
        (Visit::PageLoad, true) => {
            Patience { hold: PAGE_PATIENCE.min(budget), then: Then::WakingPage }
        }
        (_, true) => Patience { hold: budget, then: Then::Unavailable },
        (_, false) => Patience { hold: Duration::ZERO, then: Then::Unavailable },
    }
}

/// Too many requests are held already: 503 at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests wait already")]
pub struct Overloaded;

/// Counts the requests that are held.
pub struct Waiting {
    limits: Limits,
    total: Arc<AtomicU32>,
    envs: Mutex<HashMap<EnvId, Arc<AtomicU32>>>,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("total", &self.total).finish_non_exhaustive()
    }
}

/// A place among those who wait; drop gives it back.
#[derive(Debug)]
pub struct Place {
    total: Arc<AtomicU32>,
    env: Arc<AtomicU32>,
}

impl Waiting {
    /// Nobody waits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, total: Arc::default(), envs: Mutex::default() }
    }

    /// Takes a place. At the bound it is refused at once, and nobody who waits is disturbed.
    ///
    /// # Errors
    /// The environment's places or all places are taken.
    pub fn enter(&self, env: EnvId) -> Result<Place, Overloaded> {
        let of_env = {
            let mut envs = self.envs.lock();
            // Counters that nobody holds are forgotten whenever the map has doubled.
            if envs.len() >= 64 && envs.len().is_power_of_two() {
                envs.retain(|_, count| Arc::strong_count(count) > 1);
            }
            Arc::clone(envs.entry(env).or_default())
        };
        take(&self.total, self.limits.total)?;
        if take(&of_env, self.limits.per_env).is_err() {
            self.total.fetch_sub(1, Relaxed);
            return Err(Overloaded);
        }
        Ok(Place { total: Arc::clone(&self.total), env: of_env })
    }

    /// How many requests are held in all.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.total.load(Relaxed)
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn take(count: &AtomicU32, limit: u32) -> Result<(), Overloaded> {
    count
        .fetch_update(Relaxed, Relaxed, |count| (count < limit).then(|| count + 1))
        .map(|_| ())
        .map_err(|_| Overloaded)
}

impl Drop for Place {
    fn drop(&mut self) {
        self.total.fetch_sub(1, Relaxed);
        self.env.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(n: u8) -> EnvId {
        format!("0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e{n:02x}").parse().unwrap()
    }

    #[test]
    fn only_what_wakes_is_held_and_a_page_load_only_briefly() {
        let budget = Duration::from_secs(60);
        let table = [
            (Visit::PageLoad, true, PAGE_PATIENCE, Then::WakingPage),
            (Visit::Submit, true, budget, Then::Unavailable),
            (Visit::Program, true, budget, Then::Unavailable),
            (Visit::Socket, true, budget, Then::Unavailable),
            (Visit::Resource, true, budget, Then::Unavailable),
            (Visit::PageLoad, false, Duration::ZERO, Then::Unavailable),
            (Visit::Resource, false, Duration::ZERO, Then::Unavailable),
            (Visit::Speculative, false, Duration::ZERO, Then::Unavailable),
        ];
        for (visit, wakes, hold, then) in table {
            assert_eq!(patience(visit, wakes, budget), Patience { hold, then }, "{visit:?}");
        }
        let short = Duration::from_millis(300);
        assert_eq!(patience(Visit::PageLoad, true, short).hold, short);
    }

    #[test]
    fn those_who_wait_are_bounded_per_environment_and_in_all() {
        let waiting = Waiting::new(Limits { per_env: 2, total: 3 });
        let first = waiting.enter(env(1)).unwrap();
        let second = waiting.enter(env(1)).unwrap();
        assert_eq!(waiting.enter(env(1)).unwrap_err(), Overloaded);
        assert_eq!(waiting.len(), 2, "a refusal takes no place");
        let third = waiting.enter(env(2)).unwrap();
        assert_eq!(waiting.enter(env(3)).unwrap_err(), Overloaded);
        drop(first);
        let fourth = waiting.enter(env(3)).unwrap();
        drop((second, third, fourth));
        assert!(waiting.is_empty());
    }

    #[test]
    fn counters_of_environments_that_nobody_waits_for_are_forgotten() {
        let waiting = Waiting::new(Limits::default());
        for n in 0..=255 {
            drop(waiting.enter(env(n)).unwrap());
        }
        assert!(waiting.envs.lock().len() <= 65);
    }
}
