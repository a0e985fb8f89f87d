//! One environment.

mod cards;
mod threads;

use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse, Redirect, Response},
    routing,
};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use wakeful_lifecycle::Command;
use wakeful_wire::api::Environment;

use super::{
    files,
    layout::{Page, Place},
    parts::alert,
};
use crate::api::{AppState, Asked, Caller, Form, Refusal, keep_awake, surface, tail};

/// How many lines of a log the page shows.
const LOG_LINES: usize = 100;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/environments/{id}", routing::get(show))
        .route("/environments/{id}/wake", routing::get(back).post(wake))
        .route("/environments/{id}/suspend", routing::get(back).post(suspend))
        .route("/environments/{id}/restart", routing::get(back).post(restart))
        .route("/environments/{id}/extend", routing::get(back).post(extend))
        .route("/environments/{id}/variables", routing::get(back).post(set_variable))
        .route("/environments/{id}/variables/{name}/remove", routing::post(remove_variable))
}

/// The query.
#[derive(Deserialize, Default)]
struct Query {
    #[serde(default)]
    log: Option<String>,
}

fn page_of(id: &str) -> Redirect {
    Redirect::to(&format!("/environments/{id}"))
}

async fn back(Path(id): Path<String>) -> Redirect {
    page_of(&id)
}

async fn show(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(query): Asked<Query>,
) -> Result<Response, Refusal> {
    let environment = caller.environment(&state, &id).await?;
    page(&state, &caller, environment, query.log.as_deref(), None).await
}

async fn command(
    state: &AppState,
    caller: &Caller,
    id: &str,
    command: Command,
) -> Result<Redirect, Refusal> {
    let env = caller.environment(state, id).await?.id;
    state.engine.command(env, command).await?;
    Ok(page_of(id))
}

async fn wake(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Redirect, Refusal> {
    command(&state, &caller, &id, Command::WakeNow).await
}

async fn suspend(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Redirect, Refusal> {
    command(&state, &caller, &id, Command::Suspend).await
}

async fn restart(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Redirect, Refusal> {
    command(&state, &caller, &id, Command::Restart).await
}

/// The field of the form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtendForm {
    minutes: u32,
}

async fn extend(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Form(form): Form<ExtendForm>,
) -> Result<Redirect, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    keep_awake(&state, env, form.minutes).await?;
    Ok(page_of(&id))
}

/// The fields of the form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableForm {
    name: String,
    value: String,
    /// There if the box is ticked.
    #[serde(default)]
    secret: Option<String>,
}

async fn set_variable(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Form(form): Form<VariableForm>,
) -> Result<Response, Refusal> {
    let environment = caller.environment(&state, &id).await?;
    // Browsers send line ends of a form as two characters.
    let value = form.value.replace("\r\n", "\n");
    let set =
        state.variables.set(environment.id, form.name.trim(), &value, form.secret.is_some()).await;
    match set {
        Ok(_) => Ok(page_of(&id).into_response()),
        Err(error) => page(&state, &caller, environment, None, Some(&error.into())).await,
    }
}

async fn remove_variable(
    State(state): State<AppState>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
) -> Result<Redirect, Refusal> {
    let env = caller.environment(&state, &id).await?.id;
    state.variables.remove(env, &name).await?;
    Ok(page_of(&id))
}

async fn page(
    state: &AppState,
    caller: &Caller,
    environment: Environment,
    log: Option<&str>,
    refusal: Option<&Refusal>,
) -> Result<Response, Refusal> {
    let project = caller.project(state, &environment.project.to_string()).await?;
    let explain = state.engine.explain(environment.id).await?;
    let variables = state.variables.list(environment.id).await?;
    let logs = logs(state, &environment, log).await?;
    let files = files::card(state, &environment).await?;
    let now = state.engine.now();
    let page = Page::of(&caller.user, Place::Projects, &project.title).live();
    let mut response = page.answer(&html! {
        nav .crumbs aria-label="Breadcrumb" { a href="/projects" { "Projects" } }
        (cards::head(&project, &environment, now))
        (alert(refusal))
        div .columns {
            div .column {
                (cards::surfaces(&environment))
                (threads::card(&project, state.engine.template(&project.template).map(AsRef::as_ref)))
                (cards::why(&environment, &explain))
                (cards::isolation(environment.isolation.as_ref()))
            }
            div .column {
                (files)
                (cards::variables(&environment, &variables, now))
                (cards::danger(&project))
            }
        }
        (logs)
    });
    if let Some(refusal) = refusal {
        let status = StatusCode::from_u16(refusal.problem.status);
        *response.status_mut() = status.unwrap_or(StatusCode::BAD_REQUEST);
    }
    Ok(response)
}

async fn logs(
    state: &AppState,
    environment: &Environment,
    asked: Option<&str>,
) -> Result<Markup, Refusal> {
    if environment.surfaces.is_empty() {
        return Ok(html! {});
    }
    let shown = surface(environment, asked)?;
    let text = match tail(state, environment, &shown, Some(LOG_LINES)).await {
        Ok((bytes, _)) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(env = %environment.id, error, "a log cannot be shown");
            String::new()
        }
    };
    Ok(html! {
        section .card aria-labelledby="logs" {
            div .spread {
                h2 #logs { "Log" }
                nav .tabs aria-label="Logs of surfaces" {
                    @for surface in &environment.surfaces {
                        a href={ "?log=" (surface.name) "#logs" }
                            aria-current=[(surface.name == shown).then_some("true")] {
                            (surface.name)
                        }
                    }
                }
            }
            div #log-text data-live {
                @if text.is_empty() {
                    p .empty { "Nothing was written yet." }
                } @else {
                    pre tabindex="0" aria-label={ "Log of " (shown) } { (text) }
                }
            }
        }
    })
}
