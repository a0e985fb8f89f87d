//! The end of a session.

use serde_json::json;
use wakeful_wire::rpc::{Exit, Outcome, WithdrawnWhy};

use super::{Acp, Over, REST};
use crate::{
    agent::{pen::Unheard, tethered::Ended},
    thread::command::AgentUpdate,
};

impl Acp {
    /// Ends everything, and says so last.
    pub(super) async fn finish(self, over: Over) -> Result<(), Unheard> {
        let Self { mut pen, process, phase, turn, mut permissions, mut terminals, .. } = self;
        let opened = phase.session().is_some();
        let words = process.last_words();
        for open in permissions.take_all() {
            let (request, why) = (open.request, WithdrawnWhy::AgentEnded);
            pen.say(AgentUpdate::Withdrawn { request, why }).await?;
        }
        for terminal in terminals.clear() {
            let exit = Some(Exit { code: None, signal: Some(9) });
            pen.say(AgentUpdate::Terminal { terminal, text: String::new(), exit }).await?;
        }
        let (outcome, why) = match over {
            Over::Stop => {
                if let (Some(_), Some(session)) = (&turn, phase.session()) {
                    let params = json!({ "sessionId": session });
                    let _hung = process.outbox.notify("session/cancel", &params);
                }
                let _how = process.stop().await;
                (Outcome::Cut, "it was stopped".to_owned())
            }
            Over::Kill(outcome, why) => {
                let _how = process.kill().await;
                (outcome, why)
            }
            Over::Gone => {
                let mut process = process;
                let ended = tokio::time::timeout(REST, process.tethered.ended()).await;
                let mut why = match ended {
                    Ok(ended) => ended.describe(),
                    Err(_) => "it closed its output".to_owned(),
                };
                let _how: Ended = process.kill().await;
                if opened {
                    (Outcome::Cut, why)
                } else {
                    if let Some(words) = words {
                        why = format!("{why} ({words})");
                    }
                    (Outcome::Failed { message: format!("the agent did not start: {why}") }, why)
                }
            }
        };
        if let Some(turn) = turn {
            let outcome = if turn.is_cancelled() && outcome == Outcome::Cut {
                turn.outcome_of_cancel()
            } else {
                outcome
            };
            pen.end(AgentUpdate::TurnEnded(outcome)).await?;
        }
        pen.say(AgentUpdate::AgentEnded { why }).await
    }
}
