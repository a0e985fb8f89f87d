//! A followed thread, from items to what is printed.

mod follow;
mod render;
mod session;
mod state;
