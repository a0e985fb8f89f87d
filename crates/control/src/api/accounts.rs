//! Signing up, in and out: `POST /users`, `POST /login`, `POST /logout`, `/api/me`.
//!
//! Each takes a form from a person and JSON from a program. A form is answered by 303 with the
//! cookie, or by the same page with what was wrong; JSON by a status and a bearer token, which is
//! shown once.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeful_wire::{
    Code, Phase, Problem, UserName,
    api::{SignIn, SignUp, SignedUp},
    gate::Credential,
};

use super::{
    AppState, ChangePassword, Me, Refusal, SignedIn,
    body::{Either, Json},
    caller::{Caller, Client, MaybeCaller, SameOrigin},
    cookies, reference,
    shapes::SignOut,
};
use crate::{
    accounts::{AccountError, Proof, SESSION_LIFETIME},
    pages::sign::{self, Draft},
};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(sign_up))
        .routes(routes!(sign_in))
        .routes(routes!(sign_out))
        .routes(routes!(me))
        .routes(routes!(change_password))
}

/// The fields of the sign-up page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignUpForm {
    user: String,
    password: String,
    #[serde(default)]
    next: Option<String>,
}

/// The fields of the sign-in page. Either of password and token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignInForm {
    user: String,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    next: Option<String>,
}

