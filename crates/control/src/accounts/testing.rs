//! What the tests of accounts share.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use wakeful_wire::{Timestamp, UserName};

use super::{AccountSettings, Accounts, HashCost, Sources};
use crate::store::Database;

/// The least that hashing may cost.
pub(crate) const CHEAP: HashCost = HashCost { memory_kib: 8, passes: 1 };

/// Bytes that never repeat, at a time that stands still.
pub(crate) fn counting_sources() -> Sources {
    Clock::default().sources()
}

/// A clock that a test sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn advance(&self, duration: std::time::Duration) {
        self.0.fetch_add(wakeful_wire::time::millis(duration), Ordering::SeqCst);
    }

    fn sources(&self) -> Sources {
        let now = Arc::clone(&self.0);
        let drawn = AtomicU64::new(1);
        Sources::new(
            move || Timestamp(now.load(Ordering::SeqCst)),
            move |bytes| {
                let number = drawn.fetch_add(1, Ordering::SeqCst).to_le_bytes();
                for (at, byte) in bytes.iter_mut().enumerate() {
                    *byte = number[at % number.len()];
                }
            },
        )
    }
}

/// Accounts on a database of their own.
pub(crate) struct Bench {
    pub(crate) accounts: Accounts,
    pub(crate) database: Database,
    pub(crate) clock: Clock,
    _dir: tempfile::TempDir,
}

impl Bench {
    pub(crate) async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("wakeful.db")).await.unwrap();
        let clock = Clock::default();
        clock.advance(std::time::Duration::from_secs(1_000_000));
        let settings = AccountSettings { hash_cost: CHEAP, ..AccountSettings::default() };
        let accounts = Accounts::new(database.clone(), clock.sources(), settings);
        Self { accounts, database, clock, _dir: dir }
    }

    /// A user with the password `correct horse`.
    pub(crate) async fn user(&self, name: &str) -> UserName {
        let user = UserName::new(name).unwrap();
        self.accounts.sign_up(&user, Some("correct horse"), None).await.unwrap();
        user
    }
}
