//! What root may still do in a sandbox.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// What package managers and servers expect of root. Everything else is a way past the other parts:
/// a kernel lets whoever may profile the system read other processes' environments, say, whatever
/// Landlock's domains are.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Gives up all other capabilities for good. Answers what is in force, for people.
pub(super) fn drop() -> String {
    match reduce() {
        Ok(false) => "none".to_owned(),
        Ok(true) => {
            "root's basic ones; owners and modes of readable files are not protected".to_owned()
        }
        Err(error) => format!("not reduced: {error}"),
    }
}

/// Whether any are left.
fn reduce() -> rustix::io::Result<bool> {
    let held = capabilities(None)?;
    if held.permitted.is_empty() {
        // Without new privileges nothing can add any.
        return Ok(false);
    }
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        match remove_capability_from_bounding_set(capability) {
            // A kernel older than the capability.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    clear_ambient_capability_set()?;
    let left = held.permitted & KEPT;
    set_capabilities(
        None,
        CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() },
    )?;
    Ok(!left.is_empty())
}
