//! The scripted model, as a process.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A running model server whose answers stand in the prompts; it ends with this value.
#[derive(Debug)]
pub(crate) struct Model {
    child: Child,
    /// Where it is asked.
    pub(crate) url: String,
}

impl Model {
    pub(crate) fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../envd/tests/agent");
        let mut child = Command::new("python3")
            .arg("-u")
            .arg(script.join("scripted_model.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("READY ").unwrap().to_owned();
        Self { child, url }
    }

    /// A prompt that says what it answers.
    pub(crate) fn script(steps: &serde_json::Value) -> String {
        format!("SCRIPT{steps}")
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _taken = self.child.wait();
    }
}
