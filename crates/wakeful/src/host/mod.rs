//! The client of one host: of an environment through its gateway, or of one that is paired with.
//!
//! Access tokens are bound to a key of this installation (`key`), live an hour, and are kept in
//! memory only. For an environment a new one is had with a grant of the control plane, for a paired
//! host with the refresh token that pairing brought (`paired`). A refused token is replaced once
//! and by value, so that a late refusal never throws away a newer one.

mod error;
mod socket;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use reqwest::{Method, RequestBuilder, Response, StatusCode, header};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Mutex;
use wakeful_client::{
    clock::seconds,
    credentials::{ClientKey, PairedHost, PairedHosts},
    http::{self, BodyError},
};
use wakeful_wire::{
    Code, EnvId, HostId, Problem,
    api::{GrantAnswer, GrantRequest},
    host::{
        Denial, Remedy, TICKET_PATH, TOKEN_PATH, TicketResponse, TokenError, TokenRequest,
        TokenResponse,
    },
};

pub use error::{Ended, HostError};
pub use socket::HostSocket;

use crate::client::{Client, ClientError, credentials_file};

/// How long a host may take to answer. Who wakes one waits as long as a gateway holds.
const ANSWER_TIME: Duration = Duration::from_secs(90);
/// A token with less life than this is replaced before it is used.
const LIFE_LEFT: Duration = Duration::from_secs(60);
/// The header in which a client says whether its request may wake.
const INTENT: &str = "wakeful-intent";
/// The header for the platform's own token, beside a host's `Authorization`.
const PLATFORM_TOKEN: &str = "x-wakeful-token";

/// The client of one host. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HostClient(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    http: reqwest::Client,
    key: ClientKey,
    way: Way,
    access: Mutex<Option<Access>>,
}

/// How the host is reached and entered.
#[derive(Debug)]
enum Way {
    /// Through the gateway of a platform.
    Environment { client: Client, env: EnvId },
    /// Directly.
    Paired { host: Mutex<PairedHost>, name: String, address: String, id: HostId },
}

/// An access token.
#[derive(Clone)]
struct Access {
    /// What proofs are made for addresses below.
    address: Arc<str>,
    token: Arc<str>,
    until: Instant,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A request that can be sent again with another token.
struct Asked<'a> {
    method: Method,
    path_and_query: &'a str,
    wake: bool,
}

/// The directory of this user's keys and credentials.
fn directory() -> anyhow::Result<PathBuf> {
    let file = credentials_file(&crate::env::snapshot());
    let directory = file.as_deref().and_then(std::path::Path::parent).map(PathBuf::from);
    directory.context("there is no place for keys: set HOME or XDG_CONFIG_HOME")
}

/// The hosts that this installation is paired with.
///
/// # Errors
/// There is no place for them.
pub fn paired() -> anyhow::Result<PairedHosts> {
    Ok(PairedHosts::in_directory(directory()?))
}

/// This installation's key.
///
/// # Errors
/// It cannot be read or made.
pub fn key() -> anyhow::Result<ClientKey> {
    ClientKey::open(&directory()?.join("host-key"))
}

fn http_of(address: &str) -> anyhow::Result<reqwest::Client> {
    let url = reqwest::Url::parse(address).context("that is no address")?;
    Ok(http::http_client(&url)?)
}

impl HostClient {
    /// The host of an environment.
    ///
    /// # Errors
    /// This installation's key cannot be read or made.
    pub fn of_environment(client: Client, env: EnvId) -> anyhow::Result<Self> {
        let http = client.http().clone();
        Ok(Self::new(http, key()?, Way::Environment { client, env }))
    }

    /// A host that this installation is paired with.
    ///
    /// # Errors
    /// This installation's key cannot be read, or the address is none.
    pub fn paired(host: PairedHost) -> anyhow::Result<Self> {
        let http = http_of(&host.address)?;
        let (name, address, id) = (host.name.clone(), host.address.clone(), host.host);
        Ok(Self::new(http, key()?, Way::Paired { host: Mutex::new(host), name, address, id }))
    }

    fn new(http: reqwest::Client, key: ClientKey, way: Way) -> Self {
        Self(Arc::new(Inner { http, key, way, access: Mutex::new(None) }))
    }

