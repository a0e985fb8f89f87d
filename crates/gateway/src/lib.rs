//! The data plane of Wakeful: HTTP, event streams and WebSockets to the right environment.
//!
//! # The phases of a request
//!
//! | phase | question | rules | shell |
//! |---|---|---|---|
//! | route | which environment and surface does this target name? | [`route`], [`framing`] | `serve` |
//! | admit | who asks, and may they? does it show intent? | [`admit`], [`intent`] | `entry` |
//! | ensure | is the environment ready? wake it? hold the request? | [`gate`], [`holding`] | `passing`, `ensure` |
//! | handshake | what does the program behind expect to see? | [`headers`] | `exchange` |
//! | dial | a connection to this sandbox, and no other | | `forward`, `pool`, `dial` |
//! | forward | both bodies, byte for byte, as they come | [`headers`], [`framing`] | `answer`, `upgrade`, `relay` |
//! | settle | leases end, failures are reported once, one access line | [`leases`], [`activity`] | `answer`, `reports` |
//!
//! A shell carries and decides nothing. Start at [`Gateway`] for how it is put together, at `serve`
//! for the way of a request, and at `server` for threads and connections.
//!
//! Whatever does not end in the program's own answer becomes one in [`rescue`], and nowhere else.
//!
//! # What this crate never does
//!
//! It holds no durable state and knows no store and no driver: it asks through
//! [`control::ControlPlane`]. The modules of the rules read no clock, draw no randomness and open
//! no socket; time reaches them as a `Duration` since the gateway's start.

pub mod access_log;
pub mod activity;
pub mod admit;
mod answer;
mod config;
pub mod control;
mod core;
mod dial;
mod ensure;
mod entry;
mod exchange;
mod forward;
pub mod frames;
pub mod framing;
pub mod gate;
mod gateway;
pub mod headers;
pub mod holding;
pub mod intent;
pub mod leases;
mod metrics;
mod own;
pub mod pages;
mod passing;
mod pool;
mod recall;
pub mod refusal;
mod relay;
mod remembered;
mod reports;
pub mod rescue;
pub mod route;
mod serve;
mod server;
mod stream;
mod upgrade;

pub use config::GatewayConfig;
pub use gateway::Gateway;
pub use server::{ClientLimits, Threads, listen};
