//! A host of its own for one test.

use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Child, ChildStderr, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use wakeful_envd::alone::ask::Local;

use crate::client::Client;

/// The longest that a test waits for a value.
const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace and a state directory, which outlive the hosts that are started with them.
#[derive(Clone)]
pub(crate) struct Ground {
    dir: Arc<tempfile::TempDir>,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("wk").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        Self { dir: Arc::new(dir) }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub(crate) fn spawn(&self, listen: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_wakeful-envd-harness"))
            .arg("alone")
            .args([self.workspace(), self.state()])
            .arg(listen)
            .arg("Lab")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Starts a host on a free port and waits until it has said where it is.
    pub(crate) fn start(&self) -> Running {
        self.start_on("127.0.0.1:0")
    }

    pub(crate) fn start_on(&self, listen: &str) -> Running {
        let mut child = self.spawn(listen);
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let (mut said, mut command) = (String::new(), None);
        while command.is_none() {
            let mut line = String::new();
            assert_ne!(errors.read_line(&mut line).unwrap(), 0, "it ended: {said}");
            said.push_str(&line);
            command = line.trim().strip_prefix("wakeful pair http://").map(str::to_owned);
        }
        let command = command.unwrap();
        let (address, code) = command.split_once(' ').unwrap();
        Running {
            ground: self.clone(),
            child,
            _errors: errors,
            address: address.parse().unwrap(),
            code: code.to_owned(),
        }
    }

    /// Starts a host that is to refuse, and answers what it says.
    pub(crate) fn refused(&self, listen: &str) -> String {
        let mut child = self.spawn(listen);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
        said
    }

    pub(crate) fn local(&self) -> Local {
        Local::of(&self.state(), &self.workspace()).unwrap()
    }
}

/// A running host. Killed when the test ends.
pub(crate) struct Running {
    ground: Ground,
    child: Child,
    /// Read no further, and not closed either.
    _errors: BufReader<ChildStderr>,
    pub(crate) address: SocketAddr,
    /// The code that it printed.
    pub(crate) code: String,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client with a key of its own.
    pub(crate) fn client(&self) -> Client {
        let address = self.address;
        Client::new(format!("http://{address}"), false, move || {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            Box::new(stream)
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its own end and answers its exit status.
    pub(crate) fn wait_end(&mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end");
            let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            let _interrupted = rustix::thread::nanosleep(&pause);
        }
    }

    pub(crate) fn ground(&self) -> &Ground {
        &self.ground
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

impl Client {
    /// Pairs by a code.
    pub(crate) fn pair(&self, code: &str) -> (u16, Value) {
        self.token(&json!({ "grant_type": "urn:wakeful:oauth:pairing", "code": code }))
    }
}

/// Runs one question to a host's control socket.
pub(crate) fn asked<T>(question: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(question)
}
