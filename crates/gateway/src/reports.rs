//! The one task that tells the control plane what is open here, and hears what changes there.
//!
//! Events are handled in the order in which they come: cached verdicts die first, then drains are
//! answered (see [`crate::leases`] for why that order is what makes a suspend safe).

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{
        Notify,
        broadcast::{self, error::RecvError},
    },
    time::{Instant, sleep_until},
};
use wakeful_wire::{
    Phase,
    gate::{ActivityReport, GateEvent, LeaseKind},
};

use crate::{
    activity::{Activity, DrainAction, Drains},
    core::Shared,
    recall::Why,
};

/// How long one report or answer may take.
const SEND_MAX: Duration = Duration::from_secs(10);
/// How many reports are on their way at once.
const SENDING_MAX: usize = 64;
/// The pause before an answer to a drain is sent again.
const AGAIN: Duration = Duration::from_millis(200);
/// How often an answer to a drain is sent before the control plane's own timeout must do.
const ANSWER_TRIES: u32 = 20;

/// Runs until it is aborted. `events` was subscribed to before anything could be cached.
pub(crate) async fn run(
    shared: Arc<Shared>,
    bell: Arc<Notify>,
    mut events: broadcast::Receiver<GateEvent>,
) {
    let epoch = Instant::now() - shared.ensure.now();
    let mut activity =
        Activity::new(shared.holder, shared.config.keepalive_interval, shared.ensure.now());
    let mut drains = Drains::new(shared.holder);
    // Apart from events: a control plane that is slow to take a report must not keep a verdict
    // alive that an event has ended.
    let mut sending = FuturesUnordered::new();
    let mut closed = false;
    loop {
        while let Some(action) = drains.poll_action(&shared.leases) {
            act(&shared, action);
        }
        while sending.len() < SENDING_MAX
            && let Some(report) = activity.poll_report(shared.ensure.now(), &shared.leases)
        {
            let shared = Arc::clone(&shared);
            sending.push(async move {
                let arrived = send(&shared, report.clone()).await;
                (report, arrived)
            });
        }
        tokio::select! {
            Some((report, arrived)) = sending.next() => {
                activity.handle_reported(&report, arrived, &shared.leases);
            }
            event = events.recv(), if !closed => match event {
                Ok(event) => {
                    handle(&shared, &event);
                    drains.handle_event(&event, &shared.leases);
                }
                Err(RecvError::Lagged(lost)) => {
                    tracing::warn!(lost, "events were lost; everything cached is forgotten");
                    shared.ensure.handle_lagged();
                    shared.routes.forget_all();
                    shared.principals.forget_all();
                    shared.homes.forget_all();
                }
                // The control plane is being taken down, and this gateway with it.
                Err(RecvError::Closed) => closed = true,
            },
            () = bell.notified() => {}
            // With no place left for another report there is nothing to look for.
            () = sleep_until(epoch + activity.poll_timeout()), if sending.len() < SENDING_MAX => {}
        }
    }
}

fn handle(shared: &Shared, event: &GateEvent) {
    shared.ensure.handle_event(event);
    match event {
        GateEvent::RouteChanged { env } | GateEvent::Changed { env, phase: Phase::Deleted, .. } => {
            shared.routes.forget(env);
            shared.homes.forget_all();
        }
        GateEvent::SignedOut { user } => {
            shared.principals.forget_where(|principal| principal.user == *user);
        }
        GateEvent::Changed { .. } | GateEvent::Drain { .. } => {}
    }
}

fn act(shared: &Arc<Shared>, action: DrainAction) {
    match action {
        DrainAction::Close { env, all } => shared.recalls.recall(env, all, Why::Asleep),
        DrainAction::Answer(answer) => {
            // Apart, so that a control plane that is slow to take it does not keep the next event
            // from being heard.
            let shared = Arc::clone(shared);
            tokio::spawn(async move {
                for _ in 0..ANSWER_TRIES {
                    let taken = shared.control.drained(answer.clone());
                    match tokio::time::timeout(SEND_MAX, taken).await {
                        Ok(Ok(())) => return,
                        Ok(Err(error)) => tracing::debug!(%error, "an answer is not taken yet"),
                        Err(_) => {}
                    }
                    tokio::time::sleep(AGAIN).await;
                }
                tracing::warn!(env = %answer.env, "the answer to a drain could not be given");
            });
        }
    }
}

async fn send(shared: &Shared, report: ActivityReport) -> bool {
    let env = report.env;
    match tokio::time::timeout(SEND_MAX, shared.control.activity(report)).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(%error, %env, "activity is not reported");
            false
        }
        Err(_) => {
            tracing::warn!(%env, "activity is not reported: no answer in time");
            false
        }
    }
}

/// Says that nothing is open here any more, so that nobody waits for this gateway's leases to
/// lapse.
pub(crate) async fn farewell(shared: &Shared) {
    for hold in shared.leases.all() {
        for kind in [LeaseKind::Request, LeaseKind::Stream, LeaseKind::Socket] {
            let touch = hold.take_touched();
            if touch || hold.count(kind) > 0 || kind == LeaseKind::Request {
                let report = ActivityReport {
                    env: hold.env(),
                    surface: hold.surface().clone(),
                    holder: shared.holder,
                    kind,
                    count: 0,
                    expires_ms: 0,
                    touch,
                };
                if !send(shared, report).await {
                    return;
                }
            }
        }
    }
}
