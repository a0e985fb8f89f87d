//! The binary's outside: help, exit codes, `config show`, `doctor`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

fn wakeful(directory: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wakeful"))
        .args(args)
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", directory)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn help_teaches_on_standard_output() {
    let directory = tempfile::tempdir().unwrap();
    for args in [&["--help"][..], &["up", "--help"], &["upload", "--help"], &["help", "vars"]] {
        let output = wakeful(directory.path(), args, &[]);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        let text = stdout(&output);
        assert!(text.contains("Usage:") && text.contains("wakeful"), "{text}");
    }
    let help = stdout(&wakeful(directory.path(), &["--help"], &[]));
    assert!(help.contains("First steps:") && !help.contains("envd-exec"), "{help}");
}

#[test]
fn what_is_not_understood_ends_with_2_and_suggests() {
    let directory = tempfile::tempdir().unwrap();
    let output = wakeful(directory.path(), &["evns"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("envs"), "{}", stderr(&output));
    assert_eq!(wakeful(directory.path(), &[], &[]).status.code(), Some(2));
    let output = wakeful(directory.path(), &["up", "--set", "cores"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("KEY=VALUE"));
}

#[test]
fn config_show_says_where_each_value_came_from() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("wakeful.toml"), "[idle]\nagent = \"1h\"\n").unwrap();
    let args = ["config", "show", "--json", "--domain", "a.example", "--set", "cores=2"];
    let output = wakeful(directory.path(), &args, &[("WAKEFUL_IDLE_APP", "15m")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let table = [
        ("idle.agent", "1h", "wakeful.toml:2"),
        ("idle.app", "15m", "WAKEFUL_IDLE_APP"),
        ("idle.floor", "5m", "default"),
        ("domain", "a.example", "--domain"),
    ];
    for (key, value, origin) in table {
        assert_eq!(shown["settings"][key]["value"], value, "{key}");
        assert_eq!(shown["settings"][key]["origin"], origin, "{key}");
    }
    assert_eq!(shown["settings"]["cores"]["origin"], "--set cores");
    assert!(shown["templates"]["demo"]["surfaces"]["app"]["command"].is_string());
    let text = stdout(&wakeful(directory.path(), &["config", "show"], &[]));
    let line = text.lines().find(|line| line.starts_with("idle.agent")).unwrap();
    assert!(line.contains("\"1h\"") && line.ends_with("wakeful.toml:2"), "{line}");
}

#[test]
fn a_named_file_must_exist_and_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let output = wakeful(directory.path(), &["config", "show", "--config", "other.toml"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("other.toml cannot be read"), "{}", stderr(&output));
    fs::write(directory.path().join("other.toml"), "cores = 5\n").unwrap();
    for (args, variables) in [
        (&["config", "show", "--json", "--config", "other.toml"][..], &[][..]),
        (&["config", "show", "--json"], &[("WAKEFUL_CONFIG", "other.toml")]),
    ] {
        let output = wakeful(directory.path(), args, variables);
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(shown["settings"]["cores"]["origin"], "other.toml:1");
    }
}

#[test]
fn a_contradiction_stops_up_before_anything_starts() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("wakeful.toml"), "[idle]\nfloor = \"1m\"\n").unwrap();
    let output = wakeful(directory.path(), &["up", "--listen", "127.0.0.1:0"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("wakeful.toml:2") && text.contains("five times"), "{text}");
    assert!(!directory.path().join(".wakeful").exists());
}

#[test]
fn doctor_reports_what_is_really_in_force() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["doctor", "--json", "--listen", "127.0.0.1:0"];
    let output = wakeful(directory.path(), &args, &[]);
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let find = |what: &str| {
        let all = findings.as_array().unwrap().iter();
        let mut fitting = all.filter(|finding| finding["what"] == what);
        fitting.next().unwrap_or_else(|| panic!("no finding `{what}`: {findings}")).clone()
    };
    assert_eq!(find("template demo")["verdict"], "good");
    assert_eq!(find("isolation session")["verdict"], "good");
    assert!(find("isolation")["detail"].is_string());
    let args = ["doctor", "--json", "--set", "isolation.mode=none"];
    let output = wakeful(directory.path(), &args, &[]);
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let isolation =
        findings.as_array().unwrap().iter().find(|finding| finding["what"] == "isolation").unwrap();
    assert_eq!(isolation["verdict"], "note");
}

#[test]
fn doctor_fails_where_the_configuration_does() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("wakeful.toml"), "[idel]\n").unwrap();
    let output = wakeful(directory.path(), &["doctor"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("did you mean `idle`?"), "{}", stdout(&output));
}

