//! The read over HTTP of one attempt.

use std::time::Duration;

use wakeful_wire::rpc::Omissions;

use super::{FetchId, provenance::Terms};
use crate::Instant;

/// How long what is stored is waited for, so that a read can be spared or kept short.
pub const CACHE_PATIENCE: Duration = Duration::from_millis(500);
/// How long after the socket is ready the read may go on if the rows that are held are a base. A
/// proxy that swallows such requests without an answer delays no session for longer.
pub const RESUME_PATIENCE: Duration = Duration::from_secs(3);
/// How long a read may take at all. After that the list comes over the socket.
pub const FETCH_PATIENCE: Duration = Duration::from_secs(60);
/// The longest tag that is kept, in bytes.
pub const ETAG_MAX: usize = 256;

/// How far the read of the present attempt is. There is at most one per attempt.
#[derive(Debug, Default)]
pub(super) enum Load {
    /// None was wanted so far.
    #[default]
    Unasked,
    /// What is stored is waited for until then.
    Cache(Instant),
    /// Under way.
    Asked(Asked),
    /// It was answered, and the rows are what the host had then.
    Answered,
    /// It failed or was ended.
    Ended,
}

/// A read under way.
#[derive(Debug)]
pub(super) struct Asked {
    /// Names it.
    pub(super) id: FetchId,
    /// Which rows may be left out of the answer.
    pub(super) omit: Omissions,
    /// The release that it is made for, if any is known or guessed.
    pub(super) build: Option<String>,
    /// The tag that it was sent with.
    pub(super) etag: Option<String>,
    /// When it began.
    pub(super) since: Instant,
}

impl Asked {
    /// Until when it may take.
    pub(super) fn until(&self) -> Instant {
        self.since.after(FETCH_PATIENCE)
    }

    /// Whether its answer can be no base for this session.
    pub(super) fn is_hopeless(&self, terms: &Terms) -> bool {
        let other_build = self.build.as_ref().is_some_and(|build| *build != terms.release);
        other_build || self.omit != terms.omit
    }
}
