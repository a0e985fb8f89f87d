//! Threads: conversations in which agents work, kept so that nothing is lost.
//!
//! Start at [`Threads`], the handle that everything else holds. What is asked of it is a
//! [`Command`](command::Command); what came of it is events (`wakeful_wire::rpc`) in a log on the
//! workspace.
//!
//! | module | what | IO |
//! |---|---|---|
//! | [`decide`] | state, command, time, fresh ids: events or a refusal | none |
//! | [`state`] | what the events of a log amount to | none |
//! | [`shell`] | the list and which rows may be left out | none |
//! | [`view`] | what is published | none |
//! | [`feed`] | what one subscriber is sent next | none |
//! | [`log`] | SQLite | files |
//! | `writer` | the one task that decides and writes | the log |
//! | `subscription` | feeds, driven | the log |
//!
//! # Races
//!
//! *Who owns what.* The state that decisions are made from belongs to one task, the writer. The
//! view belongs to everybody who reads; only the writer changes it. The log has one writer, and as
//! many readers as like.
//!
//! *State runs ahead of the log, the view never does.* The writer decides a command against
//! everything that was decided before it, gathers some decisions, writes them in one transaction,
//! waits for the sync, and only then changes the view, wakes subscribers and answers. So:
//!
//! - Two commands at once are two decisions one after the other. Two prompts with one client id:
//!   the second finds the first, written or not, and is answered in the same batch, after the same
//!   sync. Never is an answer given on the strength of something that is not durable.
//! - A crash between decision and commit: nobody was told, nobody saw it; the client sends again
//!   with the same id and is taken then. A crash between commit and answer: the client sends again
//!   and is told where it was taken. A crash inside the commit: it is in the log whole, or not at
//!   all.
//! - Sequence numbers are drawn from the state. A batch that is not written never showed its
//!   numbers to anybody, so they can be used again.
//! - A commit that fails may have taken place. The writer then knows nothing: it drops its state,
//!   refuses what comes with "unavailable", reads the log, publishes what it finds there, and goes
//!   on. Since the view was not changed, no reader saw anything that is not so.
//!
//! *A turn's end and the next one's start* are one decision, thus one transaction. A cancel that
//! races with the end is decided before it (the end then counts as cancelled) or after it (there is
//! nothing to cancel, or the *next* turn runs, which the cancel does not name). An agent's report
//! names its turn; when that turn is over, the report is refused whole, so the last words of a
//! cancelled turn never land in the next one.
//!
//! *A snapshot and the events around it.* A thread's snapshot is read in one read transaction: the
//! small state is taken from the view first, and what the log holds beyond it is applied, so state
//! and content are at one sequence, whatever is written meanwhile. Saved segments may be written
//! while others read; a saved segment and the events after it amount to the same as the segment
//! before and the events after *it*.
//!
//! *A subscriber that looks and then waits* would miss what is published in between; so it marks
//! the signal as seen, then looks, then waits for the mark to go stale.
//!
//! *A start of the host* is an event like any other, written before anything else can be: it closes
//! what was open, under a new epoch. Whoever comes with a cursor of an epoch that this log does not
//! hold, or beyond what that epoch wrote, gets a snapshot.

pub mod command;
pub mod decide;
pub mod feed;
pub mod limits;
pub mod log;
mod numbering;
pub mod shell;
pub mod state;
mod subscription;
mod threads;
pub mod view;
mod writer;

#[cfg(test)]
mod tests;

pub use subscription::{Follower, ShellSubscription, ThreadSubscription};
pub use threads::{Settings, Threads, ThreadsError};
