//! The ways to a host: addresses, how far away they are, and in which order they are tried.
//!
//! Every address here was given by a person or is the platform's own. No host is asked for further
//! ones, so nothing is ever sent to an address only because a host named it.

mod address;
mod class;
mod routes;

#[cfg(test)]
mod tests;

pub use address::{ADDRESS_MAX, Address, AddressError};
pub use class::RouteClass;
pub use routes::{ROUTES_MAX, Route, RouteAttempt, Routes, RoutesError};
