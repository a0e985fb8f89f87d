//! Memory versions of the ports, and the contract suites that every version must pass.

pub mod contract;
mod memory_store;
mod memory_workspaces;
mod scripted_driver;
mod scripted_host;

pub use memory_store::MemoryStore;
pub use memory_workspaces::MemoryWorkspaces;
pub use scripted_driver::ScriptedDriver;

use std::sync::atomic::{AtomicU64, Ordering};

use wakeful_wire::{
    EnvId, Generation, HolderId, ProjectId, SandboxUid, Slug, TemplateName, Timestamp, UserName,
    rpc::ThreadId,
};

use crate::{FreshSandbox, Record, Secret, port::ProjectRow};

static COUNTER: AtomicU64 = AtomicU64::new(1);

fn draw() -> u64 {
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

fn numbered(kind: u16, number: u64) -> String {
    format!("00000000-0000-4000-8{kind:03x}-{number:012x}")
}

/// An environment id that no other call in this process returns.
#[must_use]
pub fn an_env() -> EnvId {
    numbered(1, draw()).parse().expect("the text has the shape of an id")
}

/// A holder that no other call returns.
#[must_use]
pub fn a_holder() -> HolderId {
    numbered(2, draw()).parse().expect("the text has the shape of an id")
}

/// A thread that no other call returns.
#[must_use]
pub fn a_thread() -> ThreadId {
    numbered(4, draw()).parse().expect("the text has the shape of an id")
}

/// A uid and a secret that no other call returns.
#[must_use]
pub fn a_fresh_sandbox() -> FreshSandbox {
    let number = draw();
    FreshSandbox {
        uid: numbered(3, number).parse::<SandboxUid>().expect("the text has the shape of an id"),
        secret: Secret(format!("secret-{number}")),
    }
}

/// A project with its Development environment, suspended.
#[must_use]
pub fn a_project(owner: &str, now: Timestamp) -> (ProjectRow, Record) {
    let id: ProjectId = numbered(1, draw()).parse().expect("the text has the shape of an id");
    let owner = UserName::new(owner).expect("a test's user name is valid");
    let template = TemplateName::new("demo").expect("the name is valid");
    let project = ProjectRow {
        id,
        owner: owner.clone(),
        title: "A project".into(),
        template: template.clone(),
        created_at: now,
    };
    let slug = Slug::new("dev").expect("the slug is valid");
    let record = Record::new(id.into(), id, owner, slug, template, now);
    debug_assert_eq!(record.generation, Generation(1));
    (project, record)
}
