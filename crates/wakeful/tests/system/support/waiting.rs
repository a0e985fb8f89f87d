//! Waiting for values.

use std::time::{Duration, Instant};

/// Far more than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(15);

#[expect(clippy::disallowed_methods, reason = "the pause between two looks at a value")]
fn pause() {
    std::thread::sleep(LOOK);
}

/// Looks until there is a value.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        pause();
    }
}

/// Looks for `time` whether something stays true.
pub(crate) fn stays(what: &str, time: Duration, mut look: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        assert!(look(), "it did not stay so: {what}");
        pause();
    }
}
