//! Descriptors of the kernel's that are waited for.

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

/// Waits for a descriptor to be read. It must not block.
#[expect(
    deprecated,
    reason = "its successor is unsafe for what is not an owned descriptor; this is one"
)]
pub(super) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}
