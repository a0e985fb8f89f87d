//! One socket to a host, from its first frame to its end.
