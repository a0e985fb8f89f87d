//! The account: tokens, sessions, password.

use axum::{
    Router,
    extract::{Path, State},
    response::{IntoResponse, Redirect, Response},
    routing,
};
use http::{StatusCode, header};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    layout::{Page, Place},
    parts::{action, alert},
    times::{ago, ahead},
};
use crate::{
    accounts::{NewToken, PASSWORD_MAX, PASSWORD_MIN, SessionView, TokenView},
    api::{AppState, Caller, Client, CreateToken, Form, Refusal, expire_session},
};

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/account", routing::get(show))
        .route("/account/tokens", routing::get(back).post(create_token))
        .route("/account/tokens/{id}/revoke", routing::post(revoke_token))
        .route("/account/sessions/{id}/end", routing::post(end_session))
        .route("/account/sign-out-everywhere", routing::post(sign_out_everywhere))
        .route("/account/password", routing::get(back).post(change_password))
}

/// What an answer to a form adds to the page.
#[derive(Default)]
struct News {
    token: Option<NewToken>,
    token_fault: Option<Refusal>,
    password_fault: Option<Refusal>,
    password_changed: bool,
}

async fn back() -> Redirect {
    Redirect::to("/account")
}

async fn show(State(state): State<AppState>, caller: Caller) -> Result<Response, Refusal> {
    page(&state, &caller, News::default()).await
}

async fn create_token(
    State(state): State<AppState>,
    caller: Caller,
    Form(form): Form<CreateToken>,
) -> Result<Response, Refusal> {
    let news = match state.accounts.create_token(&caller.user, &form.name).await {
        Ok(token) => News { token: Some(token), ..News::default() },
        Err(error) => News { token_fault: Some(error.into()), ..News::default() },
    };
    page(&state, &caller, news).await
}

