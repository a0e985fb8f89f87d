//! Which system calls a sandbox may not make.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// Refused with EPERM whatever their arguments.
const REFUSED: &[libc::c_long] = &[
    // Other processes' memory.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    // Files by handle, past every path rule.
    libc::SYS_open_by_handle_at,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_lookup_dcookie,
    // Keyrings, which are shared by user id.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Namespaces: each is a way to more of the kernel.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Its requests pass every filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

/// The flags of `clone` that make a new namespace.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Why no filter is in force.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    /// It cannot be built for this machine.
    #[error("no filter for this machine: {0}")]
    Build(#[from] seccompiler::BackendError),
    /// The kernel does not take it.
    #[error("{0}")]
    Apply(#[from] seccompiler::Error),
}

/// Applies the filter to this thread and everything that comes of it.
pub(super) fn apply() -> Result<(), FilterError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    // The flags of `clone3` lie in memory, where no filter sees them. "Not implemented" makes
    // every C library fall back to `clone`.
    let clone3 = compile(
        BTreeMap::from([(libc::SYS_clone3, Vec::new())]),
        libc::ENOSYS.unsigned_abs(),
        arch,
    )?;
    let refused = compile(rules()?, libc::EPERM.unsigned_abs(), arch)?;
    apply_filter(&clone3)?;
    apply_filter(&refused)?;
    Ok(())
}

fn rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(REFUSED_HERE).map(|number| (*number, Vec::new())).collect();
    if cfg!(target_arch = "x86_64") {
        // The x32 calls pass as this architecture's own under other numbers: the same ones with
        // this bit, and 512 to 547 for those that differ.
        const X32: i64 = 0x4000_0000;
        let same: Vec<_> = rules.keys().map(|number| number | X32).collect();
        rules.extend(same.into_iter().chain((512..=547).map(|n| n | X32)).map(|n| (n, Vec::new())));
    }
    let mut clone = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        clone.push(SeccompRule::new(vec![SeccompCondition::new(
            0,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::MaskedEq(flag),
            flag,
        )?])?);
    }
    rules.insert(libc::SYS_clone, clone);
    Ok(rules)
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: u32,
    arch: TargetArch,
) -> Result<BpfProgram, seccompiler::BackendError> {
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), arch)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_compiles_for_the_machines_it_is_meant_for() {
        for arch in [TargetArch::x86_64, TargetArch::aarch64] {
            assert!(compile(rules().unwrap(), 1, arch).is_ok(), "{arch:?}");
        }
    }
}
