//! The process driver, from the configuration.

use std::sync::Arc;

use anyhow::Context as _;
use wakeful_control::{
    driver::process::{ProcessDriver, ProcessDriverConfig, run_root},
    engine::ProgramCheck,
};
use wakeful_lifecycle::{Policy, port::Driver};

use super::data::DataDir;
use crate::{config::Config, doctor};

/// The driver, and the check of what a template needs.
pub(super) fn build(
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
    let driver = Arc::new(driver);
    let programs: ProgramCheck = {
        let driver = Arc::clone(&driver);
        Arc::new(move |template| driver.missing_program(template))
    };
    Ok((driver, programs))
}
