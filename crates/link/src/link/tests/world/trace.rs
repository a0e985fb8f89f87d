//! What happened, as lines of text that people can read and compare.

use std::collections::BTreeMap;

use serde_json::Value;
use wakeful_wire::{Phase, rpc::ThreadId};

use crate::{
    AttemptId, ConnectionPhase, ConnectionState, DataStatus,
    http::{Method, Reply, Request},
    shell::ShellState,
    threads::ThreadState,
};

/// What happened; nothing is noted before it is asked for.
#[derive(Debug, Default)]
pub(in crate::link::tests) struct Trace {
    lines: Option<Vec<String>>,
    /// What was noted of each connection last: the same again is nothing new.
    connections: BTreeMap<String, String>,
}

impl Trace {
    /// Notes everything from now on.
    pub(in crate::link::tests) fn begin(&mut self) {
        self.lines = Some(Vec::new());
    }

    /// What was noted.
    pub(in crate::link::tests) fn take(&mut self) -> String {
        let mut text = self.lines.take().unwrap_or_default().join("\n");
        text.push('\n');
        text
    }

    /// A remark of the test's own.
    pub(in crate::link::tests) fn remark(&mut self, time: u64, words: &str) {
        self.note(time, || format!("-- {words}"));
    }

    fn note(&mut self, time: u64, words: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>7}.{:03}  {}", time / 1_000, time % 1_000, words()));
        }
    }

    pub(super) fn open(&mut self, time: u64, host: &str, attempt: AttemptId, wake: bool) {
        let wakes = if wake { ", may wake" } else { "" };
        self.note(time, || format!("{host}: socket {} is opened{wakes}", attempt.0));
    }

    pub(super) fn close(&mut self, time: u64, host: &str, attempt: AttemptId) {
        self.note(time, || format!("{host}: socket {} is given up", attempt.0));
    }

    pub(super) fn closed(
        &mut self,
        time: u64,
        host: &str,
        attempt: AttemptId,
        code: Option<u16>,
        reason: &str,
    ) {
        self.note(time, || {
            let how =
                code.map_or_else(|| "without a word".to_owned(), |code| format!("{code} {reason}"));
            format!("{host}: socket {} ends: {how}", attempt.0)
        });
    }

    pub(super) fn not_opened(&mut self, time: u64, host: &str, attempt: AttemptId, reply: &Reply) {
        self.note(time, || format!("{host}: socket {} does not open: {}", attempt.0, said(reply)));
    }

    pub(super) fn sends(&mut self, time: u64, host: &str, attempt: AttemptId, text: &str) {
        self.note(time, || {
            let frame: Value = serde_json::from_str(text).unwrap_or_default();
            let what = match frame["type"].as_str() {
                Some("request") => {
                    let cursor = &frame["params"]["cursor"];
                    let from = if cursor.is_null() {
                        String::new()
                    } else {
                        format!(" from {}", place(cursor))
                    };
                    format!("{}{from}", frame["method"].as_str().unwrap_or_default())
                }
                Some(other) => other.to_owned(),
                None => String::new(),
            };
            format!("{host}: socket {} -> {what}", attempt.0)
        });
    }

    pub(super) fn hears(&mut self, time: u64, host: &str, attempt: AttemptId, text: &str) {
        self.note(time, || {
            let frame: Value = serde_json::from_str(text).unwrap_or_default();
            let what = match frame["type"].as_str() {
                Some("hello" | "hello_again") => format!("hello at {}", place(&frame["head"])),
                Some("item") => item(&frame["item"]),
                Some(other) => other.to_owned(),
                None => "something unreadable".to_owned(),
            };
            format!("{host}: socket {} <- {what}", attempt.0)
        });
    }

    pub(super) fn ask(&mut self, time: u64, request: &Request) {
        let wakes = if request.wake { ", may wake" } else { "" };
        let method = match request.method {
            Method::Get => "GET",
            Method::Post => "POST",
        };
        let known = if request.etag.is_some() { ", unless unchanged" } else { "" };
        self.note(time, || format!("{method} {}{known}{wakes}", request.path));
    }

    pub(super) fn answer(&mut self, time: u64, reply: &Reply) {
        self.note(time, || format!("  answered: {}", said(reply)));
    }

    pub(super) fn environment(&mut self, time: u64, host: &str, phase: Phase) {
        self.note(time, || format!("{host}: the platform says: {phase}"));
    }

    pub(super) fn connection(&mut self, time: u64, host: &str, state: &ConnectionState) {
        let words = {
            let phase = match state.phase {
                ConnectionPhase::Available => "not wanted",
                ConnectionPhase::Offline => "offline",
                ConnectionPhase::Connecting => "connecting",
                ConnectionPhase::Backoff => "waiting",
                ConnectionPhase::Connected => "connected",
                ConnectionPhase::Blocked => "blocked",
                ConnectionPhase::Asleep => "asleep",
            };
            let stage = state.stage.map(|stage| format!(", {stage:?}").to_lowercase());
            let verifying = if state.verifying { ", looking whether it lives" } else { "" };
            let why = state.last_failure.as_ref().map(|failure| format!(" ({failure})"));
            format!(
                "{host}: {phase}{}, session {}{verifying}{}",
                stage.unwrap_or_default(),
                state.generation,
                why.unwrap_or_default(),
            )
        };
        if self.connections.insert(host.to_owned(), words.clone()).as_ref() != Some(&words) {
            self.note(time, || words);
        }
    }

    pub(super) fn list(&mut self, time: u64, host: &str, shell: &ShellState) {
        self.note(time, || {
            let at = shell.cursor().map_or(0, |cursor| cursor.seq.0);
            let rows = shell.list.as_ref().map_or(0, |list| list.rows().count());
            format!("{host}: list {}, {rows} rows at {at}", status(shell.status))
        });
    }

    pub(super) fn thread(&mut self, time: u64, host: &str, thread: ThreadId, state: &ThreadState) {
        self.note(time, || {
            let at = state.cursor().map_or(0, |cursor| cursor.seq.0);
            let number = thread.uuid().as_u128();
            format!("{host}: thread {number} {} at {at}", status(state.status))
        });
    }
}

const fn status(status: DataStatus) -> &'static str {
    match status {
        DataStatus::Empty => "empty",
        DataStatus::Cached => "cached",
        DataStatus::Synchronizing => "synchronizing",
        DataStatus::Live => "live",
        DataStatus::Deleted => "deleted",
    }
}

fn place(cursor: &Value) -> String {
    format!("{}.{}", cursor["epoch"], cursor["seq"])
}

fn item(item: &Value) -> String {
    match item["type"].as_str() {
        Some("snapshot") => {
            let cursor = if item["cursor"].is_null() {
                &item["snapshot"]["cursor"]
            } else {
                &item["cursor"]
            };
            format!("snapshot at {}", place(cursor))
        }
        Some("resumed") => format!("resumed from {}", place(&item["cursor"])),
        Some("synchronized") => format!("all until {}", place(&item["cursor"])),
        Some("changes") => format!("rows to {}", item["seq"]),
        Some("events") => {
            let events: Vec<_> = item["events"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|event| event["seq"].to_string())
                .collect();
            format!("events {}", events.join(" "))
        }
        Some(other) => other.to_owned(),
        None => String::new(),
    }
}

fn said(reply: &Reply) -> String {
    match reply {
        Reply::Answered(answer) => answer.status.to_string(),
        Reply::TimedOut => "not in time".to_owned(),
        Reply::Unreachable(_) => "nobody is there".to_owned(),
        Reply::Unproven(_) => "not sent".to_owned(),
    }
}
