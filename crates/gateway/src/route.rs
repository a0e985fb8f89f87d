//! Route: which environment and surface a request names, by its host and its target alone.
//!
//! Host and target are read once, here. Whatever authorises and whatever forwards uses the
//! [`Target`] that came out, never the text again, so that no two parts can read one target
//! differently (`cases.md`, C32).

mod host;
mod path;

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, Method, StatusCode, Uri};
use wakeful_wire::{Code, EnvId, Hosts, Slug, SurfaceName, UserName, hosts::PathOrigin};

use crate::intent;
use host::{below, literal};
use path::{PathKind, is_own, path_kind, split_query};

pub use host::{authority, host_of};
pub use path::could_escape;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The main host: pages, API, sign-in. Handed on as it is.
    Main,
    /// Somebody elsewhere asks for a page at an address. They get a page that says to set a
    /// domain or a public URL: cookies and surfaces' hosts need a name.
    NeedsName,
    /// Somewhere else, before anybody is asked who they are.
    Redirect(Redirect),
    /// A surface by a path of the main host.
    Path(PathTarget),
    /// A surface by a host of its own.
    Host(HostTarget),
}

/// A redirect of the gateway's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// 308 where the method must be kept, 307 where the place may change again.
    pub status: StatusCode,
    /// A reference or an absolute URL, fit for `Location`.
    pub location: String,
}

/// A surface by a path of the main host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTarget {
    /// What the prefix names.
    pub place: PathPlace,
    /// True below `{prefix}/.wakeful/`: the gateway's own routes.
    pub own: bool,
    prefix_len: usize,
}

/// What the prefix of a path route names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPlace {
    /// `/api/proxy/{envId}`: the agent surface.
    Agent(EnvId),
    /// `/u/{user}`: the home surface of the user's default environment.
    User(UserName),
    /// `/api/host/{envId}`: the environment server itself, the reserved surface `host`.
    EnvHost(EnvId),
}

impl PathTarget {
    /// The prefix, without a slash at its end. `path_and_query` is the request's own.
    #[must_use]
    pub fn prefix<'a>(&self, path_and_query: &'a str) -> &'a str {
        path_and_query.get(..self.prefix_len).unwrap_or(path_and_query)
    }

    /// What the program sees as its target: everything after the prefix, byte for byte. It begins
    /// with a slash.
    #[must_use]
    pub fn rest<'a>(&self, path_and_query: &'a str) -> &'a str {
        path_and_query.get(self.prefix_len..).unwrap_or("/")
    }
}

/// A surface by a host of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTarget {
    /// The environment.
    pub env: EnvId,
    /// The surface.
    pub surface: SurfaceName,
    /// Which of the surface's hosts was asked for.
    pub label: HostLabel,
    /// The host that was asked for: lower-case, without port and trailing dot.
    pub host: Box<str>,
    /// True below `/.wakeful/`: the gateway's own routes.
    pub own: bool,
}

/// Which of a surface's hosts was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostLabel {
    /// `{envId}` alone, which always serves.
    Bare,
    /// `{envId}-{slug}`: serves if the slug is the environment's.
    Slug(Box<str>),
    /// `{envId}.preview`, for embedding in the dashboard.
    Preview,
    /// `{envId}-{surface}.on`.
    Surface,
}

impl HostTarget {
    /// Where a host with a wrong slug leads: the same path and query on the canonical host.
    /// `None` if this host serves. Asked after admission, before the gate: a wrong slug wakes
    /// nothing, and tells a stranger nothing.
    #[must_use]
    pub fn canonical(&self, hosts: &Hosts, slug: &Slug, path_and_query: &str) -> Option<Redirect> {
        match &self.label {
            HostLabel::Slug(asked) if **asked != *slug.as_str() => {
                let host = hosts.surface_host(self.env, slug, &self.surface);
                Some(Redirect {
                    status: StatusCode::PERMANENT_REDIRECT,
                    location: format!("{}{}", hosts.origin(&host), as_path(path_and_query)),
                })
            }
            HostLabel::Slug(_) | HostLabel::Bare | HostLabel::Preview | HostLabel::Surface => None,
        }
    }
}

/// `*` (of `OPTIONS *`) is no path that could follow an authority.
fn as_path(path_and_query: &str) -> &str {
    if path_and_query.starts_with('/') { path_and_query } else { "/" }
}

/// Why a request cannot be routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// No `Host`, more than one, or an empty one.
    #[error("a request needs exactly one host")]
    HostCount,
    /// The host is no host.
    #[error("the host is malformed")]
    HostSyntax,
    /// The target is neither a path, nor an absolute URL of HTTP, nor `*`.
    #[error("the request target is malformed")]
    Target,
    /// A path route whose single decoding could leave its prefix.
    #[error("the path holds a dot segment, a backslash or a NUL")]
    Escape,
    /// A name that this listener does not serve.
    #[error("this listener does not serve that host name")]
    Misdirected,
    /// A name or path of the right form, behind which there can be nothing.
    #[error("there is nothing of that name")]
    Unknown,
}

impl RouteError {
    /// The code that the answer carries.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::HostCount | Self::HostSyntax | Self::Target => Code::BadRequest,
            Self::Escape => Code::BadTarget,
            Self::Misdirected => Code::Misdirected,
            Self::Unknown => Code::NotFound,
        }
    }
}

