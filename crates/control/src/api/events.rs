//! Server-sent events: phase changes as they happen.
//!
//! A stream begins with the present state of everything that it is about, so a client that lost its
//! connection needs no cursor. One that is too slow for the changes gets the present state again
//! instead of what it missed.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::Arc,
};

use axum::{
    extract::{Path, State},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::stream;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use tokio::sync::broadcast::{self, error::RecvError};
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{Code, ProjectId, UserName, api::Environment};

use super::{AppState, Refusal, caller::Caller};
use crate::engine::EnvironmentEvent;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(all)).routes(routes!(of_project))
}

/// How many streams each user has open.
#[derive(Debug, Default)]
pub(super) struct OpenStreams(HashMap<UserName, usize>);

/// One open stream; dropped, it is open no more.
#[derive(Debug)]
pub(super) struct StreamSlot {
    streams: Arc<Mutex<OpenStreams>>,
    user: UserName,
}

impl StreamSlot {
    /// Takes a slot.
    ///
    /// # Errors
    /// [`Code::TooManyRequests`] when the user has as many as may be.
    pub(super) fn take(state: &AppState, user: &UserName) -> Result<Self, Refusal> {
        let mut streams = state.streams.lock();
        let count = streams.0.entry(user.clone()).or_default();
        if *count >= state.settings.streams_per_user {
            let detail = "You have too many event and log streams open. Close one first.";
            return Err(Refusal::because(Code::TooManyRequests, detail));
        }
        *count += 1;
        Ok(Self { streams: Arc::clone(&state.streams), user: user.clone() })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut streams = self.streams.lock();
        if let Some(count) = streams.0.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                streams.0.remove(&self.user);
            }
        }
    }
}

/// Ends a stream when whoever opened it is signed out.
pub(super) struct Admission {
    state: AppState,
    caller: Caller,
    signed_out: broadcast::Receiver<UserName>,
}

impl Admission {
    pub(super) fn new(state: &AppState, caller: Caller) -> Self {
        let signed_out = state.accounts.signed_out();
        Self { state: state.clone(), caller, signed_out }
    }

    /// Returns when the caller's credential stands for nobody any more.
    pub(super) async fn ended(&mut self) {
        loop {
            match self.signed_out.recv().await {
                Ok(user) if user != self.caller.user => continue,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
            let principal = self.state.accounts.authenticate(&self.caller.credential).await;
            // In doubt it ends: the client comes back and is asked again.
            if !matches!(principal, Ok(Some(_))) {
                return;
            }
        }
    }
}

struct Watch {
    state: AppState,
    user: UserName,
    only: Option<ProjectId>,
    pending: VecDeque<Environment>,
    changes: broadcast::Receiver<Arc<EnvironmentEvent>>,
    admission: Admission,
    _slot: StreamSlot,
}

impl Watch {
    async fn open(
        state: &AppState,
        caller: Caller,
        only: Option<ProjectId>,
    ) -> Result<Self, Refusal> {
        let slot = StreamSlot::take(state, &caller.user)?;
        let mut watch = Self {
            state: state.clone(),
            user: caller.user.clone(),
            only,
            pending: VecDeque::new(),
            // Before the present state is read, so that no change falls in between.
            changes: state.engine.events(),
            admission: Admission::new(state, caller),
            _slot: slot,
        };
        watch.pending = watch.present().await?;
        Ok(watch)
    }

    async fn present(&self) -> Result<VecDeque<Environment>, Refusal> {
        let projects = match self.only {
            None => self.state.engine.projects(&self.user).await?,
            Some(id) => {
                let found = self.state.engine.project(id).await?;
                found.map(|found| found.value).into_iter().collect()
            }
        };
        Ok(projects.into_iter().flat_map(|project| project.environments).collect())
    }

    fn concerns(&self, event: &EnvironmentEvent) -> bool {
        event.owner == self.user && self.only.is_none_or(|only| event.project == only)
    }

    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if let Some(environment) = self.pending.pop_front() {
                let event = event(&environment)?;
                return Some((Ok(event), self));
            }
            tokio::select! {
                () = self.admission.ended() => return None,
                change = self.changes.recv() => match change {
                    Ok(change) if self.concerns(&change) => {
                        self.pending.push_back(change.environment.clone());
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => self.pending = self.present().await.ok()?,
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }
}

fn event(environment: &Environment) -> Option<Event> {
    Event::default().event("environment").json_data(environment).ok()
}

fn answer(watch: Watch) -> Response {
    let heartbeat = KeepAlive::new().interval(watch.state.settings.heartbeat);
    let mut response =
        Sse::new(stream::unfold(watch, Watch::next)).keep_alive(heartbeat).into_response();
    // Some proxies collect answers unless they are told not to.
    response
        .headers_mut()
        .insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Changes of all environments of the user: first each one's present state, then each change, as
/// `event: environment` with the environment as data. A comment comes at least every 15 seconds.
#[utoipa::path(
    get, path = "/api/events", tag = "events",
    responses((status = 200, description = "The stream", body = Environment, content_type = "text/event-stream"))
)]
async fn all(State(state): State<AppState>, caller: Caller) -> Result<Response, Refusal> {
    Watch::open(&state, caller, None).await.map(answer)
}

/// Changes of the environments of one project, as `/api/events`.
#[utoipa::path(
    get, path = "/api/projects/{id}/events", tag = "events",
    params(("id" = ProjectId, Path, description = "The project")),
    responses((status = 200, description = "The stream", body = Environment, content_type = "text/event-stream"))
)]
async fn of_project(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let project = caller.project(&state, &id).await?;
    Watch::open(&state, caller, Some(project.id)).await.map(answer)
}
