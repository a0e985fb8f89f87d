//! Users: signing up and in, passwords, tokens, sessions, and cookies of surfaces' own hosts.
//!
//! Of every secret that somebody else holds only a hash is kept. A session's end ends the cookies
//! and tickets that were given for it, in the same transaction, and is told to
//! [`Accounts::signed_out`], so that a gateway forgets what it cached.

mod error;
mod limits;
mod password;
pub(crate) mod secret;
mod sessions;
mod sightings;
mod sources;
mod surface_sessions;
mod tokens;
mod users;

#[cfg(test)]
pub(crate) mod testing;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::broadcast;
use wakeful_wire::{
    UserName,
    gate::{Credential, Principal, SignedInBy},
};

pub use error::AccountError;
pub use limits::{Allowance, LimitSettings, Limits, Peer, Throttle, retry_after_s};
pub use password::{HashCost, PASSWORD_MAX, PASSWORD_MIN};
pub use secret::SECRET_MAX;
pub use sessions::{SESSION_LIFETIME, Session, SessionId, SessionView};
pub use sources::Sources;
pub use surface_sessions::{SurfaceGrant, TICKET_LIFETIME};
pub use tokens::{NewToken, TOKEN_PREFIX, TokenView};
pub use users::{Account, Proof};

use crate::store::Database;
use sightings::Sightings;

/// How many sign-outs a slow listener may lag behind before it must forget everything.
const SIGNED_OUT_BUFFER: usize = 256;

/// What accounts are run with.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccountSettings {
    /// How often signing in may fail, and how many may sign up.
    pub limits: LimitSettings,
    /// What hashing a password costs.
    pub hash_cost: HashCost,
}

/// Users and everything by which they show who they are. A cheap handle.
#[derive(Debug, Clone)]
pub struct Accounts {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    database: Database,
    sources: Sources,
    passwords: password::Passwords,
    limits: Mutex<Limits>,
    sightings: Mutex<Sightings>,
    signed_out: broadcast::Sender<UserName>,
}

impl Accounts {
    /// The accounts of a database.
    #[must_use]
    pub fn new(database: Database, sources: Sources, settings: AccountSettings) -> Self {
        let passwords = password::Passwords::new(settings.hash_cost, sources.clone());
        let limits = Mutex::new(Limits::new(settings.limits));
        let (signed_out, _) = broadcast::channel(SIGNED_OUT_BUFFER);
        let sightings = Mutex::default();
        let inner = Inner { database, sources, passwords, limits, sightings, signed_out };
        Self { inner: Arc::new(inner) }
    }

    /// Users of whom a session or a token has just ended. Whoever cached a principal for one of
    /// them asks again; a receiver that lagged forgets all.
    #[must_use]
    pub fn signed_out(&self) -> broadcast::Receiver<UserName> {
        self.inner.signed_out.subscribe()
    }

    fn tell_signed_out(&self, user: &UserName) {
        // Nobody listening is fine: then nobody has cached anything.
        let _ = self.inner.signed_out.send(user.clone());
    }

    /// Who a credential stands for; `None` if for nobody (any more).
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn authenticate(
        &self,
        credential: &Credential,
    ) -> Result<Option<Principal>, AccountError> {
        let (user, by) = match credential {
            Credential::Token(text) => (self.user_of_token(text).await?, SignedInBy::Token),
            Credential::Session(value) => {
                let session = self.session(value).await?;
                (session.map(|session| session.user), SignedInBy::Cookie)
            }
            Credential::Surface { value, host } => {
                (self.user_of_surface_session(value, host).await?, SignedInBy::Cookie)
            }
        };
        Ok(user.map(|user| Principal { user, by }))
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn check(&self) -> Result<(), AccountError> {
        sqlx::query("SELECT 1").execute(self.inner.database.reader()).await?;
        Ok(())
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.inner.sources
    }
}
