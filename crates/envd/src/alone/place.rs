//! Where a host of its own keeps what must not lie in its workspace.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use wakeful_wire::HostId;

/// The directory of all hosts of a state directory.
const HOSTS: &str = "hosts";
/// Who the host is.
const IDENTITY: &str = "host.json";
/// The control socket.
const SOCKET: &str = "control";
/// Small files of its agents.
const SCRATCH: &str = "scratch";
/// The longest path of a socket, in bytes: `sun_path` holds 108 with the zero at its end.
const SOCKET_PATH_MAX: usize = 107;
/// Bytes of the pepper.
const PEPPER: usize = 32;
/// The longest identity that is read, in bytes.
const IDENTITY_MAX: u64 = 64 * 1024;

/// Why a host has no place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The workspace is not there.
    #[error("the workspace `{}` cannot be used", .0.display())]
    Workspace(PathBuf, #[source] io::Error),
    /// A directory of its own cannot be made.
    #[error("the directory `{}` cannot be made", .0.display())]
    Directory(PathBuf, #[source] io::Error),
    /// The path of its control socket would be too long.
    #[error("`{}` is too long for a socket; choose a state directory with a shorter path", .0.display())]
    TooLong(PathBuf),
    /// Its identity cannot be read or written.
    #[error("`{}` cannot be read or written", .0.display())]
    Identity(PathBuf, #[source] io::Error),
    /// Its identity is not what was once written.
    #[error(
        "`{}` is damaged; after its removal this is a new host, with which every client pairs again",
        .0.display()
    )]
    Damaged(PathBuf),
}

/// The place of one workspace's host.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) workspace: PathBuf,
    directory: PathBuf,
}

/// Who a host is, lasting.
pub(super) struct Identity {
    pub(super) id: HostId,
    /// A secret.
    pub(super) pepper: [u8; PEPPER],
}

/// An identity as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    id: HostId,
    pepper: String,
    workspace: PathBuf,
}

impl Place {
    /// The place of a workspace's host below a state directory. Makes nothing.
    pub(super) fn of(state: &Path, workspace: &Path) -> Result<Self, PlaceError> {
        let workspace = workspace
            .canonicalize()
            .map_err(|error| PlaceError::Workspace(workspace.to_owned(), error))?;
        if !workspace.is_dir() {
            let error = io::ErrorKind::NotADirectory.into();
            return Err(PlaceError::Workspace(workspace, error));
        }
        let hash = digest(&SHA256, workspace.as_os_str().as_encoded_bytes());
        // 64 bits of it: a socket's path is short, and nobody chooses both paths.
        let directory = state.join(HOSTS).join(hex(&hash.as_ref()[..8]));
        Ok(Self { workspace, directory })
    }

    /// The control sockets of every host that was ever there.
    pub(super) fn sockets(state: &Path) -> Vec<PathBuf> {
        let Ok(hosts) = fs::read_dir(state.join(HOSTS)) else { return Vec::new() };
        let mut found: Vec<_> =
            hosts.filter_map(Result::ok).map(|host| host.path().join(SOCKET)).collect();
        found.sort_unstable();
        found
    }

    /// Makes its directories, the owner's alone.
    pub(super) fn make(&self) -> Result<(), PlaceError> {
        let scratch = self.scratch();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&scratch)
            .map_err(|error| PlaceError::Directory(scratch, error))
    }

    pub(super) fn scratch(&self) -> PathBuf {
        self.directory.join(SCRATCH)
    }

    pub(super) fn socket(&self) -> Result<PathBuf, PlaceError> {
        let path = self.directory.join(SOCKET);
        let fits = path.as_os_str().len() <= SOCKET_PATH_MAX;
        if fits { Ok(path) } else { Err(PlaceError::TooLong(path)) }
    }

    /// Who the host is: as it was, or for the first time as `fresh` draws it.
    ///
    /// One that is damaged is not replaced, since its clients would take the host for another.
    pub(super) fn identity(
        &self,
        fresh: impl FnOnce() -> Identity,
    ) -> Result<Identity, PlaceError> {
        let path = self.directory.join(IDENTITY);
        let failed = |error| PlaceError::Identity(path.clone(), error);
        match File::open(&path) {
            Ok(file) => {
                let mut text = String::new();
                file.take(IDENTITY_MAX).read_to_string(&mut text).map_err(failed)?;
                parse(&text).ok_or_else(|| PlaceError::Damaged(path.clone()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let identity = fresh();
                self.store(&path, &identity).map_err(failed)?;
                Ok(identity)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Whole or not at all, and the owner's alone from its first moment.
    fn store(&self, path: &Path, identity: &Identity) -> io::Result<()> {
        let stored = Stored {
            id: identity.id,
            pepper: hex(&identity.pepper),
            workspace: self.workspace.clone(),
        };
        let beside = path.with_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&serde_json::to_vec(&stored)?)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        File::open(&self.directory)?.sync_all()
    }
}

fn parse(text: &str) -> Option<Identity> {
    let stored: Stored = serde_json::from_str(text).ok()?;
    let digits = stored.pepper.as_bytes();
    if digits.len() != 2 * PEPPER {
        return None;
    }
    let mut pepper = [0; PEPPER];
    for (byte, pair) in pepper.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(Identity { id: stored.id, pepper })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use uuid::Uuid;

    use super::*;

    fn identity(n: u8) -> Identity {
        Identity { id: HostId::from_uuid(Uuid::from_u128(u128::from(n))), pepper: [n; PEPPER] }
    }

    #[test]
    fn an_identity_is_drawn_once_and_kept_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(&dir.path().join("state"), dir.path()).unwrap();
        place.make().unwrap();
        let first = place.identity(|| identity(7)).unwrap();
        let again = place.identity(|| panic!("drawn again")).unwrap();
        assert_eq!((first.id, first.pepper), (again.id, again.pepper));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place.directory.join(IDENTITY)), 0o600);
        assert_eq!(mode(&place.directory), 0o700);
    }

    #[test]
    fn a_damaged_identity_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(dir.path(), dir.path()).unwrap();
        place.make().unwrap();
        place.identity(|| identity(7)).unwrap();
        let path = place.directory.join(IDENTITY);
        let good = fs::read_to_string(&path).unwrap();
        let odd = good.replacen("0707", "07é", 1);
        for bad in ["", "{}", &good[..good.len() / 2], &good.replacen("07", "0", 1), &odd] {
            fs::write(&path, bad).unwrap();
            let read = place.identity(|| panic!("drawn again"));
            assert!(matches!(read, Err(PlaceError::Damaged(_))), "{bad}");
        }
    }

    #[test]
    fn each_workspace_has_its_own_place_however_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        let of = |path: &Path| Place::of(dir.path(), path).unwrap().directory;
        assert_eq!(of(&one), of(&two.join("../one")));
        assert_ne!(of(&one), of(&two));
        let missing = Place::of(dir.path(), &dir.path().join("none"));
        assert!(matches!(missing, Err(PlaceError::Workspace(..))));
        let long = dir.path().join("x".repeat(100));
        let place = Place::of(&long, &one).unwrap();
        assert!(matches!(place.socket(), Err(PlaceError::TooLong(_))));
    }
}
