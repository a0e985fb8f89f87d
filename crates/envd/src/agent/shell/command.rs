//! One command of the shell, from its start to its end.

use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};
use wakeful_wire::rpc::{Exit, Outcome, StopReason, TurnId};

use super::Shell;
use crate::{
    agent::{
        pen::Unheard,
        port::Order,
        pty::{Decoder, Terminal},
        tethered::{Ended, Tethered},
    },
    thread::command::AgentUpdate,
};

/// How many commands' leavings are kept; the oldest are ended beyond.
const LEFT_MAX: usize = 16;
/// How long output may still come after the command has ended.
const REST: Duration = Duration::from_millis(300);
/// How long what was killed may take to vanish.
const VANISH: Duration = Duration::from_secs(5);

/// How a command ended.
pub(super) struct Done {
    pub(super) exit: Exit,
    pub(super) outcome: Outcome,
    /// The session is over, too.
    pub(super) stop: bool,
}

/// How far a running command is in being made to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    Interrupted { term_at: Instant, kill_at: Instant },
    Terminated { kill_at: Instant },
    Killed,
}

impl Shell {
    /// Streams a command's output until it has ended.
    pub(super) async fn follow(
        &mut self,
        turn: TurnId,
        id: &str,
        terminal: Terminal,
        mut tethered: Tethered,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<Done, Unheard> {
        let until = Instant::now() + self.limits.turn;
        let (mut ending, mut stop, mut overdue, mut cancelled) = (Ending::No, false, false, false);
        let (mut decoder, mut buffer, mut open) = (Decoder::default(), vec![0; 16 * 1024], true);
        let ended = loop {
            let due = match ending {
                Ending::No => Some(until),
                Ending::Interrupted { term_at, .. } => Some(term_at),
                Ending::Terminated { kill_at } => Some(kill_at),
                Ending::Killed => None,
            };
            let due = [due, self.pen.due()].into_iter().flatten().min();
            tokio::select! {
                biased;
                order = orders.recv(), if !stop => match order {
                    Some(Order::Cancel { turn: wanted }) if wanted == turn => {
                        cancelled = true;
                        ending = self.interrupt(&tethered, ending);
                    }
                    Some(Order::End) | None => {
                        stop = true;
                        tethered.kill();
                        ending = Ending::Killed;
                    }
                    Some(Order::Prompt { turn: other, .. }) => {
                        let message = "the agent is in another turn".to_owned();
                        let refused = AgentUpdate::TurnEnded(Outcome::Failed { message });
                        self.pen.say_of(other, refused).await?;
                    }
                    Some(Order::Cancel { .. } | Order::Answer { .. } | Order::Mode { .. }) => {}
                },
                how = tethered.ended() => break how,
                () = at(due) => {
                    let now = Instant::now();
                    if self.pen.due().is_some_and(|due| due <= now) {
                        self.pen.flush().await?;
                    }
                    match ending {
                        Ending::No if now >= until => {
                            overdue = true;
                            ending = self.interrupt(&tethered, ending);
                        }
                        Ending::Interrupted { term_at, kill_at } if now >= term_at => {
                            tethered.terminate();
                            ending = Ending::Terminated { kill_at };
                        }
                        Ending::Terminated { kill_at } if now >= kill_at => {
                            tethered.kill();
                            ending = Ending::Killed;
                        }
                        Ending::No
                        | Ending::Interrupted { .. }
                        | Ending::Terminated { .. }
                        | Ending::Killed => {}
                    }
                }
                read = terminal.read(&mut buffer), if open => match read {
                    Ok(count @ 1..) => {
                        let text = decoder.decode(&buffer[..count]);
                        self.output(id, text).await?;
                    }
                    Ok(_) | Err(_) => open = false,
                },
            }
        };
        // The terminal may still hold what the command wrote last.
        let rest_until = Instant::now() + REST;
        while open
            && let Ok(Ok(count @ 1..)) =
                tokio::time::timeout_at(rest_until, terminal.read(&mut buffer)).await
        {
            let text = decoder.decode(&buffer[..count]);
            self.output(id, text).await?;
        }
        self.output(id, decoder.finish()).await?;
        // A command that was made to end leaves nothing behind.
        if ending == Ending::No {
            self.leave(tethered);
        } else {
            tethered.kill();
            let _hung = tokio::time::timeout(VANISH, tethered.gone()).await;
        }
        let exit = match ended {
            Ended::Exit(exit) => exit,
            Ended::Lost => Exit { code: None, signal: Some(9) },
        };
        let outcome = if stop {
            Outcome::Cut
        } else if cancelled {
            Outcome::Cancelled { obeyed: ending != Ending::Killed }
        } else if overdue {
            let limit = self.limits.turn.as_secs();
            Outcome::Failed { message: format!("the turn took longer than its limit of {limit} s") }
        } else if exit.code == Some(0) {
            Outcome::Completed { reason: StopReason::EndTurn }
        } else {
            Outcome::Failed { message: failure(exit) }
        };
        Ok(Done { exit, outcome, stop })
    }

    fn interrupt(&self, tethered: &Tethered, ending: Ending) -> Ending {
        if ending != Ending::No {
            return ending;
        }
        tethered.interrupt();
        let (now, grace) = (Instant::now(), self.limits.cancel_grace);
        Ending::Interrupted { term_at: now + grace / 2, kill_at: now + grace }
    }

    async fn output(&mut self, id: &str, text: String) -> Result<(), Unheard> {
        let terminal = id.to_owned();
        self.pen.say(AgentUpdate::Terminal { terminal, text, exit: None }).await
    }

    /// Keeps what a command left running.
    fn leave(&mut self, tethered: Tethered) {
        self.left.retain(|left| !left.is_gone());
        if !tethered.is_gone() {
            self.left.push(tethered);
        }
        if self.left.len() > LEFT_MAX {
            self.left.remove(0);
        }
    }
}

fn failure(exit: Exit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("the command ended with status {code}"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}"),
        (None, None) => "the command ended".to_owned(),
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
