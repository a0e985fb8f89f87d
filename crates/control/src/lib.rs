//! Runs plans against the world: the engine, its store, its drivers, accounts, the HTTP API and
//! the server-rendered pages.
//!
//! This crate never decides an environment's future outside [`wakeful_lifecycle::plan()`]. It never
//! carries a surface's bytes: that is the gateway's job.
//!
//! Start at [`engine`]; the public side is [`api`] and [`pages`].

pub mod accounts;
pub mod api;
pub mod clock;
pub mod driver;
pub mod engine;
pub mod files;
pub mod pages;
pub mod prompts;
pub mod store;
pub mod variables;
pub mod workspaces;
