//! Tests of the whole link, in a small world and in virtual time.

mod resume;
mod sockets;
mod tokens;
mod world;
