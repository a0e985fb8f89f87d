//! The program's own log, on standard error.
//!
//! Fields hold values, spans hold ids. Content of requests, files and variables is logged at
//! `debug` or below, never above.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::config::{Log, LogFormat};

/// Starts logging. `colour` allows colours where standard error is a terminal.
///
/// # Errors
/// The level's text is no filter, which a checked configuration excludes, or logging was started
/// before.
pub fn start(log: &Log, colour: bool) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.level)?;
    let registry = tracing_subscriber::registry().with(filter);
    match log.format {
        LogFormat::Text => {
            let colour = colour && std::io::stderr().is_terminal();
            let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colour);
            registry.with(lines).try_init()?;
        }
        LogFormat::Json => {
            let lines = fmt::layer()
                .json()
                .flatten_event(true)
                .with_current_span(true)
                .with_span_list(false)
                .with_writer(std::io::stderr);
            registry.with(lines).try_init()?;
        }
    }
    Ok(())
}
