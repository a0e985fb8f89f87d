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
}

impl Typed {
    /// Reads a line. Numbers are answers only while something is asked.
    pub(super) fn read(line: &str, asked: bool) -> Self {
        let text = line.trim();
        if text.is_empty() {
            return Self::Nothing;
        }
        let (number, remember) = match text.strip_suffix('!') {
            Some(number) => (number.trim_end(), true),
            None => (text, false),
        };
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        match number.parse() {
            Ok(number) if asked && digits => Self::Option(number, remember),
            Ok(_) | Err(_) => Self::Prompt(text.to_owned()),
        }
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
            ("99999999999999999999999", true, Typed::Prompt("99999999999999999999999".to_owned())),
        ];
        for (line, asked, typed) in cases {
            assert_eq!(Typed::read(line, asked), typed, "{line:?} {asked}");
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
