//! Who may work on a sandbox.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use wakeful_wire::SandboxUid;

/// One turn at a time for each sandbox: a look must not take a starting one for dead.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<SandboxUid, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    fn of(&self, uid: SandboxUid) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock();
        // What nobody holds or waits for is dropped, so this stays as small as what goes on.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(uid).or_default())
    }

    pub(super) async fn take(&self, uid: SandboxUid) -> tokio::sync::OwnedMutexGuard<()> {
        self.of(uid).lock_owned().await
    }

    pub(super) fn try_take(&self, uid: SandboxUid) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        self.of(uid).try_lock_owned().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn turns_of_one_sandbox_exclude_each_other_and_leave_nothing_behind() {
        let turns = Turns::default();
        let one = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e51".parse().unwrap();
        let held = turns.take(one).await;
        assert!(turns.try_take(one).is_none());
        drop(held);
        assert!(turns.try_take(one).is_some());
        let other = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap();
        assert!(turns.try_take(other).is_some());
        assert_eq!(turns.0.lock().len(), 1);
    }
}
