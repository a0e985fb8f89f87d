//! Typed ids. Each kind of thing has its own type, so that one is never taken for another.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The text was not a lower-case hyphenated UUID of 36 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id: expected a lower-case UUID of 36 characters")]
pub struct IdError;

fn parse(text: &str) -> Result<Uuid, IdError> {
    // Only the canonical spelling is an id: an id is also a host label, a directory name and a
    // cache key, and two spellings of one id would be two of each.
    let shape =
        text.len() == 36 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-'));
    if !shape {
        return Err(IdError);
    }
    let id = Uuid::try_parse(text).map_err(|_| IdError)?;
    let mut canonical = Uuid::encode_buffer();
    if id.hyphenated().encode_lower(&mut canonical) == text { Ok(id) } else { Err(IdError) }
}

/// What every id looks like, as a regular expression.
#[cfg(feature = "schema")]
const ID_PATTERN: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(
            feature = "openapi",
            derive(utoipa::ToSchema),
            schema(value_type = String, format = "uuid")
        )]
        #[cfg_attr(
            feature = "schema",
            derive(schemars::JsonSchema),
            schemars(extend("format" = "uuid", "pattern" = ID_PATTERN))
        )]
        pub struct $name(#[cfg_attr(feature = "schema", schemars(with = "String"))] Uuid);

        impl $name {
            /// Makes an id of a UUID that the caller drew.
            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID itself.
            #[must_use]
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0.hyphenated(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                parse(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

uuid_id! {
    /// An environment: what runs. The Development environment's id equals its project's.
    EnvId
}
uuid_id! {
    /// A project: the durable shell that a user owns.
    ProjectId
}
uuid_id! {
    /// One incarnation of a running environment. A new start has a new uid, so nothing that is
    /// keyed by it (a pooled connection, a cached verdict) can outlive its sandbox unnoticed.
    SandboxUid
}
uuid_id! {
    /// Who holds leases: one gateway process or one `envd`, new at each start of it.
    HolderId
}
uuid_id! {
    /// An environment server. An environment's own has its environment's id.
    HostId
}
uuid_id! {
    /// A session of an environment server: what its access tokens and sockets stand for.
    HostSessionId
}
uuid_id! {
    /// A grant of the control plane to enter an environment's host once.
    GrantId
}

uuid_id! {
    /// A thread: one conversation log on a host.
    ThreadId
}
uuid_id! {
    /// One turn of an agent in a thread.
    TurnId
}
uuid_id! {
    /// Drawn by a client for one prompt. The host takes a prompt with the same id once, however
    /// often it is sent.
    ClientId
}
uuid_id! {
    /// A permission that an agent asked for.
    RequestId
}

impl From<ProjectId> for EnvId {
    /// The Development environment of a project.
    fn from(project: ProjectId) -> Self {
        Self(project.0)
    }
}

impl From<EnvId> for HostId {
    /// The host inside an environment.
    fn from(env: EnvId) -> Self {
        Self(env.0)
    }
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = u64))]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The next value.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

counter! {
    /// Version of an environment's record. Every commit raises it; a commit names the one that it
    /// was planned from and loses if the record has moved on.
    Generation
}
counter! {
    /// Counts touches and lease reports. They do not change the generation, so a suspend commits
    /// on both.
    ActivitySeq
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_spelling_is_an_id() {
        let good = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
        assert_eq!(good.parse::<EnvId>().unwrap().to_string(), good);
        for bad in [
            "",
            "0199F0A0-7B5C-7C3E-9D2F-6A1B2C3D4E5F",
            "0199f0a07b5c7c3e9d2f6a1b2c3d4e5f",
            "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5",
            "{199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5}",
            "0199f0a07-b5c-7c3e-9d2f-6a1b2c3d4e5f",
        ] {
            assert!(bad.parse::<EnvId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_development_environment_has_its_projects_id() {
        let project: ProjectId = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap();
        assert_eq!(EnvId::from(project).to_string(), project.to_string());
    }
}
