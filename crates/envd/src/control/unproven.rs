//! Connections that have not shown the secret yet.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

/// How many there are at once. A further one drives out the oldest.
const UNPROVEN_MAX: usize = 64;

/// How long each is left in peace. An asker that is what it says it is sends its line at once, but
/// a herd of them may connect before the first one comes to that.
const PEACE: Duration = Duration::from_millis(20);

/// The connections that are waited for, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Unproven {
    held: Mutex<Held>,
    left: Notify,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    trials: BTreeMap<u64, (Instant, oneshot::Sender<()>)>,
}

/// The time of one connection, from its acceptance to its proof: dropped when it has given it.
#[derive(Debug)]
pub(super) struct Trial {
    number: u64,
    evicted: oneshot::Receiver<()>,
    among: Arc<Unproven>,
}

impl Unproven {
    /// Takes one more in, when there is room: as soon as another has left, and at the latest when
    /// the oldest has had its [`PEACE`], which is then driven out. For one caller at a time.
    pub(super) async fn admit(self: &Arc<Self>) -> Trial {
        while let Some(oldest) = self.oldest_if_full() {
            tokio::select! {
                () = self.left.notified() => {}
                () = tokio::time::sleep_until(oldest + PEACE) => self.evict_one(),
            }
        }
        let (sender, evicted) = oneshot::channel();
        let mut held = self.held.lock();
        let number = held.next;
        held.next += 1;
        held.trials.insert(number, (Instant::now(), sender));
        Trial { number, evicted, among: Arc::clone(self) }
    }

    /// When the oldest came, if there is no room.
    fn oldest_if_full(&self) -> Option<Instant> {
        let held = self.held.lock();
        let (since, _) = held.trials.values().next()?;
        (held.trials.len() >= UNPROVEN_MAX).then_some(*since)
    }

    fn evict_one(&self) {
        let mut held = self.held.lock();
        if held.trials.len() >= UNPROVEN_MAX {
            // Its end of the channel goes with it, which is how it is told.
            held.trials.pop_first();
        }
    }
}

impl Trial {
    /// Returns when it is driven out.
    pub(super) async fn evicted(&mut self) {
        let _told = (&mut self.evicted).await;
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if self.among.held.lock().trials.remove(&self.number).is_some() {
            self.among.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(trial: &mut Trial) -> bool {
        trial.evicted.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[tokio::test]
    async fn a_new_one_drives_out_the_oldest_once_it_has_had_its_peace() {
        let unproven = Arc::new(Unproven::default());
        let mut trials = Vec::new();
        for _ in 0..UNPROVEN_MAX {
            trials.push(unproven.admit().await);
        }
        assert!(trials.iter_mut().all(|trial| !is_evicted(trial)));
        let came = trials[0].among.oldest_if_full().unwrap();
        trials.push(unproven.admit().await);
        assert!(came.elapsed() >= PEACE);
        let evicted: Vec<_> = trials.iter_mut().map(is_evicted).collect();
        assert!(evicted[0] && evicted[1..].iter().all(|evicted| !evicted), "{evicted:?}");
        // One that leaves makes room without another's harm, the evicted one does not count.
        trials.swap_remove(0);
        trials.pop();
        trials.push(unproven.admit().await);
        assert!(trials.iter_mut().all(|trial| !is_evicted(trial)));
    }
}
