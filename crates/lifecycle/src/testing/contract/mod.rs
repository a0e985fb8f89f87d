//! Contract suites: what every version of a port must do. Whoever writes another version calls
//! these from a test.

pub mod driver;
pub mod store;
pub mod workspaces;
