//! What a person can look at beside the thread: the other threads, and the prompts that wait.

use std::sync::Arc;

use wakeful_wire::{Timestamp, rpc::ShellRow};

use super::{
    super::{
        super::{short, threads::ago},
        harmless::one_line,
    },
    Rows, Session,
};

/// How many threads are listed.
pub(super) const LISTED_MAX: usize = 30;
/// The longest title or prompt in a list, in characters.
const TITLE_MAX: usize = 100;

impl Session {
    /// Lists the threads, the newest first, and remembers their numbers.
    pub(super) fn list(&mut self, rows: Rows, clock: Timestamp) {
        let rows = newest_first(rows);
        if rows.is_empty() {
            return self.note("no threads are known");
        }
        let shown = self.thread();
        let length = short::length(rows.iter().map(|row| row.id));
        let left_out = rows.len().saturating_sub(LISTED_MAX);
        let mut lines = Vec::new();
        for (number, row) in (1..).zip(rows.iter().take(LISTED_MAX)) {
            let mark = if Some(row.id) == shown { '*' } else { ' ' };
            let title = one_line(row.title.as_deref().unwrap_or("untitled"), TITLE_MAX);
            let (id, does) = (short::id(row.id, length), does(row));
            let when = ago(row.active_at, clock);
            lines.push(format!("{mark}{number:>3}  {id}  {title}  ({does}, {when})"));
        }
        if left_out > 0 {
            lines.push(format!("     and {left_out} more; `/switch ID` goes to any of them"));
        }
        self.listed = rows.into_iter().map(|row| row.id).collect();
        self.note(lines.join("\n"));
    }

    /// Lists the prompts that wait.
    pub(super) fn list_queue(&mut self) {
        let Some(shown) = &self.shown else { return };
        let mut lines: Vec<String> = (1..)
            .zip(shown.queue())
            .map(|(number, waiting)| {
                format!("{number:>3}  {}", one_line(&waiting.prompt.plain(), TITLE_MAX))
            })
            .collect();
        if lines.is_empty() {
            lines.push("no prompt waits".to_owned());
        } else if shown.is_held() {
            lines.push("     they wait for you: `/release` lets them go on".to_owned());
        }
        let unsent = self.outbox.len();
        if unsent > 0 {
            lines.push(format!("     and the host has not confirmed {unsent} from here"));
        }
        self.note(lines.join("\n"));
    }
}

/// What a thread does, in a word or two. What waits for a person comes first.
const fn does(row: &ShellRow) -> &'static str {
    if row.pending > 0 {
        "waits for an answer"
    } else if row.running_since.is_some() {
        "working"
    } else if row.queued > 0 && row.held {
        "queue held"
    } else if row.queued > 0 {
        "queued"
    } else if row.background {
        "works in the background"
    } else if row.settled.is_some() {
        "settled"
    } else {
        "idle"
    }
}

/// The one in which something happened last comes first.
pub(super) fn newest_first(mut rows: Rows) -> Vec<Arc<ShellRow>> {
    rows.sort_by_key(|row| std::cmp::Reverse((row.active_at, row.id)));
    rows
}
