//! The turn of a session: at most one, ended exactly once.

use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, PromptRequest, ResourceLink, TextContent,
};
use serde_json::Value;
use tokio::time::Instant;
use wakeful_wire::rpc::{Outcome, Prompt, PromptPart, StopReason, TurnId, Usage, WithdrawnWhy};

use super::{Acp, Expected, Fault, Over, describe, opening::params, written};
use crate::{agent::acp::update::stop_reason, thread::command::AgentUpdate};

/// A turn that has begun.
#[derive(Debug)]
pub(super) struct Turn {
    id: TurnId,
    /// The prompt, until the session is open.
    waiting: Option<Prompt>,
    until: Instant,
    cancel: Option<Cancel>,
}

/// Somebody wants the turn to end.
#[derive(Debug)]
struct Cancel {
    /// When it is made to end.
    until: Instant,
    /// What it has failed with, where it was not a person's wish.
    failure: Option<String>,
}

impl Turn {
    /// When something is due.
    pub(super) fn due(&self) -> Instant {
        self.cancel.as_ref().map_or(self.until, |cancel| cancel.until)
    }

    pub(super) const fn is_cancelled(&self) -> bool {
        self.cancel.is_some()
    }

    /// How a cancelled turn ends when the agent did not end it.
    pub(super) fn outcome_of_cancel(&self) -> Outcome {
        match self.cancel.as_ref().and_then(|cancel| cancel.failure.clone()) {
            Some(message) => Outcome::Failed { message },
            None => Outcome::Cancelled { obeyed: false },
        }
    }
}

impl Acp {
    pub(super) async fn prompt(&mut self, id: TurnId, prompt: Prompt) -> Result<(), Over> {
        if self.turn.is_some() {
            let message = "the agent is in another turn".to_owned();
            let refused = AgentUpdate::TurnEnded(Outcome::Failed { message });
            return Ok(self.pen.say_of(id, refused).await?);
        }
        self.pen.begin(id).await?;
        let until = Instant::now() + self.setting.limits.turn;
        self.turn = Some(Turn { id, waiting: Some(prompt), until, cancel: None });
        self.send_waiting()
    }

    /// Sends the prompt once there is a session to send it to.
    pub(super) fn send_waiting(&mut self) -> Result<(), Over> {
        let Some(session) = self.phase.session() else { return Ok(()) };
        let Some(prompt) = self.turn.as_mut().and_then(|turn| turn.waiting.take()) else {
            return Ok(());
        };
        let parts = prompt.parts.into_iter().filter_map(block).collect();
        let request = PromptRequest::new(session.to_owned(), parts);
        self.request(Expected::Prompt, "session/prompt", &params(&request))
    }

    pub(super) async fn cancel(&mut self, id: TurnId) -> Result<(), Over> {
        if self.turn.as_ref().is_none_or(|turn| turn.id != id) {
            return Ok(());
        }
        self.end_soon(None).await
    }

    /// Asks the agent to end the turn; after the grace it is made to.
    async fn end_soon(&mut self, failure: Option<String>) -> Result<(), Over> {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.cancel.is_none()) else {
            return Ok(());
        };
        let until = Instant::now() + self.setting.limits.cancel_grace;
        turn.cancel = Some(Cancel { until, failure });
        if turn.waiting.is_some() {
            // The agent has not heard of it.
            return self.end_turn(Outcome::Cancelled { obeyed: true }).await;
        }
        for open in self.permissions.take_all() {
            let outcome = serde_json::json!({ "outcome": { "outcome": "cancelled" } });
            written(self.process.outbox.answer(&open.rpc, &outcome))?;
            let (request, why) = (open.request, WithdrawnWhy::TurnEnded);
            self.pen.say(AgentUpdate::Withdrawn { request, why }).await?;
        }
        let Some(session) = self.phase.session() else { return Ok(()) };
        let message = params(&CancelNotification::new(session.to_owned()));
        written(self.process.outbox.notify("session/cancel", &message))
    }

    pub(super) async fn turn_time(&mut self, now: Instant) -> Result<(), Over> {
        let Some(turn) = &self.turn else { return Ok(()) };
        if turn.due() > now {
            return Ok(());
        }
        if turn.is_cancelled() {
            let why = "it did not end its turn when it was told to".to_owned();
            return Err(Over::Kill(turn.outcome_of_cancel(), why));
        }
        let limit = self.setting.limits.turn.as_secs();
        self.end_soon(Some(format!("the turn took longer than its limit of {limit} s"))).await
    }

    pub(super) async fn prompt_answered(
        &mut self,
        result: Result<Value, Fault>,
    ) -> Result<(), Over> {
        if let Ok(answer) = &result
            && let Some(usage) = answer.get("usage").map(tokens)
            && usage != Usage::default()
        {
            self.pen.say(AgentUpdate::Usage(usage)).await?;
        }
        let Some(turn) = &self.turn else { return Ok(()) };
        let said = match result {
            Ok(answer) => match answer.get("stopReason").and_then(Value::as_str).map(stop_reason) {
                Some(Some(reason)) => Outcome::Completed { reason },
                Some(None) => Outcome::Cancelled { obeyed: true },
                None => Outcome::Completed { reason: StopReason::Other },
            },
            Err(fault) => Outcome::Failed { message: describe(&fault) },
        };
        // After a cancel an agent's word is not to be relied on: some call it a normal end.
        let outcome = match &turn.cancel {
            None => said,
            Some(Cancel { failure: Some(message), .. }) => {
                Outcome::Failed { message: message.clone() }
            }
            Some(Cancel { failure: None, .. }) => Outcome::Cancelled { obeyed: true },
        };
        self.end_turn(outcome).await
    }

    async fn end_turn(&mut self, outcome: Outcome) -> Result<(), Over> {
        if self.turn.take().is_none() {
            return Ok(());
        }
        for open in self.permissions.take_all() {
            let (request, why) = (open.request, WithdrawnWhy::TurnEnded);
            self.pen.say(AgentUpdate::Withdrawn { request, why }).await?;
        }
        Ok(self.pen.end(AgentUpdate::TurnEnded(outcome)).await?)
    }
}

fn block(part: PromptPart) -> Option<ContentBlock> {
    match part {
        PromptPart::Text { text } => Some(ContentBlock::Text(TextContent::new(text))),
        PromptPart::Link { uri, name } => {
            let name = name.unwrap_or_else(|| uri.clone());
            Some(ContentBlock::ResourceLink(ResourceLink::new(name, uri)))
        }
        PromptPart::Other => None,
    }
}

/// What a prompt's answer says of tokens: not part of the stable protocol, but sent.
fn tokens(usage: &Value) -> Usage {
    let number = |name: &str| usage.get(name).and_then(Value::as_u64);
    Usage {
        input_tokens: number("inputTokens"),
        output_tokens: number("outputTokens"),
        ..Usage::default()
    }
}
