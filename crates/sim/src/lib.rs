//! The whole system on one simulated timeline, from one seed.
//!
//! The control plane's engine and the gateways' machines are the real ones; the store, the driver
//! and time are simulated. Every call to a port gives way a number of times that the seed decides,
//! so that one seed is one interleaving of everything that runs at once. Time moves only when a
//! simulation says so.
//!
//! - [`seed`]: the randomness of one run.
//! - [`ports`]: ports that give way before and after each call.
//! - [`gateway`]: a gateway without sockets.
//! - [`world`]: an engine, its ports and its gateways.
//! - [`link_crowd`]: many whole clients of one host, which is away and comes back.

pub mod gateway;
pub mod link_crowd;
pub mod ports;
pub mod seed;
pub mod world;
