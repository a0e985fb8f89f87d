//! The line at the bottom of the terminal, which stays where it is while everything else scrolls
//! above it.
//!
//! The bottom row is taken out of what scrolls. What is typed and printed stays in the rest, so the
//! terminal keeps all of it to scroll back to.

use rustix::termios::tcgetwinsize;

/// A terminal with fewer rows keeps them all.
const ROWS_MIN: u16 = 4;

/// The bottom row.
#[derive(Debug, Default)]
pub(super) struct Bar {
    /// The terminal's rows, once its last one is ours.
    rows: Option<u16>,
    /// What is in it.
    text: String,
}

impl Bar {
    /// Whether there is one.
    pub(super) const fn is_there(&self) -> bool {
        self.rows.is_some()
    }

    /// Fits it to a terminal of so many rows; nothing where there is none. What to write for that.
    pub(super) fn resize(&mut self, rows: Option<u16>) -> String {
        let rows = rows.filter(|rows| *rows >= ROWS_MIN);
        if rows == self.rows {
            return String::new();
        }
        let mut out = self.close();
        if let Some(rows) = rows {
            // A line is made below the present one, so that the bottom row holds nothing; the
            // cursor's place is kept, because setting the region moves it.
            let last = rows - 1;
            out.push_str(&format!("\n\u{1b}[A\u{1b}7\u{1b}[1;{last}r\u{1b}8"));
            self.rows = Some(rows);
        }
        out
    }

    /// What to write to show a text, which is made of one line of harmless characters. Nothing
    /// where it is shown already.
    pub(super) fn draw(&mut self, text: &str) -> String {
        let Some(rows) = self.rows else { return String::new() };
        if self.text == text {
            return String::new();
        }
        text.clone_into(&mut self.text);
        // Without wrapping, so that what is too long ends at the margin.
        format!(
            "\u{1b}7\u{1b}[{rows};1H\u{1b}[?7l\u{1b}[0;7m\u{1b}[2K {text} \u{1b}[0m\u{1b}[?7h\u{1b}8"
        )
    }

    /// What to write to give the row back.
    pub(super) fn close(&mut self) -> String {
        self.text.clear();
        match self.rows.take() {
            Some(rows) => format!("\u{1b}7\u{1b}[r\u{1b}[{rows};1H\u{1b}[2K\u{1b}8"),
            None => String::new(),
        }
    }
}

/// How many rows the terminal of standard output has; nothing if it does not say.
pub(super) fn rows() -> Option<u16> {
    tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottom_row_is_taken_out_of_what_scrolls_and_given_back() {
        let mut bar = Bar::default();
        assert_eq!(bar.draw("x"), "", "there is none");
        assert!(bar.resize(Some(24)).contains("\u{1b}[1;23r"));
        assert!(bar.is_there());
        let drawn = bar.draw("live");
        assert!(
            drawn.starts_with("\u{1b}7\u{1b}[24;1H") && drawn.ends_with("\u{1b}8"),
            "{drawn:?}"
        );
        assert!(drawn.contains(" live "));
        assert_eq!(bar.draw("live"), "", "it is there already");
        let resized = bar.resize(Some(30));
        assert!(resized.contains("\u{1b}[24;1H\u{1b}[2K"), "the old row is cleared: {resized:?}");
        assert!(resized.contains("\u{1b}[1;29r"));
        assert_ne!(bar.draw("live"), "", "it is drawn in the new row");
        assert!(bar.close().contains("\u{1b}[r"));
        assert_eq!(bar.close(), "");
    }

    #[test]
    fn a_terminal_that_is_too_small_or_unknown_has_none() {
        let mut bar = Bar::default();
        for rows in [None, Some(0), Some(3)] {
            assert_eq!(bar.resize(rows), "");
            assert!(!bar.is_there());
        }
        bar.resize(Some(10));
        assert!(bar.resize(Some(2)).contains("\u{1b}[r"));
        assert!(!bar.is_there());
    }
}
