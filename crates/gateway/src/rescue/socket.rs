//! How a refused WebSocket handshake is answered.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use wakeful_wire::{Phase, Problem, rpc::TICKET_SUBPROTOCOL};

use super::{Asked, decorate, json};
use crate::{framing, refusal::Refusal};

/// The answer to a refused WebSocket handshake.
#[derive(Debug)]
pub enum SocketAnswer {
    /// A plain answer, for programs and for handshakes that are themselves at fault.
    Plain(Response<Bytes>),
    /// Complete the handshake with this head, send these bytes (one close frame), then close:
    /// wait for the browser's own close frame for a moment, and read nothing else.
    AcceptAndClose {
        /// The 101.
        head: Response<()>,
        /// The close frame.
        frame: Bytes,
    },
}

/// How a refused WebSocket handshake is answered.
#[must_use]
pub fn refuse_socket(refusal: &Refusal, asked: Asked<'_>) -> SocketAnswer {
    let key = asked.headers.get(header::SEC_WEBSOCKET_KEY);
    let browser = asked.headers.contains_key(header::ORIGIN);
    match (refusal.close_code(), key) {
        (Some(code), Some(key)) if browser => SocketAnswer::AcceptAndClose {
            head: accept(key, asked.headers),
            frame: close_frame(code, close_reason(refusal)),
        },
        _ => {
            let mut response =
                json(refusal.code.status(), Problem::MEDIA_TYPE, &refusal.problem(), asked);
            decorate(response.headers_mut(), refusal);
            SocketAnswer::Plain(response)
        }
    }
}

/// The 101 of a handshake that is only accepted to be closed. The first offered subprotocol is
/// echoed, since a browser that offered some reports 1006 without one; extensions are declined.
/// One that carries a ticket is a secret, and is never said back.
fn accept(key: &HeaderValue, asked: &HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(proof) = HeaderValue::try_from(framing::accept_key(key.as_bytes())) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, proof);
    }
    let first =
        framing::offered(asked).find(|offer| !is_ticket(offer)).map(HeaderValue::from_bytes);
    if let Some(Ok(first)) = first {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, first);
    }
    response
}

fn is_ticket(offer: &[u8]) -> bool {
    offer
        .get(..TICKET_SUBPROTOCOL.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(TICKET_SUBPROTOCOL.as_bytes()))
}

fn close_reason(refusal: &Refusal) -> &'static str {
    refusal.phase.map_or(refusal.code.as_str(), Phase::as_str)
}

/// An unmasked close frame, as a server sends it. A reason beyond the 123 bytes that a control
/// frame has room for is left out.
#[must_use]
pub fn close_frame(code: u16, reason: &str) -> Bytes {
    let reason = if reason.len() > 123 { "" } else { reason };
    let mut frame = Vec::with_capacity(4 + reason.len());
    frame.push(0x88);
    frame.push(u8::try_from(2 + reason.len()).unwrap_or(2));
    frame.extend_from_slice(&code.to_be_bytes());
    frame.extend_from_slice(reason.as_bytes());
    frame.into()
}
