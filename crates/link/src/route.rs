//! How far a host is, by its address.

/// How far away and how steady the way to a host is. It decides how long a silence means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RouteClass {
    /// On this machine.
    Loopback,
    /// In the local network.
    Lan,
    /// In an overlay network, which may be relayed.
    Tailnet,
    /// Anywhere else.
    Public,
}

impl RouteClass {
    /// Whether a lost packet is hardly possible: on this machine and in the local network.
    #[must_use]
    pub const fn is_near(self) -> bool {
        matches!(self, Self::Loopback | Self::Lan)
    }
}
