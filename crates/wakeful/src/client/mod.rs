//! The client of a server's public API that the commands share.

pub mod credentials;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, header};
use serde::{Serialize, de::DeserializeOwned};
use wakeful_client::http::{BodyError, body, http_client};
use wakeful_wire::Problem;

use crate::env::{TOKEN, URL};
use credentials::{Account, Credentials};

/// How long a server may take to answer what is no stream.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes of an error's text that are shown.
const ERROR_MAX: usize = 400;

/// Why a request to a server failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused, and said why.
    #[error("{}", describe(.0))]
    Problem(Box<Problem>),
    /// The server, or something in front of it, answered something that no API route answers.
    #[error("the server answered {status}{}", excerpt(.text))]
    Unexpected {
        /// The status.
        status: StatusCode,
        /// The beginning of its body.
        text: String,
    },
    /// No answer came.
    #[error("{server} cannot be reached")]
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The answer was cut off or is not what was asked for.
    #[error("the answer cannot be read")]
    Garbled(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file of this machine that was to be sent cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Nobody is signed in here.
    #[error("not signed in: run `wakeful login URL --user NAME`, or set {URL} and {TOKEN}")]
    NotSignedIn,
    /// The text is no server's address.
    #[error("`{0}` is no server's address: expected one like http://wakeful.localhost:7878")]
    Address(String),
}

impl ClientError {
    /// What the server said, where it said something.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        if let Self::Problem(problem) = self { Some(problem) } else { None }
    }
}

fn describe(problem: &Problem) -> String {
    let text = problem.detail.as_deref().unwrap_or(&problem.title);
    let field = problem.field.as_deref().map(|field| format!("{field}: ")).unwrap_or_default();
    format!("{}{} ({})", field, crate::output::printable(text), problem.code)
}

fn excerpt(text: &str) -> String {
    let text = crate::output::printable(text.trim());
    if text.is_empty() || text.starts_with('<') {
        return String::new();
    }
    format!(": {}", text.chars().take(ERROR_MAX).collect::<String>())
}

/// A server, and who we are there.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<Token>,
}