async fn revoke_token(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Redirect, Refusal> {
    state.accounts.revoke_token(&caller.user, &id).await?;
    Ok(Redirect::to("/account"))
}

async fn end_session(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Redirect, Refusal> {
    state.accounts.end_session(&caller.user, &id).await?;
    Ok(Redirect::to("/account"))
}

async fn sign_out_everywhere(
    State(state): State<AppState>,
    caller: Caller,
) -> Result<Response, Refusal> {
    state.accounts.end_all_sessions(&caller.user).await?;
    let mut response = Redirect::to("/login").into_response();
    let cookie = expire_session(state.engine.hosts());
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// The fields of the password form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PasswordForm {
    #[serde(default)]
    current: Option<String>,
    new: String,
}

async fn change_password(
    State(state): State<AppState>,
    caller: Caller,
    client: Client,
    Form(form): Form<PasswordForm>,
) -> Result<Response, Refusal> {
    let keep = caller.session.as_ref().map(|session| &session.id);
    let changed = state
        .accounts
        .change_password(&caller.user, form.current.as_deref(), &form.new, keep, client.address)
        .await;
    let news = match changed {
        Ok(()) => News { password_changed: true, ..News::default() },
        Err(error) => News { password_fault: Some(error.into()), ..News::default() },
    };
    page(&state, &caller, news).await
}

async fn page(state: &AppState, caller: &Caller, news: News) -> Result<Response, Refusal> {
    let user = &caller.user;
    let account = state.accounts.account(user).await?;
    let has_password = account.as_ref().is_some_and(|account| account.has_password);
    let tokens = state.accounts.tokens(user).await?;
    let sessions = state.accounts.sessions(user).await?;
    let now = state.engine.now();
    let fault = news.token_fault.as_ref().or(news.password_fault.as_ref());
    let status = fault.map_or(200, |refusal| refusal.problem.status);
    let mut response = Page::of(user, Place::Account, "Account").answer(&html! {
        div .head {
            div {
                h1 { (user) }
                @if let Some(account) = &account {
                    p .muted { "Signed up " (ago(account.created_at, now)) "." }
                }
            }
        }
        div .columns {
            section .card aria-labelledby="tokens" {
                h2 #tokens { "Tokens" }
                p .muted {
                    "By a token a program acts as you: send it as "
                    code { "Authorization: Bearer wk_…" } ", or use it with "
                    code { "wakeful login" } "."
                }
                @if let Some(token) = &news.token { (token_news(token)) }
                (alert(news.token_fault.as_ref()))
                (tokens_table(&tokens, now))
                form method="post" action="/account/tokens" .row {
                    div .field.grow {
                        label for="token-name" { "Name of a new token" }
                        input #token-name name="name" required maxlength="80" autocomplete="off"
                            placeholder="laptop";
                    }
                    button type="submit" { "Make a token" }
                }
            }
            div .column {
                section .card aria-labelledby="password" {
                    h2 #password { "Password" }
                    @if news.password_changed {
                        p .success role="status" {
                            "The password is changed, and every other browser is signed out."
                        }
                    }
                    (alert(news.password_fault.as_ref()))
                    (password_form(caller, has_password))
                }
                section .card aria-labelledby="sessions" {
                    h2 #sessions { "Browsers" }
                    p .muted { "Where you are signed in." }
                    (sessions_list(&sessions, caller, now))
                    div .actions {
                        (action("/account/sign-out-everywhere", "Sign out everywhere", "danger"))
                    }
                }
            }
        }
    });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    Ok(response)
}

fn token_news(token: &NewToken) -> Markup {
    html! {
        div .success role="status" {
            p { "Here is " strong { (token.view.name) } ". It is shown this once:" }
            p { code .secret { (token.text) } }
        }
    }
}

fn tokens_table(tokens: &[TokenView], now: wakeful_wire::Timestamp) -> Markup {
    html! {
        @if tokens.is_empty() {
            p .empty { "No tokens yet." }
        } @else {
            div .scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "Name" }
                            th .minor scope="col" { "Made" }
                            th scope="col" { "Last used" }
                            th scope="col" { span .visually-hidden { "Actions" } }
                        }
                    }
                    tbody {
                        @for token in tokens {
                            tr {
                                th scope="row" { (token.name) }
                                td .minor { (ago(token.created_at, now)) }
                                td {
                                    @match token.used_at {
                                        Some(at) => (ago(at, now)),
                                        None => span .muted { "never" },
                                    }
                                }
                                td .end {
                                    form method="post" action={
                                        "/account/tokens/" (token.id) "/revoke"
                                    } .inline {
                                        button .small type="submit"
                                            aria-label={ "Revoke " (token.name) } { "Revoke" }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn password_form(caller: &Caller, has_password: bool) -> Markup {
    html! {
        form method="post" action="/account/password" .stack {
            // Without a name it is not sent: it tells a password store whose password this is.
            input type="text" value=(caller.user) autocomplete="username" readonly hidden;
            @if has_password {
                div .field {
                    label for="current" { "Present password" }
                    input #current type="password" name="current" required
                        autocomplete="current-password" maxlength=(PASSWORD_MAX);
                }
            } @else {
                p .muted { "You have none yet: only tokens sign you in." }
            }
            div .field {
                label for="new" { "New password" }
                input #new type="password" name="new" required autocomplete="new-password"
                    minlength=(PASSWORD_MIN) maxlength=(PASSWORD_MAX);
            }
            button type="submit" { @if has_password { "Change" } @else { "Set" } " the password" }
        }
    }
}

fn sessions_list(
    sessions: &[SessionView],
    caller: &Caller,
    now: wakeful_wire::Timestamp,
) -> Markup {
    let here = caller.session.as_ref().map(|session| &session.id);
    html! {
        ul .list {
            @for session in sessions {
                li {
                    div .grow {
                        strong { (browser(&session.browser)) }
                        @if here == Some(&session.id) { " " span .tag { "this one" } }
                        p .muted {
                            "Seen " (ago(session.seen_at, now)) ", ends "
                            (ahead(session.expires_at, now))
                        }
                    }
                    form method="post" action={
                        "/account/sessions/" (session.id.as_str()) "/end"
                    } .inline {
                        button .small type="submit"
                            aria-label={ "Sign out " (browser(&session.browser)) } { "Sign out" }
                    }
                }
            }
        }
    }
}

/// What people call a browser, of what it calls itself.
fn browser(agent: &str) -> String {
    // Each claims to be all of those after it.
    let names =
        [("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome")];
    let systems = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS", "macOS"),
        ("Linux", "Linux"),
    ];
    let find = |table: &[(&str, &'static str)]| {
        table.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name)
    };
    let name = find(&names).or_else(|| agent.contains("Safari/").then_some("Safari"));
    match (name, find(&systems)) {
        (Some(name), Some(system)) => format!("{name} on {system}"),
        (Some(name), None) => name.to_owned(),
        (None, _) if agent.is_empty() => "Unknown browser".to_owned(),
        (None, _) => agent.chars().take(40).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_called_what_people_call_them() {
        let table = [
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
                "Chrome on Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0) Chrome/156.0 Safari/537.36 Edg/156.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/20 Safari/605.1.15",
                "Safari on macOS",
            ),
            (
                "Mozilla/5.0 (Android 15; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0",
                "Firefox on Android",
            ),
            ("curl/8.1", "curl/8.1"),
            ("", "Unknown browser"),
        ];
        for (agent, name) in table {
            assert_eq!(browser(agent), name);
        }
    }
}
