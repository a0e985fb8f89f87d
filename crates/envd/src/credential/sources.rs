//! Where credentials take time and randomness from.

use std::{fmt, sync::Arc};

use wakeful_wire::Timestamp;

use crate::clock;

type Clock = dyn Fn() -> Timestamp + Send + Sync;
type Random = dyn Fn(&mut [u8]) + Send + Sync;

/// Time and randomness, passed in.
///
/// The time is the wall clock's: it is compared with the clocks of clients and of the platform.
#[derive(Clone)]
pub struct Sources {
    clock: Arc<Clock>,
    random: Arc<Random>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

impl Sources {
    /// Sources of one's own. `random` fills what it is given with bytes that nobody can guess.
    pub fn new(
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
        random: impl Fn(&mut [u8]) + Send + Sync + 'static,
    ) -> Self {
        Self { clock: Arc::new(clock), random: Arc::new(random) }
    }

    /// The wall clock and the kernel's random source.
    ///
    /// # Panics
    /// Later, when something is drawn and the kernel has no randomness to give, which no supported
    /// system does once it has booted.
    #[must_use]
    pub fn system() -> Self {
        Self::new(clock::wall, |bytes| getrandom::fill(bytes).expect("the kernel gives randomness"))
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Random bytes.
    pub(super) fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.random)(&mut bytes);
        bytes
    }
}
