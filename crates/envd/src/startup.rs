//! `envd` from its first instruction to its last.

use std::{
    fs::DirBuilder,
    io::{self, Read, Write},
    os::unix::{fs::DirBuilderExt, net::UnixListener as StdUnixListener},
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use rustix::fs::Mode;
use tokio::net::UnixListener;
use wakeful_wire::sandbox::{SandboxSpec, run_dir};

use crate::{
    control::Control,
    environment::Environment,
    isolation,
    journal::Journal,
    lock::{self, LockError},
    supervisor::{Supervisor, Surroundings},
};

/// The longest spec, in bytes.
const SPEC_MAX: u64 = 4 * 1024 * 1024;

/// Why an `envd` did not come up.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("the spec cannot be read")]
    Stdin(#[source] io::Error),
    #[error("the spec exceeds {SPEC_MAX} bytes")]
    TooLong,
    #[error("the spec is incomplete or malformed")]
    Spec(#[source] serde_json::Error),
    #[error("the sandbox may not come up")]
    Lock(#[source] LockError),
    #[error("the workspace is not a directory")]
    Workspace,
    #[error("{what} failed")]
    System { what: &'static str, source: io::Error },
}

fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> StartError {
    move |source| StartError::System { what, source: source.into() }
}

/// Runs the daemon inside a sandbox until it is told to stop. Returns the status to exit with.
///
/// Must be called on the program's first thread while no other thread exists: isolation binds the
/// calling thread and what comes of it, and children are bound to the life of the thread that
/// spawns them. The spec is read from `stdin` to its end; one that is cut short ends `envd` before
/// it has done anything. Failures are said on standard error, which the driver sends to a file.
///
/// The daemon outlives its parent on purpose: the platform may end and adopt it later.
pub fn main_blocking(stdin: impl Read) -> ExitCode {
    match start(stdin) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = format!("envd: {error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            let _lost = writeln!(io::stderr(), "{text}");
            ExitCode::FAILURE
        }
    }
}

fn start(stdin: impl Read) -> Result<(), StartError> {
    let spec = Arc::new(read_spec(stdin)?);
    let _lock = lock::take(&spec.run_dir.join(run_dir::LOCK)).map_err(StartError::Lock)?;
    if !spec.workspace.is_dir() {
        return Err(StartError::Workspace);
    }
    let surroundings = Surroundings::read().map_err(system("finding this program"))?;
    std::env::set_current_dir("/").map_err(system("changing directory"))?;
    // Refused to the leader of a process group, which is what a shell makes of a command.
    let _is_leader = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(system("becoming a subreaper"))?;
    let logs = spec.run_dir.join(run_dir::LOGS);
    make_private_dir(&logs).map_err(system("making the log directory"))?;
    make_private_dir(&spec.run_dir.join(run_dir::TMP))
        .map_err(system("making the scratch directory"))?;
    let socket = spec.run_dir.join(run_dir::SOCKET);
    let listener = bind_private(&socket).map_err(system("binding the control socket"))?;
    let journal = Journal::open(&logs);
    let isolation = isolation::apply(&spec.isolation, &spec.workspace, &spec.run_dir);
    for (part, state) in &isolation.parts {
        journal.note(format_args!("isolation: {part}: {state}"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("making the runtime"))?;
    runtime.block_on(async {
        let listener =
            UnixListener::from_std(listener).map_err(system("watching the control socket"))?;
        let variables = surroundings.variables(&spec);
        let environment = Environment::open(&spec, variables, journal.clone());
        let supervisor = Supervisor::new(
            Arc::clone(&spec),
            surroundings,
            isolation,
            journal,
            environment.clone(),
        )
        .map_err(system("listening for signals"))?;
        let control =
            Control::new(&spec.secret, supervisor.status(), supervisor.events(), environment);
        tokio::spawn(control.serve(listener));
        supervisor.run().await;
        Ok(())
    })?;
    // Refused under Landlock: the run directory is the driver's, which removes all of it.
    let _refused = std::fs::remove_file(&socket);
    Ok(())
}

fn read_spec(stdin: impl Read) -> Result<SandboxSpec, StartError> {
    let mut text = Vec::new();
    stdin.take(SPEC_MAX + 1).read_to_end(&mut text).map_err(StartError::Stdin)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > SPEC_MAX {
        return Err(StartError::TooLong);
    }
    serde_json::from_slice(&text).map_err(StartError::Spec)
}

fn make_private_dir(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Binds a socket that only this user can connect to, from its first moment.
pub(crate) fn bind_private(path: &Path) -> io::Result<StdUnixListener> {
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = StdUnixListener::bind(path);
    rustix::process::umask(before);
    let listener = bound?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
