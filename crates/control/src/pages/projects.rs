//! The projects of a user, and making one.

use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse, Redirect, Response},
    routing,
};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use wakeful_wire::{
    Timestamp,
    api::{CreateProject, Environment, Project, TemplateView},
};

use super::{
    layout::{Page, Place},
    parts::{alert, open_link, phase},
    times::ago,
};
use crate::api::{AppState, Caller, Form, Refusal, TITLE_MAX, bring_back, make, remove};

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/projects", routing::get(list).post(create))
        .route("/projects/new", routing::get(new))
        .route("/projects/{id}", routing::get(show))
        .route("/projects/{id}/delete", routing::post(delete))
        .route("/projects/{id}/restore", routing::post(restore))
}

async fn list(State(state): State<AppState>, caller: Caller) -> Result<Response, Refusal> {
    let projects = state.engine.projects(&caller.user).await?;
    let deleted = state.engine.deleted(&caller.user).await?.len();
    let now = state.engine.now();
    let page = Page::of(&caller.user, Place::Projects, "Projects").live();
    Ok(page.answer(&html! {
        div .head {
            div {
                h1 { "Projects" }
                p .muted { "Each sleeps until somebody visits, and keeps its files." }
            }
            div .actions {
                @if deleted > 0 {
                    a .button href="/deleted" { "Deleted (" (deleted) ")" }
                }
                a .button.primary href="/projects/new" { "New project" }
            }
        }
        @if projects.is_empty() {
            section .card.empty-state {
                h2 { "No projects" }
                p .muted { "Make one, and it gets an environment of its own." }
                p { a .button.primary href="/projects/new" { "New project" } }
            }
        } @else {
            ul .grid {
                @for project in &projects {
                    @for environment in &project.environments {
                        (card(project, environment, now))
                    }
                }
            }
        }
    }))
}

fn card(project: &Project, environment: &Environment, now: Timestamp) -> Markup {
    html! {
        li .card.project id={ "project-" (environment.id) } data-live {
            div .spread {
                h2 { a href={ "/environments/" (environment.id) } { (project.title) } }
                (phase(environment))
            }
            p .muted {
                span .tag { (project.template) }
                " since " (ago(environment.since, now))
            }
            @if let Some(failure) = &environment.failure {
                p .fault { (failure.reason) }
            }
            div .links {
                @for surface in &environment.surfaces {
                    (open_link(surface))
                }
            }
        }
    }
}

async fn new(State(state): State<AppState>, caller: Caller) -> Response {
    new_page(&state, &caller, "", None, None)
}

/// The fields of the form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewProject {
    title: String,
    template: String,
}

async fn create(
    State(state): State<AppState>,
    caller: Caller,
    Form(form): Form<NewProject>,
) -> Response {
    let template = form
        .template
        .parse()
        .map_err(|error| Refusal::invalid("template", format!("A template's name {error}.")));
    let made = match template {
        Ok(template) => {
            let wanted = CreateProject { title: form.title.clone(), template: Some(template) };
            make(&state, &caller, &wanted).await
        }
        Err(refusal) => Err(refusal),
    };
    match made {
        Ok(project) => Redirect::to(&format!("/projects/{}", project.id)).into_response(),
        Err(refusal) => {
            let chosen = Some(form.template.as_str());
            new_page(&state, &caller, &form.title, chosen, Some(&refusal))
        }
    }
}

fn new_page(
    state: &AppState,
    caller: &Caller,
    title: &str,
    chosen: Option<&str>,
    refusal: Option<&Refusal>,
) -> Response {
    let templates = state.engine.templates();
    let chosen = chosen.unwrap_or_else(|| state.engine.default_template().as_str());
    let page = Page::of(&caller.user, Place::Projects, "New project");
    let mut response = page.answer(&html! {
        nav .crumbs aria-label="Breadcrumb" { a href="/projects" { "Projects" } }
        section .card.narrow-form {
            h1 { "New project" }
            (alert(refusal))
            form method="post" action="/projects" .stack {
                div .field {
                    label for="title" { "Title" }
                    input #title name="title" value=(title) required autofocus
                        maxlength=(TITLE_MAX) autocomplete="off";
                }
                fieldset .choices {
                    legend { "What it runs" }
                    @for template in &templates {
                        (choice(template, template.name.as_str() == chosen))
                    }
                }
                div .actions {
                    button .primary type="submit" { "Make it" }
                    a .button href="/projects" { "Cancel" }
                }
            }
        }
    });
    if let Some(refusal) = refusal {
        let status = StatusCode::from_u16(refusal.problem.status);
        *response.status_mut() = status.unwrap_or(StatusCode::BAD_REQUEST);
    }
    response
}

fn choice(template: &TemplateView, chosen: bool) -> Markup {
    let id = format!("template-{}", template.name);
    html! {
        label .choice for=(id) data-missing[template.missing.is_some()] {
            input id=(id) type="radio" name="template" value=(template.name) required
                checked[chosen && template.missing.is_none()] disabled[template.missing.is_some()];
            span .grow {
                strong { (template.title) }
                @if let Some(description) = &template.description {
                    span .muted { (description) }
                }
                @if let Some(missing) = &template.missing {
                    span .fault { (missing) }
                }
            }
        }
    }
}

/// A project has one environment so far; its page is the project's.
async fn show(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Redirect, Refusal> {
    let project = caller.project(&state, &id).await?;
    let environment = project.environments.first().map_or_else(|| project.id.into(), |env| env.id);
    Ok(Redirect::to(&format!("/environments/{environment}")))
}

async fn delete(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Redirect, Refusal> {
    remove(&state, &caller, &id).await?;
    Ok(Redirect::to("/deleted"))
}

async fn restore(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Redirect, Refusal> {
    let project = bring_back(&state, &caller, &id).await?;
    Ok(Redirect::to(&format!("/projects/{}", project.id)))
}
