//! Text of agents and their programs, made unable to steer a terminal.

/// The longest control sequence that is left out as one; what is longer is text again.
const SEQUENCE_MAX: usize = 4_096;

/// Makes a text that comes in pieces harmless: control sequences are left out whole, also where
/// they are cut in two; line ends and tabs stay; every other control character, and those that
/// turn the direction of writing, become U+FFFD.
#[derive(Debug, Default)]
pub(super) struct Harmless {
    state: State,
    length: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After a carriage return, which ends a line by itself or with the line feed behind it.
    Return,
    /// After an escape.
    Escape,
    /// In a control sequence: up to its final letter.
    Control,
    /// In a command of the operating system and the like: up to a bell or a string terminator.
    Command,
    /// After an escape in such a command.
    CommandEscape,
}

impl Harmless {
    /// The next piece, as it can be shown.
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            self.character(c, &mut shown);
        }
        shown
    }

    fn character(&mut self, c: char, shown: &mut String) {
        self.length = if self.state == State::Text { 0 } else { self.length + 1 };
        if self.length > SEQUENCE_MAX {
            self.state = State::Text;
        }
        self.state = match (self.state, c) {
            // A line end ends whatever was begun: nothing hides more than the rest of a line.
            (State::Return, '\n') => State::Text,
            (_, '\n') => {
                shown.push('\n');
                State::Text
            }
            (State::Text | State::Return, c) => ground(c, shown),
            (State::Escape, '[') => State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Command,
            (State::Escape, ' '..='/') => State::Escape,
            (State::Escape, _) => State::Text,
            (State::Control, '\u{40}'..='\u{7e}') => State::Text,
            (State::Control, '\u{20}'..='\u{3f}') => State::Control,
            (State::Control, c) => ground(c, shown),
            (State::Command, '\u{7}' | '\u{9c}') | (State::CommandEscape, '\\') => State::Text,
            (State::Command | State::CommandEscape, '\u{1b}') => State::CommandEscape,
            (State::Command | State::CommandEscape, _) => State::Command,
        };
    }
}

fn ground(c: char, shown: &mut String) -> State {
    match c {
        '\u{1b}' => State::Escape,
        '\u{9b}' => State::Control,
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => State::Command,
        '\r' => {
            shown.push('\n');
            State::Return
        }
        '\t' => {
            shown.push('\t');
            State::Text
        }
        c if c.is_control() || turns(c) => {
            shown.push('\u{fffd}');
            State::Text
        }
        c => {
            shown.push(c);
            State::Text
        }
    }
}

/// Whether it changes the direction of the writing behind it.
const fn turns(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A whole text, harmless.
pub(super) fn harmless(text: &str) -> String {
    Harmless::default().push(text)
}

/// A text in one line of at most `max` characters, harmless.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    for (count, c) in harmless(text).trim().chars().enumerate() {
        if count == max {
            line.push('…');
            break;
        }
        line.push(if matches!(c, '\n' | '\t') { ' ' } else { c });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_left_out_and_lines_stay() {
        let cases = [
            ("plain\ttext\nü", "plain\ttext\nü"),
            ("a\r\nb", "a\nb"),
            ("50%\r100%", "50%\n100%"),
            ("\u{1b}[31;1mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}(Bx\u{1b}=y", "xy"),
            ("\u{9b}2Jx", "x"),
            ("bell\u{7}back\u{8}", "bell\u{fffd}back\u{fffd}"),
            ("ab\u{202e}cd", "ab\u{fffd}cd"),
            ("\u{1b}]0;never ended\nnext", "\nnext"),
        ];
        for (text, shown) in cases {
            assert_eq!(harmless(text), shown, "{text:?}");
        }
    }

    #[test]
    fn it_does_not_matter_where_a_text_is_cut() {
        let text = "a\u{1b}[31mb\u{1b}]0;t\u{1b}\\c\r\nd\re\u{9d}x\u{9c}\u{1b}[";
        let whole = harmless(text);
        for (at, _) in text.char_indices() {
            let (head, tail) = text.split_at(at);
            let mut pieces = Harmless::default();
            assert_eq!(pieces.push(head) + &pieces.push(tail), whole, "cut at {at}");
        }
        assert!(!whole.contains('\u{1b}'));
    }

    #[test]
    fn a_sequence_without_end_does_not_swallow_all_that_follows() {
        let text = format!("\u{1b}]{}end", "x".repeat(2 * SEQUENCE_MAX));
        assert!(harmless(&text).ends_with("end"));
    }

    #[test]
    fn a_line_is_one_line_and_bounded() {
        assert_eq!(one_line(" a\nb\tc\u{1b}[2J ", 10), "a b c");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
