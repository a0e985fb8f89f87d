//! What crosses a boundary in Wakeful: typed ids, validated names, error codes, messages.
//!
//! This crate does no IO, reads no clock and draws no randomness.
//! Start at [`id`] and [`name`]; the messages between gateway and control plane are in [`gate`],
//! the ones between driver and `envd` in [`sandbox`], the public JSON shapes in [`api`], what an
//! environment server and its clients share about threads in [`rpc`].

pub mod api;
pub mod code;
pub mod gate;
pub mod host;
pub mod hosts;
pub mod id;
pub mod name;
mod newer;
pub mod phase;
pub mod rpc;
pub mod sandbox;
#[cfg(feature = "schema")]
pub mod schema;
pub mod template;
pub mod time;

pub use code::{Code, Problem};
pub use hosts::Hosts;
pub use id::{
    ActivitySeq, EnvId, Generation, GrantId, HolderId, HostId, HostSessionId, ProjectId, SandboxUid,
};
pub use name::{NameError, Slug, SurfaceName, TemplateName, UserName};
pub use phase::{ClockKind, Phase};
pub use time::Timestamp;
