//! Admit: which credentials a request carries, whose they are, and whether they may be used from
//! where the request comes.
//!
//! # How a shell uses it
//!
//! 1. [`credentials`] reads the headers. Authenticate the token if there is one, then the cookies
//!    in order until one stands for somebody.
//! 2. [`decide`] settles whose request it is, or refuses it.
//! 3. [`check_origin`] refuses what a page of another origin makes a browser send.
//! 4. [`may_visit`] says whether this principal may visit this surface.
//! 5. Nobody known: [`anonymous`] says whether the answer is 401 or the way to sign in.
//!
//! # The app's own `Authorization` (`cases.md`, C29)
//!
//! Tokens of Wakeful begin with `wk_`; anything else in `Authorization` belongs to the program
//! behind. It reaches the surface named `app` and the environment server unchanged and no other
//! surface. A token of Wakeful reaches nobody. A preflight (`OPTIONS` without credentials) gets
//! 401: private surfaces are for their own origin, which needs none.

mod origin;
mod sign_in;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use wakeful_wire::{
    Code, Hosts, UserName,
    gate::{Credential, Principal},
    template::Access,
};

use crate::route::{HostTarget, PathTarget};

pub use origin::check_origin;
pub use sign_in::{
    Anonymous, anonymous, encode, page_elsewhere, spent_nonce, surface_cookie, ticket_destination,
};

/// The header for a token where the program needs `Authorization` for itself.
pub const TOKEN: HeaderName = HeaderName::from_static("x-wakeful-token");

/// What tokens of Wakeful begin with.
pub const TOKEN_PREFIX: &str = "wk_";

/// How many cookies of one name are tried. A browser sends several where stale ones of a parent
/// domain stand beside the valid one (`cases.md`, C28); whoever sends more is no browser.
pub const COOKIES_MAX: usize = 16;

/// Why a request is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdmitError {
    /// Two `Authorization` lines, or two tokens that differ.
    #[error("ambiguous credentials")]
    Ambiguous,
    /// A token and a cookie of two different users.
    #[error("token and cookie belong to different users")]
    TwoUsers,
    /// A token that stands for nobody (any more).
    #[error("the token is not valid")]
    BadToken,
    /// Nobody is signed in.
    #[error("not signed in")]
    NotSignedIn,
    /// A page of another origin made the browser send it.
    #[error("refused from another origin")]
    CrossOrigin,
    /// There is nothing here for this user.
    #[error("nothing here for this user")]
    NotFound,
}

impl AdmitError {
    /// The code that the answer carries.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Ambiguous | Self::TwoUsers => Code::BadRequest,
            Self::BadToken | Self::NotSignedIn => Code::Unauthenticated,
            Self::CrossOrigin => Code::CrossOrigin,
            Self::NotFound => Code::NotFound,
        }
    }

    /// What is wrong and what to do, in a sentence for people.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Ambiguous => "Send one Authorization header and one token.",
            Self::TwoUsers => "The token and the cookie belong to different users. Send one.",
            Self::BadToken => "The token is not valid (any more).",
            Self::NotSignedIn => "Sign in, or send a token as `Authorization: Bearer wk_…`.",
            Self::CrossOrigin => "A page of another origin may not do this in your name.",
            Self::NotFound => "There is nothing here, or not for you.",
        }
    }
}

/// Where a request is served, as far as credentials and origins care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door<'a> {
    /// A path route of the main host: the session cookie counts.
    Path,
    /// A surface's own host, lower-case and without port: its own cookie counts.
    Host(&'a str),
}

impl<'a> From<&'a HostTarget> for Door<'a> {
    fn from(target: &'a HostTarget) -> Self {
        Self::Host(&target.host)
    }
}

impl From<&PathTarget> for Door<'_> {
    fn from(_: &PathTarget) -> Self {
        Self::Path
    }
}

/// What a request carries. Its texts are secrets, and never printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// A token of Wakeful.
    pub token: Option<Credential>,
    /// Every cookie of the door's name, in order: the first that stands for somebody counts.
    pub cookies: Vec<Credential>,
}

impl Credentials {
    /// Whether there is nothing to authenticate.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.token.is_none() && self.cookies.is_empty()
    }
}

