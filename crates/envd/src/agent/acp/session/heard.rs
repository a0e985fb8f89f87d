//! What an agent says.

use agent_client_protocol::v1::schema::SessionNotification;
use serde_json::Value;
use wakeful_wire::rpc::{NoticeLevel, WithdrawnWhy};

use super::{Acp, Expected, Over, describe, written};
use crate::{
    agent::{
        acp::{
            lines::{Fault, Line},
            terminals::Happened,
            update,
        },
        limits::cut_end,
    },
    thread::command::AgentUpdate,
};

impl Acp {
    pub(super) async fn line(&mut self, line: Line) -> Result<(), Over> {
        match line {
            Line::Notification { method, params } if method == "session/update" => {
                self.update(params).await
            }
            // What else an agent says is for its own clients.
            Line::Notification { .. } | Line::Noise(_) => Ok(()),
            Line::Request { id, method, params } => self.asked(id, &method, params).await,
            Line::Answer { id, result } => {
                // An answer to nobody, or a second one, is no answer.
                let Some(place) = self.expected.iter().position(|(held, _)| *held == id) else {
                    return Ok(());
                };
                let (_, expected) = self.expected.remove(place);
                self.answered(expected, result).await
            }
            Line::TooLong(bytes) => {
                let text =
                    format!("the agent sent one message of {bytes} bytes, which was left out");
                Ok(self.pen.notice(NoticeLevel::Warning, text).await?)
            }
        }
    }

    pub(super) async fn answered(
        &mut self,
        expected: Expected,
        result: Result<Value, Fault>,
    ) -> Result<(), Over> {
        match expected {
            Expected::Initialize => self.initialized(result).await,
            Expected::Session { replays, again } => self.opened(result, replays, again).await,
            Expected::Prompt => self.prompt_answered(result).await,
            Expected::Mode(mode) => match result {
                Ok(_) => Ok(self.pen.say(AgentUpdate::Mode(mode)).await?),
                Err(fault) => {
                    let text = format!("the mode was not changed: {}", describe(&fault));
                    Ok(self.pen.notice(NoticeLevel::Warning, text).await?)
                }
            },
        }
    }

    /// Asks the agent something.
    pub(super) fn request(
        &mut self,
        expected: Expected,
        method: &str,
        params: &Value,
    ) -> Result<(), Over> {
        self.next_id += 1;
        self.expected.push((self.next_id, expected));
        written(self.process.outbox.request(self.next_id, method, params))
    }

    pub(super) async fn update(&mut self, params: Value) -> Result<(), Over> {
        if self.phase.is_replaying() {
            // The thread has its own log; what an agent remembers of it is not said twice.
            return Ok(());
        }
        let session = params.get("sessionId").and_then(Value::as_str);
        if self.phase.session().is_some_and(|ours| session != Some(ours)) {
            // A session that the agent keeps for itself, such as a subagent's.
            return Ok(());
        }
        let kind = params
            .get("update")
            .and_then(|update| update.get("sessionUpdate"))
            .and_then(Value::as_str)
            .map(|kind| cut_end(kind.to_owned(), 64));
        let read = serde_json::from_value::<SessionNotification>(params);
        let Ok(read) = read else {
            if std::mem::replace(&mut self.puzzled, true) {
                return Ok(());
            }
            let kind = kind.unwrap_or_default();
            let text = format!("the agent said something that this release cannot read: `{kind}`");
            return Ok(self.pen.notice(NoticeLevel::Warning, text).await?);
        };
        let Some(update) = update::update(read.update) else { return Ok(()) };
        if let AgentUpdate::Tool(patch) = &update {
            for settled in self.permissions.tool(patch) {
                let (request, why) = (settled.request, WithdrawnWhy::SettledElsewhere);
                self.pen.say(AgentUpdate::Withdrawn { request, why }).await?;
            }
        }
        Ok(self.pen.say(update).await?)
    }

    pub(super) async fn happened(&mut self, happened: Happened) -> Result<(), Over> {
        let Happened { terminal, text, exit } = happened;
        Ok(self.pen.say(AgentUpdate::Terminal { terminal, text, exit }).await?)
    }
}
