//! What a session reports.

use serde_json::Value;
use wakeful_wire::{
    Problem,
    rpc::{CallId, Cursor, Hello, HostConfig},
};

/// What happened on a socket.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionEvent {
    /// The expected host has said who it is and how it is set up: the session can be used.
    Ready(Box<Hello>),
    /// The configuration has changed. It is whole and newer than the one before.
    Config(HostConfig),
    /// Something about a call.
    Call(CallEvent),
    /// A probe was answered.
    Alive {
        /// The number that it was sent with.
        check: u32,
        /// The host's newest event.
        head: Cursor,
    },
    /// The host's newest event, from its hello, a heartbeat or the answer to a probe: whoever has
    /// applied everything and holds less has missed something.
    Head(Cursor),
    /// Nothing was heard for [`HEARTBEATS_MISSED`](super::HEARTBEATS_MISSED) heartbeats. Once per
    /// silence, and no proof that the socket is dead: a reason to look.
    Silent,
}

/// What came for an open call that somebody waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// It was carried out. Nothing more comes.
    Response {
        /// The call.
        id: CallId,
        /// What came of it.
        result: Value,
    },
    /// It was refused or has failed, while the socket goes on. Nothing more comes.
    Failed {
        /// The call.
        id: CallId,
        /// Why.
        problem: Problem,
    },
    /// The next item.
    Item {
        /// The call.
        id: CallId,
        /// The item.
        item: Value,
    },
    /// The host has ended it. Nothing more comes.
    End {
        /// The call.
        id: CallId,
    },
}

impl CallEvent {
    /// The call.
    #[must_use]
    pub const fn id(&self) -> CallId {
        match self {
            Self::Response { id, .. }
            | Self::Failed { id, .. }
            | Self::Item { id, .. }
            | Self::End { id } => *id,
        }
    }
}
