//! The gateway's own pages: waking, refused, and asked for at an address.
//!
//! They load nothing from anywhere, work without script, and carry a policy that allows their one
//! style and one script by hash and nothing else, so that no text that reaches them can run.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};
use wakeful_wire::{Code, Hosts, Phase};

use crate::refusal::Refusal;

const STYLE: &str = include_str!("pages/style.css");
const WAKING_SCRIPT: &str = include_str!("pages/waking.js");

static STYLE_HASH: LazyLock<String> = LazyLock::new(|| source_hash(STYLE));
static SCRIPT_HASH: LazyLock<String> = LazyLock::new(|| source_hash(WAKING_SCRIPT));

fn source_hash(source: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(source.as_bytes())))
}

/// A page and the policy that it is to be sent with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The document.
    pub html: String,
    /// The value of `Content-Security-Policy`.
    pub policy: String,
}

/// What the waking page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waking<'a> {
    /// The environment's title.
    pub title: &'a str,
    /// The phase now.
    pub phase: Phase,
    /// What is awaited, if somebody said.
    pub reason: Option<&'a str>,
    /// Where the page asks how far the wake is: [`wakeful_wire::hosts::STATUS_PATH`], below the
    /// prefix on a path route. Asking there neither wakes nor holds.
    pub status_url: &'a str,
    /// The environment's page on the dashboard.
    pub dashboard_url: &'a str,
}

/// What a phase means to somebody who waits.
const fn sentence(phase: Phase) -> &'static str {
    match phase {
        Phase::Suspended | Phase::Starting => "Starting the sandbox and its programs.",
        Phase::Ready => "The sandbox is up; its program is about to answer.",
        Phase::Frozen => "Thawing the sandbox.",
        Phase::Suspending => "It was just going to sleep. It wakes again in a moment.",
        Phase::Failed => "It could not be started.",
        Phase::Disabled => "It is switched off.",
        Phase::Publishing => "A new version is being published.",
        Phase::Deleted => "It has been deleted.",
    }
}

/// The phases that the script may be told while the page waits.
const WAITED: [Phase; 6] = [
    Phase::Suspended,
    Phase::Starting,
    Phase::Ready,
    Phase::Frozen,
    Phase::Suspending,
    Phase::Publishing,
];

/// The waking page: says what is happening, and goes on by itself. With script it asks for the
/// status and reloads when it is ready; without, it reloads every two seconds.
#[must_use]
pub fn waking(waking: &Waking<'_>, hosts: &Hosts) -> Page {
    let mut words = serde_json::Map::new();
    for phase in WAITED {
        words.insert(phase.as_str().to_owned(), sentence(phase).into());
    }
    words.insert("offline".to_owned(), "The connection is lost. Trying again.".into());
    let words = serde_json::Value::Object(words).to_string();
    let head = html! {
        noscript { meta http-equiv="refresh" content="2"; }
    };
    let body = html! {
        main.waking data-status=(waking.status_url) data-words=(words) {
            span.mark aria-hidden="true" {}
            h1 { "Waking " (waking.title) }
            p.now role="status" aria-live="polite" {
                (waking.reason.unwrap_or_else(|| sentence(waking.phase)))
            }
            div.bar aria-hidden="true" { i {} }
            p { "This page opens by itself as soon as it is ready. Nothing was lost while it slept." }
            footer {
                span { "Phase: " span.phase { (waking.phase.as_str()) } }
                a href=(waking.dashboard_url) target="_top" { "Open the dashboard" }
            }
        }
        script type="module" { (PreEscaped(WAKING_SCRIPT)) }
    };
    Page {
        html: document(&format!("Waking {}", waking.title), head, body),
        // The dashboard embeds previews, and a preview may be waking.
        policy: format!(
            "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'self' {}",
            *STYLE_HASH,
            *SCRIPT_HASH,
            hosts.main_origin()
        ),
    }
}

/// The page for a refusal.
#[must_use]
pub fn refusal(refusal: &Refusal, hosts: &Hosts) -> Page {
    let code = refusal.code;
    let body = html! {
        main {
            span.mark aria-hidden="true" {}
            h1 { (code.title()) }
            @match &refusal.detail {
                Some(detail) => p.now { (detail) },
                None => p.now { (explain(code)) },
            }
            @if refusal.detail.is_some() { p { (explain(code)) } }
            footer {
                span { (code.status()) " " (code.as_str()) }
                a href=(hosts.main_url("/")) target="_top" { "Open the dashboard" }
            }
        }
    };
    still(code.title(), body, hosts)
}

