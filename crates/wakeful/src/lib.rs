//! Wakeful's one binary: command line, configuration, telemetry and composition.
//!
//! It holds no rules of its own about environments: those are in `wakeful-lifecycle`, and the parts
//! that it composes are `wakeful-control`, `wakeful-gateway` and `wakeful-envd`.
//! Start at [`config`] for what `up` runs with, and at [`cmd`] for the commands.

pub mod client;
pub mod cmd;
pub mod config;
pub mod connect;
pub mod doctor;
pub mod env;
pub mod output;
pub mod telemetry;
pub mod up;
