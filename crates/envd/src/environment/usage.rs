//! How a host is used, as the platform is told: what keeps its environment awake.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use wakeful_wire::{
    Timestamp,
    rpc::{RunningTurn, ThreadId, TurnId},
    sandbox::HostUse,
};

use super::{
    activity::{Activity, Tick},
    opening::Opened,
};
use crate::{
    agent::{Lease, Leases},
    host::Use,
};

/// The shortest time between two looks: streamed content publishes many times a second. A suspend
/// asks for itself how many turns run, so nothing rests on how fresh this is.
const PAUSE: Duration = Duration::from_millis(50);
/// A turn's limit is by the wall clock, which may be set: no wait for it is longer than this.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// Hears of use.
#[derive(Clone)]
pub(crate) struct Uses(Arc<Inner>);

struct Inner {
    origin: Instant,
    activity: Mutex<Activity>,
    changed: Notify,
}

impl fmt::Debug for Uses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Uses").field(&*self.0.activity.lock()).finish()
    }
}

impl Uses {
    /// Counts use at most once each `interval`.
    pub(crate) fn new(interval: Duration) -> Self {
        Self(Arc::new(Inner {
            origin: Instant::now(),
            activity: Mutex::new(Activity::new(interval)),
            changed: Notify::new(),
        }))
    }

    fn now(&self) -> Tick {
        self.0.origin.elapsed()
    }

    /// What has been counted, and when there is more to count.
    fn look(&self) -> (u64, Option<Instant>) {
        let now = self.now();
        let mut activity = self.0.activity.lock();
        activity.handle_timeout(now);
        (activity.count(), activity.poll_timeout().map(|due| self.0.origin + due))
    }
}

impl Use for Uses {
    fn used(&self) {
        let now = self.now();
        self.0.activity.lock().handle_use(now);
        self.0.changed.notify_one();
    }
}

impl Leases for Uses {
    /// Holds nothing by itself. Running turns are counted from the log, which says of each when it
    /// began and ended; a second count beside it could only come to disagree.
    fn hold(&self, _thread: ThreadId, _turn: TurnId) -> Box<dyn Lease> {
        Box::new(())
    }

    fn touch(&self, _thread: ThreadId) {
        self.used();
    }
}

/// Says how the host is used, whenever that changes, for as long as it is polled. Turns count up to
/// `limit` from their start.
pub(super) async fn tell(
    opened: &Opened,
    uses: &Uses,
    limit: Duration,
    usage: &watch::Sender<HostUse>,
) {
    let mut head = opened.threads.head();
    loop {
        // Marked as seen before looking: what is published after the look is then a change.
        head.mark_unchanged();
        let turns = opened.host.turns(limit);
        let (activity, due) = uses.look();
        let now = HostUse { fault: None, turns, activity };
        usage.send_if_modified(|told| {
            let changed = *told != now;
            *told = now;
            changed
        });
        let over = next_over(&opened.threads.running(), limit, opened.now())
            .map(|wait| Instant::now() + wait.min(LOOK_AGAIN));
        let next = due.into_iter().chain(over).min();
        tokio::select! {
            changed = head.changed() => if changed.is_err() { return },
            () = uses.0.changed.notified() => {}
            () = at(next) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How long until the next running turn is over its limit. Those that are already do not count.
fn next_over(
    running: &[(ThreadId, RunningTurn)],
    limit: Duration,
    now: Timestamp,
) -> Option<Duration> {
    let ends = running.iter().map(|(_, turn)| turn.started_at.after(limit));
    ends.filter(|end| *end > now).min().map(|end| now.until(end))
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use wakeful_wire::rpc::ClientId;

    use super::*;

    fn turn(started_at: u64) -> (ThreadId, RunningTurn) {
        let running = RunningTurn {
            id: TurnId::from_uuid(Uuid::nil()),
            prompt: ClientId::from_uuid(Uuid::nil()),
            started_at: Timestamp(started_at),
            cancel_requested_at: None,
        };
        (ThreadId::from_uuid(Uuid::nil()), running)
    }

    #[test]
    fn the_next_look_is_when_the_oldest_turn_within_its_limit_leaves_it() {
        let limit = Duration::from_millis(100);
        let next = |running: &[_], now| next_over(running, limit, Timestamp(now));
        assert_eq!(next(&[], 0), None);
        assert_eq!(next(&[turn(50)], 60), Some(Duration::from_millis(90)));
        assert_eq!(next(&[turn(10), turn(50)], 60), Some(Duration::from_millis(50)));
        assert_eq!(next(&[turn(10), turn(50)], 110), Some(Duration::from_millis(40)));
        assert_eq!(next(&[turn(10), turn(50)], 150), None);
        // A turn from ahead of a clock that was set back still has its whole limit.
        assert_eq!(next(&[turn(1_000)], 0), Some(Duration::from_millis(1_100)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_agent_does_outside_of_a_turn_is_use() {
        let uses = Uses::new(Duration::from_secs(60));
        assert_eq!(uses.look(), (0, None));
        uses.touch(ThreadId::from_uuid(Uuid::nil()));
        assert_eq!(uses.look(), (1, None));
        uses.used();
        let (count, due) = uses.look();
        assert_eq!((count, due), (1, Some(Instant::now() + Duration::from_secs(60))));
        tokio::time::sleep_until(due.unwrap()).await;
        assert_eq!(uses.look(), (2, None));
    }
}
