//! What comes out of the machine.

use wakeful_wire::rpc::ThreadId;

use super::{Absence, Read, ReadId};

/// One who needs a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MountId(pub(super) u64);

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Make this read, and give the answer to [`Families::handle_read`](super::Families::handle_read).
    Read(Read),
    /// The answer of this read is not wanted any more.
    Cancel(ReadId),
    /// Rows, a state or the search changed.
    Changed,
    /// The host was asked whether a thread is there. `Unknown`: it could not be found out now.
    Answered {
        /// The thread.
        thread: ThreadId,
        /// What is known of it.
        absence: Absence,
    },
}

/// What a read is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Family(ThreadId),
    Absence(ThreadId),
    Search,
}
