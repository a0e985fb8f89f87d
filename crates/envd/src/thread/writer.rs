//! The one task that decides and writes.

mod chores;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior},
};
use wakeful_wire::rpc::{Epoch, Event, Seq, ThreadId, TurnId};

use super::{
    command::{AgentUpdate, Command, Taken},
    decide::{Fresh, decide},
    log::{FRAME_WEIGHT, LogError, Row},
    state::State,
    threads::{Settings, Shared, ThreadsError},
    view::Recorded,
};

/// Most commands that share a commit.
const BATCH_MAX: usize = 512;
/// Bytes of events at which a batch is written.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most segments that wait to be saved; further ones are saved when the host starts again.
const UNSEALED_MAX: usize = 4_096;
/// Events of one segment after which it is saved although it goes on.
const SEAL_EVERY: u32 = 2_000;

/// What reaches the writer.
#[derive(Debug)]
pub(super) enum Input {
    /// A command.
    Command {
        /// What is wanted.
        command: Command,
        /// Where the answer goes.
        reply: oneshot::Sender<Result<Taken, ThreadsError>>,
    },
    /// Write what is under way, save the state, close the log.
    Close {
        /// Answered when that is done.
        reply: oneshot::Sender<()>,
    },
}

type Reply = (oneshot::Sender<Result<Taken, ThreadsError>>, Taken);

/// What was decided and is not written yet.
#[derive(Debug, Default)]
struct Batch {
    events: Vec<(Event, String)>,
    replies: Vec<Reply>,
    bytes: usize,
    /// Whether somebody waits who should not.
    urgent: bool,
}

impl Batch {
    const fn is_full(&self) -> bool {
        self.replies.len() >= BATCH_MAX || self.bytes >= BATCH_BYTES_MAX
    }
}

#[derive(Debug)]
struct Writer {
    shared: Arc<Shared>,
    settings: Settings,
    /// What decisions are made from; ahead of what is published by the batch that is being made or
    /// written. Absent after a failed write, until the log has been read again.
    state: Option<State>,
    /// What the last checkpoint is at.
    checkpointed: Seq,
    /// Events since the last checkpoint.
    since_checkpoint: usize,
    /// Segments to be saved.
    unsealed: VecDeque<(ThreadId, u32)>,
    /// Events of the newest segments since they were last saved.
    since_seal: HashMap<ThreadId, u32>,
    may_purge: bool,
}

/// Starts the writer. When this returns, the start of the host is in the log.
pub(super) async fn start(
    shared: Arc<Shared>,
    state: State,
    checkpointed: Seq,
    inputs: mpsc::Receiver<Input>,
    settings: Settings,
) -> Result<(), LogError> {
    let unsealed = shared.log.unsealed(256).await?.into();
    let mut writer = Writer {
        shared,
        settings,
        state: Some(state),
        checkpointed,
        since_checkpoint: 0,
        unsealed,
        since_seal: HashMap::new(),
        may_purge: true,
    };
    let epoch = Epoch::from_random(uuid::Uuid::new_v4().as_u64_pair().1);
    let mut batch = Batch::default();
    writer.decide(&mut batch, &Command::Start { epoch }, None);
    writer.write(batch).await?;
    // Reading the log again costs what came after the checkpoint: let there be nothing.
    writer.checkpoint().await?;
    tokio::spawn(writer.run(inputs));
    Ok(())
}

impl Writer {
    async fn run(mut self, mut inputs: mpsc::Receiver<Input>) {
        let mut tick = tokio::time::interval(self.settings.tick.max(Duration::from_millis(100)));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut closing = None;
        loop {
            let mut batch = Batch::default();
            let input = if self.has_chores() {
                // Nobody is kept waiting by chores: one is done whenever nothing waits.
                match inputs.try_recv() {
                    Ok(input) => Some(input),
                    Err(mpsc::error::TryRecvError::Empty) => {
                        self.chore().await;
                        continue;
                    }
                    Err(mpsc::error::TryRecvError::Disconnected) => break,
                }
            } else {
                tokio::select! {
                    biased;
                    input = inputs.recv() => {
                        if input.is_none() {
                            break;
                        }
                        input
                    }
                    _ = tick.tick() => None,
                }
            };
            self.revive().await;
            if let Some(input) = input {
                closing = self.take(&mut batch, input);
            } else {
                self.decide(&mut batch, &Command::Tick, None);
            }
            if closing.is_none() {
                closing = self.gather(&mut batch, &mut inputs).await;
            }
            if let Err(error) = self.write(batch).await {
                tracing::error!(%error, "the thread log cannot be written");
                self.revive().await;
            }
            if closing.is_some() {
                break;
            }
            if self.since_checkpoint >= self.settings.checkpoint_every.saturating_mul(8) {
                self.chore().await;
            }
        }
        if let Err(error) = self.checkpoint().await {
            tracing::warn!(%error, "the state of the threads was not saved; the next start is slower");
        }
        inputs.close();
        self.shared.closed.cancel();
        self.shared.log.close().await;
        if let Some(reply) = closing {
            let _nobody_waits = reply.send(());
        }
    }