    /// What it is called, for people.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.0.way {
            Way::Environment { env, .. } => env.to_string(),
            Way::Paired { name, .. } => name.clone(),
        }
    }

    /// The id that the host must have.
    #[must_use]
    pub fn id(&self) -> HostId {
        match &self.0.way {
            Way::Environment { env, .. } => (*env).into(),
            Way::Paired { id, .. } => *id,
        }
    }

    /// Reads JSON at a path below the host's address.
    ///
    /// # Errors
    /// [`HostError`].
    pub async fn get<T: DeserializeOwned>(
        &self,
        path_and_query: &str,
        wake: bool,
    ) -> Result<T, HostError> {
        json(self.ask(Asked { method: Method::GET, path_and_query, wake }).await?).await
    }

    /// Sends a request that has no body and whose answer's body is of no interest.
    ///
    /// # Errors
    /// [`HostError`].
    pub async fn send(&self, method: Method, path: &str, wake: bool) -> Result<(), HostError> {
        self.ask(Asked { method, path_and_query: path, wake }).await.map(drop)
    }

    /// Opens a socket and waits for its hello.
    ///
    /// # Errors
    /// [`HostError`].
    pub async fn connect(&self, wake: bool) -> Result<HostSocket, HostError> {
        let socket = match self.open(wake).await {
            // The host forgets its tickets when it starts anew: another one may do.
            Err(HostError::Refused(problem)) if problem.code == Code::Unauthenticated => {
                self.open(wake).await?
            }
            other => other?,
        };
        let found = socket.hello().host.id;
        if found == self.id() {
            Ok(socket)
        } else {
            let detail = format!("Another host answers there: {found}.");
            Err(Problem::new(Code::Conflict).detail(detail).into())
        }
    }

    async fn open(&self, wake: bool) -> Result<HostSocket, HostError> {
        let asked = Asked { method: Method::POST, path_and_query: TICKET_PATH, wake };
        let ticket: TicketResponse = json(self.ask(asked).await?).await?;
        socket::open(&self.base(), &self.headers(wake), &ticket.ticket).await
    }

    /// Where requests are sent: for an environment the server that this client is signed in to,
    /// whatever name the platform itself has for it.
    fn base(&self) -> String {
        match &self.0.way {
            Way::Environment { client, env } => format!("{}/api/host/{env}", client.server()),
            Way::Paired { address, .. } => address.clone(),
        }
    }

    /// What every request carries beside the host's own credentials.
    fn headers(&self, wake: bool) -> Vec<(&'static str, String)> {
        match &self.0.way {
            Way::Environment { client, .. } => {
                let token = client.token().map(|token| (PLATFORM_TOKEN, token.to_owned()));
                let intent = (INTENT, if wake { "wake" } else { "none" }.to_owned());
                token.into_iter().chain([intent]).collect()
            }
            Way::Paired { .. } => Vec::new(),
        }
    }

    /// Sends a request; once more, with another token, where the host does not take this one.
    async fn ask(&self, asked: Asked<'_>) -> Result<Response, HostError> {
        let mut refused = None;
        loop {
            let access = self.access(asked.wake, refused.as_ref()).await?;
            let path = asked.path_and_query.split('?').next().unwrap_or_default();
            let address = format!("{}{path}", access.address);
            let method = asked.method.as_str();
            let proof = self.0.key.proof(method, &address, Some(&access.token), seconds());
            let url = format!("{}{}", self.base(), asked.path_and_query);
            let request = self
                .request(asked.method.clone(), &url, asked.wake)
                .header(header::AUTHORIZATION, format!("DPoP {}", access.token))
                .header("dpop", proof);
            let response = self.carry(request).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            let challenge = response.headers().get(header::WWW_AUTHENTICATE);
            let of_the_host =
                challenge.is_some_and(|challenge| challenge.as_bytes().starts_with(b"DPoP"));
            if status == StatusCode::UNAUTHORIZED && of_the_host && refused.is_none() {
                refused = Some(access);
                continue;
            }
            return Err(refusal(response).await);
        }
    }

    fn request(&self, method: Method, url: &str, wake: bool) -> RequestBuilder {
        let request = self
            .0
            .http
            .request(method, url)
            .timeout(ANSWER_TIME)
            .header(header::ACCEPT, "application/json, application/problem+json");
        self.headers(wake)
            .into_iter()
            .fold(request, |request, (name, value)| request.header(name, value))
    }

    async fn carry(&self, request: RequestBuilder) -> Result<Response, HostError> {
        request.send().await.map_err(|error| {
            let why = if error.is_timeout() { "it takes too long" } else { "no connection" };
            HostError::Unreachable(format!("{} cannot be reached: {why}", self.label()))
        })
    }

    /// A token that is good for a while; not the one that was refused.
    async fn access(&self, wake: bool, refused: Option<&Access>) -> Result<Access, HostError> {
        let mut held = self.0.access.lock().await;
        let is_refused =
            |access: &Access| refused.is_some_and(|refused| refused.token == access.token);
        if let Some(access) = held.as_ref()
            && !is_refused(access)
            && access.until.saturating_duration_since(Instant::now()) > LIFE_LEFT
        {
            return Ok(access.clone());
        }
        *held = None;
        let fresh = match &self.0.way {
            Way::Environment { client, env } => self.by_grant(client, *env, wake).await?,
            Way::Paired { host, address, .. } => self.by_refresh(host, address).await?,
        };
        *held = Some(fresh.clone());
        Ok(fresh)
    }

    async fn by_grant(&self, client: &Client, env: EnvId, wake: bool) -> Result<Access, HostError> {
        let env = env.to_string();
        let request = GrantRequest { scopes: None, wake };
        let granted: GrantAnswer = client
            .post(&["api", "environments", &env, "grant"], &request)
            .await
            .map_err(of_the_platform)?;
        let request = TokenRequest::Grant { grant: granted.grant, label: Some(label()) };
        let answer = self.exchange(&granted.address, &request, wake).await?;
        Ok(access(&granted.address, &answer))
    }

    async fn by_refresh(
        &self,
        host: &Mutex<PairedHost>,
        address: &str,
    ) -> Result<Access, HostError> {
        let mut host = host.lock().await;
        let request = TokenRequest::Refresh { refresh_token: host.refresh_token.clone() };
        let answer = match self.exchange(address, &request, true).await {
            Err(HostError::NotPaired(_)) => {
                return Err(HostError::NotPaired(host.name.clone()));
            }
            other => other?,
        };
        if let Some(refresh_token) = &answer.refresh_token
            && *refresh_token != host.refresh_token
        {
            host.refresh_token.clone_from(refresh_token);
            paired()
                .and_then(|hosts| hosts.renew(host.host, refresh_token))
                .map_err(|error| HostError::Garbled(format!("{error:#}")))?;
        }
        Ok(access(address, &answer))
    }

    /// Asks the token endpoint.
    async fn exchange(
        &self,
        address: &str,
        request: &impl Serialize,
        wake: bool,
    ) -> Result<TokenResponse, HostError> {
        let url = format!("{}{TOKEN_PATH}", self.base());
        let proof = self.0.key.proof("POST", &format!("{address}{TOKEN_PATH}"), None, seconds());
        let request = self.request(Method::POST, &url, wake).header("dpop", proof).json(request);
        let response = self.carry(request).await?;
        if response.status().is_success() {
            json(response).await
        } else {
            Err(refusal(response).await)
        }
    }
}

