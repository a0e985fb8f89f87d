//! A host of its own, beside any platform.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, ChildStderr, Command, Stdio},
};

use tempfile::TempDir;

/// A host that runs, and may be paired with once.
#[derive(Debug)]
pub(crate) struct Alone {
    pub(crate) address: String,
    pub(crate) code: String,
    child: Child,
    /// Open, so that the host can say things.
    _errors: BufReader<ChildStderr>,
    /// Outlives the host.
    _directory: TempDir,
}

impl Alone {
    pub(crate) fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("wk").tempdir_in("/tmp").unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("w")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_wakeful"))
            .args(["envd", "--label", "Lab", "--listen", "127.0.0.1:0"])
            .arg("--workspace")
            .arg(at("w"))
            .arg("--state")
            .arg(at("s"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let (mut said, mut command) = (String::new(), None);
        while command.is_none() {
            let mut line = String::new();
            assert_ne!(errors.read_line(&mut line).unwrap(), 0, "it ended: {said}");
            said.push_str(&line);
            command = line.trim().strip_prefix("wakeful pair ").map(str::to_owned);
        }
        let command = command.unwrap();
        let (address, code) = command.split_once(' ').unwrap();
        let (address, code) = (address.to_owned(), code.to_owned());
        Self { address, code, child, _errors: errors, _directory: directory }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}
