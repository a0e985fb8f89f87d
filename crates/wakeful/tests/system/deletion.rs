//! Deleting, restoring and reaping projects.

use serde_json::Value;
use wakeful_wire::Phase;

use crate::support::{Platform, Setup, User, until};

fn deleted(platform: &Platform, user: &User) -> Vec<String> {
    let listed: Value =
        platform.call(user, "GET", "/api/projects?deleted=true").send().expect(200).json();
    let ids = listed.as_array().unwrap().iter();
    ids.map(|project| project["id"].as_str().unwrap().to_owned()).collect()
}

fn delete(platform: &Platform, user: &User) {
    platform.call(user, "DELETE", &format!("/api/projects/{}", user.env)).send().expect(202);
}

#[test]
fn a_deleted_project_is_gone_and_a_restore_brings_its_files_back() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let bob = platform.sign_up("bob");
    platform.app(&user, "PUT", "/file/notes.txt").body("kept").send().expect(201);
    delete(&platform, &user);
    until("no process is left of it", || {
        let workspace = platform.workspace(user.env);
        let inside = |pid: u32| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == workspace)
        };
        (!platform.processes().iter().any(|process| inside(process.pid))).then_some(())
    });
    platform.call(&user, "GET", &format!("/api/environments/{}", user.env)).send().expect(404);
    platform.app(&user, "GET", "/file/notes.txt").send().expect(404);
    let listed: Value = platform.call(&user, "GET", "/api/projects").send().expect(200).json();
    assert_eq!(listed, serde_json::json!([]));
    assert_eq!(deleted(&platform, &user), [user.env.to_string()]);
    assert_eq!(deleted(&platform, &bob), [] as [String; 0]);

    let restore = format!("/api/projects/{}/restore", user.env);
    platform.call(&bob, "POST", &restore).send().expect(404);
    // The deletion outlives a crash.
    platform.kill_9();
    platform.start(&[]);
    platform.call(&user, "POST", &restore).send().expect(200);
    platform.call(&user, "POST", &restore).send().expect(409);
    platform.await_phase(&user, user.env, Phase::Suspended);
    assert_eq!(platform.app(&user, "GET", "/file/notes.txt").send().expect(200).text(), "kept");
    assert_eq!(deleted(&platform, &user), [] as [String; 0]);
}

#[test]
fn a_restore_while_its_sandbox_is_still_taken_down_wins() {
    // It does not end when it is told to.
    let platform = Setup { variables: vec![("IGNORE_TERM", "1")], ..Setup::default() }.up();
    let user = platform.sign_up_ready("ada");
    platform.app(&user, "PUT", "/file/notes.txt").body("kept").send().expect(201);
    delete(&platform, &user);
    platform.await_file(user.env, "told-to-end");
    assert_eq!(deleted(&platform, &user), [user.env.to_string()]);
    let restore = format!("/api/projects/{}/restore", user.env);
    platform.call(&user, "POST", &restore).send().expect(200);
    assert_eq!(deleted(&platform, &user), [] as [String; 0]);
    // Who comes now is held until the old sandbox is gone and a new one is there.
    assert_eq!(platform.app(&user, "GET", "/file/notes.txt").send().expect(200).text(), "kept");
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), 2);
}

#[test]
fn files_are_removed_when_they_were_kept_long_enough_and_only_those() {
    let retention = "[retention]\nworkspace = '1s'\n".to_owned();
    let platform = Setup { tables: retention, ..Setup::default() }.up();
    let (ada, bob) = (platform.sign_up_ready("ada"), platform.sign_up_ready("bob"));
    for user in [&ada, &bob] {
        platform.app(user, "PUT", "/file/notes.txt").body("kept").send().expect(201);
    }
    delete(&platform, &ada);
    until("its sandbox is gone", || {
        let uids = platform.processes().into_iter().filter_map(|process| process.sandbox);
        let bobs = platform.environment(&bob, bob.env).sandbox.map(|uid| uid.to_string());
        uids.into_iter().all(|uid| Some(uid) == bobs).then_some(())
    });
    // The reaper looks when the platform starts; until it is time it leaves everything alone.
    until("it is removed", || {
        platform.kill_9();
        platform.start(&[]);
        (!platform.workspace(ada.env).exists()).then_some(())
    });
    let restore = format!("/api/projects/{}/restore", ada.env);
    platform.call(&ada, "POST", &restore).send().expect(404);
    assert_eq!(platform.app(&bob, "GET", "/file/notes.txt").send().expect(200).text(), "kept");
}
