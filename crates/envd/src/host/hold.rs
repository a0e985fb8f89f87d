//! Holding back what would begin while a suspend is being decided.
//!
//! The race of a suspend and a command is decided here. The control plane asks for a drain before
//! it commits the end of the sandbox; the answer counts the turns that run and the commands that
//! are just being carried out. From then on commands wait. Either the answer was "busy" and the
//! suspend is given up, or nothing ran and nothing can begin until the stop comes: what waits is
//! then refused as not taken, and its client sends it again to the next incarnation. Where the stop
//! does not come, the hold ends by itself and what waited goes on.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

/// The longest hold.
const HOLD_MAX: Duration = Duration::from_secs(60);

/// Whether commands may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    HeldUntil(Instant),
    Closed,
}

#[derive(Debug)]
struct State {
    gate: Gate,
    entered: u32,
}

/// The gate that every command passes.
#[derive(Debug)]
pub struct Hold {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

impl Default for Hold {
    fn default() -> Self {
        let state = Mutex::new(State { gate: Gate::Open, entered: 0 });
        Self { state, changed: watch::Sender::new(()) }
    }
}

/// A command that has passed the gate, until it is dropped.
#[derive(Debug)]
pub struct Entered<'a>(&'a Hold);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.state.lock().entered -= 1;
    }
}

impl Hold {
    /// Waits until commands may go on. Nothing once the host ends.
    pub async fn enter(&self) -> Option<Entered<'_>> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let until = {
                let mut state = self.state.lock();
                match state.gate {
                    Gate::Closed => return None,
                    Gate::HeldUntil(until) if until > Instant::now() => until,
                    Gate::Open | Gate::HeldUntil(_) => {
                        state.entered += 1;
                        return Some(Entered(self));
                    }
                }
            };
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// Holds what comes for this long; nothing ends a hold. Returns how many commands have passed
    /// and are still being carried out.
    pub fn begin(&self, hold: Duration) -> u32 {
        let mut state = self.state.lock();
        if state.gate != Gate::Closed {
            state.gate = match hold.min(HOLD_MAX) {
                Duration::ZERO => Gate::Open,
                hold => Gate::HeldUntil(Instant::now() + hold),
            };
        }
        let entered = state.entered;
        drop(state);
        self.changed.send_replace(());
        entered
    }

    /// Lets nothing through any more, and refuses what waits.
    pub fn close(&self) {
        self.state.lock().gate = Gate::Closed;
        self.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Poll};

    use futures::poll;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_hold_ends_by_itself_and_what_waited_goes_on() {
        let hold = Hold::default();
        assert_eq!(hold.begin(LONG), 0);
        let begun = Instant::now();
        assert!(hold.enter().await.is_some());
        assert_eq!(begun.elapsed(), LONG);
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_counts_what_has_passed_and_holds_what_comes() {
        let hold = Hold::default();
        let entered = hold.enter().await;
        assert_eq!(hold.begin(LONG), 1);
        drop(entered);
        assert_eq!(hold.begin(LONG), 0);
        let mut waiting = pin!(hold.enter());
        assert!(poll!(&mut waiting).is_pending());
        assert_eq!(hold.begin(Duration::ZERO), 0);
        assert!(matches!(poll!(&mut waiting), Poll::Ready(Some(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_when_the_host_ends_is_refused() {
        let hold = Hold::default();
        hold.begin(LONG);
        let mut waiting = pin!(hold.enter());
        assert!(poll!(&mut waiting).is_pending());
        hold.close();
        assert!(matches!(poll!(&mut waiting), Poll::Ready(None)));
        hold.begin(Duration::ZERO);
        assert!(hold.enter().await.is_none(), "a closed gate stays closed");
    }
}
