//! The control socket of a host of its own.

use std::{io, path::Path, sync::Arc, time::Duration};

use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};
use wakeful_wire::{UserName, host::Scopes};

use super::ask::{Answer, Ask, Offered, Status};
use crate::{
    control::line,
    credential::{Authority, PairingOffer},
    startup::bind_private,
};

/// How many are answered at once. Further ones are closed at once.
const ASKERS_MAX: usize = 32;
/// How long an asker may take to send its line, and to take ours.
const LINE_TIME: Duration = Duration::from_secs(5);
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// As whom everybody enters who was paired with: the one who runs the host.
const OWNER: &str = "owner";

/// What asks are answered with.
#[derive(Debug)]
pub(super) struct Answering {
    authority: Authority,
    status: Status,
    owner: UserName,
}

impl Answering {
    pub(super) fn new(authority: Authority, status: Status) -> io::Result<Self> {
        let owner = UserName::new(OWNER).map_err(io::Error::other)?;
        Ok(Self { authority, status, owner })
    }

    /// Makes a pairing code.
    pub(super) fn offer(&self, label: Option<String>, scopes: Option<Scopes>) -> Offered {
        let offered = self.authority.offer_pairing(PairingOffer {
            subject: self.owner.clone(),
            scopes: scopes.unwrap_or_else(Scopes::all),
            label: label.unwrap_or_else(|| "paired client".to_owned()),
        });
        Offered {
            code: offered.code.to_string(),
            expires_at: offered.expires_at,
            address: self.status.address.clone(),
        }
    }

    async fn answer(&self, ask: Ask) -> Answer {
        let sessions = self.authority.sessions();
        match ask {
            Ask::Status => Answer::Status(self.status.clone()),
            Ask::Offer { scopes: Some(scopes), .. } if scopes.is_empty() => {
                Answer::Refused { reason: "a session that may do nothing is of no use".to_owned() }
            }
            Ask::Offer { label, scopes } => Answer::Offered(self.offer(label, scopes)),
            Ask::Sessions => Answer::Sessions { sessions: sessions.list() },
            Ask::Revoke { session } => match sessions.revoke(session).await {
                Ok(changed) => Answer::Revoked { changed },
                Err(error) => Answer::Refused { reason: error.to_string() },
            },
        }
    }
}

/// Binds the control socket. Whoever calls holds the workspace's log, so a socket that is there
/// already belongs to nobody.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    UnixListener::from_std(bind_private(path)?)
}

/// Answers for as long as it is polled.
pub(super) async fn serve(listener: UnixListener, answering: Arc<Answering>) {
    let places = Arc::new(Semaphore::new(ASKERS_MAX));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let answering = Arc::clone(&answering);
        tokio::spawn(async move {
            connection(stream, &answering).await;
            drop(place);
        });
    }
}

async fn connection(mut stream: UnixStream, answering: &Answering) {
    let ours = rustix::process::getuid().as_raw();
    if !stream.peer_cred().is_ok_and(|peer| peer.uid() == ours) {
        return;
    }
    let asked = tokio::time::timeout(LINE_TIME, line::read(&mut stream)).await;
    let Ok(Some(asked)) = asked else { return };
    let answer = match serde_json::from_slice::<Ask>(&asked) {
        Ok(ask) => answering.answer(ask).await,
        Err(_) => Answer::Refused { reason: "this release does not know such an ask".to_owned() },
    };
    let _left = tokio::time::timeout(LINE_TIME, line::write(&mut stream, &answer)).await;
}
