//! The file in which `wakeful login` keeps tokens, readable by its owner alone.

use std::{collections::BTreeMap, fs, io, path::Path};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use wakeful_client::credentials::private_file;

/// Who we are on each server.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Credentials {
    /// The server signed in to last.
    #[serde(default)]
    pub current: Option<String>,
    /// Each server's account, by origin.
    #[serde(default)]
    pub servers: BTreeMap<String, Account>,
}

/// An account on a server.
#[derive(Clone, Serialize, Deserialize)]
pub struct Account {
    /// The user.
    pub user: String,
    /// The token. A secret.
    pub token: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads the file; one that does not exist holds nothing.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn load(file: &Path) -> anyhow::Result<Self> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).with_context(|| broken(file)),
        };
        serde_json::from_str(&text).with_context(|| broken(file))
    }

    /// Writes the file anew, so that no reader ever sees half of it and nobody else any of it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn store(&self, file: &Path) -> anyhow::Result<()> {
        private_file::write(file, serde_json::to_string_pretty(self)?.as_bytes())
    }
}

fn broken(file: &Path) -> String {
    format!("{} cannot be read", file.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn tokens_are_kept_for_their_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new").join("credentials.json");
        assert!(Credentials::load(&file).unwrap().servers.is_empty());
        let account = Account { user: "ada".to_owned(), token: "wk_secret".to_owned() };
        let mut credentials = Credentials { current: Some("s".to_owned()), ..Default::default() };
        credentials.servers.insert("s".to_owned(), account);
        credentials.store(&file).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(file.parent().unwrap()), 0o700);
        let read = Credentials::load(&file).unwrap();
        assert_eq!(read.servers["s"].token, "wk_secret");
        assert!(!format!("{read:?}").contains("wk_secret"));
        // Writing over an existing file keeps its protection and leaves nothing beside it.
        credentials.store(&file).unwrap();
        assert_eq!(mode(&file), 0o600);
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_broken_file_is_an_error_and_not_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("credentials.json");
        fs::write(&file, "{").unwrap();
        assert!(Credentials::load(&file).is_err());
    }
}
