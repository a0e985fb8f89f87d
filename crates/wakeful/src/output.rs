//! What commands print: the one place that writes to standard output and standard error.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

/// How a command prints.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// One JSON value for programs instead of text for people.
    pub json: bool,
}

impl Output {
    /// Prints `value` as JSON, or what `text` makes of it.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn print<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            self.line(&serde_json::to_string_pretty(value)?)
        } else {
            self.line(&text(value))
        }
    }

    /// Prints a line, as it is. Nothing is printed for an empty one.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn line(self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    /// Writes bytes to standard output, as they are.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn raw(self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// A word on the side for people, on standard error. Programs get none.
    pub fn note(self, text: &str) {
        if !self.json {
            to_stderr(text);
        }
    }

    /// Whether a progress bar has somebody to look at it.
    #[must_use]
    pub fn shows_progress(self) -> bool {
        !self.json && io::stderr().is_terminal()
    }
}

/// Says on standard output what a long-running command has to say to whoever started it. If that
/// is closed there is nobody to tell.
pub fn announce(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Writes a line to standard error. If that is closed there is nobody to tell.
pub fn to_stderr(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes a line to standard output where a program reads it; a person has it on standard error.
pub fn to_program(text: &str) {
    let mut stdout = io::stdout().lock();
    if !stdout.is_terminal() {
        let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    }
}

/// A text with control characters replaced, fit for a terminal whoever wrote it.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Rows in columns that are as wide as they must be, two spaces apart, under a header.
/// Cells are made [`printable`]. Without rows there is nothing, not even the header.
#[must_use]
pub fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; N]> = std::iter::once(header.map(str::to_owned))
        .chain(rows.iter().map(|row| row.clone().map(|cell| printable(&cell))))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a".to_owned(), "1".to_owned()], ["längst".to_owned(), "2".to_owned()]];
        assert_eq!(table(["NAME", "N"], &rows), "NAME    N\na       1\nlängst  2\n");
        assert_eq!(table(["NAME", "N"], &[]), "");
    }

    #[test]
    fn a_title_cannot_steer_the_terminal() {
        let rows = [["\u{1b}[2Jx\n".to_owned()]];
        let text = table(["T"], &rows);
        assert!(!text.contains('\u{1b}'));
        assert_eq!(text.lines().count(), 2);
    }
}
