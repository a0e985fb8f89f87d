//! One environment.

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
use wakeful_wire::{
    Phase, Timestamp,
    api::{AwakeBecause, Environment, Explain, FailureView, Project},
    sandbox::IsolationInForce,
};

use super::{
    layout::{Page, Place},
    parts::{action, alert, open_link, phase},
    times::{ago, span},
};
use crate::{
    api::{AppState, Asked, Caller, Form, Refusal, keep_awake, surface, tail},
    variables::VariableView,
};

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
    let now = state.engine.now();
    let page = Page::of(&caller.user, Place::Projects, &project.title).live();
    let mut response = page.answer(&html! {
        nav .crumbs aria-label="Breadcrumb" { a href="/projects" { "Projects" } }
        (head(&project, &environment, now))
        (alert(refusal))
        div .columns {
            (why(&environment, &explain))
            (surfaces(&environment))
            (variables_card(&environment, &variables, now))
            (logs)
            (isolation(environment.isolation.as_ref()))
            (danger(&project))
        }
    });
    if let Some(refusal) = refusal {
        let status = StatusCode::from_u16(refusal.problem.status);
        *response.status_mut() = status.unwrap_or(StatusCode::BAD_REQUEST);
    }
    Ok(response)
}

/// What can be done in a phase.
const fn possible(phase: Phase) -> (bool, bool, bool) {
    // Wake, suspend, restart.
    match phase {
        Phase::Suspended | Phase::Frozen | Phase::Suspending => (true, false, false),
        Phase::Starting => (false, true, true),
        Phase::Ready => (false, true, true),
        Phase::Failed => (true, false, false),
        Phase::Disabled | Phase::Publishing | Phase::Deleted => (false, false, false),
    }
}

fn head(project: &Project, environment: &Environment, now: Timestamp) -> Markup {
    let (wake, suspend, restart) = possible(environment.phase);
    let at = format!("/environments/{}", environment.id);
    html! {
        div .head #head data-live {
            div {
                h1 { (project.title) }
                p .status {
                    (phase(environment))
                    span .muted {
                        " since " (ago(environment.since, now)) " · "
                        span .tag { (project.template) }
                    }
                }
            }
            div .actions {
                @if wake { (action(&format!("{at}/wake"), "Wake", "primary")) }
                @if suspend { (action(&format!("{at}/suspend"), "Put to sleep", "")) }
                @if restart { (action(&format!("{at}/restart"), "Restart", "")) }
            }
            @if let Some(failure) = &environment.failure { (fault(failure)) }
        }
    }
}

fn fault(failure: &FailureView) -> Markup {
    let plural = if failure.attempts == 1 { "" } else { "s" };
    html! {
        div .alert.full role="alert" {
            strong { "It did not start: " } (failure.reason)
            p .muted {
                "Tried " (failure.attempts) " time" (plural) ". "
                @if failure.permanent {
                    "It stays so until something is changed."
                } @else if let Some(ms) = failure.retry_in_ms {
                    "It is tried again in " (span(std::time::Duration::from_millis(ms))) "."
                }
            }
        }
    }
}

fn why(environment: &Environment, explain: &Explain) -> Markup {
    let awake = matches!(environment.phase, Phase::Ready | Phase::Starting);
    html! {
        section .card aria-labelledby="why" {
            div #why-now data-live {
                h2 #why { @if awake { "Why it is awake" } @else { "Why it sleeps" } }
                p .sentence { (explain.sentence) }
                @if !explain.awake_because.is_empty() {
                    ul .reasons {
                        @for reason in &explain.awake_because { li { (because(reason)) } }
                    }
                }
            }
            form method="post" action={ "/environments/" (environment.id) "/extend" } .row {
                div .field {
                    label for="minutes" { "Keep it awake for" }
                    select #minutes name="minutes" {
                        option value="30" { "30 minutes" }
                        option value="60" selected { "1 hour" }
                        option value="240" { "4 hours" }
                        option value="720" { "12 hours" }
                    }
                }
                button type="submit" { "Extend" }
            }
        }
    }
}

