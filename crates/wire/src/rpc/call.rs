//! The methods of a host's socket.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ClientId, Cursor, Omissions, Prompt, Remember, RequestId, Seq, ThreadId, TurnId};
use crate::{HostSessionId, Timestamp, host::Scope};

/// Why a request was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// This release has no such method.
    #[error("this host does not know the method `{0}`")]
    UnknownMethod(String),
    /// The parameters do not fit the method.
    #[error("{0}")]
    Params(String),
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($params:ty) = $method:literal, $scope:ident, $answer:literal;)*) => {
        /// Something that a client asks of a host over its socket.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "method", content = "params")]
        pub enum Call {
            $($(#[$doc])* #[serde(rename = $method)] $name($params),)*
        }

        impl Call {
            /// Every method, the scope that it needs, and the type that answers it: of the
            /// response, or (`stream …`) of each item.
            pub const METHODS: &'static [(&'static str, Scope, &'static str)] =
                &[$(($method, Scope::$scope, $answer),)*];

            /// The method's name.
            #[must_use]
            pub const fn method(&self) -> &'static str {
                match self { $(Self::$name(_) => $method,)* }
            }

            /// What a session must be allowed to do to make this call.
            #[must_use]
            pub const fn scope(&self) -> Scope {
                match self { $(Self::$name(_) => Scope::$scope,)* }
            }
        }
    };
}

calls! {
    /// Follows the list.
    ShellSubscribe(ShellSubscribe) = "shell.subscribe", Read, "stream ShellItem";
    /// Follows a thread.
    ThreadSubscribe(ThreadSubscribe) = "thread.subscribe", Read, "stream ThreadItem";
    /// Follows the list of sessions.
    SessionSubscribe(Empty) = "session.subscribe", Sessions, "stream SessionItem";
    /// Makes a thread, with its first prompt if there is one.
    ThreadCreate(ThreadCreate) = "thread.create", Write, "Taken";
    /// Gives a thread a title.
    ThreadRename(ThreadRename) = "thread.rename", Write, "Taken";
    /// Pins a thread, or no longer.
    ThreadPin(ThreadPin) = "thread.pin", Write, "Taken";
    /// Puts a thread aside until a moment, or brings it back.
    ThreadSnooze(ThreadSnooze) = "thread.snooze", Write, "Taken";
    /// Puts a thread aside as done, or no longer.
    ThreadSettle(ThreadSettle) = "thread.settle", Write, "Taken";
    /// Takes a thread and its subagents out of the list.
    ThreadArchive(OneThread) = "thread.archive", Write, "Taken";
    /// Brings a thread back from the archive.
    ThreadRestore(OneThread) = "thread.restore", Write, "Taken";
    /// Deletes a thread and its subagents.
    ThreadDelete(OneThread) = "thread.delete", Write, "Taken";
    /// Sends a prompt. Taken once per client id, however often it is sent.
    ThreadPrompt(ThreadPrompt) = "thread.prompt", Write, "Taken";
    /// Takes a waiting prompt back.
    ThreadUnqueue(ThreadUnqueue) = "thread.unqueue", Write, "Taken";
    /// Lets waiting prompts go on after a turn that did not complete.
    ThreadRelease(OneThread) = "thread.release", Write, "Taken";
    /// Asks the running turn to end.
    ThreadCancel(ThreadCancel) = "thread.cancel", Write, "Taken";
    /// Answers a permission that an agent asks for.
    ThreadAnswer(AnswerPermission) = "thread.answer", Approve, "Taken";
    /// Forgets a remembered answer.
    ThreadForget(ThreadForget) = "thread.forget", Approve, "Taken";
    /// Asks for another mode of the agent.
    ThreadMode(ThreadMode) = "thread.mode", Approve, "Taken";
    /// A person is looking at this host: it counts as in use just now.
    Activity(Empty) = "activity", Read, "Empty";
    /// Revokes a session: its sockets close and its credentials are dead.
    SessionRevoke(SessionRevoke) = "session.revoke", Sessions, "Empty";
    /// Revokes every session but the caller's own.
    SessionRevokeOthers(Empty) = "session.revoke_others", Sessions, "Empty";
}

impl Call {
    /// Understands a request.
    ///
    /// # Errors
    /// If the method is unknown or the parameters do not fit it.
    pub fn read(method: &str, params: Value) -> Result<Self, CallError> {
        if !Self::METHODS.iter().any(|(known, _, _)| *known == method) {
            return Err(CallError::UnknownMethod(method.chars().take(64).collect()));
        }
        let params = if params.is_null() { json!({}) } else { params };
        serde_json::from_value(json!({ "method": method, "params": params }))
            .map_err(|error| CallError::Params(error.to_string()))
    }

    /// The parameters, as a request carries them.
    ///
    /// # Panics
    /// Never: every parameter is plain data.
    #[must_use]
    pub fn params(&self) -> Value {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut fields)) => fields.remove("params").unwrap_or_default(),
            Ok(_) | Err(_) => Value::Null,
        }
    }

    /// Whether it is answered by items.
    #[must_use]
    pub const fn is_subscription(&self) -> bool {
        matches!(
            self,
            Self::ShellSubscribe(_) | Self::ThreadSubscribe(_) | Self::SessionSubscribe(_)
        )
    }
}

