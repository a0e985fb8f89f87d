//! Drivers: how sandboxes are run.
//!
//! [`process`] runs them as processes of this machine.

pub mod process;
