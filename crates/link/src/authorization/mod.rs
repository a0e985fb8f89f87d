//! Access tokens: had once, shared, renewed in time.
