//! A sandbox for one test.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead, BufReader, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    net::TcpStream,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags},
    process::{Pid, Signal},
};
use wakeful_wire::{
    SandboxUid, SurfaceName,
    sandbox::{
        Ask, AskKind, EnvdStatus, Isolation, Limits, MARKER, Refusal, Reply, SandboxSpec,
        SurfaceState, run_dir, subcommand,
    },
    template::Surface,
};

/// The longest that a test waits for a value.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const HARNESS: &str = env!("CARGO_BIN_EXE_wakeful-envd-harness");

/// Waits until `found` finds something.
pub(crate) fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(Instant::now() < until, "waited in vain for: {what}");
        let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let _interrupted = rustix::thread::nanosleep(&pause);
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

/// A surface as a template declares it.
pub(crate) fn surface(json: serde_json::Value) -> Surface {
    serde_json::from_value(json).unwrap()
}

/// A directory for one sandbox, before anything runs in it.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) spec: SandboxSpec,
}

impl Ground {
    pub(crate) fn new(surfaces: &[(&str, serde_json::Value)]) -> Self {
        let dir = tempfile::Builder::new().prefix("wk").tempdir_in("/tmp").unwrap();
        let (workspace, run) = (dir.path().join("w"), dir.path().join("r"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&run).unwrap();
        File::create(run.join(run_dir::LOCK)).unwrap();
        let surfaces = surfaces
            .iter()
            .map(|(name, json)| (name.parse().unwrap(), surface(json.clone())))
            .collect();
        let spec = SandboxSpec {
            env: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap(),
            sandbox: fresh_uid(dir.path()),
            secret: "the secret".to_owned(),
            workspace,
            run_dir: run,
            env_vars: BTreeMap::new(),
            basic_password: "hunter2".to_owned(),
            surfaces,
            isolation: Isolation {
                landlock: false,
                seccomp: false,
                readable: Vec::new(),
                limits: Limits::default(),
            },
            stop_grace_ms: 5000,
            agents: BTreeMap::new(),
            host: wakeful_wire::sandbox::HostSpec::default(),
        };
        Self { dir, spec }
    }

    /// Ground for the next sandbox of the same environment: its workspace, and a run directory of
    /// its own. Made while `self` lives.
    pub(crate) fn next(&self) -> Self {
        let mut next = Self::new(&[]);
        next.spec = SandboxSpec {
            sandbox: next.spec.sandbox,
            run_dir: next.spec.run_dir.clone(),
            ..self.spec.clone()
        };
        next
    }

    /// Starts `envd` and gives it its spec.
    pub(crate) fn start(self) -> Sandbox {
        let mut envd = self.spawn();
        let text = serde_json::to_vec(&self.spec).unwrap();
        envd.stdin.take().unwrap().write_all(&text).unwrap();
        let sandbox = Sandbox { ground: self, envd };
        eventually("the control socket", || {
            UnixStream::connect(sandbox.run_dir().join(run_dir::SOCKET)).ok()
        });
        sandbox
    }

    /// Starts `envd`, which waits for its spec.
    pub(crate) fn spawn(&self) -> Child {
        let errors = File::create(self.dir.path().join("stderr")).unwrap();
        Command::new(HARNESS)
            .arg(subcommand::ENVD)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("NOT_FOR_SANDBOXES", "x")
            .env(MARKER, self.spec.sandbox.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap()
    }
}

fn fresh_uid(unique: &Path) -> SandboxUid {
    // The directory's name is unique on this machine; that is all that these tests need.
    let mut state = u64::from(std::process::id());
    for byte in unique.as_os_str().as_encoded_bytes() {
        state = state.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte);
    }
    let low = state ^ 0x5555_aaaa_5555;
    format!("{:08x}-0000-4000-8000-{:012x}", state >> 32, low & 0xffff_ffff_ffff).parse().unwrap()
}

/// A running `envd`. Everything in it is killed when the test ends.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) ground: Ground,
    pub(crate) envd: Child,
}

impl Sandbox {
    pub(crate) fn of(surfaces: &[(&str, serde_json::Value)]) -> Self {
        Ground::new(surfaces).start()
    }

    pub(crate) fn run_dir(&self) -> &Path {
        &self.ground.spec.run_dir
    }

    pub(crate) fn workspace(&self, name: &str) -> PathBuf {
        self.ground.spec.workspace.join(name)
    }

    /// The content of a workspace file once it has a first line.
    pub(crate) fn written(&self, name: &str) -> String {
        eventually(name, || {
            let text = fs::read_to_string(self.workspace(name)).ok()?;
            text.ends_with('\n').then(|| text.trim_end().to_owned())
        })
    }

