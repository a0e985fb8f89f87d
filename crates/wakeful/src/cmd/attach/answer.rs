//! What a person types, and what a rule answers.

use wakeful_wire::rpc::{PermissionOption, PermissionOptionKind};

use super::args::Approve;

/// What a typed line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// Nothing.
    Nothing,
    /// The option of this number, from 1; and whether it is to be remembered for the thread.
    Option(usize, bool),
    /// A prompt.
    Prompt(String),
    /// A command of this view.
    Command(Command),
    /// The word of a command, with something behind it that the command does not take.
    Misused(String),
}

/// The words of this view's commands.
const WORDS: &[&str] = &[
    "help", "threads", "switch", "queue", "unqueue", "release", "cancel", "allow", "deny", "older",
    "retry", "wake", "quit",
];

/// What a person can tell this view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// What there is to tell.
    Help,
    /// The threads.
    Threads,
    /// Another thread: its number in the list, or its id or the beginning of one.
    Switch(String),
    /// The prompts that wait.
    Queue,
    /// Takes the waiting prompt of this number, from 1, out of the queue.
    Unqueue(String),
    /// Lets waiting prompts go on.
    Release,
    /// Ends the running turn.
    Cancel,
    /// Answers what is asked; whether it is to be remembered for the thread.
    Answer(Approve, bool),
    /// Earlier content.
    Older,
    /// Tries to connect now.
    Retry,
    /// Wakes the environment.
    Wake,
    /// Leaves.
    Quit,
}

/// What `/help` says.
pub(super) const HELP: &str = "\
/threads           list the threads        /switch N     go to another: its number, or its id
/queue             prompts that wait       /unqueue N    take one out      /release  let them go on
/allow  /deny      answer what is asked; with `!` behind it, remembered for this thread
/cancel            end the running turn    /older        show what is earlier
/wake              wake the environment    /retry        connect now
/quit              leave (also Ctrl-D)     //word        a line for the agent that begins with /
Every other line is a prompt for the agent. Ctrl-C ends the running turn, twice it leaves.";

impl Typed {
    /// Reads a line. Numbers are answers only while something is asked. What begins with a slash
    /// and is none of our words is for the agent, which may have commands of its own.
    pub(super) fn read(line: &str, asked: bool) -> Self {
        let text = line.trim();
        if text.is_empty() {
            return Self::Nothing;
        }
        if let Some(rest) = text.strip_prefix('/') {
            if rest.starts_with('/') {
                return Self::Prompt(rest.to_owned());
            }
            if let Some(command) = Command::read(rest) {
                return Self::Command(command);
            }
            return Self::odd(text, rest, asked);
        }
        Self::number(text, asked).unwrap_or_else(|| Self::Prompt(text.to_owned()))
    }

    /// The number of an answer, if it is one.
    fn number(text: &str, asked: bool) -> Option<Self> {
        let (number, remember) = match text.strip_suffix('!') {
            Some(number) => (number.trim_end(), true),
            None => (text, false),
        };
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok()?;
        (asked && digits).then_some(Self::Option(number, remember))
    }

    /// A line behind a slash that is no command: an agent may have commands of its own, but a word
    /// of ours that is used otherwise was meant for us.
    fn odd(text: &str, rest: &str, asked: bool) -> Self {
        let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let word = word.trim_end_matches('!');
        if word == "allow"
            && let Some(option) = Self::number(argument.trim(), asked)
        {
            return option;
        }
        if WORDS.contains(&word) {
            Self::Misused(word.to_owned())
        } else {
            Self::Prompt(text.to_owned())
        }
    }
}

impl Command {
    /// Reads what stands behind the slash.
    fn read(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let (word, remember) = match word.strip_suffix('!') {
            Some(word) => (word, true),
            None => (word, rest == "!"),
        };
        let alone = rest.is_empty() && !remember;
        Some(match word {
            "allow" if rest.is_empty() || rest == "!" => Self::Answer(Approve::Allow, remember),
            "deny" if rest.is_empty() || rest == "!" => Self::Answer(Approve::Reject, remember),
            "switch" if !rest.is_empty() => Self::Switch(rest.to_owned()),
            "unqueue" if !rest.is_empty() => Self::Unqueue(rest.to_owned()),
            "help" | "?" if alone => Self::Help,
            // Without its argument it cannot be meant for the agent either.
            "threads" | "switch" if alone => Self::Threads,
            "queue" | "unqueue" if alone => Self::Queue,
            "release" if alone => Self::Release,
            "cancel" if alone => Self::Cancel,
            "older" if alone => Self::Older,
            "retry" if alone => Self::Retry,
            "wake" if alone => Self::Wake,
            "quit" if alone => Self::Quit,
            _ => return None,
        })
    }
}

