//! The main host as visitors and programs meet it: the whole router over a real database and the
//! engine, with sandboxes that do what a test tells them.

#![expect(clippy::unwrap_used, reason = "what a test cannot go on without fails it")]

mod accounts;
mod description;
mod environments;
mod events;
mod files;
mod grant;
mod origins;
mod pages;
mod prompts;
mod support;
mod tickets;
mod uploads;
mod variables;
