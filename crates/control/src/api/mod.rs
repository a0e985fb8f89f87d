//! The public HTTP API and the routes of the main host.
//!
//! A handler answers with a value or a [`Refusal`]. What a refusal looks like is decided in one
//! place, `answer`: `application/problem+json` for programs, a page for people who load one, the
//! sign-in page for people who are not signed in. The headers that keep browsers safe are set there
//! as well.

mod accounts;
mod answer;
mod body;
mod caller;
mod cookies;
mod download;
mod environments;
mod events;
mod files;
mod grant;
mod health;
mod logs;
mod openapi;
mod origin;
mod projects;
mod prompts;
mod reference;
mod refusal;
mod shapes;
mod tickets;
mod tokens;
mod upload;
mod variables;

use std::{sync::Arc, time::Duration};

use axum::{Router, middleware};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;
use utoipa_axum::router::OpenApiRouter;

pub use openapi::document;
pub use refusal::Refusal;
pub use shapes::{
    ChangePassword, CreateToken, CreatedToken, Extend, FileEntry, FileListing, Me, SetVariable,
    SignOut, SignedIn, StoredFile, Token, UploadEvent, Variable,
};

pub(crate) use answer::PageCsp;
pub(crate) use body::{Asked, Form};
pub(crate) use caller::{Caller, Client, MaybeCaller};
pub(crate) use cookies::expire_session;
pub(crate) use environments::keep_awake;
pub(crate) use files::Target;
pub(crate) use logs::{surface, tail};
pub(crate) use projects::{TITLE_MAX, bring_back, make, remove};
pub(crate) use reference::{encode, next as next_place};
pub(crate) use upload::store_form;

use crate::{accounts::Accounts, engine::Engine, pages, prompts::Prompts, variables::Variables};

/// What the API goes by.
#[derive(Debug, Clone, Copy)]
pub struct ApiSettings {
    /// The most bytes of one upload.
    pub upload_max: u64,
    /// How many uploads may run at once; beyond, 503.
    pub uploads_at_once: usize,
    /// How many event and log streams one user may have open; beyond, 429.
    pub streams_per_user: usize,
    /// The longest that a call waits for an environment to become ready.
    pub wait_max: Duration,
    /// The longest that a call for a grant waits for the environment that it wakes.
    pub grant_wait: Duration,
    /// How often a followed log is looked at.
    pub log_poll: Duration,
    /// How often an idle event stream sends a comment.
    pub heartbeat: Duration,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            upload_max: 1 << 30,
            uploads_at_once: 64,
            streams_per_user: 64,
            wait_max: Duration::from_secs(60),
            grant_wait: Duration::from_secs(20),
            log_poll: Duration::from_millis(500),
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// What every handler reaches. A cheap handle.
#[derive(Clone)]
pub struct AppState {
    /// Projects and environments.
    pub engine: Engine,
    /// Users.
    pub accounts: Accounts,
    /// Variables and secrets.
    pub variables: Variables,
    /// Prompts that wait for environments.
    pub prompts: Prompts,
    /// What `/metrics` shows.
    pub registry: Arc<Registry>,
    /// The numbers.
    pub settings: ApiSettings,
    uploads: Arc<Semaphore>,
    streams: Arc<Mutex<events::OpenStreams>>,
}

impl std::fmt::Debug for AppState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppState").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl AppState {
    /// The parts that the API stands on.
    #[must_use]
    pub fn new(
        engine: Engine,
        accounts: Accounts,
        variables: Variables,
        prompts: Prompts,
        registry: Arc<Registry>,
        settings: ApiSettings,
    ) -> Self {
        let uploads = Arc::new(Semaphore::new(settings.uploads_at_once));
        Self {
            engine,
            accounts,
            variables,
            prompts,
            registry,
            settings,
            uploads,
            streams: Arc::default(),
        }
    }
}

/// Every route that the `OpenAPI` document describes.
fn described() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(openapi::skeleton())
        .merge(accounts::routes())
        .merge(tokens::routes())
        .merge(projects::routes())
        .merge(environments::routes())
        .merge(grant::routes())
        .merge(variables::routes())
        .merge(prompts::routes())
        .merge(files::routes())
        .merge(logs::routes())
        .merge(events::routes())
        .merge(openapi::routes())
        .merge(health::routes())
}

/// Everything that the main host answers, but for the path routes of surfaces, which are the
/// gateway's. The peer's address is expected in the request's extensions as
/// [`std::net::SocketAddr`]; without it, limits per address do not apply.
pub fn router(state: AppState) -> Router {
    let (described, _) = described().split_for_parts();
    Router::new()
        .merge(described)
        .merge(tickets::routes())
        .merge(pages::routes())
        .fallback(answer::not_found)
        .method_not_allowed_fallback(answer::method_not_allowed)
        .layer(middleware::from_fn_with_state(state.clone(), answer::finish))
        .with_state(state)
}
