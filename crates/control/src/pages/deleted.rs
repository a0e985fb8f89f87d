//! Deleted projects, which can be restored for a while.

use axum::{Router, extract::State, response::Response, routing};
use maud::html;

use super::{
    layout::{Page, Place},
    parts::action,
    times::{ago, ahead},
};
use crate::api::{AppState, Caller, Refusal};

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/deleted", routing::get(list))
}

async fn list(State(state): State<AppState>, caller: Caller) -> Result<Response, Refusal> {
    let deleted = state.engine.deleted(&caller.user).await?;
    let now = state.engine.now();
    Ok(Page::of(&caller.user, Place::Projects, "Deleted projects").answer(&html! {
        nav .crumbs aria-label="Breadcrumb" { a href="/projects" { "Projects" } }
        div .head {
            div {
                h1 { "Deleted projects" }
                p .muted { "Nothing of them runs. Their files are kept for a while." }
            }
        }
        @if deleted.is_empty() {
            section .card.empty-state {
                p .muted { "Nothing is deleted." }
                p { a .button href="/projects" { "Back to the projects" } }
            }
        } @else {
            section .card {
                ul .list {
                    @for project in &deleted {
                        li {
                            div .grow {
                                strong { (project.title) }
                                p .muted {
                                    "Deleted " (ago(project.deleted_at, now))
                                    ", gone for good " (ahead(project.keep_until, now))
                                }
                            }
                            (action(&format!("/projects/{}/restore", project.id), "Restore", ""))
                        }
                    }
                }
            }
        }
    }))
}
