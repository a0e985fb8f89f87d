//! The ports: what the shells must provide. Each has a memory version and a contract suite in
//! `testing`, which every real version passes too.

mod driver;
mod store;
mod workspaces;

pub use driver::{DeliverError, Driver, DriverError, Launch, LogTail};
pub use store::{Commit, LeaseReport, Loaded, ProjectRow, Store, StoreError, Tombstone, Touch};
pub use workspaces::{WorkspaceEntry, WorkspaceError, Workspaces};
