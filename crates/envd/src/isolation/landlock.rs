//! Which files a sandbox can reach, and whom it can signal.

use std::path::{Path, PathBuf};

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
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(VERSION))?
        .create()?
        .add_rules(path_beneath_rules([workspace], all))?
        .add_rules(path_beneath_rules(own, all))?
        .add_rules(path_beneath_rules(scratch, all))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(BASE_READABLE, read))?
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
