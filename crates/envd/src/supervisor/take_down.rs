//! Ending everything that runs in the sandbox.

use std::{collections::HashSet, time::Duration};

use rustix::process::Signal;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Event, Supervisor};
use crate::{
    processes::{self, Process},
    reap,
};

/// The longest grace, whatever was asked for.
const GRACE_MAX: Duration = Duration::from_secs(600);
/// How long processes may take to vanish after SIGKILL. One that hangs in the kernel cannot be
/// waited for without end; the driver looks for what is left.
const KILL_MAX: Duration = Duration::from_secs(30);
/// How long the host's files may take to close once nothing runs any more. Whatever was answered is
/// in them already.
const CLOSE_MAX: Duration = Duration::from_secs(2);
/// How often the processes are looked at again.
const LOOK: Duration = Duration::from_millis(20);

impl Supervisor {
    /// Closes the host, then SIGTERM to everything, `grace`, then SIGKILL until nothing is left. A
    /// further stop can only shorten the grace; everything else that is asked meanwhile is refused.
    ///
    /// The grace is for all of it: agents that are slow to leave have half of it before the rest is
    /// told to end.
    pub(super) async fn take_down(&mut self, grace: Duration) {
        let begun = Instant::now();
        let until = begun + grace.min(GRACE_MAX);
        self.journal.note(format_args!("stopping, with a grace of {} ms", grace.as_millis()));
        let closed = CancellationToken::new();
        let (environment, told) = (self.environment.clone(), closed.clone().drop_guard());
        tokio::spawn(async move {
            environment.end().await;
            drop(told);
        });
        let until = self.wait_for_host(&closed, begun, until).await;
        self.end_processes(begun, until).await;
        let _cut_short = tokio::time::timeout(CLOSE_MAX, closed.cancelled()).await;
    }

    /// Waits until the host is closed, or half of the grace is over. Returns the end of the grace.
    async fn wait_for_host(
        &mut self,
        closed: &CancellationToken,
        begun: Instant,
        mut until: Instant,
    ) -> Instant {
        loop {
            tokio::select! {
                () = closed.cancelled() => return until,
                () = tokio::time::sleep_until(begun + (until - begun) / 2) => return until,
                _ = self.child_ended.recv() => drop(reap::reap(&[])),
                Some(event) = self.events.recv() => until = shortened(until, event),
            }
        }
    }

    async fn end_processes(&mut self, begun: Instant, mut until: Instant) {
        let mut told = HashSet::new();
        loop {
            if !reap::reap(&[]).any_left {
                break;
            }
            let now = Instant::now();
            if now >= until + KILL_MAX {
                self.journal.note(format_args!("processes are left that cannot be killed"));
                return;
            }
            let found =
                processes::descendants(std::process::id().cast_signed()).unwrap_or_default();
            if now < until {
                tell(&found, &mut told);
            } else {
                for process in found {
                    let _gone = processes::signal(process, Signal::KILL);
                }
            }
            tokio::select! {
                _ = self.child_ended.recv() => {}
                () = tokio::time::sleep_until(until.clamp(now + Duration::from_millis(1), now + LOOK)) => {}
                Some(event) = self.events.recv() => until = shortened(until, event),
            }
        }
        self.journal.note(format_args!("stopped after {} ms", begun.elapsed().as_millis()));
    }
}

/// The end of the grace after another event. Dropping any but a stop tells its sender that there is
/// no answer.
fn shortened(until: Instant, event: Event) -> Instant {
    match event {
        Event::Stop { grace } => until.min(Instant::now() + grace),
        Event::Dial { .. }
        | Event::Start { .. }
        | Event::Probed { .. }
        | Event::LastWords { .. } => until,
    }
}

/// SIGTERM, once to each process, also to those that were born of it meanwhile. A stopped process
/// hears nothing before it is continued.
fn tell(found: &[Process], told: &mut HashSet<Process>) {
    for process in found {
        if told.insert(*process) {
            let _gone = processes::signal(*process, Signal::TERM);
            let _gone = processes::signal(*process, Signal::CONT);
        }
    }
}
