//! One socket of the link: opened once, and heard until it ends.

use std::sync::Weak;

use reqwest::{Url, header::HeaderValue};
use wakeful_link::{
    At, AttemptId, Enter, Way,
    http::{Method, Proof, Reply},
};
use wakeful_wire::{
    host::SOCKET_PATH,
    rpc::{SUBPROTOCOL, TICKET_SUBPROTOCOL},
};

use super::Shared;
use crate::{
    http::Sender,
    socket::{Heard, NotOpened, Opening, Socket},
};

/// Opens a socket and brings the link what comes by it. Ends with the socket.
pub(super) async fn dial(
    shared: Weak<Shared>,
    sender: Sender,
    at: At,
    attempt: AttemptId,
    way: Way,
    wake: bool,
    enter: Enter,
) {
    let opened = match opening(&sender, &way, wake, &enter) {
        Ok(opening) => Socket::open(opening).await,
        Err(refused) => Err(refused),
    };
    let mut socket = match opened {
        Ok(socket) => socket,
        Err(NotOpened(reply)) => {
            if let Some(shared) = shared.upgrade() {
                shared.put(|link, now| link.handle_not_opened(now, at, attempt, &reply));
            }
            return;
        }
    };
    {
        let Some(shared) = shared.upgrade() else { return };
        shared.outboxes.lock().insert((at, attempt), socket.outbox());
        shared.put(|link, now| link.handle_opened(now, at, attempt));
    }
    while let Some(heard) = socket.heard().await {
        let Some(shared) = shared.upgrade() else { return };
        match heard {
            Heard::Text(text) => shared.put(|link, now| link.handle_text(now, at, attempt, &text)),
            Heard::Life => shared.put(|link, now| link.handle_life(now, at, attempt)),
            Heard::Closed { code, reason } => {
                shared.outboxes.lock().remove(&(at, attempt));
                shared.put(|link, now| link.handle_closed(now, at, attempt, code, &reason));
            }
        }
    }
}

fn opening(sender: &Sender, way: &Way, wake: bool, enter: &Enter) -> Result<Opening, NotOpened> {
    let wrong = |what: &str| NotOpened(Reply::Unproven(format!("The {what} cannot be sent.")));
    let address = format!("{}{SOCKET_PATH}", way.address);
    let address = Url::parse(&address).map_err(|_| wrong("address"))?;
    let (proof, protocols) = match enter {
        Enter::Access(access) => (Proof::Access(access.clone()), SUBPROTOCOL.to_owned()),
        Enter::Ticket(ticket) => {
            let ticket = format!("{SUBPROTOCOL}, {TICKET_SUBPROTOCOL}{}", ticket.reveal());
            (Proof::None, ticket)
        }
    };
    let headers =
        sender.headers(way, Method::Get, SOCKET_PATH, &proof, wake).map_err(|_| wrong("token"))?;
    let mut protocols = HeaderValue::from_str(&protocols).map_err(|_| wrong("ticket"))?;
    protocols.set_sensitive(true);
    let headers =
        headers.into_iter().filter_map(|(name, value)| name.map(|name| (name, value))).collect();
    Ok(Opening { address, protocols, headers })
}
