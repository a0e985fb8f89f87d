//! Tests of the whole link, in a small world and in virtual time.

mod asleep;
mod flapping;
mod handover;
mod lists;
#[cfg(not(target_arch = "wasm32"))]
mod random;
mod resume;
mod running;
mod sockets;
mod tokens;
mod traces;
mod world;
