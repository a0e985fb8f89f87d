//! Why something did not work, and what may be done about it.

use std::{fmt, time::Duration};

use wakeful_wire::Phase;

/// What a failure means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// It may work later without anybody changing anything: the supervisor tries again.
    Transient,
    /// It cannot work until something changes: no attempt until a person or a signal comes.
    Blocked,
    /// The environment sleeps. Not an error, and no reason for an attempt: it wakes when somebody
    /// needs it.
    Asleep,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $class:ident;)*) => {
        /// Why something did not work.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum FailureReason {
            $($(#[$doc])* $name,)*
        }

        impl FailureReason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What it means for the next attempt.
            #[must_use]
            pub const fn class(self) -> FailureClass {
                match self { $(Self::$name => FailureClass::$class,)* }
            }
        }
    };
}

reasons! {
    /// No connection could be made.
    Network = "network", Transient;
    /// It took too long.
    Timeout = "timeout", Transient;
    /// The socket broke, closed, or never opened.
    Transport = "transport", Transient;
    /// The environment is on its way: starting, restarting, or about to sleep.
    Starting = "starting", Transient;
    /// The platform on the way does not answer as one does.
    Platform = "platform", Transient;
    /// The host answers, but not with what was asked for.
    Remote = "remote", Transient;
    /// Too much is asked for; the answer says when to come back.
    Overloaded = "overloaded", Transient;
    /// Sign-in, or pairing, is needed.
    Authentication = "authentication", Blocked;
    /// It is not allowed.
    Permission = "permission", Blocked;
    /// What is known of the host is wrong: another host answers, or none can be there.
    Configuration = "configuration", Blocked;
    /// One of the two is too old for the other.
    Unsupported = "unsupported", Blocked;
    /// The environment cannot be used as it is: it failed, is disabled, or was deleted.
    Unusable = "unusable", Blocked;
    /// The environment sleeps.
    Asleep = "asleep", Asleep;
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why something did not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} ({reason})")]
pub struct Failure {
    /// Why, for programs.
    pub reason: FailureReason,
    /// What happened, in a sentence for people. Holds no secret. It may hold words of the other
    /// side: whoever shows it makes it printable.
    pub detail: String,
    /// Not before this much time has passed, where the other side said so.
    pub retry_after: Option<Duration>,
    /// The environment's phase, where it was said.
    pub phase: Option<Phase>,
}

impl Failure {
    /// A failure with a sentence for people.
    #[must_use]
    pub fn new(reason: FailureReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), retry_after: None, phase: None }
    }

    /// What it means for the next attempt.
    #[must_use]
    pub const fn class(&self) -> FailureClass {
        self.reason.class()
    }
}
