//! Which environment's prompts are looked at next, and when.

use std::collections::{BTreeSet, HashMap};

use tokio::time::Instant;
use wakeful_wire::EnvId;

use super::decide::{WAKE_AGAIN, pause};

/// Why an environment's prompts are to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spur {
    /// There is another prompt, or nobody has looked for a while. It cuts no pause short.
    Prompt,
    /// The environment has changed: whatever was waited for may have come.
    Changed,
}

/// The first waiting prompt of an environment, and when it last woke that.
pub(super) type Woken = (i64, Instant);

/// How a look ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// No prompt waits.
    Idle,
    /// The first prompt is settled; another one may wait.
    Settled,
    /// The first prompt could not be handed over.
    Failed,
    /// The first prompt waits for its environment, at most until this moment.
    Waits(Option<Instant>),
    /// This prompt woke its environment.
    Woke(i64),
}

#[derive(Debug, Default)]
struct Lane {
    due: Option<Instant>,
    running: bool,
    /// What came while a look was under way.
    again: Option<Spur>,
    failures: u32,
    woken: Option<Woken>,
}

/// Every environment for which prompts wait, as far as is known. One look at an environment is
/// under way at a time, so its prompts go in order.
#[derive(Debug, Default)]
pub(super) struct Rota {
    lanes: HashMap<EnvId, Lane>,
    /// The due times of lanes without a look under way.
    due: BTreeSet<(Instant, EnvId)>,
}

impl Rota {
    /// Something was heard of an environment.
    pub(super) fn stir(&mut self, env: EnvId, spur: Spur, now: Instant) {
        let known = self.lanes.contains_key(&env);
        if spur == Spur::Changed && !known {
            // No prompt waits there.
            return;
        }
        let lane = self.lanes.entry(env).or_default();
        if lane.running {
            lane.again = lane.again.max(Some(spur));
            return;
        }
        if spur == Spur::Changed || lane.due.is_none() {
            self.schedule(env, Some(now));
        }
    }

    /// Every environment may have changed.
    pub(super) fn stir_all(&mut self, now: Instant) {
        let all: Vec<_> = self.lanes.keys().copied().collect();
        for env in all {
            self.stir(env, Spur::Changed, now);
        }
    }

    /// When the next look is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Begins the look that has been due for longest, if one is.
    pub(super) fn begin(&mut self, now: Instant) -> Option<(EnvId, Option<Woken>)> {
        let (due, env) = *self.due.first()?;
        if due > now {
            return None;
        }
        self.schedule(env, None);
        let lane = self.lanes.get_mut(&env)?;
        lane.running = true;
        Some((env, lane.woken))
    }

    /// A look has ended.
    pub(super) fn end(&mut self, env: EnvId, after: After, now: Instant) {
        let Some(lane) = self.lanes.get_mut(&env) else { return };
        lane.running = false;
        let again = lane.again.take();
        let changed = again == Some(Spur::Changed);
        let due = match after {
            After::Idle if again.is_none() => {
                self.lanes.remove(&env);
                return;
            }
            After::Idle => Some(now),
            After::Settled => {
                lane.failures = 0;
                Some(now)
            }
            After::Failed => {
                lane.failures = lane.failures.saturating_add(1);
                Some(if changed { now } else { now + pause(lane.failures) })
            }
            After::Waits(until) => {
                lane.failures = 0;
                if changed { Some(now) } else { until }
            }
            After::Woke(seq) => {
                lane.failures = 0;
                lane.woken = Some((seq, now));
                Some(if changed { now } else { now + WAKE_AGAIN })
            }
        };
        self.schedule(env, due);
    }