fn access(address: &str, answer: &TokenResponse) -> Access {
    Access {
        address: address.into(),
        token: answer.access_token.as_str().into(),
        until: Instant::now() + Duration::from_secs(answer.expires_in),
    }
}

/// What this client calls itself.
pub fn label() -> String {
    let name = rustix::system::uname();
    let machine: String = name.nodename().to_string_lossy().chars().take(64).collect();
    format!("terminal on {machine}")
}

fn of_the_platform(error: ClientError) -> HostError {
    match error {
        ClientError::Problem(problem) => (*problem).into(),
        ClientError::Unreachable { server, .. } => {
            HostError::Unreachable(format!("{server} cannot be reached"))
        }
        ClientError::Unexpected { .. }
        | ClientError::Garbled(_)
        | ClientError::Unreadable { .. }
        | ClientError::NotSignedIn
        | ClientError::Address(_) => HostError::Garbled(error.to_string()),
    }
}

/// What a refusal says: a problem, or an error of the token endpoint.
async fn refusal(response: Response) -> HostError {
    let status = response.status();
    let bytes = match body(response).await {
        Ok(bytes) => bytes,
        Err(error) => return error,
    };
    if let Ok(problem) = serde_json::from_slice::<Problem>(&bytes) {
        return problem.into();
    }
    match serde_json::from_slice::<TokenError>(&bytes) {
        Ok(error) => of_the_token_endpoint(status, error),
        Err(_) if status.is_server_error() => {
            HostError::Unreachable(format!("something on the way answered {status}"))
        }
        Err(_) => HostError::Garbled(format!("it answered {status}")),
    }
}

/// What the token endpoint's error means for this client.
fn of_the_token_endpoint(status: StatusCode, error: TokenError) -> HostError {
    let passing = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    match error.reason.map(Denial::remedy) {
        // A token or its session is gone: only a person can let this client in again. A proof that
        // does not hold (a clock that is wrong, say) is another matter.
        Some(Remedy::SignIn | Remedy::Renew) if !passing => HostError::NotPaired(String::new()),
        _ => {
            let mut problem = Problem::new(Code::BadCredentials).detail(error.error_description);
            problem.status = status.as_u16();
            problem.retry = passing;
            HostError::Refused(Box::new(problem))
        }
    }
}

async fn json<T: DeserializeOwned>(response: Response) -> Result<T, HostError> {
    let bytes = body(response).await?;
    serde_json::from_slice(&bytes).map_err(|error| HostError::Garbled(error.to_string()))
}

async fn body(response: Response) -> Result<Vec<u8>, HostError> {
    http::body(response).await.map_err(|error| match error {
        BodyError::TooLong => HostError::Garbled(error.to_string()),
        BodyError::Broken(_) => HostError::Unreachable("the answer broke off".to_owned()),
    })
}
