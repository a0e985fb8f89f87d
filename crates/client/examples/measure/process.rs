//! What a process has used, as its system says.

use std::{fs, time::Duration};

/// What a process has used so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    /// Times that one of its threads waited and was woken.
    pub(crate) wakeups: u64,
    pub(crate) cpu: Duration,
    /// Resident memory at this moment, in KiB.
    pub(crate) resident: u64,
    pub(crate) threads: usize,
}

pub(crate) fn used(pid: u32) -> Used {
    let mut used = Used::default();
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let ran = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        used.wakeups += field(&status, "voluntary_ctxt_switches:");
        let nanoseconds = ran.split(' ').next().and_then(|text| text.parse().ok());
        used.cpu += Duration::from_nanos(nanoseconds.unwrap_or_default());
        used.resident = field(&status, "VmRSS:");
        used.threads += 1;
    }
    used
}

fn field(status: &str, name: &str) -> u64 {
    let mut lines = status.lines().filter_map(|line| line.strip_prefix(name));
    let number = lines.next().and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}
