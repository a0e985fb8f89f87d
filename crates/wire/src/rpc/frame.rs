//! The envelope: what one text frame of a host's socket holds.
//!
//! # Order
//!
//! The host's first frame is [`ServerFrame::Hello`]; until it has come, a socket is not ready. A
//! request is answered by exactly one of [`ServerFrame::Response`], [`ServerFrame::Error`] or, for a
//! subscription, any number of [`ServerFrame::Item`]s and then [`ServerFrame::End`] or an error.
//! Items of one subscription keep their order; nothing else has an order among requests.
//! [`ServerFrame::Alive`] and [`ServerFrame::Heartbeat`] overtake whatever waits to be sent.
//!
//! # Older and newer peers
//!
//! A frame of an unknown type is skipped by a client, and answered with an error by a host if it
//! carries an id. A method that a host does not know is answered with
//! [`Code::Unsupported`](crate::Code::Unsupported) on its id, and the socket goes on. The
//! [module](super) says how bodies change. A change that this does not allow for raises
//! [`PROTOCOL`], which is also the subprotocol's number.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cursor, HostConfig};
use crate::{
    HostId, Problem,
    host::{Capabilities, Descriptor, SessionView},
};

/// The protocol that this release speaks.
pub const PROTOCOL: u32 = 1;
/// The WebSocket subprotocol of [`PROTOCOL`]. A client offers it first.
pub const SUBPROTOCOL: &str = "wakeful.rpc.v1";
/// A client offers its socket ticket as a second subprotocol that begins so, and thus in no
/// address. It is never the one that the host chooses.
pub const TICKET_SUBPROTOCOL: &str = "wakeful.ticket.";

/// The header of an upgrade in which a client names the [`Hello::tag`] that it knows the host by.
/// Where the host is still the same, it greets with a [`HelloAgain`], which is a few bytes instead
/// of a thousand for each of many clients that come back at once.
pub const KNOWN_HEADER: &str = "wakeful-known";

/// The longest frame that a host takes, in bytes. A longer one closes the socket with 1009.
pub const CLIENT_FRAME_MAX: usize = 1024 * 1024;
/// How many calls, subscriptions among them, one socket may have open. One more is refused with
/// [`Code::TooManyRequests`](crate::Code::TooManyRequests).
pub const CALLS_MAX: usize = 256;

/// Names a call on one socket. Drawn by the client; free again once the call is answered for good.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CallId(pub u32);

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientFrame {
    /// A call; [`Call::read`](super::Call::read) understands method and parameters.
    Request {
        /// Names the call.
        id: CallId,
        /// What is to be done.
        method: String,
        /// With what.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        params: Value,
    },
    /// Ends a call: a subscription ends with [`ServerFrame::End`], a command is no longer waited
    /// for (it may still happen, and then is not answered). Without effect on an id that is free.
    Cancel {
        /// The call.
        id: CallId,
    },
    /// Asks whether the socket delivers. Does no work, and is answered ahead of everything queued.
    Probe {
        /// Comes back with the answer.
        id: CallId,
    },
    /// Something that a newer client knows.
    #[serde(other)]
    Unknown,
}

/// What a host sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::open)
)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerFrame {
    /// The first frame.
    Hello(Box<Hello>),
    /// The first frame for a client that knows the host as it is ([`KNOWN_HEADER`]).
    HelloAgain(Box<HelloAgain>),
    /// The configuration has changed. It is whole.
    Config {
        /// The configuration; its revision is higher than before.
        config: HostConfig,
    },
    /// A call was carried out.
    Response {
        /// The call.
        id: CallId,
        /// What came of it; the method says its shape.
        result: Value,
    },
    /// The next item of a subscription.
    Item {
        /// The call.
        id: CallId,
        /// The item; the method says its shape.
        item: Value,
    },
    /// A subscription is over.
    End {
        /// The call.
        id: CallId,
    },
    /// A call was refused or has failed. The socket goes on.
    Error {
        /// The call.
        id: CallId,
        /// Why.
        problem: Problem,
    },
    /// The answer to a probe.
    Alive {
        /// The probe's id.
        id: CallId,
        /// The host's newest event: who holds less has missed something.
        head: Cursor,
    },
    /// Sent when nothing else was for [`Hello::heartbeat_ms`].
    Heartbeat {
        /// The host's newest event.
        head: Cursor,
    },
    /// Something that a newer host knows; skipped.
    #[serde(other)]
    Unknown,
}

/// Who the host is and how it is set up: the proof that a socket is usable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    /// The protocol that is spoken on this socket.
    pub protocol: u32,
    /// The host. A client that expected another id closes.
    pub host: Descriptor,
    /// What it can do, on this socket.
    pub capabilities: Capabilities,
    /// Its configuration.
    pub config: HostConfig,
    /// The session that this socket belongs to.
    pub session: SessionView,
    /// The newest event.
    pub head: Cursor,
    /// How long the host is silent at most, in milliseconds. A client counts any frame as life and
    /// allows for two missed ones.
    pub heartbeat_ms: u64,
    /// Stands for all of this but the session and the newest event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// A hello to a client that knows the rest: what its last hello of this tag said still holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HelloAgain {
    /// The protocol that is spoken on this socket.
    pub protocol: u32,
    /// The host. A client that expected another id closes.
    pub host: HostId,
    /// What stands for the rest.
    pub tag: String,
    /// The session that this socket belongs to.
    pub session: SessionView,
    /// The newest event.
    pub head: Cursor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_newer_peer_are_read_as_unknown() {
        let frame: ClientFrame = serde_json::from_str(r#"{"type":"dance","id":4}"#).unwrap();
        assert_eq!(frame, ClientFrame::Unknown);
        let frame: ServerFrame = serde_json::from_str(r#"{"type":"dance","id":4}"#).unwrap();
        assert_eq!(frame, ServerFrame::Unknown);
    }

    #[test]
    fn a_request_needs_no_parameters() {
        let frame: ClientFrame =
            serde_json::from_str(r#"{"type":"request","id":4,"method":"activity"}"#).unwrap();
        let expected = ClientFrame::Request {
            id: CallId(4),
            method: "activity".to_owned(),
            params: Value::Null,
        };
        assert_eq!(frame, expected);
    }
}
