//! One WebSocket of a client: calls in, answers and streams out.
//!
//! | module | what | IO |
//! |---|---|---|
//! | [`heard`] | what a client's frame means | none |
//! | [`calls`] | which calls are open | none |
//! | [`outbox`] | what waits to be sent, and what goes first | none |
//! | [`pulse`] | heartbeats, silence, a client that takes nothing | none |
//! | [`encode`] | frames as text | none |
//! | [`subscription`] | one subscription, which is asked for its next item | the log |
//! | [`pulls`] | whose turn it is to be asked | none of its own |
//! | [`work`] | carrying out commands | the threads, the sessions |
//! | [`session`] | the task that ties them to a socket | the socket |
//! | [`ending`] | how a socket ends | the socket |
//!
//! # One task
//!
//! A socket is one task, which reads, pulls and writes. Nothing is handed from task to task for an
//! item: a subscription that has something is asked, its item becomes text and is written. Only
//! commands run in tasks of their own, since one that was let through is carried out to its end
//! even if nobody waits for it any more: a drain counts it until then. One that still waits at the
//! gate goes with its call.
//!
//! # Order
//!
//! The answers to probes, heartbeats and pings go before everything that waits; then a changed
//! configuration, then what answers calls, then items. One frame is written at a time, and that one
//! is always finished. Subscriptions take turns: each has at most one item waiting, and is asked for
//! another only after that one was written. So a flood in one delays another by one item.
//!
//! # Bounds
//!
//! | what | bound | at it |
//! |---|---|---|
//! | frame of a client | [`CLIENT_FRAME_MAX`](wakeful_wire::rpc::CLIENT_FRAME_MAX) | close, 1009 |
//! | open calls, and commands that nobody waits for any more | [`CALLS_MAX`](wakeful_wire::rpc::CALLS_MAX) | `too_many_requests` |
//! | waiting answers to probes | [`outbox::ALIVE_MAX`] | nothing more is read until some were taken |
//! | waiting answers to calls | [`outbox::ANSWERS_MAX`], [`outbox::ANSWERS_BYTES_MAX`], and what is being carried out | the same |
//! | waiting items | [`outbox::ITEMS_BYTES_MAX`], one item per subscription, and what is being loaded ([`pulls::LOADS_MAX`]) | no subscription is asked for more |
//! | a frame that is being written | [`pulse::WRITE_TIME`] and a second per [`pulse::WRITE_PACE`] | the client is dropped |
//! | silence of a client | [`pulse::SILENCE`] heartbeats | close, 1001 |
//! | the end | [`ending::CLOSE_TIME`], [`ending::LINGER`] | the socket is dropped |

mod calls;
mod encode;
mod ending;
mod heard;
mod outbox;
mod pulls;
mod pulse;
mod session;
mod subscription;
mod work;

use axum::extract::ws::WebSocket;

use self::session::Session;
use super::Host;
use crate::credential::LiveSocket;

/// Serves a socket until it ends, whoever ends it. `live` is dropped as soon as the client was told.
/// `known` is what the client knows the host by.
pub(super) async fn run(host: Host, socket: WebSocket, live: LiveSocket, known: Option<String>) {
    Session::new(host, socket, known).run(live).await;
}