macro_rules! params {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* })*
    };
}

params! {
    /// Nothing.
    Empty {}
    /// Parameters of `shell.subscribe`.
    ShellSubscribe {
        /// What the client holds, if that was loaded with the same `omit`; absent: it gets a
        /// snapshot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
        /// Which rows may be left out.
        #[serde(default)]
        omit: Omissions,
    }
}

/// Declares parameters that name something without which there is no default.
macro_rules! named_params {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* })*
    };
}

named_params! {
    /// Parameters of `thread.subscribe`.
    ThreadSubscribe {
        /// The thread.
        thread: ThreadId,
        /// What the client holds; absent: it gets a snapshot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    }
    /// Names a thread.
    OneThread {
        /// The thread.
        thread: ThreadId,
    }
    /// Parameters of `thread.create`.
    ThreadCreate {
        /// Its id, drawn by the client: sent again, the request makes one thread.
        thread: ThreadId,
        /// The thread that it is a subagent of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ThreadId>,
        /// The directory of the workspace that it works in; empty: the workspace itself.
        #[serde(default)]
        project: String,
        /// The agent's name; absent: the host's default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Its first prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<Prompt>,
    }
    /// Parameters of `thread.rename`.
    ThreadRename {
        /// The thread.
        thread: ThreadId,
        /// The title.
        title: String,
    }
    /// Parameters of `thread.pin`.
    ThreadPin {
        /// The thread.
        thread: ThreadId,
        /// Whether it is to be pinned.
        pinned: bool,
    }
    /// Parameters of `thread.snooze`.
    ThreadSnooze {
        /// The thread.
        thread: ThreadId,
        /// Until when; absent: it comes back now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    }
    /// Parameters of `thread.settle`.
    ThreadSettle {
        /// The thread.
        thread: ThreadId,
        /// Whether it is to be settled.
        settled: bool,
    }
    /// Parameters of `thread.prompt`.
    ThreadPrompt {
        /// The thread.
        thread: ThreadId,
        /// The prompt.
        prompt: Prompt,
    }
    /// Parameters of `thread.unqueue`.
    ThreadUnqueue {
        /// The thread.
        thread: ThreadId,
        /// The prompt.
        client: ClientId,
    }
    /// Parameters of `thread.cancel`.
    ThreadCancel {
        /// The thread.
        thread: ThreadId,
        /// The turn; absent: whichever runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
    }
    /// Parameters of `thread.answer`.
    AnswerPermission {
        /// The thread.
        thread: ThreadId,
        /// The request.
        request: RequestId,
        /// The option, by the agent's id.
        option: String,
        /// How far the answer is remembered; absent: not at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<Remember>,
    }
    /// Parameters of `thread.mode`.
    ThreadMode {
        /// The thread.
        thread: ThreadId,
        /// The mode, by the agent's id.
        mode: String,
    }
    /// Parameters of `session.revoke`.
    SessionRevoke {
        /// The session.
        session: HostSessionId,
    }
    /// What came of a command.
    Taken {
        /// The newest event that it caused; for a repeated prompt, the one that took it. It is
        /// durable.
        seq: Seq,
        /// The thread it was about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread: Option<ThreadId>,
        /// Whether it caused anything now.
        changed: bool,
    }
}

/// Parameters of `thread.forget`: where the answer holds, and what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum ThreadForget {
    /// In one thread.
    Thread {
        /// The thread.
        thread: ThreadId,
        /// What was asked.
        key: String,
    },
    /// In every thread of a project and an agent.
    Project {
        /// The project.
        project: String,
        /// The agent.
        agent: String,
        /// What was asked.
        key: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_survives_the_way_through_a_request() {
        let call = Call::ThreadRename(ThreadRename {
            thread: "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50".parse().unwrap(),
            title: "Dishes".to_owned(),
        });
        assert_eq!(Call::read(call.method(), call.params()).unwrap(), call);
        let subscribe = Call::ShellSubscribe(ShellSubscribe::default());
        assert_eq!(Call::read("shell.subscribe", Value::Null).unwrap(), subscribe);
    }

    #[test]
    fn an_unknown_method_is_told_from_wrong_parameters() {
        let unknown = Call::read("thread.dance", Value::Null).unwrap_err();
        assert_eq!(unknown, CallError::UnknownMethod("thread.dance".to_owned()));
        let wrong = Call::read("thread.rename", json!({ "thread": 4 })).unwrap_err();
        assert!(matches!(wrong, CallError::Params(_)));
    }

    #[test]
    fn a_field_of_a_newer_client_is_ignored() {
        let params = json!({ "omit": {}, "loudness": 11 });
        let subscribe = Call::ShellSubscribe(ShellSubscribe::default());
        assert_eq!(Call::read("shell.subscribe", params).unwrap(), subscribe);
    }
}
