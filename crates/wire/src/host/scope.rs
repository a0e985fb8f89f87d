//! What a session may do.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! scopes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// One thing that a session may do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Scope {
            $($(#[$doc])* $name,)*
        }

        impl Scope {
            /// Every scope.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

scopes! {
    /// See threads and what happens in them.
    Read = "read";
    /// Send prompts, cancel turns, sort and delete threads.
    Write = "write";
    /// Answer an agent's permission requests.
    Approve = "approve";
    /// Use terminals.
    Terminal = "terminal";
    /// List and revoke sessions, make pairing codes.
    Sessions = "sessions";
}

/// A set of [`Scope`]s. As text: names parted by one space, in a fixed order.
///
/// Two sets are equal when they hold the same scopes, in whatever order they were written. A
/// well-formed name that this release does not know is left out when a text is read: what is left
/// may do less, never more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend(
        "maxLength" = Scopes::TEXT_MAX,
        "pattern" = "^([a-z:_-]+( [a-z:_-]+)*)?$",
        "examples" = [Scopes::all().to_string()]
    ))
)]
pub struct Scopes(#[cfg_attr(feature = "schema", schemars(with = "String"))] BTreeSet<Scope>);

/// The text is not a set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected names of [a-z:_-] parted by single spaces, at most {max} bytes", max = Scopes::TEXT_MAX)]
pub struct ScopeError;

impl Scopes {
    /// The longest text that is read, in bytes.
    pub const TEXT_MAX: usize = 256;

    /// Every scope.
    #[must_use]
    pub fn all() -> Self {
        Scope::ALL.iter().copied().collect()
    }

    /// Whether it holds this scope.
    #[must_use]
    pub fn contains(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `other` may do all of this.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// The scopes, in their fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Scope> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn parse(text: &str, separator: char) -> Result<Self, ScopeError> {
        if text.len() > Self::TEXT_MAX {
            return Err(ScopeError);
        }
        if text.is_empty() {
            return Ok(Self::default());
        }
        let mut scopes = BTreeSet::new();
        for name in text.split(separator) {
            let fits = name.bytes().all(|b| matches!(b, b'a'..=b'z' | b':' | b'_' | b'-'));
            if name.is_empty() || !fits {
                return Err(ScopeError);
            }
            scopes.extend(Scope::ALL.iter().find(|scope| scope.as_str() == name));
        }
        Ok(Self(scopes))
    }

    pub(super) fn write(&self, separator: char) -> String {
        let mut text = String::new();
        for scope in &self.0 {
            if !text.is_empty() {
                text.push(separator);
            }
            text.push_str(scope.as_str());
        }
        text
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write(' '))
    }
}

impl FromStr for Scopes {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        Self::parse(text, ' ')
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_a_set_in_a_fixed_order() {
        let one: Scopes = "write read".parse().unwrap();
        let two: Scopes = "read write read".parse().unwrap();
        assert_eq!(one, two);
        assert_eq!(one.to_string(), "read write");
        assert!(one.is_within(&Scopes::all()) && !Scopes::all().is_within(&one));
        assert_eq!(Scopes::all().to_string().parse(), Ok(Scopes::all()));
    }

    #[test]
    fn unknown_scopes_are_left_out_and_malformed_ones_refused() {
        assert_eq!("read fly".parse(), Ok(Scopes::from_iter([Scope::Read])));
        assert_eq!("".parse(), Ok(Scopes::default()));
        for bad in [" ", "read ", "read  write", "Read", "a.b", "re\u{0}ad", &"a".repeat(257)] {
            assert_eq!(bad.parse::<Scopes>(), Err(ScopeError), "{bad:?}");
        }
    }
}
