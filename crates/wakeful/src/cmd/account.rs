//! `login`, `signup`, `logout`, `whoami` and `tokens`.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wakeful_wire::{
    UserName,
    api::{SignIn, SignUp},
};

use super::{
    args::{LoginArgs, SignupArgs, TokensArgs, TokensWhat},
    prompt,
};
use crate::{
    client::{
        Client,
        credentials::{Account, Credentials},
        credentials_file,
    },
    output::{self, Output},
};

/// What signing in and signing up answer, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Signed {
    user: String,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    project: Value,
}

/// What `login` and `signup` print.
#[derive(Debug, Serialize)]
struct SignedIn<'a> {
    server: &'a str,
    user: &'a str,
    #[serde(skip_serializing_if = "Value::is_null")]
    project: &'a Value,
}

/// `wakeful login`.
pub(super) async fn login(
    options: LoginArgs,
    variables: &BTreeMap<String, String>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let client = Client::anonymous(&options.server)?;
    let user: UserName = options.user.parse().context("--user")?;
    let password = match (&options.token, options.password_stdin) {
        (Some(_), _) => None,
        (None, true) => Some(prompt::from_stdin()?),
        (None, false) => Some(prompt::from_terminal("Password")?),
    };
    let body = SignIn { user, token: options.token.clone(), password };
    let signed: Signed = client.post(&["login"], &body).await?;
    keep(&client, signed, options.token, variables, output)
}

/// `wakeful signup`.
pub(super) async fn sign_up(
    options: SignupArgs,
    variables: &BTreeMap<String, String>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let client = Client::anonymous(&options.server)?;
    let user: UserName = options.user.parse().context("--user")?;
    let password = match (options.no_password, options.password_stdin) {
        (true, _) => None,
        (false, true) => Some(prompt::from_stdin()?),
        (false, false) => {
            let first = prompt::from_terminal("New password")?;
            let second = prompt::from_terminal("The same again")?;
            anyhow::ensure!(first == second, "the two passwords differ");
            Some(first)
        }
    };
    let signed: Signed = client.post(&["users"], &SignUp { user, password }).await?;
    keep(&client, signed, None, variables, output)
}

/// Stores the token and says who is signed in now.
fn keep(
    client: &Client,
    signed: Signed,
    given: Option<String>,
    variables: &BTreeMap<String, String>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let token = signed.token.or(given).context("the server gave no token")?;
    let file = place(variables)?;
    let mut credentials = Credentials::load(&file)?;
    let server = client.server();
    credentials.current = Some(server.clone());
    let account = Account { user: signed.user.clone(), token };
    credentials.servers.insert(server.clone(), account);
    credentials.store(&file)?;
    let signed_in = SignedIn { server: &server, user: &signed.user, project: &signed.project };
    output.print(&signed_in, |now| format!("Signed in to {} as {}.", now.server, now.user))?;
    Ok(ExitCode::SUCCESS)
}

fn place(variables: &BTreeMap<String, String>) -> anyhow::Result<PathBuf> {
    credentials_file(variables).context("neither XDG_CONFIG_HOME nor HOME is set")
}

/// `wakeful logout`.
pub(super) async fn logout(
    url: Option<&str>,
    variables: &BTreeMap<String, String>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let client = Client::signed_in(url, variables)?;
    let server = client.server();
    // A server that is gone, or a token that it has forgotten, must not keep us signed in here.
    match client.post::<Value>(&["logout"], &serde_json::json!({})).await {
        Ok(_) if client.get::<Value>(&["api", "me"]).await.is_ok() => {
            output.note("The token stays valid; it can be revoked on the account page.");
        }
        Ok(_) => {}
        Err(error) => output.note(&format!("warning: {:#}", anyhow::Error::from(error))),
    }
    let file = place(variables)?;
    let mut credentials = Credentials::load(&file)?;
    credentials.servers.remove(&server);
    if credentials.current.as_deref() == Some(&server) {
        credentials.current = None;
    }
    credentials.store(&file)?;
    output
        .print(&serde_json::json!({ "server": server }), |_| format!("Signed out of {server}."))?;
    Ok(ExitCode::SUCCESS)
}

/// `wakeful whoami`.
pub(super) async fn whoami(client: &Client, output: Output) -> anyhow::Result<ExitCode> {
    let mut me: Value = client.get(&["api", "me"]).await?;
    me["server"] = client.server().into();
    output.print(&me, |me| {
        let user = me["user"].as_str().unwrap_or("?");
        format!("{} on {}", output::printable(user), client.server())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// `wakeful tokens`.
pub(super) async fn tokens(
    client: &Client,
    options: TokensArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    match options.what.unwrap_or(TokensWhat::List) {
        TokensWhat::List => {
            let tokens: Vec<Value> = client.get(&["api", "tokens"]).await?;
            output.print(&tokens, |tokens| {
                let cell = |token: &Value, name: &str| match token[name].as_str() {
                    Some(text) => text.to_owned(),
                    None => token[name].to_string(),
                };
                let rows: Vec<_> =
                    tokens.iter().map(|token| [cell(token, "id"), cell(token, "name")]).collect();
                output::table(["ID", "NAME"], &rows)
            })?;
        }
        TokensWhat::Create { name } => {
            let body = serde_json::json!({ "name": name });
            let token: Value = client.post(&["api", "tokens"], &body).await?;
            output.note("Keep it: it is not shown again.");
            output.print(&token, |token| token["token"].as_str().unwrap_or_default().to_owned())?;
        }
        TokensWhat::Rm { id } => {
            let request = client.request(Method::DELETE, ["api", "tokens", &id]);
            client.json::<Value>(request).await?;
            output.print(&serde_json::json!({ "id": id }), |_| "Revoked.".to_owned())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