    fn schedule(&mut self, env: EnvId, due: Option<Instant>) {
        let Some(lane) = self.lanes.get_mut(&env) else { return };
        if let Some(before) = std::mem::replace(&mut lane.due, due) {
            self.due.remove(&(before, env));
        }
        if let Some(due) = due {
            self.due.insert((due, env));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wakeful_lifecycle::testing::an_env;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Begins a look that must be due.
    fn begin(rota: &mut Rota, env: EnvId, now: Instant) -> Option<Woken> {
        let (begun, woken) = rota.begin(now).unwrap();
        assert_eq!(begun, env);
        woken
    }

    #[test]
    fn one_look_at_an_environment_is_under_way_at_a_time() {
        let (mut rota, env, now) = (Rota::default(), an_env(), Instant::now());
        rota.stir(env, Spur::Prompt, now);
        begin(&mut rota, env, now);
        rota.stir(env, Spur::Prompt, now);
        rota.stir(env, Spur::Changed, now);
        assert_eq!((rota.begin(now), rota.next()), (None, None));
        rota.end(env, After::Settled, now);
        begin(&mut rota, env, now);
        rota.end(env, After::Idle, now);
        assert_eq!((rota.next(), rota.lanes.len()), (None, 0), "nothing is kept of it");
    }

    #[test]
    fn what_comes_while_a_look_finds_nothing_is_looked_at() {
        let (mut rota, env, now) = (Rota::default(), an_env(), Instant::now());
        rota.stir(env, Spur::Prompt, now);
        begin(&mut rota, env, now);
        rota.stir(env, Spur::Prompt, now);
        rota.end(env, After::Idle, now);
        begin(&mut rota, env, now);
    }

    #[test]
    fn a_failing_environment_is_tried_ever_less_often_and_a_prompt_cuts_no_pause_short() {
        let (mut rota, env, start) = (Rota::default(), an_env(), Instant::now());
        let mut now = start;
        rota.stir(env, Spur::Prompt, now);
        for expected in [200, 400, 800, 1_600] {
            begin(&mut rota, env, now);
            rota.stir(env, Spur::Prompt, now);
            rota.end(env, After::Failed, now);
            rota.stir(env, Spur::Prompt, now);
            assert_eq!(rota.next(), Some(now + ms(expected)));
            assert_eq!(rota.begin(now + ms(expected - 1)), None);
            now += ms(expected);
        }
        // A change does, and a success ends the series.
        begin(&mut rota, env, now);
        rota.end(env, After::Failed, now);
        rota.stir(env, Spur::Changed, now);
        begin(&mut rota, env, now);
        rota.end(env, After::Settled, now);
        begin(&mut rota, env, now);
        rota.end(env, After::Failed, now);
        assert_eq!(rota.next(), Some(now + ms(200)));
    }

    #[test]
    fn a_change_during_a_look_leads_to_another_one_at_once() {
        for after in [After::Failed, After::Waits(None), After::Woke(3)] {
            let (mut rota, env, now) = (Rota::default(), an_env(), Instant::now());
            rota.stir(env, Spur::Prompt, now);
            begin(&mut rota, env, now);
            rota.stir(env, Spur::Changed, now);
            rota.end(env, after, now);
            assert_eq!(rota.next(), Some(now), "{after:?}");
        }
    }

    #[test]
    fn a_wake_is_remembered_and_looked_after_when_another_may_follow() {
        let (mut rota, env, now) = (Rota::default(), an_env(), Instant::now());
        rota.stir(env, Spur::Prompt, now);
        assert_eq!(begin(&mut rota, env, now), None);
        rota.end(env, After::Woke(7), now);
        assert_eq!(rota.next(), Some(now + WAKE_AGAIN));
        rota.stir(env, Spur::Changed, now);
        assert_eq!(begin(&mut rota, env, now), Some((7, now)));
        rota.end(env, After::Waits(None), now);
        assert_eq!(rota.next(), None);
        rota.stir(env, Spur::Prompt, now);
        assert_eq!(rota.next(), Some(now), "whoever looks in from time to time finds it");
    }

    #[test]
    fn a_change_where_no_prompt_waits_is_nothing_and_missed_ones_concern_all() {
        let (mut rota, now) = (Rota::default(), Instant::now());
        let (first, second) = (an_env(), an_env());
        rota.stir(first, Spur::Changed, now);
        assert_eq!(rota.next(), None);
        for env in [first, second] {
            rota.stir(env, Spur::Prompt, now);
            begin(&mut rota, env, now);
            rota.end(env, After::Waits(None), now);
        }
        rota.stir_all(now);
        assert!(rota.begin(now).is_some() && rota.begin(now).is_some());
    }
}
