//! The hosts that this client knows, one connection scope each.
