//! One socket of the link: opened once, and heard until it ends.

use std::sync::{Arc, Weak};

use reqwest::{
    Url,
    header::{HeaderName, HeaderValue},
};
use wakeful_link::{
    At, AttemptId, Enter, Way,
    http::{Method, Proof, Reply},
};
use wakeful_wire::{
    host::SOCKET_PATH,
    rpc::{KNOWN_HEADER, SUBPROTOCOL, TICKET_SUBPROTOCOL},
};

use super::Shared;
use crate::{
    http::Sender,
    socket::{Heard, NotOpened, Opening, Socket},
};

const KNOWN: HeaderName = HeaderName::from_static(KNOWN_HEADER);

/// What a socket is opened with.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) way: Way,
    pub(super) wake: bool,
    pub(super) enter: Enter,
    pub(super) known: Option<String>,
}

/// An outbox that others can find.
struct Listed {
    shared: Weak<Shared>,
    key: (At, AttemptId),
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.outboxes.lock().remove(&self.key);
        }
    }
}

/// Opens a socket and brings the link what comes by it. Ends with the socket.
pub(super) async fn dial(
    shared: Weak<Shared>,
    sender: Sender,
    at: At,
    attempt: AttemptId,
    door: Door,
) {
    let opened = match opening(&sender, &door) {
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
    // Taken out again however this ends: a task that was ended a moment ago may still come here.
    let _listed = {
        let Some(shared) = shared.upgrade() else { return };
        shared.outboxes.lock().insert((at, attempt), socket.outbox());
        shared.put(|link, now| link.handle_opened(now, at, attempt));
        Listed { shared: Arc::downgrade(&shared), key: (at, attempt) }
    };
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

#[expect(clippy::result_large_err, reason = "made once for a socket, which costs far more")]
fn opening(sender: &Sender, door: &Door) -> Result<Opening, NotOpened> {
    let wrong = |what: &str| NotOpened(Reply::Unproven(format!("The {what} cannot be sent.")));
    let address = format!("{}{SOCKET_PATH}", door.way.address);
    let address = Url::parse(&address).map_err(|_| wrong("address"))?;
    let (proof, protocols) = match &door.enter {
        Enter::Access(access) => (Proof::Access(access.clone()), SUBPROTOCOL.to_owned()),
        Enter::Ticket(ticket) => {
            let ticket = format!("{SUBPROTOCOL}, {TICKET_SUBPROTOCOL}{}", ticket.reveal());
            (Proof::None, ticket)
        }
    };
    let mut headers = sender
        .headers(&door.way, Method::Get, SOCKET_PATH, &proof, door.wake)
        .map_err(|_| wrong("token"))?;
    // What the host is known by is its own word. Without it the host greets in full.
    if let Some(known) = door.known.as_deref().and_then(|tag| HeaderValue::from_str(tag).ok()) {
        headers.insert(KNOWN, known);
    }
    let mut protocols = HeaderValue::from_str(&protocols).map_err(|_| wrong("ticket"))?;
    protocols.set_sensitive(true);
    let headers =
        headers.into_iter().filter_map(|(name, value)| name.map(|name| (name, value))).collect();
    Ok(Opening { address, protocols, headers })
}
