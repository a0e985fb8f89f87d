//! A text that stands in one place: a terminal is drawn over, anything else gets the new text.

use std::io::IsTerminal as _;

use rustix::termios::tcgetwinsize;

use super::super::hosts::Countdown;
use crate::output::Output;

/// How high a terminal is that does not say so.
const HEIGHT: usize = 24;

/// Where a text stands that changes.
#[derive(Debug)]
pub(super) struct Redraw {
    output: Output,
    terminal: bool,
    /// What stands there: the same is not printed twice.
    last: Option<String>,
}

impl Redraw {
    /// Nothing stands there yet.
    pub(super) fn new(output: Output) -> Self {
        Self { output, terminal: std::io::stdout().is_terminal(), last: None }
    }

    /// Whether seconds may be counted in the text.
    pub(super) const fn countdown(&self) -> Countdown {
        if self.terminal { Countdown::Shown } else { Countdown::Hidden }
    }

    /// Whether it is a terminal that is drawn over.
    pub(super) const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The place is another one: what stands there is drawn anew.
    pub(super) fn moved(&mut self) {
        if self.terminal {
            self.last = None;
        }
    }

    /// Puts this text in the place of the one before.
    ///
    /// # Errors
    /// Standard output is closed.
    pub(super) fn draw(&mut self, text: String) -> anyhow::Result<()> {
        if self.last.as_ref() == Some(&text) {
            return Ok(());
        }
        let drawn = if self.terminal {
            frame(&text, height(), self.last.is_none())
        } else {
            separated(&text, self.last.is_none())
        };
        self.output.raw(drawn.as_bytes())?;
        self.last = Some(text);
        Ok(())
    }
}

fn height() -> usize {
    let size = tcgetwinsize(std::io::stdout());
    size.map_or(HEIGHT, |size| usize::from(size.ws_row)).max(2)
}

fn separated(text: &str, first: bool) -> String {
    if first { text.to_owned() } else { format!("\n{text}") }
}

/// What draws a text over whatever stands on a terminal: each line over the one before, so that
/// nothing flickers, and as one where the terminal can. Lines that are too long are cut by the
/// terminal; those that do not fit below are counted.
fn frame(text: &str, height: usize, first: bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut drawn = String::from("\u{1b}[?2026h\u{1b}[?7l");
    drawn.push_str(if first { "\u{1b}[2J\u{1b}[H" } else { "\u{1b}[H" });
    // The cursor stands in the line below the last one.
    let fits = lines.len() < height;
    let shown = if fits { lines.len() } else { height.saturating_sub(2) };
    for line in &lines[..shown] {
        drawn.push_str(line);
        drawn.push_str("\u{1b}[K\n");
    }
    if !fits {
        drawn.push_str(&format!("… {} more lines\u{1b}[K\n", lines.len() - shown));
    }
    drawn.push_str("\u{1b}[J\u{1b}[?7h\u{1b}[?2026l");
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_drawn_over_line_by_line_and_never_cleared_between() {
        let first = frame("a\nb\n", 24, true);
        assert!(first.contains("\u{1b}[2J"));
        let next = frame("a\nb\n", 24, false);
        assert!(!next.contains("\u{1b}[2J"), "that would flicker");
        assert!(next.contains("\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J"), "{next:?}");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let text: String = (0..10).map(|line| format!("{line}\n")).collect();
        let drawn = frame(&text, 5, false);
        assert_eq!(drawn.matches("\u{1b}[K\n").count(), 4, "one line is left for the cursor");
        assert!(drawn.contains("2\u{1b}[K\n… 7 more lines"), "{drawn:?}");
        let fits = frame(&text, 11, false);
        assert!(!fits.contains("more lines") && fits.matches("\u{1b}[K\n").count() == 10);
    }

    #[test]
    fn texts_in_a_pipe_are_kept_apart() {
        assert_eq!(separated("a\n", true) + &separated("b\n", false), "a\n\nb\n");
    }
}
