//! Asking a host of this machine: for another pairing code, for its sessions.
//!
//! A connection to the control socket carries one [`Ask`] as one line of JSON and then one
//! [`Answer`]. Only the host's own user is answered, so whoever asks has everything that the host
//! itself has.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};
use wakeful_wire::{
    HostId, HostSessionId, Timestamp,
    host::{Scopes, SessionView},
};

use super::place::{Place, PlaceError};
use crate::control::line;

/// How long a host may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// The longest answer, in bytes.
const ANSWER_MAX: u64 = 8 * 1024 * 1024;

/// What is asked of a host of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Who it is.
    Status,
    /// A pairing code.
    Offer {
        /// What the session is called if its client calls itself nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// What it may do; absent: everything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scopes: Option<Scopes>,
    },
    /// The sessions.
    Sessions,
    /// The end of a session.
    Revoke {
        /// Which.
        session: HostSessionId,
    },
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Who it is.
    Status(Status),
    /// A pairing code.
    Offered(Offered),
    /// The sessions that are listed.
    Sessions {
        /// The sessions, oldest first.
        sessions: Vec<SessionView>,
    },
    /// The session is revoked.
    Revoked {
        /// Whether it was there and had not been revoked before.
        changed: bool,
    },
    /// Nothing happened.
    Refused {
        /// Why, for people.
        reason: String,
    },
}

/// Who a host is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its lasting id.
    pub id: HostId,
    /// For people.
    pub label: String,
    /// Its workspace.
    pub workspace: PathBuf,
    /// Where clients reach it, without a slash at its end.
    pub address: String,
    /// Its process.
    pub pid: u32,
}

/// A pairing code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// The code. Good once.
    pub code: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Where it is good, without a slash at its end.
    pub address: String,
}

impl std::fmt::Debug for Offered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offered").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Why a host of this machine did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is no place for a host of this workspace.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// No host runs there.
    #[error("no host runs for this workspace")]
    NotRunning,
    /// The connection failed.
    #[error("the host cannot be asked")]
    Connection(#[source] io::Error),
    /// It did not answer in time.
    #[error("the host does not answer")]
    Silent,
    /// It answered something else.
    #[error("the host's answer is not understood; it may be of another release")]
    Answer,
    /// It refused.
    #[error("the host refused: {0}")]
    Refused(String),
}

/// A host of this machine.
#[derive(Debug, Clone)]
pub struct Local {
    socket: PathBuf,
}

impl Local {
    /// The host of a workspace, with the state directory that it was started with.
    ///
    /// # Errors
    /// When the workspace is not there, or the state directory's path is too long.
    pub fn of(state: &Path, workspace: &Path) -> Result<Self, AskError> {
        Ok(Self { socket: Place::of(state, workspace)?.socket()? })
    }

    /// Every host that runs with this state directory, and who it is.
    pub async fn running(state: &Path) -> Vec<(Self, Status)> {
        let mut running = Vec::new();
        for socket in Place::sockets(state) {
            let local = Self { socket };
            if let Ok(status) = local.status().await {
                running.push((local, status));
            }
        }
        running
    }

    /// Who it is.
    ///
    /// # Errors
    /// When it does not run or does not answer.
    pub async fn status(&self) -> Result<Status, AskError> {
        let Answer::Status(status) = self.ask(&Ask::Status).await? else {
            return Err(AskError::Answer);
        };
        Ok(status)
    }

    /// A pairing code for whoever brings it: `label` is what the session is called if its client
    /// calls itself nothing, `scopes` what it may do (absent: everything).
    ///
    /// # Errors
    /// As for [`Self::status`].
    pub async fn offer(
        &self,
        label: Option<String>,
        scopes: Option<Scopes>,
    ) -> Result<Offered, AskError> {
        let Answer::Offered(offered) = self.ask(&Ask::Offer { label, scopes }).await? else {
            return Err(AskError::Answer);
        };
        Ok(offered)
    }

    /// Its sessions, oldest first.
    ///
    /// # Errors
    /// As for [`Self::status`].
    pub async fn sessions(&self) -> Result<Vec<SessionView>, AskError> {
        let Answer::Sessions { sessions } = self.ask(&Ask::Sessions).await? else {
            return Err(AskError::Answer);
        };
        Ok(sessions)
    }

    /// Ends a session; its sockets close. Answers whether it was there and not revoked before.
    ///
    /// # Errors
    /// As for [`Self::status`]; [`AskError::Refused`] when it cannot be written down.
    pub async fn revoke(&self, session: HostSessionId) -> Result<bool, AskError> {
        let Answer::Revoked { changed } = self.ask(&Ask::Revoke { session }).await? else {
            return Err(AskError::Answer);
        };
        Ok(changed)
    }

    async fn ask(&self, ask: &Ask) -> Result<Answer, AskError> {
        let mut stream = UnixStream::connect(&self.socket).await.map_err(|error| {
            let kind = error.kind();
            let absent = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
            if absent.contains(&kind) { AskError::NotRunning } else { AskError::Connection(error) }
        })?;
        let asking = async {
            let mut text = Vec::new();
            stream.write_all(&line::encode(ask)?).await?;
            stream.take(ANSWER_MAX).read_to_end(&mut text).await?;
            Ok(text)
        };
        let text = tokio::time::timeout(ANSWER_TIME, asking)
            .await
            .map_err(|_| AskError::Silent)?
            .map_err(AskError::Connection)?;
        match serde_json::from_slice(&text) {
            Ok(Answer::Refused { reason }) => Err(AskError::Refused(reason)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(AskError::Answer),
        }
    }
}
