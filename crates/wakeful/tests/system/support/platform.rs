//! The platform itself: the real binary, on a port and a data directory of its own.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::atomic::{AtomicU16, AtomicU32, Ordering},
};

use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tempfile::TempDir;

use super::{
    Process, User, processes,
    waiting::{PATIENCE, until},
};

/// The program under test.
const BINARY: &str = env!("CARGO_BIN_EXE_wakeful");
/// What stands behind the gateway.
const PROGRAM: &str = include_str!("program.py");
/// Where the system's own programs are.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How much of a log is shown when a test fails, in lines.
const SHOWN: usize = 120;

/// How a platform is configured.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) idle_agent: &'static str,
    pub(crate) idle_app: &'static str,
    pub(crate) wake_budget: &'static str,
    /// How many requests may wait for one environment.
    pub(crate) held: u32,
    /// The template of every project that names none.
    pub(crate) template: &'static str,
    /// The surfaces of the template `program` beside `app`, each with further lines.
    pub(crate) surfaces: Vec<(&'static str, &'static str)>,
    /// The variables of the template `program`.
    pub(crate) variables: Vec<(&'static str, &'static str)>,
    /// Further tables of `wakeful.toml`.
    pub(crate) tables: String,
    /// Directories before the system's own in `PATH`.
    pub(crate) path: Vec<PathBuf>,
    /// What sandboxes may read beside that.
    pub(crate) readable: Vec<PathBuf>,
}

impl Default for Setup {
    /// Nothing falls asleep by itself within a test, and every project runs `program.py` as `app`.
    fn default() -> Self {
        Self {
            idle_agent: "30m",
            idle_app: "30m",
            wake_budget: "60s",
            held: 16_384,
            template: "program",
            surfaces: Vec::new(),
            variables: Vec::new(),
            tables: String::new(),
            path: Vec::new(),
            readable: Vec::new(),
        }
    }
}

impl Setup {
    /// Starts a platform like this.
    pub(crate) fn up(self) -> Platform {
        Platform::new(self)
    }

    fn toml(&self, program: &Path) -> String {
        let Self { idle_agent, idle_app, wake_budget, held, template, tables, .. } = self;
        let mut text = format!(
            "default_template = '{template}'\n\
             [idle]\nagent = '{idle_agent}'\napp = '{idle_app}'\nfloor = '500ms'\n\
             [proxy]\nws_keepalive_interval = '100ms'\nheld_per_environment = {held}\n\
             [wake]\nbudget = '{wake_budget}'\n\
             [log]\nlevel = 'info,wakeful_control=debug'\n{tables}\n"
        );
        let readable = self.readable.iter().map(PathBuf::as_path).chain([program]);
        let readable: Vec<_> = readable.map(|path| format!("'{}'", path.display())).collect();
        text.push_str(&format!("[isolation]\nreadable = [{}]\n", readable.join(", ")));
        text.push_str("[templates.program.env]\n");
        for (name, value) in &self.variables {
            text.push_str(&format!("{name} = '{value}'\n"));
        }
        for (name, more) in [("app", "")].iter().chain(&self.surfaces) {
            text.push_str(&format!(
                "[templates.program.surfaces.{name}]\ncommand = 'exec python3 {}'\n\
                 ready = {{ http = '/ready' }}\n{more}\n",
                program.display()
            ));
        }
        text
    }
}

/// A running platform. Dropped, it is killed with every sandbox that it left.
#[derive(Debug)]
pub(crate) struct Platform {
    setup: Setup,
    home: TempDir,
    data: PathBuf,
    child: Mutex<Option<Child>>,
    port: AtomicU16,
    started: AtomicU32,
}

impl Platform {
    fn new(setup: Setup) -> Self {
        raise_descriptor_limit();
        let home = tempfile::Builder::new().prefix("wakeful-").tempdir().unwrap();
        let data = home.path().canonicalize().unwrap().join("data");
        fs::write(home.path().join("program.py"), PROGRAM).unwrap();
        let platform = Self {
            setup,
            home,
            data,
            child: Mutex::default(),
            port: AtomicU16::default(),
            started: AtomicU32::default(),
        };
        platform.start(&[]);
        platform
    }

    /// Starts it; on a further start with the same data directory and a new port.
    pub(crate) fn start(&self, args: &[&str]) {
        self.start_at(0, args);
    }

