//! What proves who this client is: its key, and the tokens of hosts that it is paired with.

mod key;
pub mod private_file;

pub use key::ClientKey;