/// Routes by the public hosts. Cheap to clone; give each core its own, since the names that it
/// hands out are counted references.
#[derive(Debug, Clone)]
pub struct Router {
    hosts: Arc<Hosts>,
    app: SurfaceName,
    vscode: Option<SurfaceName>,
    db: Option<SurfaceName>,
}

impl Router {
    /// A router for these hosts.
    #[must_use]
    pub fn new(hosts: Arc<Hosts>) -> Self {
        Self {
            hosts,
            app: SurfaceName::app(),
            vscode: SurfaceName::new("vscode").ok(),
            db: SurfaceName::new("db").ok(),
        }
    }

    /// The public hosts.
    #[must_use]
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Where this request goes. `peer` is the address that the connection came from.
    ///
    /// # Errors
    /// The request is malformed, or names what is not served.
    pub fn route(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<Target, RouteError> {
        let authority = authority(uri, headers)?;
        let host = host_of(authority).ok_or(RouteError::HostSyntax)?;
        let path_and_query = uri.path_and_query().map_or("/", |target| target.as_str());
        if !path_and_query.starts_with('/') && path_and_query != "*" {
            return Err(RouteError::Target);
        }
        if *host == *self.hosts.domain {
            return self.main(path_and_query);
        }
        if let Some(below) = below(&host, &self.hosts.domain) {
            return self.below(below, &host, uri.path());
        }
        let literal = literal(&host);
        if &*host != "localhost" && literal.is_none() {
            return Err(RouteError::Misdirected);
        }
        // Cookies of `localhost` or of an address are another site than the surfaces' hosts, so
        // people are led to the name under which everything works. Programs are served as they
        // ask.
        if *method == Method::GET && intent::is_navigation(method, headers) {
            let here = literal.is_none_or(|address| address.is_loopback());
            if here && peer.is_loopback() {
                return Ok(Target::Redirect(Redirect {
                    status: StatusCode::TEMPORARY_REDIRECT,
                    location: self.hosts.main_url(as_path(path_and_query)),
                }));
            }
            if literal.is_some() && self.hosts.path_origin == PathOrigin::Separate {
                return Ok(Target::NeedsName);
            }
        }
        self.main(path_and_query)
    }

    fn main(&self, path_and_query: &str) -> Result<Target, RouteError> {
        let (path, query) = split_query(path_and_query);
        let Some((kind, after)) = path_kind(path) else {
            return Ok(Target::Main);
        };
        if could_escape(path) {
            return Err(RouteError::Escape);
        }
        let name_end = after.find('/').unwrap_or(after.len());
        let (name, rest) = after.split_at(name_end);
        let prefix_len = path.len() - rest.len();
        if name.is_empty() {
            return Ok(Target::Main);
        }
        let place = match kind {
            PathKind::Agent => PathPlace::Agent(name.parse().map_err(|_| RouteError::Unknown)?),
            PathKind::EnvHost => PathPlace::EnvHost(name.parse().map_err(|_| RouteError::Unknown)?),
            PathKind::User => PathPlace::User(name.parse().map_err(|_| RouteError::Unknown)?),
        };
        if rest.is_empty() {
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            return Ok(Target::Redirect(Redirect {
                status: StatusCode::PERMANENT_REDIRECT,
                location: format!("{path}/{query}"),
            }));
        }
        Ok(Target::Path(PathTarget { place, own: is_own(rest), prefix_len }))
    }

    fn below(&self, below: &str, host: &str, path: &str) -> Result<Target, RouteError> {
        let (label, kind) = below.rsplit_once('.').ok_or(RouteError::Misdirected)?;
        // The first 36 characters of every label are an environment's id.
        let (id, tail) = label.split_at_checked(36).ok_or(RouteError::Unknown)?;
        let named = |kind: &str| matches!(kind, "apps" | "preview" | "code" | "db" | "on");
        if !named(kind) {
            return Err(RouteError::Misdirected);
        }
        let env: EnvId = id.parse().map_err(|_| RouteError::Unknown)?;
        let name = match tail {
            "" => None,
            tail => Some(tail.strip_prefix('-').ok_or(RouteError::Unknown)?),
        };
        let (surface, label) = match (kind, name) {
            ("apps", None) => (Some(self.app.clone()), HostLabel::Bare),
            ("apps", Some(slug)) => (Some(self.app.clone()), HostLabel::Slug(slug.into())),
            ("preview", None) => (Some(self.app.clone()), HostLabel::Preview),
            ("code", None) => (self.vscode.clone(), HostLabel::Bare),
            ("db", None) => (self.db.clone(), HostLabel::Bare),
            // Surfaces with hosts of their own are not served under a second name.
            ("on", Some(name)) if !matches!(name, "app" | "vscode" | "db") => {
                (SurfaceName::new(name).ok(), HostLabel::Surface)
            }
            _ => (None, HostLabel::Bare),
        };
        let surface = surface.ok_or(RouteError::Unknown)?;
        Ok(Target::Host(HostTarget { env, surface, label, host: host.into(), own: is_own(path) }))
    }
}

#[cfg(test)]
mod tests;
