//! What a browser does: cookies by host, redirects, pages.

use serde_json::{Value, json};

use super::{Answer, Ask, Platform, User};

/// A password that is good enough.
const PASSWORD: &str = "correct horse battery";

/// The most redirects that are followed.
const REDIRECTS_MAX: usize = 12;

/// A browser with its cookies.
#[derive(Debug)]
pub(crate) struct Browser<'a> {
    platform: &'a Platform,
    /// Host, name and value.
    cookies: Vec<(String, String, String)>,
}

/// Where a page load ended.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) url: String,
    pub(crate) answer: Answer,
}

impl<'a> Browser<'a> {
    pub(crate) const fn new(platform: &'a Platform) -> Self {
        Self { platform, cookies: Vec::new() }
    }

    /// Signs up by the form, and gets a token beside the cookie.
    pub(crate) fn sign_up(&mut self, name: &str) -> User {
        let form = format!("user={name}&password={}", PASSWORD.replace(' ', "+"));
        let answer = self.submit("/users", &form).expect(303);
        assert_eq!(answer.header("location"), Some(format!("/u/{name}/").as_str()));
        let body = json!({ "user": name, "password": PASSWORD });
        let signed_in: Value =
            self.platform.ask("POST", "/login").json(&body).send().expect(200).json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        User {
            token: text(&signed_in["token"]),
            env: text(&signed_in["project"]["environments"][0]["id"]).parse().unwrap(),
        }
    }

    /// A request to a URL with the cookies of its host.
    pub(crate) fn ask(&self, method: &str, url: &str) -> Ask {
        let (host, target) = split(url);
        let ask = self.platform.ask_at(&host, method, &target);
        let cookies: Vec<_> = self
            .cookies
            .iter()
            .filter(|(of, ..)| *of == host)
            .map(|(_, name, value)| format!("{name}={value}"))
            .collect();
        if cookies.is_empty() { ask } else { ask.header("Cookie", &cookies.join("; ")) }
    }

    /// Keeps the cookies of an answer from a URL.
    pub(crate) fn keep(&mut self, url: &str, answer: &Answer) {
        let (host, _) = split(url);
        for (_, line) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.retain(|(of, known, _)| (of, known.as_str()) != (&host, name));
            if !attributes.contains("Max-Age=0") {
                self.cookies.push((host.clone(), name.to_owned(), value.to_owned()));
            }
        }
    }

    /// A request that a page's own script makes to its origin.
    pub(crate) fn script(&self, method: &str, url: &str) -> Ask {
        self.ask(method, url)
            .header("Sec-Fetch-Mode", "cors")
            .header("Sec-Fetch-Site", "same-origin")
            .header("Sec-Fetch-Dest", "empty")
    }

    /// Sends a form from a page of the main host; redirects are not followed.
    pub(crate) fn submit(&mut self, path: &str, form: &str) -> Answer {
        let url = format!("{}{path}", self.platform.origin());
        let ask = self
            .ask("POST", &url)
            .header("Origin", &self.platform.origin())
            .header("Sec-Fetch-Site", "same-origin")
            .header("Sec-Fetch-Mode", "navigate")
            .header("Accept", "text/html")
            .form(form);
        let answer = ask.send();
        self.keep(&url, &answer);
        answer
    }

    /// Opens a page and follows redirects.
    pub(crate) fn load(&mut self, url: &str) -> Loaded {
        let mut url = url.to_owned();
        for _ in 0..REDIRECTS_MAX {
            let answer = self.ask("GET", &url).page().send();
            self.keep(&url, &answer);
            let Some(to) = answer.header("location") else { return Loaded { url, answer } };
            url = if to.starts_with('/') {
                let (host, _) = split(&url);
                format!("http://{host}{to}")
            } else {
                to.to_owned()
            };
        }
        panic!("redirected for ever: {url}");
    }

    /// Opens a page and loads it again for as long as it says that its environment wakes.
    pub(crate) fn load_woken(&mut self, url: &str) -> Loaded {
        super::until(&format!("{url} is served"), || {
            let loaded = self.load(url);
            (loaded.answer.status != 503).then_some(loaded)
        })
    }

    /// The value of a cookie.
    pub(crate) fn cookie(&self, host: &str, name: &str) -> Option<&str> {
        let mut cookies = self.cookies.iter();
        cookies.find(|(of, known, _)| of == host && known == name).map(|(.., value)| value.as_str())
    }
}

/// The authority and the target of a URL.
fn split(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("no URL: {url}"));
    let at = rest.find('/').unwrap_or(rest.len());
    let target = if at == rest.len() { "/" } else { &rest[at..] };
    (rest[..at].to_owned(), target.to_owned())
}