/// Signs up: takes a name, makes the user's default project and wakes it.
#[utoipa::path(
    post, path = "/users", tag = "accounts", security(()), request_body = SignUp,
    responses(
        (status = 201, description = "Signed up; the environment is ready", body = SignedUp),
        (status = 202, description = "Signed up; the environment wakes", body = SignedUp),
        (status = 303, description = "To a form: the cookie, and on to the environment"),
        (status = 409, description = "The name is taken", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn sign_up(
    State(state): State<AppState>,
    _origin: SameOrigin,
    client: Client,
    body: Either<SignUp, SignUpForm>,
) -> Result<Response, Refusal> {
    match body {
        Either::Json(SignUp { user, password }) => {
            let project = register(&state, &user, password.as_deref(), &client).await?;
            let token = state.accounts.create_token(&user, "sign-up").await?.text;
            let ready = project.environments.iter().any(|env| env.phase == Phase::Ready);
            let status = if ready { StatusCode::CREATED } else { StatusCode::ACCEPTED };
            Ok((status, axum::Json(SignedUp { user, token, project })).into_response())
        }
        Either::Form(form) => {
            let hosts = state.engine.hosts();
            let next = reference::next(hosts, form.next.as_deref());
            let draft = Draft { user: &form.user, next };
            let registered = match user_name(&form.user) {
                Ok(user) => {
                    register(&state, &user, Some(&form.password), &client).await.map(|_| user)
                }
                Err(refusal) => Err(refusal),
            };
            match registered {
                Ok(user) => {
                    let home = format!("/u/{user}/");
                    welcome(&state, &user, &client, next.unwrap_or(&home)).await
                }
                Err(refusal) => refused_form(refusal, |refusal| {
                    sign::sign_up_page(hosts, &draft, Some(refusal))
                }),
            }
        }
    }
}

/// Makes the user and the first project. A user without the project is taken back, so that the
/// name can be tried again.
async fn register(
    state: &AppState,
    user: &UserName,
    password: Option<&str>,
    client: &Client,
) -> Result<wakeful_wire::api::Project, Refusal> {
    state.accounts.sign_up(user, password, client.address).await?;
    match state.engine.create_project(user, "My project", None, true).await {
        Ok(project) => Ok(project),
        Err(error) => {
            take_back(state, user).await;
            Err(error.into())
        }
    }
}

/// Undoes half a sign-up: whoever takes the name next begins with nothing of it.
async fn take_back(state: &AppState, user: &UserName) {
    let undone = async {
        for project in state.engine.projects(user).await? {
            state.engine.delete_project(project.id).await?;
        }
        state.accounts.undo_sign_up(user).await?;
        Ok::<_, Refusal>(())
    };
    // Why it failed is logged where it became a refusal.
    if undone.await.is_err() {
        tracing::error!(%user, "a user is left without a project");
    }
}

/// Signs in.
#[utoipa::path(
    post, path = "/login", tag = "accounts", security(()), request_body = SignIn,
    responses(
        (status = 200, description = "Signed in. By password, with a new bearer token", body = SignedIn),
        (status = 303, description = "To a form: the cookie, and on"),
        (status = 401, description = "Wrong user, password or token", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many wrong passwords", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn sign_in(
    State(state): State<AppState>,
    _origin: SameOrigin,
    client: Client,
    body: Either<SignIn, SignInForm>,
) -> Result<Response, Refusal> {
    match body {
        Either::Json(SignIn { user, token, password }) => {
            let proof = proof(password.as_deref(), token.as_deref())?;
            state.accounts.sign_in(&user, proof, client.address).await?;
            let token = match proof {
                Proof::Token(_) => None,
                Proof::Password(_) => Some(state.accounts.create_token(&user, "sign-in").await?),
            };
            let token = token.map(|token| token.text);
            let project = state.engine.projects(&user).await?.into_iter().next();
            Ok(axum::Json(SignedIn { user, token, project }).into_response())
        }
        Either::Form(form) => {
            let hosts = state.engine.hosts();
            let next = reference::next(hosts, form.next.as_deref());
            let draft = Draft { user: &form.user, next };
            match sign_in_form(&state, &form, &client).await {
                Ok(user) => welcome(&state, &user, &client, next.unwrap_or("/projects")).await,
                Err(refusal) => refused_form(refusal, |refusal| {
                    sign::sign_in_page(hosts, &draft, Some(refusal))
                }),
            }
        }
    }
}

async fn sign_in_form(
    state: &AppState,
    form: &SignInForm,
    client: &Client,
) -> Result<UserName, Refusal> {
    let filled = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
    let (password, token) = (filled(&form.password), filled(&form.token));
    let proof = proof(password.as_deref(), token.as_deref())?;
    // A text that can be nobody's name is answered as an unknown user is.
    let user = UserName::new(form.user.trim()).map_err(|_| AccountError::BadCredentials)?;
    state.accounts.sign_in(&user, proof, client.address).await?;
    Ok(user)
}

fn proof<'a>(password: Option<&'a str>, token: Option<&'a str>) -> Result<Proof<'a>, Refusal> {
    match (password, token) {
        (Some(password), None) => Ok(Proof::Password(password)),
        (None, Some(token)) => Ok(Proof::Token(token)),
        (Some(_), Some(_)) => {
            Err(Refusal::invalid("token", "Sign in with a password or a token, not with both."))
        }
        (None, None) => Err(Refusal::invalid("password", "Give a password or a token.")),
    }
}

fn user_name(text: &str) -> Result<UserName, Refusal> {
    UserName::new(text.trim()).map_err(|error| Refusal::invalid("user", format!("A name {error}.")))
}

/// Begins a session and leads on.
async fn welcome(
    state: &AppState,
    user: &UserName,
    client: &Client,
    to: &str,
) -> Result<Response, Refusal> {
    let value = state.accounts.open_session(user, &client.agent).await?;
    let cookie = cookies::session(state.engine.hosts(), &value, SESSION_LIFETIME);
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, to.to_owned())]).into_response();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// A person sees what was wrong beside the form; only what is not theirs to mend becomes an error
/// page.
fn refused_form(
    refusal: Refusal,
    page: impl FnOnce(&Refusal) -> Response,
) -> Result<Response, Refusal> {
    if refusal.code() == Code::Internal {
        return Err(refusal);
    }
    let mut response = page(&refusal);
    let status = StatusCode::from_u16(refusal.problem.status);
    *response.status_mut() = status.unwrap_or(StatusCode::BAD_REQUEST);
    if let Some(wait) = refusal.retry_after {
        let wait = crate::accounts::retry_after_s(wait);
        response.headers_mut().insert(header::RETRY_AFTER, wait.into());
    }
    Ok(response)
}

/// Signs out: ends the session of the cookie or the token that was sent, or every session.
#[utoipa::path(
    post, path = "/logout", tag = "accounts", request_body = SignOut,
    responses(
        (status = 204, description = "Signed out"),
        (status = 303, description = "To a form: the cookie is taken back, and on to the sign-in page"),
    )
)]
async fn sign_out(
    State(state): State<AppState>,
    MaybeCaller(caller): MaybeCaller,
    body: Either<SignOut, SignOut>,
) -> Result<Response, Refusal> {
    let (everywhere, by_form) = match body {
        Either::Json(SignOut { everywhere }) => (everywhere, false),
        Either::Form(SignOut { everywhere }) => (everywhere, true),
    };
    if let Some(caller) = caller {
        let accounts = &state.accounts;
        let ended = match (&caller.session, &caller.credential) {
            _ if everywhere => accounts.end_all_sessions(&caller.user).await,
            (Some(session), _) => accounts.end_session(&caller.user, session.id.as_str()).await,
            // What signed in is what is signed out: a program gives its token back.
            (None, Credential::Token(text)) => accounts.give_back_token(&caller.user, text).await,
            (None, Credential::Session(_) | Credential::Surface { .. }) => Ok(()),
        };
        match ended {
            // Ended meanwhile: as wanted.
            Ok(()) | Err(AccountError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut response = if by_form {
        (StatusCode::SEE_OTHER, [(header::LOCATION, "/login")]).into_response()
    } else {
        StatusCode::NO_CONTENT.into_response()
    };
    let cookie = cookies::expire_session(state.engine.hosts());
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Who is signed in.
#[utoipa::path(
    get, path = "/api/me", tag = "accounts",
    responses((status = 200, description = "The user", body = Me))
)]
async fn me(State(state): State<AppState>, caller: Caller) -> Result<axum::Json<Me>, Refusal> {
    let account = state.accounts.account(&caller.user).await?;
    let account = account.ok_or_else(|| Refusal::new(Code::Unauthenticated))?;
    Ok(axum::Json(Me {
        user: account.user,
        by: caller.by,
        created_at: account.created_at,
        has_password: account.has_password,
    }))
}

/// Sets a new password and ends every other session.
#[utoipa::path(
    put, path = "/api/me/password", tag = "accounts", request_body = ChangePassword,
    responses(
        (status = 204, description = "Changed"),
        (status = 401, description = "The present password is wrong", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn change_password(
    State(state): State<AppState>,
    caller: Caller,
    client: Client,
    Json(body): Json<ChangePassword>,
) -> Result<StatusCode, Refusal> {
    let keep = caller.session.as_ref().map(|session| &session.id);
    state
        .accounts
        .change_password(&caller.user, body.current.as_deref(), &body.new, keep, client.address)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
