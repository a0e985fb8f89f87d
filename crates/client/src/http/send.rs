//! Sending the link's requests.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use reqwest::{
    RequestBuilder, Response, Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use wakeful_link::{
    Way,
    http::{HttpAnswer, Method, Proof, Reply, Request},
    route::Address,
};

use super::{BodyError, body, http_client, resolve};
use crate::{clock, credentials::ClientKey};

/// The header in which a client says whether its request may wake.
const INTENT: HeaderName = HeaderName::from_static("wakeful-intent");
/// The header for the platform's own token, beside a host's `Authorization`.
const PLATFORM_TOKEN: HeaderName = HeaderName::from_static("x-wakeful-token");
/// The header by which a host names itself in its refusals.
const HOST: HeaderName = HeaderName::from_static(wakeful_wire::host::HOST_HEADER);
/// The header of proofs (RFC 9449).
const PROOF: HeaderName = HeaderName::from_static("dpop");

/// Sends requests to hosts and platforms, with proofs by this installation's key. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sender {
    /// For this machine, without a proxy.
    near: reqwest::Client,
    far: reqwest::Client,
    key: Arc<ClientKey>,
    tokens: Arc<RwLock<BTreeMap<Address, HeaderValue>>>,
}

impl Sender {
    /// A sender for an installation.
    ///
    /// # Errors
    /// No HTTP client can be built on this machine.
    pub fn new(key: Arc<ClientKey>) -> anyhow::Result<Self> {
        Ok(Self {
            near: http_client(&Url::parse("http://localhost/")?)?,
            far: http_client(&Url::parse("https://wakeful.invalid/")?)?,
            key,
            tokens: Arc::default(),
        })
    }

    /// Uses this token of a platform from now on; with none, nobody is signed in there.
    ///
    /// # Errors
    /// The token cannot stand in a header.
    pub fn sign_in(&self, platform: Address, token: Option<&str>) -> anyhow::Result<()> {
        let mut tokens = self.tokens.write();
        match token {
            None => drop(tokens.remove(&platform)),
            Some(token) => {
                let mut value = HeaderValue::from_str(token)?;
                value.set_sensitive(true);
                tokens.insert(platform, value);
            }
        }
        Ok(())
    }

    /// The HTTP client for an address.
    #[must_use]
    pub fn http(&self, url: &Url) -> &reqwest::Client {
        if url.host_str().is_some_and(resolve::is_loopback) { &self.near } else { &self.far }
    }

    /// The headers of a request that is sent this way and proves itself so.
    ///
    /// # Errors
    /// A token that cannot stand in a header.
    pub fn headers(
        &self,
        way: &Way,
        method: Method,
        path: &str,
        shown: &Proof,
        wake: bool,
    ) -> Result<HeaderMap, header::InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        if let Some(platform) = &way.platform {
            let intent = if wake { "wake" } else { "none" };
            headers.insert(INTENT, HeaderValue::from_static(intent));
            if let Some(token) = self.tokens.read().get(platform) {
                headers.insert(PLATFORM_TOKEN, token.clone());
            }
        }
        let path = path.split('?').next().unwrap_or_default();
        let proof = |address: &str, token| {
            let address = format!("{address}{path}");
            HeaderValue::from_str(&self.key.proof(
                method.as_str(),
                &address,
                token,
                clock::seconds(),
            ))
        };
        match shown {
            Proof::None => {}
            Proof::Key { address } => drop(headers.insert(PROOF, proof(address, None)?)),
            Proof::Access(access) => {
                let token = access.token.reveal();
                headers.insert(PROOF, proof(&access.address, Some(token))?);
                let mut value = HeaderValue::from_str(&format!("DPoP {token}"))?;
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
        }
        Ok(headers)
    }

    /// Sends a request once and reads its answer whole. Dropping the future gives it up.
    pub async fn send(&self, way: &Way, request: &Request) -> Reply {
        match tokio::time::timeout(request.limit, self.carry(way, request)).await {
            Ok(Ok(answer)) => Reply::Answered(answer),
            Ok(Err(reply)) => reply,
            Err(_) => Reply::TimedOut,
        }
    }

    /// Opens a stream of a platform that is read as it comes.
    ///
    /// # Errors
    /// What was answered instead, or that nothing was.
    pub async fn stream(&self, platform: &Address, path: &str) -> Result<Response, Reply> {
        let way = Way { address: platform.clone(), platform: Some(platform.clone()) };
        let request = self.request(&way, &Request::get(path, Proof::None))?;
        let request = request.header(header::ACCEPT, "text/event-stream");
        let response = request.send().await.map_err(|error| unanswered(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(match answer(response).await {
            Ok(answer) => Reply::Answered(answer),
            Err(reply) => reply,
        })
    }

    async fn carry(&self, way: &Way, request: &Request) -> Result<HttpAnswer, Reply> {
        let sending = self
            .request(way, request)?
            .header(header::ACCEPT, "application/json, application/problem+json");
        let response = sending.send().await.map_err(|error| unanswered(&error))?;
        answer(response).await
    }

    #[expect(clippy::result_large_err, reason = "made once for a request, which costs far more")]
    fn request(&self, way: &Way, request: &Request) -> Result<RequestBuilder, Reply> {
        let wrong = |what: &str| Reply::Unproven(format!("The {what} cannot be sent."));
        let url = format!("{}{}", way.address, request.path);
        let url = Url::parse(&url).map_err(|_| wrong("address"))?;
        let headers = self
            .headers(way, request.method, &request.path, &request.proof, request.wake)
            .map_err(|_| wrong("token"))?;
        let method = match request.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
        };
        let mut sending = self.http(&url).request(method, url.clone()).headers(headers);
        if let Some(etag) = &request.etag {
            sending = sending.header(header::IF_NONE_MATCH, etag);
        }
        if let Some(body) = &request.body {
            sending = sending.json(body);
        }
        Ok(sending)
    }
}

/// Reads an answer whole.
async fn answer(response: Response) -> Result<HttpAnswer, Reply> {
    let answer = head_of(response.status().as_u16(), response.headers());
    let body = body(response).await.map_err(|error| match error {
        BodyError::TooLong => Reply::Unreachable("The answer is too long.".to_owned()),
        BodyError::Broken(error) => unanswered(&error),
    })?;
    Ok(HttpAnswer { body, ..answer })
}

/// What the link needs to know of an answer's head.
pub(crate) fn head_of(status: u16, headers: &HeaderMap) -> HttpAnswer {
    let text = |name: HeaderName| {
        headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    HttpAnswer {
        status,
        host: text(HOST).and_then(|id| id.parse().ok()),
        etag: text(header::ETAG),
        content_type: text(header::CONTENT_TYPE),
        challenge: text(header::WWW_AUTHENTICATE),
        retry_after: text(header::RETRY_AFTER)
            .and_then(|text| text.parse().ok())
            .map(Duration::from_secs),
        body: Vec::new(),
    }
}

fn unanswered(error: &reqwest::Error) -> Reply {
    if error.is_timeout() {
        return Reply::TimedOut;
    }
    // The error's own text holds the whole address.
    let why = if error.is_connect() { "No connection." } else { "The answer broke off." };
    Reply::Unreachable(why.to_owned())
}
