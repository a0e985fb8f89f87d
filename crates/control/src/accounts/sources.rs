//! Where accounts get the time and randomness from.

use std::{fmt, sync::Arc};

use wakeful_wire::Timestamp;

type Now = dyn Fn() -> Timestamp + Send + Sync;
type Fill = dyn Fn(&mut [u8]) + Send + Sync;

/// Time and randomness, passed in. A cheap handle.
#[derive(Clone)]
pub struct Sources {
    now: Arc<Now>,
    fill: Arc<Fill>,
}

impl Sources {
    /// Time from `now`, secrets from `fill`, which must be fit for secrets.
    #[must_use]
    pub fn new(
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
        fill: impl Fn(&mut [u8]) + Send + Sync + 'static,
    ) -> Self {
        Self { now: Arc::new(now), fill: Arc::new(fill) }
    }

    /// Time from `now`, secrets from the operating system.
    #[must_use]
    pub fn system(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self::new(now, |bytes| {
            getrandom::fill(bytes).expect("the operating system's random source answers");
        })
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Fills `bytes` with randomness.
    pub fn fill(&self, bytes: &mut [u8]) {
        (self.fill)(bytes);
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}
