//! Signing up and in.

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Redirect, Response},
    routing,
};
use maud::{Markup, html};
use serde::Deserialize;
use wakeful_wire::{UserName, hosts::Hosts};

use super::{
    layout::{Page, Place},
    parts::alert,
};
use crate::{
    accounts::{PASSWORD_MAX, PASSWORD_MIN},
    api::{AppState, Asked, MaybeCaller, PageCsp, Refusal, encode, next_place},
};

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/", routing::get(front))
        .route("/signup", routing::get(sign_up))
        // Where the form's own page stands after a refusal: loading it again shows an empty one.
        .route("/users", routing::get(async || Redirect::to("/signup")))
        .route("/login", routing::get(sign_in))
}

/// What stood in a form that was refused.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Draft<'a> {
    /// The user's name.
    pub(crate) user: &'a str,
    /// Where it leads on to.
    pub(crate) next: Option<&'a str>,
}

/// The query of both pages.
#[derive(Deserialize)]
struct Query {
    #[serde(default)]
    next: Option<String>,
}

/// The front door: projects for whoever is signed in, else the sign-up page.
async fn front(State(state): State<AppState>, MaybeCaller(caller): MaybeCaller) -> Response {
    match caller {
        Some(_) => Redirect::to("/projects").into_response(),
        None => sign_up_page(state.engine.hosts(), &Draft::default(), None),
    }
}

async fn sign_up(State(state): State<AppState>, Asked(query): Asked<Query>) -> Response {
    let hosts = state.engine.hosts();
    let draft = Draft { user: "", next: next_place(hosts, query.next.as_deref()) };
    sign_up_page(hosts, &draft, None)
}

async fn sign_in(
    State(state): State<AppState>,
    MaybeCaller(caller): MaybeCaller,
    Asked(query): Asked<Query>,
) -> Response {
    let hosts = state.engine.hosts();
    let next = next_place(hosts, query.next.as_deref());
    match caller {
        // Somebody with a session was sent here: then it is not the session that was missing.
        Some(_) if next.is_none() => Redirect::to("/projects").into_response(),
        Some(_) | None => sign_in_page(hosts, &Draft { user: "", next }, None),
    }
}

fn page(title: &str) -> Page<'_> {
    let csp = PageCsp::LeadsToSurfaces;
    Page { title, user: None, place: Place::Nowhere, csp, live: false }
}

/// The id of the text that says what was wrong with a field, if that field was refused.
fn fault_of(refusal: Option<&Refusal>, field: &str) -> Option<&'static str> {
    refusal.filter(|refusal| refusal.problem.field.as_deref() == Some(field)).map(|_| "fault")
}

fn hidden_next(draft: &Draft<'_>) -> Markup {
    html! {
        @if let Some(next) = draft.next {
            input type="hidden" name="next" value=(next);
        }
    }
}

fn with_next(path: &str, draft: &Draft<'_>) -> String {
    match draft.next {
        Some(next) => format!("{path}?next={}", encode(next)),
        None => path.to_owned(),
    }
}

/// The sign-up page, with what was wrong.
pub(crate) fn sign_up_page(
    _hosts: &Hosts,
    draft: &Draft<'_>,
    refusal: Option<&Refusal>,
) -> Response {
    let name_fault = fault_of(refusal, "user");
    let password_fault = fault_of(refusal, "password");
    page("Sign up").answer(&html! {
        div .hero {
            div .pitch {
                h1 { "An environment of your own, asleep until you need it." }
                p .lead {
                    "It wakes on the first visit, keeps every file, and sleeps again when nobody "
                    "is there."
                }
                ul .points {
                    li { "Agents, apps, editors and databases at addresses that stay." }
                    li { "Nothing runs, and nothing is lost, while you are away." }
                    li { "It always says why it is awake and when it will sleep." }
                }
            }
            section .card aria-labelledby="sign-up" {
                h2 #sign-up { "Sign up" }
                (alert(refusal))
                form method="post" action="/users" .stack {
                    (hidden_next(draft))
                    div .field {
                        label for="user" { "Name" }
                        input #user name="user" value=(draft.user) required autofocus
                            autocomplete="username" autocapitalize="none" spellcheck="false"
                            maxlength=(UserName::MAX) pattern="[a-z0-9]([a-z0-9\\-]*[a-z0-9])?"
                            aria-invalid=[name_fault.map(|_| "true")]
                            aria-describedby=(name_fault.unwrap_or("user-hint"));
                        p .hint #user-hint { "Lower-case letters, digits and dashes." }
                    }
                    div .field {
                        label for="password" { "Password" }
                        input #password type="password" name="password" required
                            autocomplete="new-password" minlength=(PASSWORD_MIN)
                            maxlength=(PASSWORD_MAX)
                            aria-invalid=[password_fault.map(|_| "true")]
                            aria-describedby=(password_fault.unwrap_or("password-hint"));
                        p .hint #password-hint { "At least " (PASSWORD_MIN) " characters." }
                    }
                    button .primary.wide type="submit" { "Create my environment" }
                }
                p .muted.below {
                    "Signed up already? " a href=(with_next("/login", draft)) { "Sign in" }
                }
            }
        }
    })
}

/// The sign-in page, with what was wrong.
pub(crate) fn sign_in_page(
    _hosts: &Hosts,
    draft: &Draft<'_>,
    refusal: Option<&Refusal>,
) -> Response {
    page("Sign in").answer(&html! {
        section .card.narrow aria-labelledby="sign-in" {
            h1 #sign-in { "Sign in" }
            (alert(refusal))
            form method="post" action="/login" .stack {
                (hidden_next(draft))
                div .field {
                    label for="user" { "Name" }
                    input #user name="user" value=(draft.user) required autofocus
                        autocomplete="username" autocapitalize="none" spellcheck="false"
                        maxlength=(UserName::MAX);
                }
                div .field {
                    label for="password" { "Password" }
                    input #password type="password" name="password"
                        autocomplete="current-password" maxlength=(PASSWORD_MAX);
                }
                details {
                    summary { "Use a token instead" }
                    div .field {
                        label for="token" { "Token" }
                        input #token type="password" name="token" autocomplete="off"
                            placeholder="wk_…" spellcheck="false";
                    }
                }
                button .primary.wide type="submit" { "Sign in" }
            }
            p .muted.below {
                "New here? " a href=(with_next("/signup", draft)) { "Sign up" }
            }
        }
    })
}
