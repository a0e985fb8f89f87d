//! Writing down what an agent says.

use std::collections::VecDeque;

use tokio::time::Instant;
use wakeful_wire::rpc::TurnId;

use super::{AGAIN, NotTaken, TRIES, work::Work};
use crate::{
    agent::port::{Order, Said},
    thread::command::{AgentUpdate, Append, Refused},
};

impl Work {
    pub(super) async fn end_turn(&mut self, id: TurnId, ended: AgentUpdate) {
        let refused = self.append(Some(id), vec![ended]).await;
        if refused.is_err() {
            tracing::debug!(thread = %self.thread, turn = %id, "the end of a turn was not taken");
        }
        self.turn.take_if(|turn| turn.id == id);
    }

    /// Writes down what was said.
    pub(super) async fn heard(&mut self, said: Vec<Said>) {
        self.heard = Instant::now();
        let mut said = VecDeque::from(said);
        while let Some(first) = said.pop_front() {
            let mut updates = vec![first.update];
            while let Some(next) = said.pop_front_if(|next| next.turn == first.turn) {
                updates.push(next.update);
            }
            if first.turn.is_none() {
                self.shared.leases.touch(self.thread);
            }
            self.write(first.turn, updates).await;
        }
    }

    async fn write(&mut self, turn: Option<TurnId>, updates: Vec<AgentUpdate>) {
        let ends = |update: &AgentUpdate| matches!(update, AgentUpdate::TurnEnded(_));
        let ended = updates.iter().any(ends);
        if self.append(turn, updates.clone()).await.is_err() {
            // One thing that cannot be taken must not take the others with it.
            for update in updates {
                if let Err(refused) = self.append(turn, vec![update.clone()]).await {
                    self.refused(&update, &refused);
                }
            }
        }
        if ended && let Some(id) = turn {
            self.turn.take_if(|turn| turn.id == id);
        }
    }

    fn refused(&mut self, update: &AgentUpdate, refused: &Refused) {
        tracing::debug!(thread = %self.thread, %refused, "an agent's report was not taken");
        // Nobody can be asked, so nobody will answer.
        if let AgentUpdate::Permission { request, .. } = update {
            self.orders.push_back(Order::Answer { request: *request, option: None });
        }
    }

    /// Writes something down; tries again while the log cannot be written. What may have been
    /// written in such a try is written again: a text twice is better than none.
    async fn append(&self, turn: Option<TurnId>, updates: Vec<AgentUpdate>) -> Result<(), Refused> {
        let append = Append { thread: self.thread, turn, updates };
        for _ in 0..TRIES {
            match self.shared.reports.append(append.clone()).await {
                Ok(()) => return Ok(()),
                Err(NotTaken::Refused(refused)) => return Err(refused),
                Err(NotTaken::Unavailable) if self.shared.stopping.is_cancelled() => break,
                Err(NotTaken::Unavailable) => tokio::time::sleep(AGAIN).await,
            }
        }
        tracing::error!(thread = %self.thread, "what an agent reported could not be written");
        Ok(())
    }
}
