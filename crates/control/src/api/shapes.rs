//! JSON shapes of the API that only the API uses. The shared ones are in [`wakeful_wire::api`].

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wakeful_wire::{Timestamp, UserName, api::Project, gate::SignedInBy};

use crate::{accounts, files, variables};

/// `GET /api/me`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The user.
    pub user: UserName,
    /// `cookie` or `token`.
    #[schema(value_type = String)]
    pub by: SignedInBy,
    /// Since when there is this user, in milliseconds since the epoch.
    pub created_at: Timestamp,
    /// Whether a password signs in; else tokens alone do.
    pub has_password: bool,
}

/// The answer to `POST /login` by JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedIn {
    /// The user.
    pub user: UserName,
    /// A new bearer token, shown once. Absent where a token was what signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The default project, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
}

/// `POST /logout`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignOut {
    /// Whether every session of the user ends, not only this one.
    #[serde(default)]
    pub everywhere: bool,
}

/// `POST /api/tokens`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// What its owner calls it.
    pub name: String,
}

/// A bearer token, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Names it.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// When it was made, in milliseconds since the epoch.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Option<Timestamp>,
}

// What holds a secret does not print it.

impl fmt::Debug for SignedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedIn").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Debug for CreatedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedToken").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for ChangePassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangePassword").finish_non_exhaustive()
    }
}

impl From<accounts::TokenView> for Token {
    fn from(view: accounts::TokenView) -> Self {
        Self { id: view.id, name: view.name, created_at: view.created_at, used_at: view.used_at }
    }
}

/// The answer to `POST /api/tokens`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// The token itself, shown once.
    pub token: String,
    /// Names it.
    pub id: String,
    /// What its owner calls it.
    pub name: String,
    /// When it was made, in milliseconds since the epoch.
    pub created_at: Timestamp,
}

/// `PUT /api/me/password`.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePassword {
    /// The present password, where there is one.
    #[serde(default)]
    pub current: Option<String>,
    /// The new one.
    pub new: String,
}

/// `POST …/extend`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// For how long it stays awake, from now, in minutes: 1 to 1440. 60 where the body is left out.
    pub minutes: u32,
}

/// `PUT …/variables/{name}`.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetVariable {
    /// The value.
    pub value: String,
    /// Whether it is never shown again. True unless said otherwise.
    #[serde(default = "yes")]
    pub secret: bool,
}

const fn yes() -> bool {
    true
}

impl fmt::Debug for SetVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetVariable").field("secret", &self.secret).finish_non_exhaustive()
    }
}

/// A variable of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Whether its value is never shown.
    pub secret: bool,
    /// Its value; a secret's is masked.
    pub value: String,
    /// When it was set, in milliseconds since the epoch.
    pub updated_at: Timestamp,
}

impl From<variables::VariableView> for Variable {
    fn from(view: variables::VariableView) -> Self {
        let variables::VariableView { name, secret, shown, updated_at } = view;
        Self { name, secret, value: shown, updated_at }
    }
}

/// `GET …/files/{directory}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileListing {
    /// The directory, relative to the workspace; empty for the workspace itself.
    pub path: String,
    /// What stands there, by name.
    pub entries: Vec<FileEntry>,
    /// Whether there are more than are listed.
    pub truncated: bool,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// `file`, `directory`, `link` or `other`.
    pub kind: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it last changed, in milliseconds since the epoch.
    pub modified_at: Timestamp,
}

impl From<files::Entry> for FileEntry {
    fn from(entry: files::Entry) -> Self {
        Self {
            name: entry.name,
            kind: entry.kind.as_str().to_owned(),
            size: entry.size,
            modified_at: Timestamp(entry.modified_ms),
        }
    }
}

/// `PUT …/files/{path}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredFile {
    /// Where it stands, relative to the workspace.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
}

/// One line of the answer to an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum UploadEvent {
    /// How far a file is.
    Progress {
        /// Its path as it was given.
        path: String,
        /// How many bytes of it have come.
        bytes: u64,
    },
    /// A file is stored, or is not.
    File {
        /// Its path as it was given.
        path: String,
        /// Whether it is stored.
        ok: bool,
        /// Its size in bytes, where it is stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        /// The stable code, where it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Why not, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Every file was seen.
    Done {
        /// How many were stored.
        uploaded: u32,
        /// How many were not.
        failed: u32,
    },
    /// The upload ended before every file was seen.
    Error {
        /// The stable code.
        code: String,
        /// Why, for people.
        error: String,
    },
}
