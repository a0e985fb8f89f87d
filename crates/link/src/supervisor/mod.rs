//! The one owner of transport retries of a host.
