//! What a setting's value may be, and how its written form is read.

use std::time::Duration;

use super::{
    duration,
    node::{Node, Value},
};

/// What a setting's value may be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A duration between two bounds, both allowed.
    Duration {
        /// The least.
        min: Duration,
        /// The most.
        max: Duration,
    },
    /// A whole number between two bounds, both allowed.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// True or false.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A text that passes a check.
    Text(Check),
    /// A list of texts that each pass a check. In a variable they are separated by commas.
    List(Check),
}

/// Says what is wrong with a text, as the rest of a sentence: "is not a host name".
pub type Check = fn(&str) -> Result<(), String>;

/// A setting's value, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// Of [`Kind::Duration`].
    Duration(Duration),
    /// Of [`Kind::Count`].
    Count(u64),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Choice`] and [`Kind::Text`].
    Text(String),
    /// Of [`Kind::List`].
    List(Vec<String>),
}

impl Setting {
    /// As JSON, for `wakeful config show --json`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Duration(value) => duration::text(*value).into(),
            Self::Count(value) => (*value).into(),
            Self::Flag(value) => (*value).into(),
            Self::Text(value) => value.as_str().into(),
            Self::List(values) => values.iter().map(String::as_str).collect(),
        }
    }

    /// As it is written in `wakeful.toml`.
    #[must_use]
    pub fn to_toml(&self) -> String {
        match self {
            Self::Duration(value) => quoted(&duration::text(*value)),
            Self::Count(value) => value.to_string(),
            Self::Flag(value) => value.to_string(),
            Self::Text(value) => quoted(value),
            Self::List(values) => {
                let values: Vec<_> = values.iter().map(|value| quoted(value)).collect();
                format!("[{}]", values.join(", "))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl Kind {
    /// Reads what a variable or a flag holds.
    ///
    /// # Errors
    /// What is wrong, as the rest of a sentence.
    pub fn read_text(self, text: &str) -> Result<Setting, String> {
        match self {
            Self::Count { .. } => {
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                let number = digits.then(|| text.parse().ok()).flatten();
                self.in_bounds(number.ok_or_else(|| format!("is `{text}`, not a whole number"))?)
            }
            Self::Flag => match text {
                "true" | "1" | "yes" | "on" => Ok(Setting::Flag(true)),
                "false" | "0" | "no" | "off" => Ok(Setting::Flag(false)),
                other => Err(format!("is `{other}`, not `true` or `false`")),
            },
            Self::List(_) => self.read_list(text.split(',').map(str::trim)),
            Self::Duration { .. } | Self::Choice(_) | Self::Text(_) => self.read_word(text),
        }
    }

    /// Reads the values of a flag that may be given more than once.
    ///
    /// # Errors
    /// What is wrong, as the rest of a sentence.
    pub fn read_texts(self, texts: &[String]) -> Result<Setting, String> {
        match (self, texts) {
            (Self::List(_), texts) => {
                self.read_list(texts.iter().flat_map(|text| text.split(',').map(str::trim)))
            }
            (_, [.., last]) => self.read_text(last),
            (_, []) => Err("has no value".to_owned()),
        }
    }

    /// Reads what the file holds.
    ///
    /// # Errors
    /// What is wrong, as the rest of a sentence.
    pub(crate) fn read_node(self, node: &Node) -> Result<Setting, String> {
        match (self, &node.value) {
            (Self::Count { .. }, Value::Integer(number)) => {
                let number = u64::try_from(*number);
                self.in_bounds(number.map_err(|_| "must not be negative".to_owned())?)
            }
            (Self::Flag, Value::Flag(flag)) => Ok(Setting::Flag(*flag)),
            (Self::Duration { .. } | Self::Choice(_) | Self::Text(_), Value::Text(text)) => {
                self.read_word(text)
            }
            (Self::List(_), Value::List(items)) => {
                let texts: Option<Vec<_>> = items.iter().map(Node::as_text).collect();
                self.read_list(texts.ok_or("must hold strings only")?.into_iter())
            }
            (_, other) => Err(format!("is {}, but must be {}", other.kind(), self.name())),
        }
    }

    /// What it is, for messages and the reference page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duration { .. } => "a duration in quotes",
            Self::Count { .. } => "a whole number",
            Self::Flag => "true or false",
            Self::Choice(_) | Self::Text(_) => "a string",
            Self::List(_) => "a list of strings",
        }
    }

    fn read_word(self, text: &str) -> Result<Setting, String> {
        match self {
            Self::Duration { min, max } => {
                let value =
                    duration::parse(text).map_err(|why| format!("is `{text}`: it {why}"))?;
                if value < min || value > max {
                    let (min, max) = (duration::text(min), duration::text(max));
                    return Err(format!("is `{text}`, but must lie between {min} and {max}"));
                }
                Ok(Setting::Duration(value))
            }
            Self::Choice(words) => match words.iter().find(|word| **word == text) {
                Some(word) => Ok(Setting::Text((*word).to_owned())),
                None => {
                    let suggestion = super::nearest::suggestion(text, words.iter().copied());
                    let words = words.join("`, `");
                    Err(format!("is `{text}`, but must be one of `{words}`{suggestion}"))
                }
            },
            Self::Text(check) => {
                check(text)?;
                Ok(Setting::Text(text.to_owned()))
            }
            Self::Count { .. } | Self::Flag | Self::List(_) => Err("is not a word".to_owned()),
        }
    }

    fn read_list<'a>(self, texts: impl Iterator<Item = &'a str>) -> Result<Setting, String> {
        let Self::List(check) = self else { return Err("is not a list".to_owned()) };
        let mut values = Vec::new();
        for text in texts.filter(|text| !text.is_empty()) {
            check(text)?;
            values.push(text.to_owned());
        }
        Ok(Setting::List(values))
    }

    fn in_bounds(self, number: u64) -> Result<Setting, String> {
        match self {
            Self::Count { min, max } if number < min || number > max => {
                Err(format!("is {number}, but must lie between {min} and {max}"))
            }
            Self::Count { .. }
            | Self::Duration { .. }
            | Self::Flag
            | Self::Choice(_)
            | Self::Text(_)
            | Self::List(_) => Ok(Setting::Count(number)),
        }
    }
}
