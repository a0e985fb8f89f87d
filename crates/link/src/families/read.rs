//! Reads on demand: what is asked for, and what comes back.

use wakeful_wire::rpc::{Counts, RowCursor, Rows, SearchAnswer, Seq, ThreadId};

/// One read. Numbered by the machine that asks, never reused by it; another machine of the same
/// host numbers its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReadId(pub u64);

impl ReadId {
    /// The number after the last one, which is kept in `last`.
    pub(crate) const fn next(last: &mut Self) -> Self {
        last.0 = last.0.saturating_add(1);
        *last
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadWhat {
    /// Every active thread of the family of this one.
    Family {
        /// The thread; any of the family.
        thread: ThreadId,
    },
    /// A page of settled top-level threads, newest first.
    Settled {
        /// From below here on.
        below: RowCursor,
        /// At most this many.
        limit: usize,
    },
    /// The cut of the settled threads, and how many are below it.
    Counts,
    /// Threads that hold these words.
    Search {
        /// The words.
        q: String,
        /// At most this many threads.
        limit: usize,
    },
}

/// A read that is to be made once, over HTTP; whoever makes it does not repeat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Its number.
    pub id: ReadId,
    /// The shell's generation that it is made in, to be given back with the answer.
    pub generation: u64,
    /// What is asked for.
    pub what: ReadWhat,
}

/// What a host answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadAnswer {
    /// Rows of a family or a page.
    Rows(Rows),
    /// The *host itself* says that the thread of [`ReadWhat::Family`] is deleted or was never there
    /// (codes `gone` and `not_found`). Data may be deleted because of it, so a gateway's or a
    /// proxy's 404 must never become this: that is a failure.
    Gone,
    /// The counts.
    Counts(Counts),
    /// What was found.
    Found(SearchAnswer),
}

impl ReadAnswer {
    /// What it is at, where it says so.
    #[must_use]
    pub const fn seq(&self) -> Option<Seq> {
        match self {
            Self::Rows(rows) => Some(rows.seq),
            Self::Gone => None,
            Self::Counts(counts) => Some(counts.seq),
            Self::Found(found) => Some(found.seq),
        }
    }
}
