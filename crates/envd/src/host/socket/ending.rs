//! How a socket ends.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use tokio_tungstenite::tungstenite;

use crate::{
    credential::{CloseCause, LiveSocket},
    host::Farewell,
};

/// How long the frame that is being written and the close frame may take.
pub(super) const CLOSE_TIME: Duration = Duration::from_millis(500);
/// How long the client's own close frame is waited for: who drops a socket with unread bytes may
/// take the close frame back with it.
pub(super) const LINGER: Duration = Duration::from_millis(400);

/// Why a socket ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It is closed from here, with a code and a reason.
    Close(u16, &'static str),
    /// The client has closed.
    ByClient,
    /// The connection is lost, or its client takes nothing: nobody can be told.
    Lost,
}

impl Ending {
    /// Nothing was heard.
    pub(super) const SILENT: Self = Self::Close(1001, "silent");
    /// A frame is not JSON.
    pub(super) const NOT_JSON: Self = Self::Close(1007, "a frame is not JSON");
    /// A frame is JSON, but neither a frame of this protocol nor can it be answered.
    pub(super) const NOT_A_FRAME: Self = Self::Close(1008, "not a frame of this protocol");
    /// Binary frames mean nothing here.
    pub(super) const BINARY: Self = Self::Close(1003, "only text frames are taken");

    /// The session behind the socket ended.
    pub(super) const fn session(cause: CloseCause) -> Self {
        Self::Close(cause.code(), cause.reason())
    }

    /// The host ends.
    pub(super) fn host(farewell: &Farewell) -> Self {
        Self::Close(farewell.code, farewell.reason)
    }

    /// Reading failed.
    pub(super) fn failed(error: axum::Error) -> Self {
        use tungstenite::Error;
        let error = error.into_inner();
        match error.downcast_ref::<Error>() {
            Some(Error::Capacity(_)) => Self::Close(1009, "a frame is too long"),
            Some(Error::Utf8(_)) => Self::Close(1007, "a frame is not UTF-8"),
            Some(Error::Protocol(
                tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            )) => Self::Lost,
            Some(Error::Protocol(_)) => Self::Close(1002, "not as the WebSocket protocol has it"),
            _ => Self::Lost,
        }
    }

    /// Ends it: the frame that is being written is finished, the client is told why, `live` is let
    /// go, and its close frame is waited for. Each within its bound.
    pub(super) async fn carry_out(
        self,
        mut sink: SplitSink<WebSocket, Message>,
        mut stream: SplitStream<WebSocket>,
        live: LiveSocket,
    ) {
        match self {
            Self::Close(code, reason) => {
                let frame = CloseFrame { code, reason: reason.into() };
                let told = sink.send(Message::Close(Some(frame)));
                let told = tokio::time::timeout(CLOSE_TIME, told).await;
                drop(live);
                if !matches!(told, Ok(Ok(()))) {
                    return;
                }
            }
            // The echo waits in the socket, and reading on sends it.
            Self::ByClient => drop(live),
            Self::Lost => return,
        }
        let until = tokio::time::Instant::now() + LINGER;
        let heard_out = async {
            while let Some(heard) = stream.next().await {
                if heard.is_err() {
                    // What follows cannot be told apart any more; its sender still reads.
                    tokio::time::sleep_until(until).await;
                }
            }
        };
        let _in_time = tokio::time::timeout_at(until, heard_out).await;
    }
}
