//! A place for one test: directories, a sandbox's identity, a template.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::{IoSliceMut, Read, Write},
    mem::MaybeUninit,
    net::TcpStream,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use rustix::{
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags},
    process::{Pid, Signal},
};
use wakeful_control::driver::process::{ProcessDriver, ProcessDriverConfig};
use wakeful_lifecycle::{SandboxRef, Secret, port::Launch};
use wakeful_wire::{
    sandbox::{Ask, AskKind, Isolation, Limits, MARKER, Reply, SandboxSpec},
    template::Template,
};

pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// The longest that a test waits for a value.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `found` finds something.
pub(crate) async fn eventually<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = found().await {
            return value;
        }
        assert!(Instant::now() < until, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process lives, zombies not counted.
pub(crate) fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rfind(')').and_then(|at| stat[at + 1..].split_ascii_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

pub(crate) fn kill(pid: i32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The processes that carry a sandbox's mark.
pub(crate) fn marked(sandbox: &SandboxRef) -> Vec<i32> {
    let mark = format!("{MARKER}={}", sandbox.uid);
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()) && lives(*pid)
        })
        .collect()
}

/// This program as the surface's program.
pub(crate) fn demo() -> ExitCode {
    let port = std::env::var_os("PORT").and_then(|port| port.to_str()?.parse().ok()).unwrap_or(0);
    let demo =
        wakeful_envd::demo::Demo { workspace: ".".into(), greeting: None, dashboard_url: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _error = runtime.block_on(wakeful_envd::demo::serve(port, demo));
    ExitCode::FAILURE
}

#[derive(Debug)]
pub(crate) struct Ground {
    dir: tempfile::TempDir,
    template: Template,
    pub(crate) sandbox: SandboxRef,
}

impl Ground {
    /// With one surface, `app`, that comes up by itself.
    pub(crate) fn demo() -> Self {
        Self::of(serde_json::json!({ "app": {
            "command": "exec \"$WAKEFUL_BIN\" demo",
            "ready": { "http": "/healthz" },
        }}))
    }

    pub(crate) fn of(surfaces: serde_json::Value) -> Self {
        let dir = tempfile::Builder::new().prefix("wk").tempdir_in("/tmp").unwrap();
        let template = serde_json::from_value(serde_json::json!({ "surfaces": surfaces })).unwrap();
        let sandbox = SandboxRef {
            env: wakeful_wire::EnvId::from_uuid(uuid::Uuid::new_v4()),
            uid: wakeful_wire::SandboxUid::from_uuid(uuid::Uuid::new_v4()),
            secret: Secret(uuid::Uuid::new_v4().to_string()),
        };
        let ground = Self { dir, template, sandbox };
        fs::create_dir_all(ground.workspace()).unwrap();
        ground
    }

    pub(crate) fn driver(&self) -> ProcessDriver {
        self.driver_with(vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())])
    }

    /// A driver whose platform has this environment.
    pub(crate) fn driver_with(&self, environment: Vec<(OsString, OsString)>) -> ProcessDriver {
        ProcessDriver::open(ProcessDriverConfig {
            program: std::env::current_exe().unwrap(),
            run_root: self.dir.path().join("r"),
            log_root: self.dir.path().join("l"),
            isolation: isolation(),
            environment,
            stop_grace: GRACE,
        })
        .unwrap()
    }

    pub(crate) fn launch(&self) -> Launch {
        self.launch_of(self.sandbox.clone())
    }

    pub(crate) fn launch_of(&self, sandbox: SandboxRef) -> Launch {
        let workspace = self.workspace_of(sandbox.env);
        fs::create_dir_all(&workspace).unwrap();
        Launch {
            sandbox,
            workspace,
            template: self.template.clone(),
            variables: BTreeMap::new(),
            basic_password: "password".to_owned(),
            host: wakeful_wire::sandbox::HostSpec::default(),
        }
    }

    pub(crate) fn spec(&self, run_dir: &Path) -> SandboxSpec {
        SandboxSpec {
            env: self.sandbox.env,
            sandbox: self.sandbox.uid,
            secret: self.sandbox.secret.0.clone(),
            workspace: self.workspace(),
            run_dir: run_dir.to_owned(),
            env_vars: BTreeMap::new(),
            basic_password: String::new(),
            surfaces: self.template.surfaces.clone(),
            isolation: isolation(),
            stop_grace_ms: 1000,
            agents: BTreeMap::new(),
            host: wakeful_wire::sandbox::HostSpec::default(),
        }
    }

    /// Of the environment of [`Self::sandbox`].
    pub(crate) fn workspace(&self) -> PathBuf {
        self.workspace_of(self.sandbox.env)
    }

    /// Each environment has its own: two would take the log of threads from one another.
    fn workspace_of(&self, env: wakeful_wire::EnvId) -> PathBuf {
        self.dir.path().join("w").join(env.to_string())
    }

    /// How many run directories there are.
    pub(crate) fn run_dirs(&self) -> usize {
        fs::read_dir(self.dir.path().join("r")).unwrap().count()
    }

    /// The one run directory.
    pub(crate) fn run_dir(&self) -> PathBuf {
        let mut dirs = fs::read_dir(self.dir.path().join("r")).unwrap();
        dirs.next().unwrap().unwrap().path()
    }

    /// The marked process whose parent is none of them.
    pub(crate) fn envd_pid(&self) -> i32 {
        let status =
            ask(&self.run_dir().join("envd.sock"), &self.sandbox.secret.0, AskKind::Status);
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(status), &mut line).unwrap();
        let Reply::Status(status) = serde_json::from_str(&line).unwrap() else {
            panic!("a status")
        };
        status.pid.cast_signed()
    }
}

impl Drop for Ground {
    /// Whatever a failed test leaves is killed, lest it run on.
    fn drop(&mut self) {
        for pid in marked(&self.sandbox) {
            let _gone =
                Pid::from_raw(pid).map(|pid| rustix::process::kill_process(pid, Signal::KILL));
        }
    }
}

fn isolation() -> Isolation {
    Isolation { landlock: true, seccomp: true, readable: Vec::new(), limits: Limits::default() }
}

fn ask(socket: &Path, secret: &str, ask: AskKind) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut line = serde_json::to_vec(&Ask { secret: secret.to_owned(), ask }).unwrap();
    line.push(b'\n');
    stream.write_all(&line).unwrap();
    stream
}

/// Does what a gateway does: gets a descriptor and speaks over it.
pub(crate) fn get_through(socket: &Path, secret: &str, surface: &str, path: &str) -> String {
    let stream = ask(socket, secret, AskKind::Dial { surface: surface.parse().unwrap() });
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    rustix::net::recvmsg(&stream, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC).unwrap();
    let descriptor = ancillary
        .drain()
        .find_map(|message| {
            if let RecvAncillaryMessage::ScmRights(mut fds) = message { fds.next() } else { None }
        })
        .unwrap();
    let mut stream = TcpStream::from(descriptor);
    stream.set_nonblocking(false).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
