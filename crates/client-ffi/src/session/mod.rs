//! A running client.
//!
//! Methods that wait run on a runtime of the client's own, so they can be awaited on any executor.
//! Nothing here decides anything: the link does, and this only translates.

mod asking;
mod device;
mod hosts;
mod lifecycle;
mod threads;

#[cfg(test)]
mod tests;

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::{Mutex, RwLock};
use wakeful_client::{
    credentials::{ClientKey, PairedHosts},
    runtime::Client,
    signals::Guard,
};
use wakeful_link::threads::ConsumerId;
use wakeful_wire::{HostId, rpc::ThreadId};

use self::lifecycle::OwnRuntime;
use crate::{error::ClientError, observer::Observing};

pub use self::threads::{NewThread, Remembered};

/// A running client: what it knows is read from it, and what a person does is said to it. All
/// methods can be called from any thread, also from the observer's.
///
/// It runs until it is closed. One that is let go without that ends as well, but what changed last
/// may be unsaved then, and an observer may be called for a moment longer.
#[derive(uniffi::Object)]
pub struct ClientSession {
    live: RwLock<Option<Arc<Live>>>,
    observing: Mutex<Option<Observing>>,
}

/// What there is of a client until it is closed.
struct Live {
    client: Client,
    key: Arc<ClientKey>,
    paired: PairedHosts,
    label: String,
    opened: Mutex<HashMap<(HostId, ThreadId), Vec<ConsumerId>>>,
    _signals: Option<Guard>,
    runtime: OwnRuntime,
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSession").field("closed", &self.live.read().is_none()).finish()
    }
}

impl ClientSession {
    fn live(&self) -> Result<Arc<Live>, ClientError> {
        self.live.read().as_ref().map(Arc::clone).ok_or(ClientError::Closed)
    }
}
