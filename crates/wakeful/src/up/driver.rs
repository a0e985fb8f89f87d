//! The process driver, from the configuration.

use std::sync::Arc;

use anyhow::Context as _;
use wakeful_control::{
    driver::process::{ProcessDriver, ProcessDriverConfig, run_root},
    engine::ProgramCheck,
};
use wakeful_lifecycle::{Policy, port::Driver};

use super::data::DataDir;
use crate::{
    config::{Config, IsolationMode},
    doctor,
};

/// The driver, and the check of what a template needs.
///
/// # Errors
/// A directory cannot be used, or the configuration asks for isolation that this machine does not
/// give.
pub(super) async fn build(
    config: &Config,
    data: &DataDir,
) -> anyhow::Result<(Arc<dyn Driver>, ProgramCheck)> {
    let program = std::env::current_exe().context("where this program stands")?;
    let user = rustix::process::geteuid().as_raw();
    let runtime_dir = crate::env::runtime_dir();
    let driver = ProcessDriver::open(ProcessDriverConfig {
        program,
        run_root: run_root(data.path(), runtime_dir.as_deref(), user),
        log_root: data.path().join("logs"),
        isolation: doctor::isolation::wanted(&config.isolation),
        environment: crate::env::inherited(),
        stop_grace: Policy::default().stop_grace,
    })
    .context("the directory for running environments")?;
    if config.isolation.mode == IsolationMode::Landlock {
        let given = driver.isolation_report().await.in_force;
        let parts: Vec<String> =
            given.parts.iter().map(|(part, state)| format!("{part}: {state}")).collect();
        anyhow::ensure!(
            given.rung == "landlock",
            "isolation.mode is \"landlock\", but this machine gives \"{}\" ({}); set it to \
             \"auto\" to start with what there is",
            given.rung,
            parts.join(", ")
        );
    }
    let driver = Arc::new(driver);
    let programs: ProgramCheck = {
        let driver = Arc::clone(&driver);
        Arc::new(move |template| driver.missing_program(template))
    };
    Ok((driver, programs))
}
