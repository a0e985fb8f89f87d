//! Opening a socket.
//!
//! A ticket comes as a subprotocol of its own: a browser cannot send other headers with an upgrade,
//! and an address ends up in logs. A program that can sends token and proof instead. Nor does a browser tell its page why an upgrade was
//! refused, so a page (whoever sends `Origin`) gets its refusals as close codes of a socket that
//! opens for nothing else; a program gets them as problems.

use std::time::Duration;

use axum::{
    extract::{
        FromRequestParts as _, WebSocketUpgrade,
        ws::{CloseFrame, Message, WebSocket},
    },
    http::{HeaderMap, header},
    response::Response,
};
use wakeful_wire::{
    Code, Problem,
    host::{Denial, SOCKET_PATH, close},
    rpc::{CLIENT_FRAME_MAX, KNOWN_HEADER, SUBPROTOCOL, TICKET_SUBPROTOCOL},
};

use super::{admit::Asked, answer::Refusal};
use crate::host::socket;

/// Most sockets that a host holds, those that are only told why they are refused among them.
const SOCKETS_MAX: usize = 4_096;
/// Close code: not signed in.
const NOT_SIGNED_IN: u16 = 4401;
/// How long a refused socket has to take its close frame.
const REFUSED_TIME: Duration = Duration::from_secs(1);

/// Whether it is a browser's attempt at a socket: then what is wrong is told on the socket.
pub(super) fn is_by_browser(asked: &Asked) -> bool {
    asked.head.uri.path() == SOCKET_PATH && asked.head.headers.contains_key(header::ORIGIN)
}

/// Answers `GET /rpc`.
///
/// # Errors
/// A problem, where the answer is no socket.
pub(super) async fn answer(mut asked: Asked) -> Result<Response, Refusal> {
    let offered = Offered::of(&asked.head.headers);
    let upgrade =
        WebSocketUpgrade::from_request_parts(&mut asked.head, &()).await.map_err(|refused| {
            Problem::new(Code::BadRequest).detail(format!("{}.", refused.body_text()))
        })?;
    if !offered.speaks {
        return Err(Problem::new(Code::Unsupported)
            .detail(format!("This host speaks `{SUBPROTOCOL}`: offer it as a subprotocol."))
            .into());
    }
    let known = asked.head.headers.get(KNOWN_HEADER);
    let known = known.and_then(|known| known.to_str().ok()).map(str::to_owned);
    let upgrade = upgrade
        .protocols([SUBPROTOCOL])
        .max_message_size(CLIENT_FRAME_MAX)
        .max_frame_size(CLIENT_FRAME_MAX);
    // Taken before the farewell is looked at: either it is seen here, or whoever says it waits for
    // this socket.
    let tracked = asked.host.0.sockets.token();
    let farewell = asked.host.0.farewell.borrow().clone();
    let by_browser = is_by_browser(&asked);
    let refused = |refusal: Refusal, code: u16, reason: &'static str| {
        if by_browser { Ok((code, reason)) } else { Err(refusal) }
    };
    let (code, reason) = if asked.host.0.sockets.len() > SOCKETS_MAX {
        // Not even a socket to say so on.
        return Err(Refusal::full());
    } else if let Some(farewell) = farewell {
        refused(Refusal::closing(), farewell.code, farewell.reason)?
    } else {
        let authority = &asked.host.parts().authority;
        let opened = match &offered.ticket {
            Some(ticket) => authority.open_socket(ticket).await,
            None if offered.by_token => {
                let address = asked.address()?;
                authority.enter(&asked.presented(&address)).await
            }
            None => Err(Denial::TicketMalformed),
        };
        match opened {
            Ok(live) => {
                let host = asked.host;
                return Ok(upgrade.on_upgrade(move |socket| async move {
                    socket::run(host, socket, live, known).await;
                    drop(tracked);
                }));
            }
            Err(denial) => refused(denial.into(), close_code(denial), denial.as_str())?,
        }
    };
    Ok(upgrade.on_upgrade(move |socket| async move {
        refuse(socket, code, reason).await;
        drop(tracked);
    }))
}

/// The code that tells a page what to do next.
fn close_code(denial: Denial) -> u16 {
    if denial == Denial::SessionRevoked {
        close::SESSION_REVOKED
    } else if denial == Denial::SessionExpired {
        close::SESSION_EXPIRED
    } else {
        NOT_SIGNED_IN
    }
}

/// Says why, and waits a moment for it to be heard.
async fn refuse(mut socket: WebSocket, code: u16, reason: &'static str) {
    let told = async {
        let frame = CloseFrame { code, reason: reason.into() };
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    let _in_time = tokio::time::timeout(REFUSED_TIME, told).await;
}

/// What a client offers as subprotocols.
#[derive(Debug, Default, PartialEq, Eq)]
struct Offered {
    /// Whether it speaks this release's protocol.
    speaks: bool,
    /// Its ticket, if it offers exactly one.
    ticket: Option<String>,
    /// Whether it offers none and shows an access token instead.
    by_token: bool,
}

impl Offered {
    fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL);
        let names: Vec<&str> = values
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim_ascii)
            .collect();
        let mut tickets = names.iter().filter_map(|name| name.strip_prefix(TICKET_SUBPROTOCOL));
        let ticket = tickets.next().map(str::to_owned);
        let more = tickets.next().is_some();
        Self {
            speaks: names.contains(&SUBPROTOCOL),
            by_token: ticket.is_none() && headers.contains_key(header::AUTHORIZATION),
            ticket: ticket.filter(|_| !more),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn offered(values: &[&str]) -> Offered {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(value).unwrap());
        }
        Offered::of(&headers)
    }

    #[test]
    fn a_ticket_is_offered_beside_the_protocol() {
        let whole =
            Offered { speaks: true, ticket: Some("wkt1.abc".to_owned()), ..Offered::default() };
        assert_eq!(offered(&["wakeful.rpc.v1, wakeful.ticket.wkt1.abc"]), whole);
        assert_eq!(offered(&["wakeful.ticket.wkt1.abc", "wakeful.rpc.v1"]), whole);
        let none = Offered { speaks: true, ..Offered::default() };
        assert_eq!(offered(&["wakeful.rpc.v1"]), none);
        assert_eq!(offered(&["wakeful.rpc.v1,wakeful.ticket.a,wakeful.ticket.b"]), none);
        assert_eq!(offered(&["wakeful.rpc.v2"]), Offered::default());
        assert_eq!(offered(&[]), Offered::default());
    }

    #[test]
    fn a_page_learns_whether_to_renew_or_to_ask_a_person() {
        assert_eq!(close_code(Denial::SessionRevoked), 4411);
        assert_eq!(close_code(Denial::SessionExpired), 4412);
        assert_eq!(close_code(Denial::TicketUsed), 4401);
    }
}