#[test]
fn a_command_without_a_server_says_how_to_sign_in() {
    let directory = tempfile::tempdir().unwrap();
    let output = wakeful(directory.path(), &["envs"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("wakeful login"), "{}", stderr(&output));
    let output = wakeful(directory.path(), &["envs", "--json"], &[]);
    let problem: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(problem["detail"].as_str().unwrap().contains("wakeful login"));
    assert!(output.stdout.is_empty());
}

#[test]
fn envd_with_arguments_is_for_people_and_without_reads_a_spec() {
    let directory = tempfile::tempdir().unwrap();
    let help = wakeful(directory.path(), &["envd", "--help"], &[]);
    assert_eq!(help.status.code(), Some(0));
    assert!(stdout(&help).contains("wakeful pair URL CODE"), "{}", stdout(&help));
    let nowhere = wakeful(directory.path(), &["envd", "--workspace", "none"], &[]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(stderr(&nowhere).contains("none is no directory"), "{}", stderr(&nowhere));
    let spec = wakeful(directory.path(), &["envd"], &[]);
    assert_eq!(spec.status.code(), Some(1));
    assert!(stderr(&spec).starts_with("envd: "), "{}", stderr(&spec));
}

#[test]
fn without_a_host_here_or_there_pairing_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let offer = wakeful(directory.path(), &["pair"], &[]);
    assert_eq!(offer.status.code(), Some(1));
    assert!(stderr(&offer).contains("wakeful envd --workspace DIR"), "{}", stderr(&offer));
    let list = wakeful(directory.path(), &["pair", "--list", "--json"], &[]);
    assert_eq!(stdout(&list), "[]\n");
    for args in [&["pair", "--forget", "lab"][..], &["threads", "host:lab"]] {
        let output = wakeful(directory.path(), args, &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("no paired host is called `lab`"), "{}", stderr(&output));
    }
}

#[test]
fn a_host_of_its_own_gives_codes_is_paired_with_and_takes_prompts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir(path.join("site")).unwrap();
    let mut host = Command::new(env!("CARGO_BIN_EXE_wakeful"))
        .args(["envd", "--workspace", "site", "--listen", "127.0.0.1:0", "--label", "the lab"])
        .current_dir(path)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", path)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map(Ended)
        .unwrap();
    let said = std::io::BufReader::new(host.0.stderr.take().unwrap());
    let welcome = std::io::BufRead::lines(said).map(Result::unwrap);
    let mut commands = welcome.filter(|line| line.trim().starts_with("wakeful pair http://"));
    let first = commands.next().unwrap();
    let offered = wakeful(path, &["pair", "--json", "--name", "friend"], &[]);
    assert_eq!(offered.status.code(), Some(0), "{}", stderr(&offered));
    let offered: serde_json::Value = serde_json::from_slice(&offered.stdout).unwrap();
    let again = offered["command"].as_str().unwrap();
    assert_ne!(first.trim(), again, "each code is another");
    assert_eq!(offered["label"], "the lab");

    let command: Vec<&str> = again.split(' ').skip(1).chain(["--name", "lab"]).collect();
    let paired = wakeful(path, &command, &[]);
    assert_eq!(paired.status.code(), Some(0), "{}", stderr(&paired));
    assert!(stdout(&paired).contains("Paired with lab"), "{}", stdout(&paired));
    let twice = wakeful(path, &command, &[]);
    assert_eq!(twice.status.code(), Some(1), "a code is good once");

    let sent = wakeful(path, &["send", "lab", "true", "--agent", "shell", "--title", "Try"], &[]);
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    let thread = stdout(&sent).trim().to_owned();
    let prefix = thread.get(..8).unwrap();
    let sent = wakeful(path, &["send", "host:lab", "true", "--thread", prefix, "--json"], &[]);
    assert_eq!(sent.status.code(), Some(0), "{}", stderr(&sent));
    let sent: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!((sent["thread"].as_str(), &sent["state"]), (Some(&*thread), &"delivered".into()));
    let refused = wakeful(path, &["send", "lab", "true", "--agent", "nobody"], &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("nobody"), "{}", stderr(&refused));

    let threads = wakeful(path, &["threads"], &[]);
    let text = stdout(&threads);
    assert!(text.starts_with("host:lab\n") && text.contains("Try"), "{text}{}", stderr(&threads));
    let found = stdout(&wakeful(path, &["threads", "lab", "--search", "true"], &[]));
    assert!(found.contains("Try  host:lab"), "{found}");
    let status = wakeful(path, &["status", "lab", "--json"], &[]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let connection = &status["environments"][0]["connection"];
    assert_eq!((&connection["phase"], &connection["data"]), (&"connected".into(), &"live".into()));
    assert_eq!(connection["route"]["class"], "loopback");
    let sessions = wakeful(path, &["sessions", "lab", "--json"], &[]);
    let sessions: serde_json::Value = serde_json::from_slice(&sessions.stdout).unwrap();
    let own = sessions["sessions"][0]["id"].as_str().unwrap();
    let ended = wakeful(path, &["sessions", "lab", "--revoke", own], &[]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    let gone = wakeful(path, &["threads", "lab"], &[]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr(&gone).contains("pair with it again"), "{}", stderr(&gone));
    // What was known of it is still shown, as what it is.
    assert!(stdout(&gone).contains("its threads, as it was"), "{}", stdout(&gone));
    assert!(stdout(&gone).contains("Try"), "{}", stdout(&gone));
    let forgotten = wakeful(path, &["pair", "--forget", "lab"], &[]);
    assert_eq!(forgotten.status.code(), Some(0), "{}", stderr(&forgotten));
    let nobody = wakeful(path, &["threads"], &[]);
    assert!(stderr(&nobody).contains("wakeful login") && nobody.stdout.is_empty());
}

/// A process that ends with the test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
