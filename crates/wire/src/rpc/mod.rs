//! What an environment server and its clients share about threads.
//!
//! A host keeps one append-only log. Each [`Event`] has a [`Seq`] of one increasing sequence, and
//! belongs to one thread or, where [`Event::thread`] is absent, to the host. Everything else
//! derives from events by the reducers of this module, which both sides run: [`Thread`] is a
//! thread's small state, [`Segment`] what one turn shows, [`Detail`] both with a window of
//! segments, [`ShellRow`] the line in a list.
//!
//! # Segments and item numbers
//!
//! A segment begins with a turn and lasts until the next one begins; segment 0 is what came before
//! the first. The host numbers the items of a segment when it writes an event, so an event says
//! which item it opens or changes. No reducer has to find "the message before" or "the tool of that
//! id": a segment derives from its own events alone, a window can begin at any item, and a client
//! that holds half a segment skips exactly what belongs to the other half.
//!
//! # Cursors
//!
//! A [`Cursor`] is a sequence number and the [`Epoch`] (one start of a host) in which its holder
//! last heard it confirmed. Every start draws a new epoch. So a log that was restored from an older
//! copy, or two copies that went on apart, are told from the log that the holder knows, although
//! their numbers overlap.
//!
//! # Older and newer peers
//!
//! - A reader ignores fields it does not know and accepts the absence of every field that was added
//!   after the first release: such fields have defaults.
//! - An event of an unknown kind is [`EventBody::Unknown`]: kept whole, passed on unchanged, and
//!   without effect on any state. A known kind with an unreadable body is an error at a socket; a
//!   log keeps it as unknown, so that one bad row never closes a log.
//! - Every other set that can grow has a value for "something newer" (`Other`), which loses the
//!   text; a [`Problem`](crate::Problem) has the nearest code.
//! - A kind is never reused for something else, and its meaning never changes.

mod call;
mod config;
mod cursor;
mod detail;
mod event;
mod feed;
mod frame;
mod parts;
mod read;
mod segment;
mod shell;
mod thread;

pub use call::{
    AnswerPermission, Call, CallError, Empty, OneThread, SessionRevoke, ShellSubscribe, Taken,
    ThreadCancel, ThreadCreate, ThreadForget, ThreadMode, ThreadPin, ThreadPrompt, ThreadRename,
    ThreadSettle, ThreadSnooze, ThreadSubscribe, ThreadUnqueue,
};
pub use config::{AgentView, HostConfig};
pub use cursor::{Cursor, Epoch, Seq};
pub use detail::{Applied, Detail, Page, PageCursor, Prepended};
pub use event::{Event, EventBody, UnknownBody};
pub use feed::{ShellItem, ThreadItem};
pub use frame::{
    CALLS_MAX, CLIENT_FRAME_MAX, CallId, ClientFrame, Hello, HelloAgain, KNOWN_HEADER, PROTOCOL,
    SUBPROTOCOL, ServerFrame, TICKET_SUBPROTOCOL,
};
pub use parts::{
    AnsweredBy, By, Exit, Location, NoticeLevel, Outcome, PermissionOption, PermissionOptionKind,
    PlanEntry, PlanPriority, PlanStatus, Prompt, PromptPart, Remember, Role, StopReason, ToolCall,
    ToolContent, ToolKind, ToolPatch, ToolStatus, Usage, WithdrawnWhy,
};
pub use read::{
    Counts, FoundText, RowCursor, Rows, SearchAnswer, SessionItem, SessionList, ThreadAnswer,
};
pub use segment::{Item, ItemBody, PermissionState, Segment, TERMINAL_KEPT, TurnSummary};
pub use shell::{OlderSettled, Omissions, SETTLED_KEPT, ShellRow, ShellSnapshot};
pub use thread::{
    AgentSession, EndedTurn, PendingPermission, QueuedPrompt, RunningTurn, Settled, Thread,
};

pub use crate::id::{ClientId, RequestId, ThreadId, TurnId};

#[cfg(test)]
mod tests;
