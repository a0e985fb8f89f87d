//! Whether the machine slept, or this process was stopped.
//!
//! A timer on the clock that goes on while the machine sleeps looks at the clocks each [`TICK`], and
//! at once when the machine comes back. It wakes no machine.

mod gap;

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::mpsc,
};

use self::gap::{Readings, Sample};
use super::{Signal, readable::readable};

/// How long between two looks.
const TICK: Duration = Duration::from_secs(5);
/// Two clocks are read at one moment if reading them took no longer.
const ONE_MOMENT: Duration = Duration::from_millis(50);
/// How often the clocks are read anew, on a machine too busy to read them at one moment.
const READS_MAX: usize = 8;

/// Says every suspension, until nobody listens.
pub(super) async fn watch(says: mpsc::Sender<Signal>) {
    if let Err(error) = follow(&says).await {
        tracing::warn!(%error, "suspensions of this machine cannot be noticed");
    }
}

async fn follow(says: &mpsc::Sender<Signal>) -> io::Result<()> {
    let timer = Timer::new()?;
    let mut readings = Readings::begun(sample());
    loop {
        timer.wait(TICK).await?;
        if let Some(suspended) = readings.read(sample(), TICK)
            && says.send(Signal::Suspended(suspended)).await.is_err()
        {
            return Ok(());
        }
    }
}

/// A timer on the clock that goes on while the machine sleeps.
#[derive(Debug)]
struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        readable(timer).map(Self)
    }

    async fn wait(&self, time: Duration) -> io::Result<()> {
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec::try_from(time).map_err(io::Error::other)?,
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        let expired = self.0.async_io(Interest::READABLE, |timer| {
            let mut expirations = [0; 8];
            Ok(rustix::io::read(timer, &mut expirations)?)
        });
        expired.await.map(|_read| ())
    }
}

/// Reads both clocks at one moment, as far as that can be had.
fn sample() -> Sample {
    let mut read = read_clocks();
    for _again in 1..READS_MAX {
        if read.1 <= ONE_MOMENT {
            break;
        }
        read = read_clocks();
    }
    read.0
}

/// What the clocks say, and how long reading them took.
fn read_clocks() -> (Sample, Duration) {
    let monotonic = time(ClockId::Monotonic);
    let boot = time(ClockId::Boottime);
    let took = time(ClockId::Monotonic).saturating_sub(monotonic);
    (Sample { boot, monotonic }, took)
}

fn time(clock: ClockId) -> Duration {
    // Neither of these clocks is ever negative.
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
