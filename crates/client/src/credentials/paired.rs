//! The hosts that this installation is paired with, in a file that only its owner may read.

use std::{
    fmt,
    fs::File,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::PathBuf,
};

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use wakeful_wire::HostId;

use super::private_file;

/// The longest name, in characters.
const NAME_MAX: usize = 64;

/// A host that this installation is paired with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedHost {
    /// What it is called here.
    pub name: String,
    /// Where it is, without a slash at the end.
    pub address: String,
    /// Its id.
    pub host: HostId,
    /// Gives access tokens to the holder of this installation's key. A secret.
    pub refresh_token: String,
}

impl fmt::Debug for PairedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairedHost")
            .field("name", &self.name)
            .field("address", &self.address)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Hosts {
    #[serde(default)]
    hosts: Vec<PairedHost>,
}

/// The file of the paired hosts. Every change reads it anew under a lock, so that two programs of
/// one person do not undo each other's.
#[derive(Debug, Clone)]
pub struct PairedHosts {
    directory: PathBuf,
}

impl PairedHosts {
    /// The file in a directory, which need not exist yet.
    #[must_use]
    pub const fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.join("paired-hosts.json")
    }

    fn load(&self) -> anyhow::Result<Hosts> {
        let file = self.file();
        match private_file::read(&file)? {
            None => Ok(Hosts::default()),
            Some(text) => serde_json::from_slice(&text)
                .with_context(|| format!("{} cannot be read", file.display())),
        }
    }

    fn store(&self, hosts: &Hosts) -> anyhow::Result<()> {
        private_file::write(&self.file(), serde_json::to_string_pretty(hosts)?.as_bytes())
    }

    /// Keeps others from changing the file while what is returned is held.
    fn lock(&self) -> anyhow::Result<File> {
        let path = self.directory.join("paired-hosts.lock");
        let lock = || -> std::io::Result<File> {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
            let file =
                File::options().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        lock().with_context(|| format!("{} cannot be locked", path.display()))
    }

    /// The paired hosts, in the order in which they were paired with.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> anyhow::Result<Vec<PairedHost>> {
        Ok(self.load()?.hosts)
    }

    /// The host of a name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(&self, name: &str) -> anyhow::Result<Option<PairedHost>> {
        Ok(self.load()?.hosts.into_iter().find(|host| host.name == name))
    }

    /// Forgets a host. False if none has that id.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn forget(&self, host: HostId) -> anyhow::Result<bool> {
        let _locked = self.lock()?;
        let mut hosts = self.load()?;
        let before = hosts.hosts.len();
        hosts.hosts.retain(|known| known.host != host);
        let changed = hosts.hosts.len() < before;
        if changed {
            self.store(&hosts)?;
        }
        Ok(changed)
    }

    /// Keeps what a renewal brought. False if the host has been forgotten meanwhile: what came late
    /// is dropped.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn renew(&self, host: HostId, refresh_token: &str) -> anyhow::Result<bool> {
        let _locked = self.lock()?;
        let mut hosts = self.load()?;
        let Some(known) = hosts.hosts.iter_mut().find(|known| known.host == host) else {
            return Ok(false);
        };
        refresh_token.clone_into(&mut known.refresh_token);
        self.store(&hosts)?;
        Ok(true)
    }

    /// Keeps a host under a name like the wanted one that no other has. It replaces the one of the
    /// same id.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn keep(
        &self,
        wanted: &str,
        address: &str,
        host: HostId,
        refresh_token: String,
    ) -> anyhow::Result<PairedHost> {
        let _locked = self.lock()?;
        let mut hosts = self.load()?;
        let name = unique(&hosts, wanted, host);
        let host = PairedHost { name, address: address.to_owned(), host, refresh_token };
        match hosts.hosts.iter_mut().find(|known| known.host == host.host) {
            Some(known) => known.clone_from(&host),
            None => hosts.hosts.push(host.clone()),
        }
        self.store(&hosts)?;
        Ok(host)
    }
}

/// A name that no other host has.
fn unique(hosts: &Hosts, wanted: &str, id: HostId) -> String {
    let wanted: String = wanted
        .chars()
        .map(|letter| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' })
        .take(NAME_MAX)
        .collect();
    let wanted = if wanted.is_empty() { "host".to_owned() } else { wanted };
    let taken = |name: &str| hosts.hosts.iter().any(|host| host.name == name && host.host != id);
    let numbered = (2..).map(|number| format!("{wanted}-{number}"));
    let mut names = std::iter::once(wanted.clone()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use uuid::Uuid;

    use super::*;

    fn id(number: u64) -> HostId {
        HostId::from_uuid(Uuid::from_u64_pair(2, number))
    }

    fn keep(hosts: &PairedHosts, wanted: &str, number: u64) -> PairedHost {
        hosts.keep(wanted, "http://10.0.0.7:7900", id(number), format!("token-{number}")).unwrap()
    }

    #[test]
    fn a_host_is_kept_under_a_name_of_its_own_and_paired_anew_in_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let hosts = PairedHosts::in_directory(directory.path().join("new"));
        assert_eq!(hosts.list().unwrap(), []);
        assert_eq!(keep(&hosts, "my laptop", 1).name, "my-laptop");
        assert_eq!(keep(&hosts, "my laptop", 2).name, "my-laptop-2");
        assert_eq!(keep(&hosts, "my laptop", 1).name, "my-laptop");
        assert_eq!(hosts.list().unwrap().len(), 2);
        assert_eq!(hosts.find("my-laptop-2").unwrap().unwrap().host, id(2));
        let mode = hosts.file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_renewal_that_comes_after_the_host_was_forgotten_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let hosts = PairedHosts::in_directory(directory.path().to_owned());
        keep(&hosts, "laptop", 1);
        assert!(hosts.renew(id(1), "newer").unwrap());
        assert_eq!(hosts.find("laptop").unwrap().unwrap().refresh_token, "newer");
        assert!(hosts.forget(id(1)).unwrap());
        assert!(!hosts.forget(id(1)).unwrap());
        assert!(!hosts.renew(id(1), "newest").unwrap());
        assert_eq!(hosts.list().unwrap(), []);
    }

    #[test]
    fn writers_at_once_lose_none_of_each_others_hosts() {
        let directory = tempfile::tempdir().unwrap();
        let hosts = PairedHosts::in_directory(directory.path().to_owned());
        std::thread::scope(|scope| {
            for number in 0..16 {
                let hosts = &hosts;
                scope.spawn(move || keep(hosts, "host", number));
            }
        });
        let mut names: Vec<_> = hosts.list().unwrap().into_iter().map(|host| host.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 16);
    }

    #[test]
    fn a_secret_is_not_printed() {
        let host = PairedHost {
            name: "laptop".to_owned(),
            address: "http://10.0.0.7:7900".to_owned(),
            host: id(1),
            refresh_token: "s3cr3t".to_owned(),
        };
        assert!(!format!("{host:?}").contains("s3cr3t"));
    }
}