/// What somebody can do about it.
const fn explain(code: Code) -> &'static str {
    match code {
        Code::NotFound => "There is nothing at this address, or nothing that you may see.",
        Code::Gone => "This environment has been deleted. Its owner can restore it for some days.",
        Code::Unauthenticated | Code::BadCredentials => "Sign in to go on.",
        Code::Forbidden => "You may see this, but not do it.",
        Code::CrossOrigin => "The request came from a page of another origin and was refused.",
        Code::EnvironmentDisabled => "Its owner has to switch it on again.",
        Code::EnvironmentFailed => "The dashboard shows why, and can try again.",
        Code::SurfaceFailed => {
            "The environment runs, but this program does not. The dashboard has its log."
        }
        Code::UpstreamFailed => "Try again. If it stays so, the dashboard has the program's log.",
        Code::Asleep => "This visit does not wake it. The dashboard does.",
        Code::Starting => "It takes longer than usual. Reload the page in a moment.",
        Code::Restarting => "Reload the page in a moment.",
        Code::Overloaded | Code::TooManyRequests => {
            "Many requests wait already. Reload the page in a moment."
        }
        Code::ControlUnavailable | Code::Internal => {
            "Something in Wakeful failed. Reload the page in a moment."
        }
        Code::Misdirected => "This server is not set up for that name.",
        Code::BadRequest
        | Code::BadTarget
        | Code::Invalid
        | Code::MethodNotAllowed
        | Code::Conflict
        | Code::Unsupported
        | Code::WrongPhase
        | Code::TooLarge
        | Code::UnsupportedMedia
        | Code::HeadersTooLarge => "The request cannot be carried as it is.",
        Code::NoSpace => "The workspace is full.",
    }
}

/// The page for somebody who asks at an address: cookies and surfaces' hosts need a name.
#[must_use]
pub fn needs_name(hosts: &Hosts) -> Page {
    let body = html! {
        main {
            span.mark aria-hidden="true" {}
            h1 { "Wakeful needs a name" }
            p.now {
                "Every surface has a host of its own, so pages cannot be served at a bare address."
            }
            p {
                "Start it with " code { "--domain wake.example.com" } ", or set "
                code { "public_url" } ", to the name that leads to this machine. "
                @if hosts.domain.ends_with("localhost") {
                    "On the machine itself it answers at "
                } @else {
                    "It is set to "
                }
                a href=(hosts.main_url("/")) { (hosts.main_url("/")) } "."
            }
            p { "The API answers here all the same." }
        }
    };
    still("Wakeful needs a name", body, hosts)
}

/// A page without script.
fn still(title: &str, body: Markup, hosts: &Hosts) -> Page {
    Page {
        html: document(title, html! {}, body),
        policy: format!(
            "default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'self' {}",
            *STYLE_HASH,
            hosts.main_origin()
        ),
    }
}

fn document(title: &str, head: Markup, body: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) }
                style { (PreEscaped(STYLE)) }
                (head)
            }
            body { (body) }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(title: &str, reason: Option<&str>) -> Page {
        let hosts = Hosts::default();
        let shown = Waking {
            title,
            phase: Phase::Starting,
            reason,
            status_url: "/.wakeful/status",
            dashboard_url: "http://wakeful.localhost:7878/environments/1",
        };
        waking(&shown, &hosts)
    }

    #[test]
    fn the_waking_page_goes_on_with_and_without_script() {
        let page = page("Demo", None);
        assert!(
            page.html.contains(r#"<noscript><meta http-equiv="refresh" content="2"></noscript>"#)
        );
        assert!(page.html.contains(r#"data-status="/.wakeful/status""#));
        assert!(page.html.contains("http://wakeful.localhost:7878/environments/1"));
        assert!(page.html.contains("Starting the sandbox"));
    }

    #[test]
    fn no_text_of_an_environment_can_run_in_a_page() {
        let page = page("<script>alert(1)</script>", Some("\"><img src=x onerror=alert(1)>"));
        assert!(!page.html.contains("<script>alert"));
        assert!(!page.html.contains("<img"));
        assert!(!page.policy.contains("unsafe"));
    }

    #[test]
    fn the_policy_allows_exactly_the_style_and_the_script_that_the_page_holds() {
        let page = page("Demo", None);
        let between = |from: &str, to: &str| {
            let start = page.html.find(from).unwrap() + from.len();
            let end = page.html[start..].find(to).unwrap();
            source_hash(&page.html[start..start + end])
        };
        let style = between("<style>", "</style>");
        let script = between("<script type=\"module\">", "</script>");
        assert!(page.policy.contains(&format!("style-src {style};")));
        assert!(page.policy.contains(&format!("script-src {script};")));
        assert!(page.policy.starts_with("default-src 'none';"));
    }

    #[test]
    fn every_code_has_a_page_that_says_its_status() {
        for code in Code::ALL {
            let page = refusal(&Refusal::new(*code), &Hosts::default());
            assert!(page.html.contains(&format!("{} {}", code.status(), code.as_str())), "{code}");
        }
    }
}