fn because(reason: &AwakeBecause) -> Markup {
    match reason {
        AwakeBecause::Clock { surface, expires_in_ms } => html! {
            "The " strong { (surface) } " clock runs for "
            (span(std::time::Duration::from_millis(*expires_in_ms))) " more."
        },
        AwakeBecause::Lease { surface, what, count, .. } => html! {
            strong { (surface) } ": " (count) " open " (what.as_str())
            @if *count != 1 { "s" }
        },
    }
}

fn surfaces(environment: &Environment) -> Markup {
    html! {
        section .card aria-labelledby="surfaces" {
            h2 #surfaces { "Ways in" }
            @if environment.surfaces.is_empty() {
                p .empty { "Its template has no surfaces." }
            }
            ul .list #surface-list data-live {
                @for surface in &environment.surfaces {
                    li {
                        div .grow {
                            strong { (surface.name) } " "
                            @if surface.ready {
                                span .tag.good { "answers" }
                            } @else if environment.phase == Phase::Ready {
                                span .tag { "not yet" }
                            }
                            @if let Some(reason) = &surface.reason {
                                p .fault { (reason) }
                            }
                            @if let Some(path) = &surface.path_url {
                                p .muted.address { "For programs: " code { (path) } }
                            }
                        }
                        (open_link(surface))
                    }
                }
            }
            p .muted { "A visit wakes it." }
        }
    }
}

fn variables_card(environment: &Environment, variables: &[VariableView], now: Timestamp) -> Markup {
    let at = format!("/environments/{}/variables", environment.id);
    html! {
        section .card aria-labelledby="variables" {
            h2 #variables { "Variables and secrets" }
            p .muted {
                "Its processes get them when it starts the next time. A secret is never shown again."
            }
            @if !variables.is_empty() {
                div .scroll {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Name" }
                                th scope="col" { "Value" }
                                th scope="col" { "Set" }
                                th scope="col" { span .visually-hidden { "Actions" } }
                            }
                        }
                        tbody {
                            @for variable in variables {
                                tr {
                                    th scope="row" { code { (variable.name) } }
                                    td .value {
                                        code { (variable.shown) }
                                        @if variable.secret { " " span .tag { "secret" } }
                                    }
                                    td { (ago(variable.updated_at, now)) }
                                    td .end {
                                        form method="post" action={
                                            (at) "/" (variable.name) "/remove"
                                        } .inline {
                                            button .small type="submit"
                                                aria-label={ "Remove " (variable.name) } {
                                                "Remove"
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            form method="post" action=(at) .stack {
                div .pair {
                    div .field {
                        label for="variable-name" { "Name" }
                        input #variable-name name="name" required autocomplete="off"
                            autocapitalize="characters" spellcheck="false" maxlength="128"
                            pattern="[A-Za-z_][A-Za-z0-9_]*" placeholder="API_KEY";
                    }
                    div .field {
                        label for="variable-value" { "Value" }
                        textarea #variable-value name="value" rows="1" autocomplete="off"
                            spellcheck="false" {}
                    }
                }
                div .row {
                    label .check.grow {
                        input type="checkbox" name="secret" value="yes" checked;
                        "It is a secret"
                    }
                    button type="submit" { "Set" }
                }
            }
        }
    }
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
        section .card.wide aria-labelledby="logs" {
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

fn isolation(isolation: Option<&IsolationInForce>) -> Markup {
    html! {
        section .card aria-labelledby="isolation" {
            h2 #isolation { "Isolation" }
            div #isolation-now data-live {
                @match isolation {
                    None => p .muted { "It is applied, and shown here, while it is awake." },
                    Some(isolation) => {
                        p { "In force: " strong { (isolation.rung) } }
                        dl .facts {
                            @for (part, now) in &isolation.parts {
                                dt { (part) }
                                dd { (now) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn danger(project: &Project) -> Markup {
    html! {
        section .card aria-labelledby="delete" {
            h2 #delete { "Delete" }
            p .muted {
                "It stops at once. Its files are kept for a while, and it can be restored until then."
            }
            details {
                summary { "Delete this project…" }
                (action(
                    &format!("/projects/{}/delete", project.id),
                    &format!("Delete “{}”", project.title),
                    "danger",
                ))
            }
        }
    }
}
