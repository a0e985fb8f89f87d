//! `attach` at a terminal: a real host, a real client, and a person who types.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// The longest that a test waits for a value.
const PATIENCE: Duration = Duration::from_secs(60);

fn wakeful(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakeful"));
    command.current_dir(home).env_clear();
    command.env("PATH", "/usr/bin:/bin").env("HOME", home).env("TERM", "xterm-256color");
    command
}

/// A host, and the home of whoever is paired with it as `lab`.
struct World {
    home: tempfile::TempDir,
    address: String,
    host: Option<(Child, BufReader<ChildStderr>)>,
}

impl World {
    fn new() -> Self {
        let home = tempfile::Builder::new().prefix("wk").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(home.path().join("w")).unwrap();
        let mut world = Self { home, address: "127.0.0.1:0".to_owned(), host: None };
        let code = world.start();
        let address = format!("http://{}", world.address);
        world.run(&["pair", &address, &code, "--name", "lab"]);
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Starts the host, again where it was; returns a code to pair with.
    fn start(&mut self) -> String {
        let mut child = wakeful(self.home.path())
            .args(["envd", "--label", "Lab", "--listen", &self.address, "--workspace"])
            .arg(self.at("w"))
            .arg("--state")
            .arg(self.at("s"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let (address, code) = loop {
            let mut line = String::new();
            assert_ne!(errors.read_line(&mut line).unwrap(), 0, "the host ended");
            if let Some(pair) = line.trim().strip_prefix("wakeful pair http://") {
                let (address, code) = pair.split_once(' ').unwrap();
                break (address.to_owned(), code.to_owned());
            }
        };
        self.address = address;
        self.host = Some((child, errors));
        code
    }

    fn kill(&mut self) {
        if let Some((mut child, _)) = self.host.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Runs a command to its end.
    fn run(&self, args: &[&str]) -> String {
        let output = wakeful(self.home.path()).args(args).stdin(Stdio::null()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// How often a line stands in a file of the workspace.
    fn count(&self, file: &str, line: &str) -> usize {
        let text = std::fs::read_to_string(self.at("w").join(file)).unwrap_or_default();
        text.lines().filter(|each| *each == line).count()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `attach` at a terminal of its own.
struct Terminal {
    child: Child,
    keys: File,
    screen: Receiver<String>,
    /// All that was shown.
    all: String,
    /// What of it was looked at.
    read: usize,
}

impl Terminal {
    fn open(world: &World, args: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).unwrap();
        let theirs = || ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        let child = wakeful(world.home.path())
            .args([&["attach", "lab"], args].concat())
            .stdin(theirs())
            .stdout(theirs())
            .stderr(theirs())
            .spawn()
            .unwrap();
        let keys = File::from(ours);
        let mut shown = keys.try_clone().unwrap();
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut piece = [0; 8_192];
            // It fails when nobody has the other side any more.
            while let Ok(length @ 1..) = shown.read(&mut piece) {
                let text = String::from_utf8_lossy(&piece[..length]).into_owned();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, screen, all: String::new(), read: 0 }
    }

    fn type_line(&mut self, line: &str) {
        self.keys.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Waits until this is shown after what was looked at before; returns what came up to it.
    fn until(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.all[self.read..].find(text) {
                let from = self.read;
                self.read += at + text.len();
                return self.all[from..self.read].to_owned();
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.screen.recv_timeout(left) {
                Ok(more) => self.all.push_str(&more),
                Err(_) => panic!("no {text:?} in {:?}", &self.all[self.read..]),
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it has ended; returns its exit code and the rest of what it showed.
    fn ended(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        let mut rest = self.all.split_off(self.read);
        // The last piece comes before the reader finds nobody on the other side.
        while let Ok(more) = self.screen.recv_timeout(PATIENCE) {
            rest.push_str(&more);
        }
        (code, rest)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

#[test]
fn a_person_sees_a_turn_the_loss_of_the_host_and_its_return_and_a_prompt_given_meanwhile_runs_once()
{
    let mut world = World::new();
    world.run(&["send", "lab", "echo first", "--wait"]);
    let mut terminal = Terminal::open(&world, &[]);
    terminal.until("[1;23r");
    terminal.until("> echo first");
    terminal.until("host:lab: live");
    terminal.type_line("echo second >> log; echo se''en");
    terminal.until("seen");
    terminal.until("done");
    world.kill();
    let lost = terminal.until("what is shown may be old");
    assert!(lost.contains("host:lab: "), "{lost:?}");
    terminal.until("next try in ");
    terminal.type_line("echo third >> log; echo th''ere");
    terminal.until("1 not confirmed");
    world.start();
    terminal.type_line("/retry");
    terminal.until("> echo third");
    terminal.until("there");
    terminal.until("host:lab: live ");
    assert_eq!((world.count("log", "second"), world.count("log", "third")), (1, 1));
    let repeated = terminal.all.matches("> echo first").count();
    assert_eq!(repeated, 1, "nothing is shown twice: {:?}", terminal.all);
    terminal.type_line("/threads");
    terminal.until("*  1  ");
    terminal.type_line("/quit");
    let (code, rest) = terminal.ended();
    assert_eq!(code, Some(0), "{rest:?}");
    assert!(rest.contains("\u{1b}[r"), "the terminal is given back whole: {rest:?}");
}

#[test]
fn a_cold_start_shows_what_was_kept_and_is_right_once_the_host_is_there() {
    let mut world = World::new();
    world.run(&["send", "lab", "echo kept", "--wait"]);
    world.kill();
    let mut terminal = Terminal::open(&world, &[]);
    terminal.until("as it was when this machine last saw it");
    terminal.until("> echo kept");
    terminal.until("what is shown may be old");
    world.start();
    world.run(&["send", "lab", "--thread", &only_thread(&world), "echo meanwhile", "--wait"]);
    terminal.type_line("/retry");
    terminal.until("> echo meanwhile");
    terminal.until("up to date");
    terminal.until("host:lab: live");
    assert_eq!(terminal.all.matches("> echo kept").count(), 1);
    terminal.signal(Signal::TERM);
    let (code, rest) = terminal.ended();
    assert_eq!(code, Some(143));
    assert!(rest.contains("\u{1b}[r"), "{rest:?}");
}

#[test]
fn a_client_that_stood_still_shows_what_happened_meanwhile_once() {
    let world = World::new();
    world.run(&["send", "lab", "echo before", "--wait"]);
    let mut terminal = Terminal::open(&world, &[]);
    terminal.until("host:lab: live");
    terminal.signal(Signal::STOP);
    world.run(&["send", "lab", "--thread", &only_thread(&world), "echo asleep", "--wait"]);
    terminal.signal(Signal::CONT);
    terminal.until("> echo asleep");
    terminal.until("done");
    let other = world.run(&["send", "lab", "echo other", "--wait"]);
    assert!(other.contains("other"), "{other}");
    terminal.type_line("/threads");
    terminal.until("*  2  ");
    terminal.type_line("/switch 1");
    terminal.until("> echo other");
    terminal.type_line("/switch 2");
    terminal.until("> echo before");
    let (before, after) = ("> echo asleep", "done");
    terminal.until(before);
    terminal.until(after);
    // The end of what is typed.
    terminal.keys.write_all(b"\x04").unwrap();
    assert_eq!(terminal.ended().0, Some(0));
}

/// The id of the one thread there is.
fn only_thread(world: &World) -> String {
    let attached = world.run(&["--json", "attach", "lab", "--until-idle"]);
    let snapshot = attached.lines().find(|line| line.contains("\"type\":\"snapshot\"")).unwrap();
    let value: serde_json::Value = serde_json::from_str(snapshot).unwrap();
    value["detail"]["thread"]["id"].as_str().unwrap().to_owned()
}