    /// Starts it again where it was before.
    pub(crate) fn start_again(&self) {
        self.start_at(self.port(), &[]);
    }

    fn start_at(&self, port: u16, args: &[&str]) {
        let config = self.home.path().join("wakeful.toml");
        let program = self.home.path().join("program.py");
        fs::write(&config, self.setup.toml(&program)).unwrap();
        self.started.fetch_add(1, Ordering::Relaxed);
        let log = File::create(self.log_path()).unwrap();
        let child = self
            .command()
            .args(["up", "--listen", &format!("127.0.0.1:{port}")])
            .args(args)
            .arg("--data")
            .arg(&self.data)
            .arg("--config")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        *self.child.lock() = Some(child);
        let port = until("the platform says where it is", || {
            let ended = self.child.lock().as_mut().and_then(|child| child.try_wait().unwrap());
            assert_eq!(ended, None, "the platform ended:\n{}", self.log());
            let log = self.log();
            let at = log.split_once("Wakeful is up: http://wakeful.localhost:")?.1;
            at.split_once('/')?.0.parse().ok()
        });
        self.port.store(port, Ordering::Relaxed);
        until("the platform is ready", || {
            (self.ask("GET", "/readyz").try_send().ok()?.status == 200).then_some(())
        });
    }

    /// A command of the binary in an environment of its own.
    fn command(&self) -> Command {
        let path = self.setup.path.iter().map(|path| path.display().to_string());
        let path = path.chain([PATH.to_owned()]).collect::<Vec<_>>().join(":");
        let mut command = Command::new(BINARY);
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home.path())
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a client command with `--json` as a user.
    pub(crate) fn cli(&self, user: &User, args: &[&str]) -> Output {
        self.client(user, args).output().unwrap()
    }

    /// A client command with `--json` as a user.
    pub(crate) fn client(&self, user: &User, args: &[&str]) -> Command {
        let url = format!("http://wakeful.localhost:{}", self.port());
        let mut command = self.command();
        command.arg("--json").args(args);
        command.env("WAKEFUL_URL", url).env("WAKEFUL_TOKEN", &user.token);
        command
    }

    /// Kills the platform at once. Sandboxes are left as they are.
    pub(crate) fn kill_9(&self) {
        let mut child = self.child.lock().take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends the platform cleanly, as an operator does.
    pub(crate) fn stop(&self) -> ExitStatus {
        let mut child = self.child.lock().take().unwrap();
        processes::send(child.id(), Signal::TERM);
        until("the platform ends", || child.try_wait().unwrap())
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port()).into()
    }

    /// Processes of its sandboxes.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let platform = self.child.lock().as_ref().map(Child::id);
        let all = processes::of_data_dir(&self.data);
        all.into_iter().filter(|process| Some(process.pid) != platform).collect()
    }

    /// The data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    fn log_path(&self) -> PathBuf {
        let number = self.started.load(Ordering::Relaxed);
        self.home.path().join(format!("log-{number}"))
    }

    /// What it has written to standard error since its last start.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    #[expect(clippy::print_stderr, reason = "the runner shows it when the test has failed")]
    fn show_logs(&self) {
        for number in 1..=self.started.load(Ordering::Relaxed) {
            let log = fs::read_to_string(self.home.path().join(format!("log-{number}")));
            let log = log.unwrap_or_default();
            // The main host's access lines are mostly this test's own looks.
            let lines = log.lines().filter(|line| !line.contains("route=\"main\""));
            let lines: Vec<_> = lines.collect();
            let shown = lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default();
            eprintln!("--- the platform's log, start {number}:\n{}", shown.join("\n"));
        }
        eprintln!("--- its processes: {:#?}", self.processes());
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_logs();
        }
        if let Some(mut child) = self.child.get_mut().take() {
            let _ended = child.kill();
            let _status = child.wait();
        }
        // A daemon that is killed takes its processes with it; what is left is killed in the next
        // round.
        let deadline = std::time::Instant::now() + PATIENCE;
        while std::time::Instant::now() < deadline {
            let left = processes::of_data_dir(&self.data);
            if left.is_empty() {
                return;
            }
            left.iter().for_each(|process| processes::kill(process.pid));
        }
    }
}

/// A thousand connections have two ends each.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _refused = setrlimit(Resource::Nofile, raised);
}
