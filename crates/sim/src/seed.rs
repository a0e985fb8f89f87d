//! The randomness of one run.

use std::sync::Arc;

use parking_lot::Mutex;

/// The randomness of one run. Clones draw from the same sequence.
#[derive(Debug, Clone)]
pub struct Seed(Arc<Mutex<u64>>);

impl Seed {
    /// The sequence that belongs to `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)))
    }

    /// The next number (splitmix64).
    #[must_use]
    pub fn draw(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is at least 1.
    #[must_use]
    pub fn below(&self, bound: u64) -> u64 {
        self.draw() % bound.max(1)
    }

    /// Gives way to everything else a number of times below `bound`.
    pub async fn give_way(&self, bound: u64) {
        for _ in 0..self.below(bound) {
            tokio::task::yield_now().await;
        }
    }
}
