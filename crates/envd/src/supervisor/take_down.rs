//! Ending everything that runs in the sandbox.

use std::{collections::HashSet, time::Duration};

use rustix::process::Signal;
use tokio::time::Instant;

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
/// How often the processes are looked at again.
const LOOK: Duration = Duration::from_millis(20);

impl Supervisor {
    /// SIGTERM to everything, `grace`, then SIGKILL until nothing is left. A further stop can only
    /// shorten the grace; everything else that is asked meanwhile is refused.
    pub(super) async fn take_down(&mut self, grace: Duration) {
        let begun = Instant::now();
        let mut until = begun + grace.min(GRACE_MAX);
        self.journal.note(format_args!("stopping, with a grace of {} ms", grace.as_millis()));
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
                Some(event) = self.events.recv() => {
                    // Dropping any other event tells its sender that there is no answer.
                    if let Event::Stop { grace } = event {
                        until = until.min(Instant::now() + grace);
                    }
                }
            }
        }
        self.journal.note(format_args!("stopped after {} ms", begun.elapsed().as_millis()));
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
