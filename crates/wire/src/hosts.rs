//! Names and addresses of the public side: which host serves what, and the URLs that lead there.
//!
//! Gateway and control plane build every public URL here, so that a link on a page and the rule
//! that routes it cannot drift apart (`design.md`, "Routes of the public side").

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EnvId, Slug, SurfaceName, UserName, template::RouteKind};

/// The main host's sign-in page. The query field [`NEXT`] says where to go on afterwards.
pub const SIGN_IN_PATH: &str = "/login";
/// The main host's route that gives a signed-in browser a single-use ticket for a surface's own
/// host: `GET /surface-ticket?to=URL&nonce=NONCE`. Not signed in, it leads to [`SIGN_IN_PATH`]
/// first. It answers 303 to `{origin of URL}/.wakeful/ticket?ticket=…&to={path of URL}`.
pub const GRANT_TICKET_PATH: &str = "/surface-ticket";
/// The route of every surface host that exchanges a ticket for that host's cookie:
/// `GET /.wakeful/ticket?ticket=TICKET&to=PATH`. It answers 303 to `PATH`.
pub const REDEEM_TICKET_PATH: &str = "/.wakeful/ticket";
/// The route of every surface host that says how far a wake is. It neither wakes nor holds.
pub const STATUS_PATH: &str = "/.wakeful/status";
/// Everything below this prefix on a surface host is the gateway's own.
pub const OWN_PREFIX: &str = "/.wakeful/";
/// The query field of [`SIGN_IN_PATH`] that says where to go on.
pub const NEXT: &str = "next";

/// Whether the public side is spoken to by HTTP or HTTPS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Plain HTTP.
    #[default]
    Http,
    /// HTTPS, here or in front of Wakeful.
    Https,
}

impl Scheme {
    /// The scheme as it stands in a URL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL of this scheme may leave out.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where pages of path routes run (`design.md`, decision 9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathOrigin {
    /// A page load of a path route is redirected to the surface's own host; nothing from a
    /// sandbox runs in the dashboard's origin.
    #[default]
    Separate,
    /// Pages are served on the main host itself, for installations without wildcard names. A
    /// program in a sandbox can then act as whoever looks at its pages.
    Shared,
}

/// Why a text is not a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a domain: expected dot-separated labels of letters, digits and dashes")]
pub struct DomainError;

/// How the public side is reached from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hosts {
    /// The main host's name, lower-case, without a trailing dot. Surfaces have hosts below it.
    pub domain: String,
    /// The scheme that visitors use.
    pub scheme: Scheme,
    /// The port that visitors use; `None` where it is the scheme's own.
    pub port: Option<u16>,
    /// Stands at the end of every cookie's name, so that two installations that one browser
    /// visits keep apart. Empty, or letters, digits and dashes.
    #[serde(default)]
    pub cookie_suffix: String,
    /// Where pages of path routes run.
    #[serde(default)]
    pub path_origin: PathOrigin,
}

impl Default for Hosts {
    /// `http://wakeful.localhost:7878`.
    fn default() -> Self {
        Self {
            domain: "wakeful.localhost".to_owned(),
            scheme: Scheme::Http,
            port: Some(7878),
            cookie_suffix: String::new(),
            path_origin: PathOrigin::Separate,
        }
    }
}

impl Hosts {
    /// Hosts below `domain`, with no cookie suffix and separate origins. The domain is folded to
    /// lower case and loses a trailing dot; a port that the scheme implies is left out.
    ///
    /// # Errors
    /// The text is not a domain name.
    pub fn new(domain: &str, scheme: Scheme, port: Option<u16>) -> Result<Self, DomainError> {
        let domain = domain.strip_suffix('.').unwrap_or(domain).to_ascii_lowercase();
        let label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if domain.len() > 253 || !domain.split('.').all(label) {
            return Err(DomainError);
        }
        Ok(Self {
            domain,
            scheme,
            port: port.filter(|port| *port != scheme.default_port()),
            ..Self::default()
        })
    }

