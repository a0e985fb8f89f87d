//! What proves who this client is: its key, and the tokens of hosts that it is paired with.

mod key;
mod paired;
pub mod private_file;

pub use key::ClientKey;
pub use paired::{PairedHost, PairedHosts};
