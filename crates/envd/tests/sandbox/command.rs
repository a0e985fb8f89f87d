//! Agents inside a sandbox with isolation.

use std::fs;

use serde_json::json;

use crate::fixture::Ground;

/// Terminals are devices, and a tether is one more step between a sandbox and its programs: both
/// must work where Landlock and seccomp are in force.
#[test]
fn the_shell_agent_has_a_real_terminal_in_a_sandbox_with_isolation() {
    let run = "tty && stty size && : > /dev/tty && echo from-the-terminal";
    let command =
        format!("$WAKEFUL_BIN run '{run}' > shown 2>&1; echo $? > rc; exec $WAKEFUL_BIN stub");
    let mut ground = Ground::new(&[("app", json!({ "command": command }))]);
    ground.spec.isolation.landlock = true;
    ground.spec.isolation.seccomp = true;
    let workspace = ground.spec.workspace.clone();
    let sandbox = ground.start();
    assert!(sandbox.get("app", "/").contains("200 OK"));
    let read = |name: &str| fs::read_to_string(workspace.join(name)).unwrap();
    let shown = read("shown");
    assert_eq!(read("rc"), "0\n", "{shown}");
    assert!(shown.contains("/dev/pts/") && shown.contains("40 120"), "{shown}");
    assert!(shown.contains("from-the-terminal"), "{shown}");
}