    /// Whether visitors come by HTTPS.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        matches!(self.scheme, Scheme::Https)
    }

    /// `host` or `host:port`, as it stands in a URL and in `Host`.
    #[must_use]
    pub fn authority(&self, host: &str) -> String {
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The origin of a host, as browsers write it in `Origin`.
    #[must_use]
    pub fn origin(&self, host: &str) -> String {
        format!("{}://{}", self.scheme, self.authority(host))
    }

    /// The dashboard's origin.
    #[must_use]
    pub fn main_origin(&self) -> String {
        self.origin(&self.domain)
    }

    /// A URL of the main host; `path` begins with a slash and may have a query.
    #[must_use]
    pub fn main_url(&self, path: &str) -> String {
        format!("{}{path}", self.main_origin())
    }

    /// The one host that a surface is canonically reached at, without port.
    #[must_use]
    pub fn surface_host(&self, env: EnvId, slug: &Slug, surface: &SurfaceName) -> String {
        let domain = &self.domain;
        match surface.as_str() {
            "app" => format!("{env}-{slug}.apps.{domain}"),
            "vscode" => format!("{env}.code.{domain}"),
            "db" => format!("{env}.db.{domain}"),
            other => format!("{env}-{other}.on.{domain}"),
        }
    }

    /// The host of the app surface for embedding in the dashboard, without port.
    #[must_use]
    pub fn preview_host(&self, env: EnvId) -> String {
        format!("{env}.preview.{}", self.domain)
    }

    /// The root of a surface on its own host.
    #[must_use]
    pub fn surface_url(&self, env: EnvId, slug: &Slug, surface: &SurfaceName) -> String {
        format!("{}/", self.origin(&self.surface_host(env, slug, surface)))
    }

    /// The root of the app surface for embedding in the dashboard.
    #[must_use]
    pub fn preview_url(&self, env: EnvId) -> String {
        format!("{}/", self.origin(&self.preview_host(env)))
    }

    /// The root of a surface on the main host: `/api/proxy/{envId}/` for the agent surface, `None`
    /// for any other, which has no path route by environment.
    #[must_use]
    pub fn path_url(&self, env: EnvId, surface: &SurfaceName) -> Option<String> {
        (surface.as_str() == "agent").then(|| self.main_url(&format!("/api/proxy/{env}/")))
    }

    /// The root of the home surface of a user's default environment.
    #[must_use]
    pub fn user_url(&self, user: &UserName) -> String {
        self.main_url(&format!("/u/{user}/"))
    }

    /// The root of the environment server's own route.
    #[must_use]
    pub fn host_url(&self, env: EnvId) -> String {
        self.main_url(&format!("/api/host/{env}/"))
    }

    /// Where a browser opens a surface: on its own host, unless it has none or pages of path
    /// routes share the main host's origin and it has a path there.
    #[must_use]
    pub fn open_url(
        &self,
        env: EnvId,
        slug: &Slug,
        surface: &SurfaceName,
        route: RouteKind,
    ) -> String {
        let by_path = match (route, self.path_origin) {
            (RouteKind::Path, PathOrigin::Separate | PathOrigin::Shared)
            | (RouteKind::Both, PathOrigin::Shared) => self.path_url(env, surface),
            (RouteKind::Host, PathOrigin::Separate | PathOrigin::Shared)
            | (RouteKind::Both, PathOrigin::Separate) => None,
        };
        by_path.unwrap_or_else(|| self.surface_url(env, slug, surface))
    }

    fn cookie(&self, name: &str) -> String {
        let prefix = if self.is_secure() { "__Host-" } else { "" };
        let dash = if self.cookie_suffix.is_empty() { "" } else { "-" };
        format!("{prefix}{name}{dash}{}", self.cookie_suffix)
    }

    /// The name of the main host's session cookie: `wakeful_session`, by HTTPS with the prefix
    /// `__Host-`, which keeps programs on hosts below the domain from planting one.
    #[must_use]
    pub fn session_cookie(&self) -> String {
        self.cookie("wakeful_session")
    }

    /// The name of the cookie of a private surface's own host.
    #[must_use]
    pub fn surface_cookie(&self) -> String {
        self.cookie("wakeful_surface")
    }

    /// The name of the cookie that ties a ticket to the browser that asked for it.
    #[must_use]
    pub fn nonce_cookie(&self) -> String {
        self.cookie("wakeful_nonce")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENV: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";

    fn env() -> EnvId {
        ENV.parse().unwrap()
    }

    #[test]
    fn every_surface_has_one_canonical_host() {
        let hosts = Hosts::default();
        let slug = Slug::new("dev").unwrap();
        let table = [
            ("app", format!("{ENV}-dev.apps.wakeful.localhost")),
            ("vscode", format!("{ENV}.code.wakeful.localhost")),
            ("db", format!("{ENV}.db.wakeful.localhost")),
            ("agent", format!("{ENV}-agent.on.wakeful.localhost")),
            ("notebook", format!("{ENV}-notebook.on.wakeful.localhost")),
        ];
        for (surface, host) in table {
            let surface = SurfaceName::new(surface).unwrap();
            assert_eq!(hosts.surface_host(env(), &slug, &surface), host);
            let url = hosts.surface_url(env(), &slug, &surface);
            assert_eq!(url, format!("http://{host}:7878/"));
        }
    }

    #[test]
    fn the_longest_slug_still_makes_a_host_label() {
        let slug = Slug::new("abcdefghijklmnopqrstuvwxyz").unwrap();
        let host = Hosts::default().surface_host(env(), &slug, &SurfaceName::app());
        assert_eq!(host.split('.').next().unwrap().len(), 63);
    }

    #[test]
    fn a_port_that_the_scheme_implies_is_left_out() {
        let hosts = Hosts::new("Wake.Example.", Scheme::Https, Some(443)).unwrap();
        assert_eq!(hosts.main_url("/login"), "https://wake.example/login");
        let hosts = Hosts::new("wake.example", Scheme::Https, Some(8443)).unwrap();
        assert_eq!(hosts.main_origin(), "https://wake.example:8443");
    }

    #[test]
    fn what_is_no_domain_is_refused() {
        for bad in ["", ".", "a..b", "a_b.example", "-a.example", "a/b", "a:80", "[::1]"] {
            assert_eq!(Hosts::new(bad, Scheme::Http, None), Err(DomainError), "{bad}");
        }
    }

    #[test]
    fn cookies_carry_the_host_prefix_when_secure_and_the_suffix_when_set() {
        let mut hosts = Hosts::default();
        assert_eq!(hosts.session_cookie(), "wakeful_session");
        hosts.cookie_suffix = "b".to_owned();
        hosts.scheme = Scheme::Https;
        assert_eq!(hosts.session_cookie(), "__Host-wakeful_session-b");
        assert_eq!(hosts.surface_cookie(), "__Host-wakeful_surface-b");
    }

    #[test]
    fn a_browser_opens_a_surface_on_its_own_host_unless_origins_are_shared() {
        let slug = Slug::new("dev").unwrap();
        let agent = SurfaceName::agent();
        let mut hosts = Hosts::default();
        let open = |hosts: &Hosts, route| hosts.open_url(env(), &slug, &agent, route);
        let by_path = format!("http://wakeful.localhost:7878/api/proxy/{ENV}/");
        let by_host = format!("http://{ENV}-agent.on.wakeful.localhost:7878/");
        assert_eq!(open(&hosts, RouteKind::Both), by_host);
        assert_eq!(open(&hosts, RouteKind::Path), by_path);
        hosts.path_origin = PathOrigin::Shared;
        assert_eq!(open(&hosts, RouteKind::Both), by_path);
        assert_eq!(open(&hosts, RouteKind::Host), by_host);
        let app = SurfaceName::app();
        assert_eq!(hosts.path_url(env(), &app), None);
        assert_eq!(
            hosts.open_url(env(), &slug, &app, RouteKind::Path),
            hosts.surface_url(env(), &slug, &app)
        );
    }
}
