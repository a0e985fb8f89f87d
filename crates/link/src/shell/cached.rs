//! The list as it is stored between two runs of a client.

use serde::{Deserialize, Serialize};
use wakeful_wire::rpc::ShellSnapshot;

/// The release of this client, which has read the rows that it stores.
pub(super) const READER: &str = env!("CARGO_PKG_VERSION");

/// The list as it is stored. Only rows that a session has confirmed are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedShell {
    /// The rows, with what was left out and where in the log they are. Rows and cursor are stored
    /// as one value, so neither can be ahead of the other.
    pub snapshot: ShellSnapshot,
    /// The release of the host that made the rows. Another may know more of each row, so they are
    /// no base for its changes.
    pub build: String,
    /// The release of the client that read them. Another may have skipped what it did not know, so
    /// they are shown, but are no base for changes either.
    #[serde(default)]
    pub reader: String,
    /// The tag that stands for exactly these rows, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Whether they were stored in the middle of a replay: then they are a base only for the start
    /// of the host that they are of.
    #[serde(default)]
    pub partial: bool,
}