    pub(crate) fn log(&self, name: &str) -> String {
        let bytes = fs::read(self.run_dir().join(run_dir::LOGS).join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn connect(&self, secret: &str, ask: AskKind) -> UnixStream {
        connect(&self.run_dir().join(run_dir::SOCKET), secret, ask)
    }

    pub(crate) fn ask_with(&self, secret: &str, ask: AskKind) -> Reply {
        let mut line = String::new();
        BufReader::new(self.connect(secret, ask)).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn ask(&self, ask: AskKind) -> Reply {
        self.ask_with(&self.ground.spec.secret, ask)
    }

    pub(crate) fn status(&self) -> EnvdStatus {
        status_of(self.ask(AskKind::Status))
    }

    /// Statuses as they change.
    pub(crate) fn watch(&self) -> impl Iterator<Item = EnvdStatus> + use<> {
        let stream = self.connect(&self.ground.spec.secret, AskKind::Watch);
        BufReader::new(stream)
            .lines()
            .map_while(Result::ok)
            .map(|line| status_of(serde_json::from_str(&line).unwrap()))
    }

    /// The first status in which a surface is in this state.
    pub(crate) fn wait_for(&self, surface: &str, state: SurfaceState) -> EnvdStatus {
        self.watch()
            .find(|status| status.surfaces[surface].state == state)
            .unwrap_or_else(|| panic!("{surface} did not become {state:?}"))
    }

    pub(crate) fn pid_of(&self, surface: &str) -> i32 {
        self.wait_for(surface, SurfaceState::Ready).surfaces[surface].pid.unwrap().cast_signed()
    }

    /// Asks for a connection to a surface's program.
    pub(crate) fn dial(&self, surface: &str) -> Result<TcpStream, Refusal> {
        let stream = TcpStream::from(dial_any(
            &self.run_dir().join(run_dir::SOCKET),
            &self.ground.spec.secret,
            surface.parse().unwrap(),
        )?);
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Ok(stream)
    }

    /// Asks for a connection to the host.
    pub(crate) fn dial_host(&self) -> Result<UnixStream, Refusal> {
        self.host_dialler()()
    }

    /// What asks for connections to the host, also once the sandbox is gone.
    pub(crate) fn host_dialler(&self) -> impl Fn() -> Result<UnixStream, Refusal> + use<> {
        let socket = self.run_dir().join(run_dir::SOCKET);
        let secret = self.ground.spec.secret.clone();
        move || {
            let stream = UnixStream::from(dial_any(&socket, &secret, SurfaceName::host())?);
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Ok(stream)
        }
    }

    /// A connection to a surface, once it can be had.
    pub(crate) fn dial_when_ready(&self, surface: &str) -> TcpStream {
        eventually("a connection", || self.dial(surface).ok())
    }

    /// Asks a surface for a path; answers the status line and everything after it.
    pub(crate) fn get(&self, surface: &str, path: &str) -> String {
        let mut stream = self.dial_when_ready(surface);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Waits for `envd`'s own end and answers its exit status.
    pub(crate) fn wait_end(&mut self) -> Option<i32> {
        let envd = &mut self.envd;
        eventually("the end of envd", || envd.try_wait().unwrap()).code()
    }

    /// Processes that carry this sandbox's mark, `envd` not counted.
    pub(crate) fn marked(&self) -> Vec<i32> {
        marked(&self.ground.spec.sandbox.to_string())
            .into_iter()
            .filter(|pid| *pid != self.envd.id().cast_signed())
            .collect()
    }
}

/// Sends an ask.
fn connect(socket: &Path, secret: &str, ask: AskKind) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut line = serde_json::to_vec(&Ask { secret: secret.to_owned(), ask }).unwrap();
    line.push(b'\n');
    stream.write_all(&line).unwrap();
    stream
}

fn dial_any(socket: &Path, secret: &str, surface: SurfaceName) -> Result<OwnedFd, Refusal> {
    let stream = connect(socket, secret, AskKind::Dial { surface });
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        &stream,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )
    .unwrap();
    let fds: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| {
            if let RecvAncillaryMessage::ScmRights(fds) = message { Some(fds) } else { None }
        })
        .flatten()
        .collect();
    match serde_json::from_slice(&bytes[..received.bytes]).unwrap() {
        Reply::Done => {
            let [fd] = <[OwnedFd; 1]>::try_from(fds).unwrap();
            Ok(fd)
        }
        Reply::Refused(refusal) => {
            assert!(fds.is_empty());
            Err(refusal)
        }
        Reply::Status(_) | Reply::Drained { .. } | Reply::Taken(_) => {
            panic!("no answer to a dial")
        }
    }
}

fn status_of(reply: Reply) -> EnvdStatus {
    let Reply::Status(status) = reply else { panic!("expected a status, got {reply:?}") };
    status
}

fn marked(uid: &str) -> Vec<i32> {
    let mark = format!("{MARKER}={uid}");
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes()) && lives(*pid)
        })
        .collect()
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ended = self.envd.kill();
        let _ended = self.envd.wait();
        for pid in self.marked() {
            let _gone =
                Pid::from_raw(pid).map(|pid| rustix::process::kill_process(pid, Signal::KILL));
        }
        if std::thread::panicking() {
            let mut text =
                fs::read_to_string(self.ground.dir.path().join("stderr")).unwrap_or_default();
            text.push_str(&self.log("envd.log"));
            eprintln!("{text}");
        }
    }
}
