//! When changes that come in a row are over.

use std::{io, time::Duration};

use tokio::time::{Instant, timeout_at};

/// A change is looked at when nothing else has changed for so long.
const QUIET: Duration = Duration::from_millis(250);
/// Changes that do not end are looked at nevertheless, so long after the first.
const UNREST_MAX: Duration = Duration::from_secs(2);

/// What tells of changes.
pub(super) trait Changes {
    /// Waits for a change. Nothing is lost if this is dropped meanwhile.
    fn changed(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Waits until something has changed, and what comes in a row with it is over.
pub(super) async fn settled(changes: &mut impl Changes) -> io::Result<()> {
    changes.changed().await?;
    let mut settling = Settling::begun(Instant::now());
    loop {
        match timeout_at(settling.due(), changes.changed()).await {
            Ok(changed) => changed?,
            Err(_quiet) => return Ok(()),
        }
        let now = Instant::now();
        settling.again(now);
        if settling.due() <= now {
            return Ok(());
        }
    }
}

/// Changes in a row. Joining a network is a dozen of them; only what comes of it is of interest.
#[derive(Debug, Clone, Copy)]
struct Settling {
    first: Instant,
    last: Instant,
}

impl Settling {
    /// The first change came.
    const fn begun(now: Instant) -> Self {
        Self { first: now, last: now }
    }

    /// Another one came.
    const fn again(&mut self, now: Instant) {
        self.last = now;
    }

    /// When to look.
    fn due(&self) -> Instant {
        (self.last + QUIET).min(self.first + UNREST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_puts_the_look_off_but_not_for_ever() {
        let start = Instant::now();
        let mut settling = Settling::begun(start);
        assert_eq!(settling.due(), start + QUIET);
        let mut now = start;
        while now + QUIET < start + UNREST_MAX {
            now += Duration::from_millis(100);
            settling.again(now);
            assert_eq!(settling.due(), (now + QUIET).min(start + UNREST_MAX));
        }
        settling.again(start + Duration::from_secs(60));
        assert_eq!(settling.due(), start + UNREST_MAX);
    }

    /// So many changes, each so long after the one before; then nothing.
    struct Row {
        left: usize,
        between: Duration,
    }

    impl Changes for Row {
        async fn changed(&mut self) -> io::Result<()> {
            if self.left == 0 {
                return std::future::pending().await;
            }
            tokio::time::sleep(self.between).await;
            self.left -= 1;
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_row_of_changes_is_looked_at_once_after_its_end() {
        let mut row = Row { left: 5, between: Duration::from_millis(1) };
        let start = Instant::now();
        settled(&mut row).await.unwrap();
        assert_eq!(row.left, 0);
        assert!(start.elapsed() >= QUIET);
    }

    #[tokio::test]
    async fn changes_without_end_are_looked_at_all_the_same() {
        let mut row = Row { left: usize::MAX, between: Duration::from_millis(5) };
        let start = Instant::now();
        settled(&mut row).await.unwrap();
        assert!(start.elapsed() >= QUIET);
    }
}
