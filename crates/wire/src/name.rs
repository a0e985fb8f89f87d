//! Validated names. A name that exists is fit for a host label, a path and a directory.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("must not be empty")]
    Empty,
    /// More characters than the kind of name allows.
    #[error("must have at most {max} characters")]
    TooLong {
        /// The most that this kind of name may have.
        max: usize,
    },
    /// A character outside `[a-z0-9-]`, or a dash at either end.
    #[error("may hold lower-case letters, digits and dashes, and no dash at either end")]
    Character,
    /// The name means something to the platform itself.
    #[error("is reserved")]
    Reserved,
}

fn check(text: &str, max: usize, reserved: &[&str]) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > max {
        return Err(NameError::TooLong { max });
    }
    let fits = text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if !fits || text.starts_with('-') || text.ends_with('-') {
        return Err(NameError::Character);
    }
    if reserved.contains(&text) {
        return Err(NameError::Reserved);
    }
    Ok(())
}

/// What every name looks like, as a regular expression.
#[cfg(feature = "schema")]
const NAME_PATTERN: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, max $max:expr, reserved $reserved:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String))]
        #[cfg_attr(
            feature = "schema",
            derive(schemars::JsonSchema),
            schemars(extend("minLength" = 1, "maxLength" = $max, "pattern" = NAME_PATTERN))
        )]
        pub struct $name(#[cfg_attr(feature = "schema", schemars(with = "String"))] Arc<str>);

        impl $name {
            /// The most characters that it may have.
            pub const MAX: usize = $max;

            /// Checks a text and makes a name of it.
            ///
            /// # Errors
            /// What is wrong with the text, to be shown to whoever gave it.
            pub fn new(text: &str) -> Result<Self, NameError> {
                check(text, $max, &$reserved)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::new(&text).map_err(|error| {
                    serde::de::Error::custom(format_args!("`{text}` {error}"))
                })
            }
        }
    };
}

name! {
    /// A user's name.
    UserName, max 32, reserved []
}
name! {
    /// An environment's slug, unique in its project. A DNS label holds the id (36), a dash and the
    /// slug, hence its length.
    Slug, max 26, reserved []
}
name! {
    /// A surface: a way into an environment. `host` is the environment server's own route.
    SurfaceName, max 26, reserved ["host"]
}
name! {
    /// A template's name.
    TemplateName, max 40, reserved []
}

impl SurfaceName {
    /// Checks a text that names something to reach, where `host` may stand beside what templates
    /// declare.
    ///
    /// # Errors
    /// As for [`Self::new`], which is for declarations.
    pub fn addressed(text: &str) -> Result<Self, NameError> {
        let host = Self::host();
        if text == host.as_str() { Ok(host) } else { Self::new(text) }
    }

    /// The agent surface, path-routed.
    #[must_use]
    pub fn agent() -> Self {
        Self("agent".into())
    }

    /// The app surface, with hosts of its own.
    #[must_use]
    pub fn app() -> Self {
        Self("app".into())
    }

    /// The reserved surface of the environment server itself. It cannot be declared by a template.
    #[must_use]
    pub fn host() -> Self {
        Self("host".into())
    }
}

/// Reads a surface in a message about a running environment, where it may be `host`
/// ([`SurfaceName::addressed`]).
pub(crate) fn addressed<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SurfaceName, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    SurfaceName::addressed(&text)
        .map_err(|error| serde::de::Error::custom(format_args!("`{text}` {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_addressed_and_never_declared() {
        assert_eq!(SurfaceName::addressed("host"), Ok(SurfaceName::host()));
        assert_eq!(SurfaceName::addressed("app"), Ok(SurfaceName::app()));
        assert_eq!(SurfaceName::addressed("Host"), Err(NameError::Character));
        assert!(serde_json::from_str::<SurfaceName>(r#""host""#).is_err());
        let dial = r#"{"dial":{"surface":"host"}}"#;
        let dial: crate::sandbox::AskKind = serde_json::from_str(dial).unwrap();
        assert_eq!(dial, crate::sandbox::AskKind::Dial { surface: SurfaceName::host() });
    }

    #[test]
    fn names_hold_only_what_a_host_label_holds() {
        for good in ["a", "dev", "a-b", "0", "abcdefghijklmnopqrstuvwxyz"] {
            assert!(Slug::new(good).is_ok(), "{good}");
        }
        let table = [
            ("", NameError::Empty),
            ("abcdefghijklmnopqrstuvwxyz0", NameError::TooLong { max: 26 }),
            ("Dev", NameError::Character),
            ("a_b", NameError::Character),
            ("-a", NameError::Character),
            ("a-", NameError::Character),
            ("a.b", NameError::Character),
            ("é", NameError::Character),
        ];
        for (bad, why) in table {
            assert_eq!(Slug::new(bad), Err(why), "{bad}");
        }
        assert_eq!(SurfaceName::new("host"), Err(NameError::Reserved));
    }
}
