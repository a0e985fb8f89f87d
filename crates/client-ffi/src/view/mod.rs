//! What applications read, as plain records.

pub(crate) mod host;
pub(crate) mod thread;
