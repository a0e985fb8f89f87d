//! What a sandbox cannot do.

use std::{
    fs,
    process::{Child, Command, Stdio},
};

use serde_json::json;
use wakeful_wire::sandbox::IsolationInForce;

use crate::fixture::{Ground, Sandbox, lives};

/// A sandbox with Landlock and seccomp whose only surface runs `command` first.
fn isolated(command: &str, change: impl FnOnce(&mut Ground)) -> Sandbox {
    let command = format!("{command}; exec $WAKEFUL_BIN stub");
    let mut ground = Ground::new(&[("app", json!({ "command": command }))]);
    ground.spec.isolation.landlock = true;
    ground.spec.isolation.seccomp = true;
    change(&mut ground);
    ground.start()
}

fn part<'a>(isolation: &'a IsolationInForce, name: &str) -> &'a str {
    let found = isolation.parts.iter().find(|(part, _)| part == name);
    found.map_or("absent", |(_, state)| state)
}

/// Whether this kernel enforces Landlock; says so where it does not.
fn has_landlock(sandbox: &Sandbox, at_least: &str) -> bool {
    let isolation = sandbox.status().isolation;
    let state = part(&isolation, "landlock");
    let found = state.contains(at_least) || state == "fully enforced";
    if !found {
        eprintln!("skipped: landlock is {state}");
    }
    found
}

#[test]
fn a_sandbox_with_isolation_serves_as_any_other() {
    let sandbox = isolated("date > date", |_| {});
    assert!(sandbox.get("app", "/").contains("200 OK"));
    let isolation = sandbox.status().isolation;
    assert_eq!(part(&isolation, "seccomp"), "in force");
    assert!(part(&isolation, "limits").contains("open files"));
    assert!(part(&isolation, "network").contains("shared with the machine"));
    if part(&isolation, "landlock") == "fully enforced" {
        assert_eq!(isolation.rung, "landlock");
    }
}

#[test]
fn what_is_off_is_reported_as_off() {
    let sandbox = Sandbox::of(&[("app", json!({ "command": "exec $WAKEFUL_BIN stub" }))]);
    let isolation = sandbox.status().isolation;
    assert_eq!(isolation.rung, "none");
    assert_eq!(part(&isolation, "landlock"), "off by configuration");
    assert_eq!(part(&isolation, "seccomp"), "off by configuration");
    assert!(part(&isolation, "network").contains("shared with the machine"));
}

#[test]
fn the_systems_settings_can_be_read_without_its_secrets() {
    let command = "cat /etc/passwd; echo $? > passwd-rc; ls /etc/ssl/certs; echo $? > certs-rc; \
                   cat /etc/shadow; echo $? > shadow-rc; ls /etc/ssl/private; echo $? > keys-rc";
    let sandbox = isolated(command, |_| {});
    if !has_landlock(&sandbox, "enforced: this kernel has Landlock version") {
        return;
    }
    assert_eq!(sandbox.written("passwd-rc"), "0");
    if fs::read_dir("/etc/ssl/certs").is_ok() {
        assert_eq!(sandbox.written("certs-rc"), "0");
    }
    // Who cannot read them outside of a sandbox shows nothing by not being able to inside.
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can read /etc/shadow");
        return;
    }
    assert_ne!(sandbox.written("shadow-rc"), "0");
    assert_ne!(sandbox.written("keys-rc"), "0");
}

#[test]
fn only_the_workspace_and_scratch_space_can_be_written_and_only_what_is_listed_read() {
    // The fixture's own files lie below `/tmp`, so that is no shared scratch space here.
    let outside = tempfile::tempdir_in("/tmp").unwrap();
    let path = |name: &str| outside.path().join(name);
    for name in ["closed", "open"] {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("file"), "content\n").unwrap();
    }
    let dir = outside.path().display();
    let command = format!(
        "cat {dir}/closed/file > closed; echo $? > closed-rc; \
         ls {dir}/closed > closed; echo $? > list-rc; \
         cat {dir}/open/file > open; \
         echo x > {dir}/open/new; echo $? > write-rc; \
         rm {dir}/open/file; echo $? > remove-rc; \
         cat ../r/lock; echo $? > lock-rc; \
         ln -s {dir}/closed/file link; cat link > closed; echo $? > link-rc; \
         ls /tmp; echo $? > neighbours-rc; \
         echo x > /dev/shm/.wakeful-$$ && rm /dev/shm/.wakeful-$$; echo $? > shm-rc; \
         echo x > $TMPDIR/new && rm $TMPDIR/new; echo $? > tmp-rc; \
         echo x > /dev/null; echo $? > null-rc"
    );
    let readable = path("open");
    let sandbox = isolated(&command, |ground| ground.spec.isolation.readable.push(readable));
    if !has_landlock(&sandbox, "enforced: this kernel has Landlock version") {
        return;
    }
    for refused in
        ["closed-rc", "list-rc", "write-rc", "remove-rc", "lock-rc", "link-rc", "neighbours-rc"]
    {
        assert_ne!(sandbox.written(refused), "0", "{refused}");
    }
    assert_eq!(sandbox.written("open"), "content");
    assert_eq!(fs::read_to_string(sandbox.workspace("closed")).unwrap(), "");
    for allowed in ["tmp-rc", "shm-rc", "null-rc"] {
        assert_eq!(sandbox.written(allowed), "0", "{allowed}");
    }
}

struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
fn a_process_outside_can_neither_be_signalled_nor_looked_into() {
    let bystander = Bystander::new();
    let pid = bystander.0.id();
    let command = format!(
        "sleep 1000 & kill $!; echo $? > own-rc; \
         cat /proc/{pid}/environ > environ; echo $? > environ-rc; \
         kill -KILL {pid}; echo $? > kill-rc"
    );
    let sandbox = isolated(&command, |_| {});
    if !has_landlock(&sandbox, "version 6") {
        return;
    }
    assert_eq!(sandbox.written("own-rc"), "0", "its own processes can be");
    assert_ne!(sandbox.written("kill-rc"), "0");
    assert_ne!(sandbox.written("environ-rc"), "0");
    assert!(lives(pid.cast_signed()));
}

#[test]
fn namespaces_and_mounts_are_refused() {
    // Whoever cannot do it outside of a sandbox shows nothing by not being able to inside.
    let can = |command: &str| {
        Command::new("sh").args(["-c", command]).stderr(Stdio::null()).status().unwrap().success()
    };
    if !can("unshare -U true") {
        eprintln!("skipped: no user namespaces on this machine");
        return;
    }
    let command = "unshare -U true; echo $? > user-rc; unshare -n true; echo $? > net-rc; \
                   (true & wait); echo $? > fork-rc";
    let sandbox = isolated(command, |ground| ground.spec.isolation.landlock = false);
    assert_ne!(sandbox.written("user-rc"), "0");
    assert_ne!(sandbox.written("net-rc"), "0");
    assert_eq!(sandbox.written("fork-rc"), "0");
}

#[test]
fn limits_are_in_force_in_the_programs() {
    let sandbox = isolated("ulimit -n > files; ulimit -Hn > hard; ulimit -c > core", |ground| {
        ground.spec.isolation.limits.files = 1234;
    });
    assert_eq!(sandbox.written("files"), "1234");
    assert_eq!(sandbox.written("hard"), "1234");
    assert_eq!(sandbox.written("core"), "0");
}
