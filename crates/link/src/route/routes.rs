//! The addresses of one host, in the order in which they are tried.

use serde::{Deserialize, Serialize};
use wakeful_wire::hosts::Scheme;

use super::{Address, RouteClass};

/// The most routes of one host.
pub const ROUTES_MAX: usize = 16;

/// One way to a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Route {
    address: Address,
}

impl Route {
    /// The way by this address.
    #[must_use]
    pub const fn new(address: Address) -> Self {
        Self { address }
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// How far away the host is on this way.
    #[must_use]
    pub const fn class(&self) -> RouteClass {
        self.address.class()
    }

    /// Whether a page of this scheme may use it: a page that came by HTTPS speaks no plain HTTP,
    /// because its browser would refuse. A client that is no page has no scheme and may use all.
    #[must_use]
    pub const fn usable_from(&self, page: Option<Scheme>) -> bool {
        !matches!((page, self.address.scheme()), (Some(Scheme::Https), Scheme::Http))
    }
}

/// Why routes were not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RoutesError {
    /// There would be more than [`ROUTES_MAX`].
    #[error("more than {ROUTES_MAX} addresses of one host")]
    TooMany,
    /// There would be none. A host without a way to it is removed instead.
    #[error("no address")]
    None,
    /// The new order does not name every address once.
    #[error("the order must name every address of the host once")]
    Order,
}

/// The ways to one host, best first. At least one, at most [`ROUTES_MAX`], each address once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Route>", into = "Vec<Route>")]
pub struct Routes(Vec<Route>);

impl Routes {
    /// The one way to a host.
    #[must_use]
    pub fn of(route: Route) -> Self {
        Self(vec![route])
    }

    /// Adds a way. It goes behind those that are not farther away: loopback, local network,
    /// overlay network, anything else, those of one class in the order in which they were added.
    /// An order that a person chose stays as it is: the new way goes before the first one that is
    /// farther away. An address that is there already keeps its place.
    ///
    /// # Errors
    /// [`RoutesError::TooMany`]; nothing has changed then.
    pub fn add(&mut self, route: Route) -> Result<(), RoutesError> {
        if self.has(&route.address) {
            return Ok(());
        }
        if self.0.len() == ROUTES_MAX {
            return Err(RoutesError::TooMany);
        }
        let farther = |known: &Route| known.class() > route.class();
        let place = self.0.iter().position(farther).unwrap_or(self.0.len());
        self.0.insert(place, route);
        Ok(())
    }

    /// Takes a way out. An address that is not there changes nothing.
    ///
    /// # Errors
    /// [`RoutesError::None`] if it is the last one; nothing has changed then.
    pub fn remove(&mut self, address: &Address) -> Result<(), RoutesError> {
        if self.0.iter().all(|route| route.address == *address) {
            return Err(RoutesError::None);
        }
        self.0.retain(|route| route.address != *address);
        Ok(())
    }

    /// Puts the ways into the order that a person chose.
    ///
    /// # Errors
    /// [`RoutesError::Order`] if it does not name each of them once; nothing has changed then.
    pub fn reorder(&mut self, order: &[Address]) -> Result<(), RoutesError> {
        let twice = |at: usize, address: &Address| order.iter().take(at).any(|one| one == address);
        let odd = |(at, address): (usize, &Address)| twice(at, address) || !self.has(address);
        if order.len() != self.0.len() || order.iter().enumerate().any(odd) {
            return Err(RoutesError::Order);
        }
        self.0 = order.iter().cloned().map(Route::new).collect();
        Ok(())
    }

    /// Whether an address is one of them.
    #[must_use]
    pub fn has(&self, address: &Address) -> bool {
        self.0.iter().any(|route| route.address == *address)
    }

    /// The ways, best first.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.0.iter()
    }

    /// The best way that this attempt has not tried in vain and that its client may use. None when
    /// the attempt has nothing left. An attempt begins with nothing tried, so a better way that
    /// once failed is tried again as soon as the connection is made anew.
    #[must_use]
    pub fn pick(&self, attempt: &RouteAttempt) -> Option<&Route> {
        if attempt.failed.len() >= ROUTES_MAX {
            return None;
        }
        self.0.iter().find(|route| {
            route.usable_from(attempt.page) && !attempt.failed.contains(&route.address)
        })
    }
}

impl TryFrom<Vec<Route>> for Routes {
    type Error = RoutesError;

    /// Takes the order as it is. Of an address that is there twice, the first is kept.
    fn try_from(mut routes: Vec<Route>) -> Result<Self, RoutesError> {
        let mut kept: Vec<Route> = Vec::new();
        for route in routes.drain(..) {
            if kept.iter().any(|one| one.address == route.address) {
                continue;
            }
            if kept.len() == ROUTES_MAX {
                return Err(RoutesError::TooMany);
            }
            kept.push(route);
        }
        if kept.is_empty() { Err(RoutesError::None) } else { Ok(Self(kept)) }
    }
}

impl From<Routes> for Vec<Route> {
    fn from(routes: Routes) -> Self {
        routes.0
    }
}

/// Which ways one attempt has tried in vain. It lives as long as the attempt.
#[derive(Debug, Clone, Default)]
pub struct RouteAttempt {
    page: Option<Scheme>,
    failed: Vec<Address>,
}

impl RouteAttempt {
    /// Begins an attempt of a client that is a page of this scheme, or none.
    #[must_use]
    pub const fn of_page(page: Option<Scheme>) -> Self {
        Self { page, failed: Vec::new() }
    }

    /// This way does not lead to the host: nobody answered, or somebody else. An attempt that has
    /// seen [`ROUTES_MAX`] ways fail has nothing left, whatever ways were added meanwhile.
    pub fn fail(&mut self, address: &Address) {
        if self.failed.len() < ROUTES_MAX && !self.failed.contains(address) {
            self.failed.push(address.clone());
        }
    }
}
