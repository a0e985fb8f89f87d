//! The native client: what the pure [`wakeful_link`] needs of a machine.
//!
//! `http` sends requests and opens sockets, `credentials` keeps keys and tokens where only their
//! owner may read them. Nothing here decides anything: when to connect, what to ask for and what is
//! current is decided by the link.

pub mod cache;
pub mod clock;
pub mod credentials;
pub mod http;
pub mod pairing;
pub mod runtime;
pub mod signals;
pub mod socket;