impl Approve {
    /// The option that fits: the narrower one first. Nothing if none does.
    pub(super) fn choose(self, options: &[PermissionOption]) -> Option<&PermissionOption> {
        use PermissionOptionKind as Kind;
        let kinds = match self {
            Self::Allow => [Kind::AllowOnce, Kind::AllowAlways],
            Self::Reject => [Kind::RejectOnce, Kind::RejectAlways],
        };
        kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_answers_while_something_is_asked_and_is_a_prompt_otherwise() {
        let cases = [
            ("", true, Typed::Nothing),
            ("  \n", false, Typed::Nothing),
            ("2\n", true, Typed::Option(2, false)),
            (" 1! ", true, Typed::Option(1, true)),
            ("1 !", true, Typed::Option(1, true)),
            ("2", false, Typed::Prompt("2".to_owned())),
            ("1!", false, Typed::Prompt("1!".to_owned())),
            ("+1", true, Typed::Prompt("+1".to_owned())),
            ("!", true, Typed::Prompt("!".to_owned())),
            ("2 files", true, Typed::Prompt("2 files".to_owned())),
            ("/compact", true, Typed::Prompt("/compact".to_owned())),
            ("/cancel the order", false, Typed::Misused("cancel".to_owned())),
            ("/allow 2", true, Typed::Option(2, false)),
            ("/allow 2", false, Typed::Misused("allow".to_owned())),
            ("/quit!", false, Typed::Misused("quit".to_owned())),
            ("//threads", false, Typed::Prompt("/threads".to_owned())),
            ("99999999999999999999999", true, Typed::Prompt("99999999999999999999999".to_owned())),
        ];
        for (line, asked, typed) in cases {
            assert_eq!(Typed::read(line, asked), typed, "{line:?} {asked}");
        }
    }

    #[test]
    fn a_word_behind_a_slash_is_a_command() {
        let cases = [
            ("/help", Command::Help),
            ("/threads", Command::Threads),
            (" /switch  2 ", Command::Switch("2".to_owned())),
            ("/switch", Command::Threads),
            ("/switch 0199f0a0", Command::Switch("0199f0a0".to_owned())),
            ("/queue", Command::Queue),
            ("/unqueue 1", Command::Unqueue("1".to_owned())),
            ("/release", Command::Release),
            ("/cancel", Command::Cancel),
            ("/allow", Command::Answer(Approve::Allow, false)),
            ("/allow!", Command::Answer(Approve::Allow, true)),
            ("/deny !", Command::Answer(Approve::Reject, true)),
            ("/older", Command::Older),
            ("/retry", Command::Retry),
            ("/wake", Command::Wake),
            ("/quit", Command::Quit),
        ];
        for (line, command) in cases {
            assert_eq!(Typed::read(line, false), Typed::Command(command), "{line:?}");
            let word =
                line.trim().split_once([' ', '!']).map_or_else(|| line.trim(), |(word, _)| word);
            assert!(HELP.contains(word) || word == "/help", "{word} is not explained");
        }
    }

    #[test]
    fn the_narrower_option_is_chosen_first() {
        use PermissionOptionKind as Kind;
        let option = |kind| PermissionOption { id: format!("{kind:?}"), name: String::new(), kind };
        let all =
            [Kind::Other, Kind::RejectAlways, Kind::AllowAlways, Kind::AllowOnce, Kind::RejectOnce]
                .map(option);
        let chosen = |approve: Approve, options: &[PermissionOption]| {
            approve.choose(options).map(|option| option.kind)
        };
        assert_eq!(chosen(Approve::Allow, &all), Some(Kind::AllowOnce));
        assert_eq!(chosen(Approve::Reject, &all), Some(Kind::RejectOnce));
        assert_eq!(chosen(Approve::Allow, &all[..3]), Some(Kind::AllowAlways));
        assert_eq!(chosen(Approve::Reject, &all[..3]), Some(Kind::RejectAlways));
        assert_eq!(chosen(Approve::Allow, &all[..2]), None);
    }
}
