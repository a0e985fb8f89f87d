//! What can be asked for a host.

use super::Entry;
use crate::route::{Address, Route};

/// What a person asks for, in the order in which it is asked.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    /// Keep this entry and install it, in place of the one that is there.
    Register(Box<Entry>),
    /// Delete everything of the host.
    Remove,
    /// Want no connection, or want one again.
    Pause(bool),
    /// Take part at all, or not.
    Enable(bool),
    /// Change the ways to the host.
    Routes(RouteChange),
}

/// How the ways to a paired host change.
#[derive(Debug, Clone)]
pub(super) enum RouteChange {
    /// One more.
    Add(Route),
    /// One less. The host goes with its last one.
    Remove(Address),
    /// In another order.
    Order(Vec<Address>),
}

/// What a platform's list says of a host. Only the latest counts.
#[derive(Debug, Clone)]
pub(super) enum Wish {
    /// It is there, as this entry.
    Present(Box<Entry>),
    /// It is not, or not any more.
    Absent,
}
