//! What a [`Shell`](super::Shell) wants done, and what answers it.

use wakeful_wire::rpc::{Omissions, ShellSnapshot};

use super::CachedShell;

/// One read of the list over HTTP: numbered by its [`Shell`](super::Shell), never reused. An answer
/// with another number than the read that is awaited changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FetchId(pub u64);

/// What the parent is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read the list over HTTP and answer by [`Shell::handle_fetched`](super::Shell::handle_fetched),
    /// also if it fails. A credential that is missing or refused is such a failure and no reason to
    /// touch the socket.
    Fetch {
        /// Names the read.
        id: FetchId,
        /// Which rows may be left out.
        omit: Omissions,
        /// The tag for `If-None-Match`.
        etag: Option<String>,
    },
    /// End that read; its answer is no longer wanted.
    CancelFetch {
        /// Names the read.
        id: FetchId,
    },
    /// Open the durable subscription, with [`Shell::subscription_input`](super::Shell::subscription_input)
    /// as its input whenever the boundary asks for it. None is open.
    Subscribe,
    /// Close it: the session is gone, or it is not to be tried again for now.
    Unsubscribe,
    /// Let it begin anew on the same session. The input is asked for again.
    Resubscribe,
    /// Put this in the place of what is stored of the list, and answer by
    /// [`Shell::handle_saved`](super::Shell::handle_saved), also if that fails.
    Save(Box<CachedShell>),
    /// [`Shell::state`](super::Shell::state) is no longer what it was.
    Changed,
}

/// What a read of the list brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The list is what the tag stood for.
    NotModified,
    /// The list.
    Snapshot {
        /// The list.
        snapshot: Box<ShellSnapshot>,
        /// The tag that it came with.
        etag: Option<String>,
    },
}