    /// Takes in what else comes until somebody waits who should not, the batch is full, or the
    /// flush delay is over.
    async fn gather(
        &mut self,
        batch: &mut Batch,
        inputs: &mut mpsc::Receiver<Input>,
    ) -> Option<oneshot::Sender<()>> {
        let until = Instant::now() + self.settings.flush_delay;
        while !batch.is_full() {
            let next = if batch.urgent || batch.events.is_empty() {
                // What is there already shares the commit; nothing is waited for.
                inputs.try_recv().ok()
            } else {
                tokio::time::timeout_at(until, inputs.recv()).await.ok().flatten()
            };
            let Some(input) = next else { break };
            let closing = self.take(batch, input);
            if closing.is_some() {
                return closing;
            }
        }
        None
    }

    fn take(&mut self, batch: &mut Batch, input: Input) -> Option<oneshot::Sender<()>> {
        match input {
            Input::Close { reply } => Some(reply),
            Input::Command { command, reply } => {
                self.decide(batch, &command, Some(reply));
                None
            }
        }
    }

    /// Decides a command against everything that was decided before, written or not.
    fn decide(
        &mut self,
        batch: &mut Batch,
        command: &Command,
        reply: Option<oneshot::Sender<Result<Taken, ThreadsError>>>,
    ) {
        let answer = |reply: Option<oneshot::Sender<_>>, answer| {
            if let Some(reply) = reply {
                let _nobody_waits = reply.send(answer);
            }
        };
        let Some(state) = &mut self.state else {
            answer(reply, Err(ThreadsError::Unavailable));
            return;
        };
        let fresh = Fresh {
            thread: ThreadId::from_uuid(uuid::Uuid::new_v4()),
            turn: TurnId::from_uuid(uuid::Uuid::new_v4()),
        };
        let now = (self.settings.clock)();
        let decision = match decide(state, command, self.settings.policy, now, fresh) {
            Ok(decision) => decision,
            Err(refused) => {
                answer(reply, Err(refused.into()));
                return;
            }
        };
        let changed = !decision.events.is_empty();
        let newest = decision.events.last().map(|event| event.seq);
        let of_thread = || decision.thread.and_then(|id| state.thread(id)).map(|held| held.seq);
        let seq = newest.or(decision.already).or_else(of_thread).unwrap_or_else(|| state.head());
        let mut texts = Vec::with_capacity(decision.events.len());
        for event in decision.events {
            let body = serde_json::to_string(&event.body).expect("an event is always JSON");
            batch.bytes += body.len() + FRAME_WEIGHT;
            state.apply(&event);
            texts.push((event, body));
        }
        batch.urgent |= reply.is_some() && !is_streamed(command);
        batch.events.append(&mut texts);
        if let Some(reply) = reply {
            // Even where nothing changed, what the answer rests on may not be written yet.
            batch.replies.push((reply, Taken { seq, thread: decision.thread, changed }));
        }
    }

    /// Writes a batch, publishes it, and answers.
    async fn write(&mut self, batch: Batch) -> Result<(), LogError> {
        let Batch { events, replies, .. } = batch;
        if !events.is_empty() {
            let rows: Vec<_> = events.iter().map(|(event, body)| Row { event, body }).collect();
            if let Err(error) = self.shared.log.commit(&rows).await {
                self.state = None;
                for (reply, _) in replies {
                    let _nobody_waits = reply.send(Err(ThreadsError::Unavailable));
                }
                return Err(error);
            }
            self.publish(
                events
                    .into_iter()
                    .map(|(event, body)| Arc::new(Recorded::new(event, body.len() + FRAME_WEIGHT))),
            );
        }
        for (reply, taken) in replies {
            let _nobody_waits = reply.send(Ok(taken));
        }
        Ok(())
    }

    /// Makes durable events visible, and wakes those who wait for them.
    fn publish(&mut self, events: impl IntoIterator<Item = Arc<Recorded>>) {
        let mut touched: HashMap<ThreadId, Seq> = HashMap::new();
        let (mut head, mut listed) = (Seq::ZERO, None);
        let shared = Arc::clone(&self.shared);
        let mut view = shared.view.write();
        for recorded in events {
            let event = &recorded.event;
            head = event.seq;
            if let Some(id) = event.thread {
                touched.insert(id, event.seq);
            }
            if view.apply(&recorded) {
                listed = Some(event.seq);
            }
            self.since_checkpoint += 1;
            self.note(&recorded.event);
        }
        if let Some(state) = &self.state {
            view.share(state, touched.keys().copied());
        }
        drop(view);
        if head > Seq::ZERO {
            shared.head.send_replace(head);
        }
        if let Some(seq) = listed {
            shared.listed.send_replace(seq);
        }
        let mut followed = shared.followed.lock();
        for (id, seq) in touched {
            if let Some(sender) = followed.get(&id) {
                if sender.receiver_count() == 0 {
                    followed.remove(&id);
                } else {
                    sender.send_replace(seq);
                }
            }
        }
    }
}

/// Whether a command only brings streamed content, which may wait for others to share its sync.
fn is_streamed(command: &Command) -> bool {
    let Command::Agent(append) = command else { return false };
    append.updates.iter().all(|update| match update {
        AgentUpdate::Text { .. }
        | AgentUpdate::Tool(_)
        | AgentUpdate::Terminal { .. }
        | AgentUpdate::Plan(_)
        | AgentUpdate::Notice { .. }
        | AgentUpdate::Title(_)
        | AgentUpdate::Usage(_) => true,
        AgentUpdate::Permission { .. }
        | AgentUpdate::Withdrawn { .. }
        | AgentUpdate::Mode(_)
        | AgentUpdate::Session(_)
        | AgentUpdate::TurnEnded(_)
        | AgentUpdate::AgentEnded { .. } => false,
    })
}
