//! Which files a sandbox can reach, and whom it can signal.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ::landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use wakeful_wire::sandbox::{BASE_READABLE, run_dir as names};

/// The newest version whose rules were chosen and tried here: files (1), links between directories
/// (2), truncation (3), device controls (5), signals and abstract sockets (6).
const VERSION: ABI = ABI::V6;

/// Devices that every program expects.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Scratch space that every program expects, shared by the whole machine. One that holds this
/// sandbox's own files holds its neighbours' as well and is left out; there is `$TMPDIR`.
const SCRATCH: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// The system's settings, of which [`SECRETS`] are left out.
const SETTINGS: &str = "/etc";

/// What root alone may read of [`SETTINGS`]: passwords' hashes, keys, who may become root. Where
/// the platform runs as root, modes do not keep its sandboxes from them.
const SECRETS: &[&str] = &[
    "shadow",
    "shadow-",
    "gshadow",
    "gshadow-",
    "sudoers",
    "sudoers.d",
    "ssh",
    "wireguard",
    "NetworkManager",
    "ssl/private",
];

/// Applies it. Answers whether anything is in force, and what, for people.
pub(super) fn apply(readable: &[PathBuf], workspace: &Path, run_dir: &Path) -> (bool, String) {
    match restrict(readable, workspace, run_dir) {
        Ok((RulesetStatus::FullyEnforced, _)) => (true, "fully enforced".to_owned()),
        Ok((RulesetStatus::PartiallyEnforced, version)) => {
            (true, format!("partly enforced: this kernel has {version}"))
        }
        Ok((RulesetStatus::NotEnforced, version)) => {
            (false, format!("not enforced: this kernel has {version}"))
        }
        Err(error) => (false, format!("not enforced: {error}")),
    }
}

fn restrict(
    readable: &[PathBuf],
    workspace: &Path,
    run_dir: &Path,
) -> Result<(RulesetStatus, String), RulesetError> {
    let all = AccessFs::from_all(VERSION);
    let read = AccessFs::from_read(VERSION);
    let device = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::IoctlDev;
    let own = [names::LOGS, names::TMP].map(|name| run_dir.join(name));
    let scratch =
        SCRATCH.iter().filter(|path| !workspace.starts_with(path) && !run_dir.starts_with(path));
    let base = BASE_READABLE.iter().filter(|path| **path != SETTINGS);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(VERSION))?
        .create()?
        .add_rules(path_beneath_rules([workspace], all))?
        .add_rules(path_beneath_rules(own, all))?
        .add_rules(path_beneath_rules(scratch, all))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(base, read))?
        .add_rules(path_beneath_rules(entries(Path::new(SETTINGS), SECRETS), read))?
        .add_rules(path_beneath_rules(programs(readable), read))?
        .restrict_self()?;
    let version = match status.landlock {
        LandlockStatus::NotEnabled => "Landlock switched off".to_owned(),
        LandlockStatus::NotImplemented => "no Landlock".to_owned(),
        LandlockStatus::Available { effective_abi, .. } => {
            format!("Landlock version {}", effective_abi as i32)
        }
    };
    Ok((status.ruleset, version))
}

/// This program itself, since it starts the surfaces' commands, and what the platform's operator
/// made readable. The root directory would undo everything and is passed over.
fn programs(readable: &[PathBuf]) -> Vec<PathBuf> {
    let own = PathBuf::from("/proc/self/exe");
    let readable = readable.iter().filter(|path| *path != Path::new("/")).cloned();
    std::iter::once(own).chain(readable).collect()
}

/// What lies in `dir` without `left_out`, which are paths from there. A rule cannot take back what
/// one for a directory above it gives, so the entries stand one by one. Links are no entries: what
/// they lead to is readable where it stands, or it is not.
fn entries(dir: &Path, left_out: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            continue;
        }
        let (name, path) = (entry.file_name(), entry.path());
        let inside = left_out.iter().filter_map(|out| Path::new(out).strip_prefix(&name).ok());
        let inside: Vec<&str> = inside.filter_map(Path::to_str).collect();
        if inside.is_empty() {
            found.push(path);
        } else if !inside.contains(&"") {
            found.extend(entries(&path, &inside));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn entries_are_listed_without_links_and_what_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["ssl/certs", "ssl/private", "ssh", "ssh2"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        for path in ["passwd", "shadow", "shadow-more", "ssl/openssl.cnf"] {
            fs::write(dir.path().join(path), "").unwrap();
        }
        symlink("shadow", dir.path().join("link")).unwrap();
        let found: BTreeSet<_> = entries(dir.path(), SECRETS).into_iter().collect();
        let expected = ["passwd", "shadow-more", "ssh2", "ssl/certs", "ssl/openssl.cnf"];
        assert_eq!(found, expected.map(|path| dir.path().join(path)).into());
        assert_eq!(entries(&dir.path().join("nowhere"), SECRETS), Vec::<PathBuf>::new());
    }
}