/// The names of the cookies, made once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieNames {
    session: String,
    surface: String,
    nonce: String,
}

impl CookieNames {
    /// The names under these hosts' scheme and suffix.
    #[must_use]
    pub fn of(hosts: &Hosts) -> Self {
        Self {
            session: hosts.session_cookie(),
            surface: hosts.surface_cookie(),
            nonce: hosts.nonce_cookie(),
        }
    }

    /// The nonces that this browser got when it was sent to sign in, newest and stale ones alike.
    #[must_use]
    pub fn nonces(&self, headers: &HeaderMap) -> Vec<String> {
        cookies(headers, &self.nonce).map(str::to_owned).take(COOKIES_MAX).collect()
    }
}

/// Reads the credentials of a request.
///
/// # Errors
/// They are ambiguous: 400, never a guess.
pub fn credentials(
    headers: &HeaderMap,
    names: &CookieNames,
    door: Door<'_>,
) -> Result<Credentials, AdmitError> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let authorization = lines.next();
    if lines.next().is_some() {
        return Err(AdmitError::Ambiguous);
    }
    let mut token = authorization.and_then(our_token);
    for line in headers.get_all(TOKEN) {
        let stated = line.to_str().map_err(|_| AdmitError::Ambiguous)?.trim();
        if token.is_some_and(|token| !same(token, stated)) {
            return Err(AdmitError::Ambiguous);
        }
        token = Some(stated);
    }
    let token = token.map(|token| Credential::Token(token.to_owned()));
    let (name, make): (_, &dyn Fn(String) -> Credential) = match door {
        Door::Path => (&names.session, &Credential::Session),
        Door::Host(host) => {
            (&names.surface, &move |value| Credential::Surface { value, host: host.to_owned() })
        }
    };
    let found = cookies(headers, name).take(COOKIES_MAX);
    Ok(Credentials { token, cookies: found.map(|value| make(value.to_owned())).collect() })
}

/// The token of Wakeful in an `Authorization` line, if it holds one.
#[must_use]
pub fn our_token(authorization: &HeaderValue) -> Option<&str> {
    let (scheme, token) = authorization.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && token.starts_with(TOKEN_PREFIX)).then_some(token)
}

/// Compares secrets in a time that does not tell where they differ.
fn same(one: &str, other: &str) -> bool {
    use subtle::ConstantTimeEq as _;
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// The values of all cookies of a name, over all lines.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b';'))
        .filter_map(move |pair| {
            let (key, value) = split_pair(pair)?;
            (key == name.as_bytes()).then_some(value)
        })
        .filter_map(|value| std::str::from_utf8(value).ok())
}

fn split_pair(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = pair.iter().position(|byte| *byte == b'=')?;
    let (key, value) = pair.split_at_checked(at)?;
    Some((key.trim_ascii(), value.get(1..).unwrap_or_default().trim_ascii()))
}

/// Settles whose request it is. `token`: what authenticating the token gave, `None` if there was
/// no token. `cookie`: the first principal that a cookie stood for.
///
/// # Errors
/// A token that stands for nobody, also beside a good cookie; a token and a cookie of two users.
pub fn decide(
    token: Option<Option<Principal>>,
    cookie: Option<Principal>,
) -> Result<Option<Principal>, AdmitError> {
    match (token, cookie) {
        (None, cookie) => Ok(cookie),
        (Some(None), _) => Err(AdmitError::BadToken),
        (Some(Some(token)), Some(cookie)) if token.user != cookie.user => Err(AdmitError::TwoUsers),
        (Some(Some(token)), _) => Ok(Some(token)),
    }
}

/// Whether this principal may visit this surface. Whoever may not does not learn that it exists.
///
/// # Errors
/// Nobody is signed in, or somebody who may not see it.
pub fn may_visit(
    owner: &UserName,
    access: Access,
    principal: Option<&Principal>,
) -> Result<(), AdmitError> {
    match (access, principal) {
        (Access::Private, None) => Err(AdmitError::NotSignedIn),
        (Access::Private, Some(principal)) if principal.user == *owner => Ok(()),
        (Access::Private, Some(_)) => Err(AdmitError::NotFound),
    }
}

#[cfg(test)]
mod tests;
