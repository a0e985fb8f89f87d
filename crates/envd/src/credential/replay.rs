//! Which proofs were taken already.

use std::collections::{BTreeSet, HashMap, HashSet};

use wakeful_wire::{Timestamp, host::Denial};

use super::{key::Thumbprint, proof::Proof};

/// The bounds of a [`ReplayCache`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayBounds {
    /// Live proofs of one key.
    pub per_key: usize,
    /// Live proofs of all keys.
    pub total: usize,
}

impl Default for ReplayBounds {
    fn default() -> Self {
        Self { per_key: 8_192, total: 65_536 }
    }
}

/// Remembers every proof that was taken for as long as it could be taken again.
///
/// At its bound it refuses further proofs and forgets none that lives: forgetting one would let it
/// be replayed. One key reaches its own bound long before it fills the cache for the others. Only
/// proofs that came with a valid credential are to be remembered, or anybody could fill it.
///
/// It is as long-lived as its process. A proof that was taken shortly before a restart could be
/// taken once more after it; whoever does that needs the access token as well as the proof, and
/// gains one repetition of one request.
#[derive(Debug, Default)]
pub struct ReplayCache {
    bounds: ReplayBounds,
    taken: HashSet<[u8; 32]>,
    per_key: HashMap<Thumbprint, usize>,
    by_end: BTreeSet<(Timestamp, [u8; 32], Thumbprint)>,
    /// Whatever could be taken until here may have been forgotten. It keeps a clock that was set
    /// back from reviving forgotten proofs.
    forgotten_until: Option<Timestamp>,
}

impl ReplayCache {
    /// An empty cache.
    #[must_use]
    pub fn new(bounds: ReplayBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Takes a proof, once.
    ///
    /// # Errors
    /// [`Denial::ProofReplayed`] the second time, [`Denial::ProofsFull`] at a bound, and
    /// [`Denial::ProofLate`] where the cache has already forgotten proofs of that age.
    pub fn take(&mut self, proof: &Proof, now: Timestamp) -> Result<(), Denial> {
        self.forget(now);
        if self.taken.contains(&proof.id()) {
            return Err(Denial::ProofReplayed);
        }
        if self.forgotten_until.is_some_and(|until| proof.takeable_until() <= until) {
            return Err(Denial::ProofLate);
        }
        let of_key = self.per_key.get(&proof.key()).copied().unwrap_or_default();
        if of_key >= self.bounds.per_key || self.taken.len() >= self.bounds.total {
            return Err(Denial::ProofsFull);
        }
        self.taken.insert(proof.id());
        self.per_key.insert(proof.key(), of_key + 1);
        self.by_end.insert((proof.takeable_until(), proof.id(), proof.key()));
        Ok(())
    }

    /// How many proofs it remembers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// Whether it remembers none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some((until, id, key)) = self.by_end.first().copied()
            && until < now
        {
            self.by_end.remove(&(until, id, key));
            self.taken.remove(&id);
            self.forgotten_until = self.forgotten_until.max(Some(until));
            if let Some(count) = self.per_key.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.per_key.remove(&key);
                }
            }
        }
    }
}
