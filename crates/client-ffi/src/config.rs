//! What a client is started with.

use std::{fmt, path::PathBuf, sync::Arc};

use wakeful_client::{
    credentials::{ClientKey, PairedHosts},
    runtime::Setup,
};
use wakeful_link::{authorization, registry::Account, route::Address};
use wakeful_wire::UserName;

use crate::error::{ClientError, id};

/// The longest label, in characters.
const LABEL_MAX: usize = 64;

/// A text that is never shown. It can be given and not be read back, so that no record that holds
/// it can be printed with it by accident.
#[derive(uniffi::Object)]
pub struct Secret(authorization::Secret);

#[uniffi::export]
impl Secret {
    /// Takes the text over.
    #[uniffi::constructor]
    #[must_use]
    pub fn new(text: String) -> Arc<Self> {
        Arc::new(Self(authorization::Secret::new(text)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// One user, signed in at one server. At most one per server.
#[derive(Debug, Clone, uniffi::Record)]
pub struct ServerAccount {
    /// The server's address, such as `https://wakeful.example.org`.
    pub server: String,
    /// The user's name there.
    pub user: String,
    /// The token that the server gave.
    pub token: Arc<Secret>,
}

/// What a client is started with.
#[derive(Debug, Clone, uniffi::Record)]
pub struct ClientConfig {
    /// The directory of the client's key and of the hosts that it is paired with. It is made, for
    /// its owner alone, if there is none. At most one running client should have it.
    pub config_dir: String,
    /// The directory of cached lists and threads. Absent: nothing is kept between runs, and what
    /// was paused is forgotten.
    #[uniffi(default = None)]
    pub cache_dir: Option<String>,
    /// What hosts call this client in their lists of sessions: 1 to 64 characters.
    pub label: String,
    /// Who is signed in. Without accounts there are the paired hosts alone. Environments that were
    /// kept for somebody who is not named any more are deleted here, with what is cached of them.
    #[uniffi(default = [])]
    pub accounts: Vec<ServerAccount>,
    /// If there, only these hosts (by id) are connected to, though all are known.
    #[uniffi(default = None)]
    pub focus: Option<Vec<String>>,
    /// Whether threads that run are followed although nobody has opened them. For desktops; a
    /// phone leaves it off.
    #[uniffi(default = false)]
    pub keep_alive: bool,
    /// Whether this machine's own network and sleep are watched, where there is a watch for its
    /// system. Off where the application is told by its system and says so by
    /// [`ClientSession::set_network`](crate::ClientSession::set_network) and its neighbours.
    #[uniffi(default = false)]
    pub watch_machine: bool,
}

impl ClientConfig {
    /// What the runtime needs. Reads or draws the key, so it may touch the disk.
    pub(crate) fn setup(self) -> Result<Setup, ClientError> {
        let label = self.label.trim();
        if label.is_empty() || label.chars().count() > LABEL_MAX {
            let detail = format!("A label has 1 to {LABEL_MAX} characters.");
            return Err(ClientError::Invalid(detail));
        }
        if self.config_dir.is_empty() {
            return Err(ClientError::Invalid("There is no directory for credentials.".to_owned()));
        }
        let directory = PathBuf::from(&self.config_dir);
        let accounts = self.accounts.iter().map(account).collect::<Result<Vec<_>, _>>()?;
        let hosts = |hosts: Vec<String>| hosts.iter().map(|host| id("host", host)).collect();
        let focus = self.focus.map(hosts).transpose()?;
        let key = ClientKey::open(&directory.join("host-key")).map_err(ClientError::storage)?;
        Ok(Setup {
            key: Arc::new(key),
            paired: PairedHosts::in_directory(directory),
            cache: self.cache_dir.map(PathBuf::from),
            accounts,
            label: label.to_owned(),
            focus,
            keep_alive: self.keep_alive,
        })
    }
}

fn account(account: &ServerAccount) -> Result<(Account, String), ClientError> {
    let wrong = |what: &dyn fmt::Display| {
        ClientError::invalid(&format!("The account at `{}`: {what}.", account.server))
    };
    let platform = Address::new(&account.server).map_err(|error| wrong(&error))?;
    let user: UserName = account.user.parse().map_err(|error| wrong(&error))?;
    Ok((Account { platform, user }, account.token.0.reveal().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(directory: &std::path::Path) -> ClientConfig {
        ClientConfig {
            config_dir: directory.join("config").display().to_string(),
            cache_dir: None,
            label: " phone ".to_owned(),
            accounts: Vec::new(),
            focus: None,
            keep_alive: false,
            watch_machine: false,
        }
    }

    fn with_account(directory: &std::path::Path, server: &str, user: &str) -> ClientConfig {
        let token = Secret::new("s3cr3t".to_owned());
        let account = ServerAccount { server: server.to_owned(), user: user.to_owned(), token };
        ClientConfig { accounts: vec![account], ..config(directory) }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_before_anything_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let plain = || config(directory.path());
        let table = [
            ClientConfig { label: "  ".to_owned(), ..plain() },
            ClientConfig { label: "x".repeat(65), ..plain() },
            ClientConfig { config_dir: String::new(), ..plain() },
            ClientConfig { focus: Some(vec!["laptop".to_owned()]), ..plain() },
            with_account(directory.path(), "wakeful.example.org", "ada"),
            with_account(directory.path(), "https://wakeful.example.org", "Ada Lovelace"),
        ];
        for wrong in table {
            let shown = format!("{wrong:?}");
            assert!(matches!(wrong.setup(), Err(ClientError::Invalid(_))), "{shown}");
        }
        assert!(!directory.path().join("config").exists());
    }

    #[test]
    fn a_client_keeps_its_key_from_one_start_to_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let key = || config(directory.path()).setup().unwrap().key.thumbprint();
        assert_eq!(key(), key());
        assert_eq!(config(directory.path()).setup().unwrap().label, "phone");
    }

    #[test]
    fn a_token_is_neither_printed_nor_repeated_by_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let good = with_account(directory.path(), "https://wakeful.example.org", "ada");
        assert!(!format!("{good:?}").contains("s3cr3t"));
        let bad = with_account(directory.path(), "nowhere", "ada").setup().unwrap_err();
        assert!(!format!("{bad:?} {bad}").contains("s3cr3t"));
        assert_eq!(good.setup().unwrap().accounts[0].1, "s3cr3t");
    }
}
