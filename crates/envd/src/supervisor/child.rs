//! Starting a surface's command.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    process::{Command, Stdio},
};

use rustix::process::Pid;
use wakeful_wire::{
    sandbox::{BASIC_USER, MARKER, RUN_MARKER, SandboxSpec, run_dir, subcommand},
    template::{Auth, Surface},
};

use super::output::{Log, Output};

/// What a process of the sandbox inherits of the platform's own environment, and no more.
const INHERITED: [&str; 4] = ["PATH", "LANG", "TZ", "TERM"];

/// What `envd` itself knows of where it runs.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    inherited: Vec<(&'static str, OsString)>,
    program: PathBuf,
}

impl Surroundings {
    /// Reads them from this process's environment.
    ///
    /// # Errors
    /// When this program's own path is unknown.
    pub(crate) fn read() -> io::Result<Self> {
        let mut inherited: Vec<_> = INHERITED
            .into_iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)))
            .collect();
        if inherited.iter().all(|(name, _)| *name != "PATH") {
            inherited.push(("PATH", OsString::from("/usr/local/bin:/usr/bin:/bin")));
        }
        Ok(Self { inherited, program: std::env::current_exe()? })
    }

    /// The variables of every process of the sandbox, the later ones winning: what is inherited,
    /// `HOME` and `TMPDIR`, the spec's own, then what the platform itself sets (`WAKEFUL_…`).
    pub(crate) fn variables(&self, spec: &SandboxSpec) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> =
            self.inherited.iter().map(|(name, value)| (name.into(), value.clone())).collect();
        let mut set = |name: &str, value: OsString| variables.push((name.into(), value));
        set("HOME", spec.workspace.clone().into());
        set("TMPDIR", spec.run_dir.join(run_dir::TMP).into());
        for (name, value) in &spec.env_vars {
            set(name, value.into());
        }
        set("WAKEFUL_BIN", self.program.clone().into());
        set("WAKEFUL_ENVIRONMENT", spec.env.to_string().into());
        set(MARKER, spec.sandbox.to_string().into());
        set(RUN_MARKER, spec.run_dir.clone().into());
        variables
    }

    /// Runs a surface's command with its output going to `log`. Must be called on the first thread.
    ///
    /// Beside [`Self::variables`] it finds `PORT`, and the pair of its `auth` if there is one.
    ///
    /// # Errors
    /// When no process or pipe can be had.
    pub(crate) fn spawn(
        &self,
        spec: &SandboxSpec,
        surface: &Surface,
        port: u16,
        log: &Log,
    ) -> io::Result<(Pid, Output)> {
        let (reader, writer) = io::pipe()?;
        // By this link the program is found even after an upgrade has replaced its file.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg(subcommand::SHIM)
            .arg(std::process::id().to_string())
            .arg(&surface.command)
            .current_dir(&spec.workspace)
            .env_clear()
            .envs(self.variables(spec))
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        match surface.auth {
            Auth::None => {}
            Auth::Basic => {
                command
                    .env("WAKEFUL_BASIC_USER", OsStr::new(BASIC_USER))
                    .env("WAKEFUL_BASIC_PASSWORD", &spec.basic_password);
            }
        }
        // The handle is dropped: `reap` waits for every child, this one among them.
        let pid = i32::try_from(command.spawn()?.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::InvalidData)?;
        // The command holds the pipe's other end, which must close with the program.
        drop(command);
        Ok((pid, Output::follow(reader, log.clone())?))
    }
}