/// A token that does not print.
#[derive(Clone)]
struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Client {
    /// A client that is not signed in.
    ///
    /// # Errors
    /// The address is none, or no client can be built on this machine.
    pub fn anonymous(server: &str) -> anyhow::Result<Self> {
        Self::new(address(server)?, None)
    }

    /// A client for `url`, else for [`URL`], else for the server signed in to last; with the token
    /// of [`TOKEN`], else the one stored for that server.
    ///
    /// # Errors
    /// [`ClientError::NotSignedIn`] where there is no server or no token; a credentials file that
    /// cannot be read.
    pub fn signed_in(
        url: Option<&str>,
        variables: &BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let (server, account) = Self::account(url, variables)?;
        let token = match variables.get(TOKEN).filter(|token| !token.is_empty()) {
            Some(token) => token.clone(),
            None => account.ok_or(ClientError::NotSignedIn)?.token,
        };
        Self::new(server, Some(token))
    }

    /// A client like [`Client::signed_in`], but without a token where there is none.
    ///
    /// # Errors
    /// There is no server; a credentials file that cannot be read.
    pub fn perhaps_signed_in(
        url: Option<&str>,
        variables: &BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let (server, account) = Self::account(url, variables)?;
        let token = variables.get(TOKEN).filter(|token| !token.is_empty()).cloned();
        Self::new(server, token.or_else(|| account.map(|account| account.token)))
    }

    /// Which server is meant, and who we are there according to the credentials file.
    fn account(
        url: Option<&str>,
        variables: &BTreeMap<String, String>,
    ) -> anyhow::Result<(Url, Option<Account>)> {
        let stored =
            credentials_file(variables).map(|file| Credentials::load(&file)).transpose()?;
        let stored = stored.unwrap_or_default();
        let named = url
            .map(str::to_owned)
            .or_else(|| variables.get(URL).filter(|url| !url.is_empty()).cloned());
        let server = match named {
            Some(named) => address(&named)?,
            None => address(stored.current.as_deref().ok_or(ClientError::NotSignedIn)?)?,
        };
        let account = stored.servers.get(&origin(&server)).cloned();
        Ok((server, account))
    }

    fn new(base: Url, token: Option<String>) -> anyhow::Result<Self> {
        Ok(Self { http: http_client(&base)?, base, token: token.map(Token) })
    }

    /// The server's origin.
    #[must_use]
    pub fn server(&self) -> String {
        origin(&self.base)
    }

    /// The HTTP client itself, for requests that are no API calls.
    #[must_use]
    pub const fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// The token in use.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.0.as_str())
    }

    /// A request to a route. `segments` are percent-encoded one by one.
    pub fn request<'a>(
        &self,
        method: Method,
        segments: impl IntoIterator<Item = &'a str>,
    ) -> RequestBuilder {
        self.request_with(method, segments, &[])
    }

    /// The same with a query.
    pub fn request_with<'a>(
        &self,
        method: Method,
        segments: impl IntoIterator<Item = &'a str>,
        query: &[(&str, String)],
    ) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.clear().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self
            .http
            .request(method, url)
            .header(header::ACCEPT, "application/json, application/problem+json");
        match &self.token {
            Some(token) => request.bearer_auth(&token.0),
            None => request,
        }
    }

    /// Sends a request and checks the answer's status; the body has not been read yet.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request
            .send()
            .await
            .map_err(|source| ClientError::Unreachable { server: self.server(), source })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = String::from_utf8_lossy(&body(response).await?).into_owned();
        Err(match serde_json::from_str::<Problem>(&text) {
            Ok(problem) => ClientError::Problem(Box::new(problem)),
            Err(_) => ClientError::Unexpected { status, text },
        })
    }

    /// Asks for JSON.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn get<T: DeserializeOwned>(&self, segments: &[&str]) -> Result<T, ClientError> {
        let request = self.request(Method::GET, segments.iter().copied());
        self.json(request).await
    }

    /// Sends JSON and takes JSON.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let request = self.request(Method::POST, segments.iter().copied());
        self.json(request.json(body)).await
    }

    /// Sends a request and reads the whole answer as JSON.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, ClientError> {
        let response = self.send(request.timeout(ANSWER_TIMEOUT)).await?;
        let bytes = body(response).await?;
        // An answer without a body reads as null, which is what a caller without interest asks for.
        let bytes = if bytes.is_empty() { b"null".to_vec() } else { bytes };
        serde_json::from_slice(&bytes).map_err(|error| ClientError::Garbled(error.into()))
    }
}

impl From<BodyError> for ClientError {
    fn from(error: BodyError) -> Self {
        Self::Garbled(error.into())
    }
}

/// The file that `login` writes, where there is a place for it.
#[must_use]
pub fn credentials_file(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let set = |name: &str| variables.get(name).filter(|value| value.starts_with('/'));
    let directory = match (set("XDG_CONFIG_HOME"), set("HOME")) {
        (Some(directory), _) => PathBuf::from(directory),
        (None, Some(home)) => PathBuf::from(home).join(".config"),
        (None, None) => return None,
    };
    Some(directory.join("wakeful").join("credentials.json"))
}

/// Reads a server's address: `http` or `https`, and whatever path stands behind is dropped.
fn address(text: &str) -> Result<Url, ClientError> {
    let wrong = || ClientError::Address(text.to_owned());
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&with_scheme).map_err(|_| wrong())?;
    let fits = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none();
    if !fits {
        return Err(wrong());
    }
    url.set_path("/");
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// Scheme, host and port, as stored.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_address_is_its_origin() {
        let table = [
            ("http://wakeful.localhost:7878", Some("http://wakeful.localhost:7878")),
            ("wakeful.localhost:7878", Some("http://wakeful.localhost:7878")),
            ("https://Agents.Example.org/projects?x#y", Some("https://agents.example.org")),
            ("https://user:pass@example.org", None),
            ("ftp://example.org", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(address(text).ok().map(|url| origin(&url)).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn credentials_stand_below_the_configuration_directory() {
        let file = |pairs: &[(&str, &str)]| {
            credentials_file(
                &pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            )
            .map(|file| file.display().to_string())
        };
        let xdg = ("XDG_CONFIG_HOME", "/x");
        let home = ("HOME", "/h");
        assert_eq!(file(&[xdg, home]).as_deref(), Some("/x/wakeful/credentials.json"));
        assert_eq!(file(&[home]).as_deref(), Some("/h/.config/wakeful/credentials.json"));
        assert_eq!(file(&[("XDG_CONFIG_HOME", "relative")]), None);
    }
}
