//! What is known of a host.

use serde::{Deserialize, Serialize};
use wakeful_wire::{EnvId, HostId, UserName};

use crate::route::{Address, AddressError, Route, Routes};

/// The longest label that is kept, in bytes. A longer one is cut.
pub const LABEL_MAX: usize = 256;

/// What is known of a host, and kept. Holds no credential: those are kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The host. Whoever answers as another is not it.
    pub host: HostId,
    /// What it is called here. Another side's words may be in it: whoever shows it makes it
    /// printable.
    pub label: String,
    /// How it is reached, and by whose leave.
    pub target: Target,
    /// Whether it takes part at all. One that does not has no scope: nothing of it is loaded.
    pub enabled: bool,
    /// Whether a person wants no connection for now. Everything else stays, and it is remembered.
    pub paused: bool,
}

/// How a host is reached, and by whose leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An environment of a platform. The platform's list says whether there is one.
    Environment {
        /// Whose it is.
        account: Account,
        /// The environment.
        env: EnvId,
    },
    /// A host that this client was paired with, by a credential of its own.
    Paired {
        /// Where it is.
        routes: Routes,
    },
}

/// One user of one platform, signed in here. At most one per platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Account {
    /// The platform's own address.
    pub platform: Address,
    /// The user.
    pub user: UserName,
}

impl Entry {
    /// An environment as its platform lists it: enabled and not paused.
    #[must_use]
    pub fn environment(account: Account, env: EnvId, label: String) -> Self {
        let target = Target::Environment { account, env };
        Self { host: HostId::from(env), label, target, enabled: true, paused: false }
    }

    /// A host that was just paired with: enabled and not paused.
    #[must_use]
    pub const fn paired(host: HostId, label: String, routes: Routes) -> Self {
        let target = Target::Paired { routes };
        Self { host, label, target, enabled: true, paused: false }
    }

    /// Whether somebody wants a connection.
    #[must_use]
    pub const fn is_desired(&self) -> bool {
        self.enabled && !self.paused
    }

    /// Cuts what is too long.
    pub(super) fn bounded(mut self) -> Self {
        self.label.truncate(self.label.floor_char_boundary(LABEL_MAX));
        self
    }
}

impl Target {
    /// The account whose environment it is; none for a paired host.
    #[must_use]
    pub const fn account(&self) -> Option<&Account> {
        match self {
            Self::Environment { account, .. } => Some(account),
            Self::Paired { .. } => None,
        }
    }

    /// The ways to the host. An environment has the one through its platform's gateway.
    ///
    /// # Errors
    /// The platform's address leaves no room for the rest.
    pub fn routes(&self) -> Result<Routes, AddressError> {
        match self {
            Self::Environment { account, env } => {
                let address = Address::new(&format!("{}/api/host/{env}", account.platform))?;
                Ok(Routes::of(Route::new(address)))
            }
            Self::Paired { routes } => Ok(routes.clone()),
        }
    }

    /// Whether a connection to `before` is one to this target too. A paired host that only got
    /// further ways, or its ways in another order, is still reached as it was; one that lost a way
    /// may have lost the one that is in use.
    pub(super) fn continues(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::Paired { routes }, Self::Paired { routes: before }) => {
                before.iter().all(|route| routes.has(route.address()))
            }
            (Self::Environment { .. }, Self::Environment { .. }) => self == before,
            (Self::Environment { .. }, Self::Paired { .. })
            | (Self::Paired { .. }, Self::Environment { .. }) => false,
        }
    }
}
