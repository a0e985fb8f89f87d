//! What is about to be said.
//!
//! Agents write a message word by word and repeat a tool's growing output whole. The pen joins what
//! comes within a short time, so that the log has sentences instead of syllables, and it stops what
//! would flood the log.

use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};
use wakeful_wire::rpc::{Exit, NoticeLevel, Role, ToolPatch, TurnId};

use super::{
    limits::{FLOOD, PIECE, bound_tool, floor},
    port::Said,
};
use crate::thread::command::AgentUpdate;

/// How long a word may wait for the next one.
const PAUSE: Duration = Duration::from_millis(40);

/// The host has stopped listening: the session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unheard;

/// Says things in order, with what can be joined joined.
#[derive(Debug)]
pub(super) struct Pen {
    said: mpsc::Sender<Said>,
    turn: Option<TurnId>,
    held: Option<AgentUpdate>,
    since: Instant,
    /// What this turn may still add to the log, in bytes, and how much it wanted to add beyond.
    left: usize,
    over: usize,
}

impl Pen {
    pub(super) fn new(said: mpsc::Sender<Said>) -> Self {
        Self { said, turn: None, held: None, since: Instant::now(), left: FLOOD, over: 0 }
    }

    /// When [`Self::flush`] is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.held.is_some().then(|| self.since + PAUSE)
    }

    /// A turn begins: what comes now belongs to it.
    pub(super) async fn begin(&mut self, turn: TurnId) -> Result<(), Unheard> {
        self.close().await?;
        self.turn = Some(turn);
        Ok(())
    }

    /// The turn ends with `update`: what comes now belongs to none.
    pub(super) async fn end(&mut self, update: AgentUpdate) -> Result<(), Unheard> {
        self.close().await?;
        self.send(update).await?;
        self.turn = None;
        Ok(())
    }

    /// Says what is held, and how much was left out.
    async fn close(&mut self) -> Result<(), Unheard> {
        self.flush().await?;
        if self.over > 0 {
            let text = format!("{} further bytes of text and output were left out", self.over);
            self.send(AgentUpdate::Notice { level: NoticeLevel::Warning, text }).await?;
        }
        (self.left, self.over) = (FLOOD, 0);
        Ok(())
    }

    /// Says something, now or joined with what follows shortly.
    pub(super) async fn say(&mut self, update: AgentUpdate) -> Result<(), Unheard> {
        match update {
            AgentUpdate::Text { role, message, text } => self.text(role, message, text).await,
            AgentUpdate::Terminal { terminal, text, exit } => {
                self.terminal(terminal, text, exit).await
            }
            AgentUpdate::Tool(patch) => self.tool(bound_tool(patch)).await,
            AgentUpdate::Plan(_)
            | AgentUpdate::Notice { .. }
            | AgentUpdate::Permission { .. }
            | AgentUpdate::Withdrawn { .. }
            | AgentUpdate::Title(_)
            | AgentUpdate::Mode(_)
            | AgentUpdate::Session(_)
            | AgentUpdate::Usage(_)
            | AgentUpdate::TurnEnded(_)
            | AgentUpdate::AgentEnded { .. } => {
                self.flush().await?;
                self.send(update).await
            }
        }
    }

    /// Says something of another turn than the present one.
    pub(super) async fn say_of(
        &mut self,
        turn: TurnId,
        update: AgentUpdate,
    ) -> Result<(), Unheard> {
        self.flush().await?;
        self.said.send(Said { turn: Some(turn), update }).await.map_err(|_| Unheard)
    }

    /// Says a notice.
    pub(super) async fn notice(
        &mut self,
        level: NoticeLevel,
        text: impl Into<String>,
    ) -> Result<(), Unheard> {
        self.say(AgentUpdate::Notice { level, text: text.into() }).await
    }

    async fn text(
        &mut self,
        role: Role,
        message: Option<String>,
        text: String,
    ) -> Result<(), Unheard> {
        let text = self.allowed(text);
        if text.is_empty() {
            return Ok(());
        }
        // What is said outside of a turn never goes on with a text of a turn, nor the other way.
        let message = match self.turn {
            Some(_) => message,
            None => Some(format!("outside:{}", message.unwrap_or_default())),
        };
        if let Some(AgentUpdate::Text { role: held_role, message: held_message, text: held }) =
            &mut self.held
            && *held_role == role
            && *held_message == message
        {
            held.push_str(&text);
        } else {
            self.hold(AgentUpdate::Text { role, message, text }).await?;
        }
        self.flush_long().await
    }

    async fn terminal(
        &mut self,
        terminal: String,
        text: String,
        exit: Option<Exit>,
    ) -> Result<(), Unheard> {
        let text = self.allowed(text);
        if text.is_empty() && exit.is_none() {
            return Ok(());
        }
        if let Some(AgentUpdate::Terminal { terminal: held_id, text: held, exit: None }) =
            &mut self.held
            && *held_id == terminal
            && exit.is_none()
        {
            held.push_str(&text);
        } else {
            self.hold(AgentUpdate::Terminal { terminal, text, exit }).await?;
        }
        self.flush_long().await
    }

    async fn tool(&mut self, patch: ToolPatch) -> Result<(), Unheard> {
        if let Some(AgentUpdate::Tool(held)) = &mut self.held
            && held.id == patch.id
            // An end is never hidden by a beginning of the same id.
            && held.status.is_none_or(wakeful_wire::rpc::ToolStatus::is_open)
        {
            merge(held, patch);
            return Ok(());
        }
        self.hold(AgentUpdate::Tool(patch)).await
    }

    async fn hold(&mut self, update: AgentUpdate) -> Result<(), Unheard> {
        self.flush().await?;
        self.since = Instant::now();
        self.held = Some(update);
        Ok(())
    }

    /// Says what is held once it is long enough to be an event of its own.
    async fn flush_long(&mut self) -> Result<(), Unheard> {
        let long = match &self.held {
            Some(AgentUpdate::Text { text, .. } | AgentUpdate::Terminal { text, .. }) => {
                text.len() >= PIECE / 4
            }
            _ => false,
        };
        if long { self.flush().await } else { Ok(()) }
    }

    /// Says what is held.
    pub(super) async fn flush(&mut self) -> Result<(), Unheard> {
        let Some(held) = self.held.take() else { return Ok(()) };
        match held {
            AgentUpdate::Text { role, message, text } => {
                for text in pieces(text) {
                    let message = message.clone();
                    self.send(AgentUpdate::Text { role, message, text }).await?;
                }
            }
            AgentUpdate::Terminal { terminal, text, exit } => {
                let mut pieces = pieces(text);
                let last = pieces.pop().unwrap_or_default();
                for text in pieces {
                    let terminal = terminal.clone();
                    self.send(AgentUpdate::Terminal { terminal, text, exit: None }).await?;
                }
                self.send(AgentUpdate::Terminal { terminal, text: last, exit }).await?;
            }
            AgentUpdate::Tool(_)
            | AgentUpdate::Plan(_)
            | AgentUpdate::Notice { .. }
            | AgentUpdate::Permission { .. }
            | AgentUpdate::Withdrawn { .. }
            | AgentUpdate::Title(_)
            | AgentUpdate::Mode(_)
            | AgentUpdate::Session(_)
            | AgentUpdate::Usage(_)
            | AgentUpdate::TurnEnded(_)
            | AgentUpdate::AgentEnded { .. } => self.send(held).await?,
        }
        Ok(())
    }

    /// As much of the text as this turn may still add.
    fn allowed(&mut self, mut text: String) -> String {
        if text.len() > self.left {
            let keep = floor(&text, self.left);
            self.over += text.len() - keep;
            text.truncate(keep);
            self.left = 0;
        } else {
            self.left -= text.len();
        }
        text
    }

    async fn send(&mut self, update: AgentUpdate) -> Result<(), Unheard> {
        self.said.send(Said { turn: self.turn, update }).await.map_err(|_| Unheard)
    }
}

/// The text in pieces that are short enough for an event.
fn pieces(text: String) -> Vec<String> {
    if text.len() <= PIECE {
        return vec![text];
    }
    let (mut all, mut rest) = (Vec::new(), text.as_str());
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(floor(rest, PIECE));
        all.push(piece.to_owned());
        rest = more;
    }
    all
}

/// Given fields replace.
fn merge(held: &mut ToolPatch, patch: ToolPatch) {
    held.title = patch.title.or_else(|| held.title.take());
    held.kind = patch.kind.or(held.kind);
    held.status = patch.status.or(held.status);
    held.content = patch.content.or_else(|| held.content.take());
    held.locations = patch.locations.or_else(|| held.locations.take());
    held.raw_input = patch.raw_input.or_else(|| held.raw_input.take());
    held.raw_output = patch.raw_output.or_else(|| held.raw_output.take());
}

#[cfg(test)]
mod tests;
