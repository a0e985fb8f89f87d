//! Whether a request that changes something comes from the main host's own pages.
//!
//! Every app of every environment is same-site with the dashboard, so `SameSite` protects nothing
//! between them. Only an exact origin does.

use http::{HeaderMap, header};
use wakeful_wire::{Code, hosts::Hosts};

use super::Refusal;

/// Refuses what comes from another origin. Browsers say where a request comes from; a program that
/// sends neither header passes, unless `with_cookie`: a cookie is sent by browsers alone.
///
/// # Errors
/// [`Code::CrossOrigin`].
pub(super) fn check(headers: &HeaderMap, hosts: &Hosts, with_cookie: bool) -> Result<(), Refusal> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let own = match (origins.next(), origins.next(), headers.get("sec-fetch-site")) {
        (Some(_), Some(_), _) => false,
        (Some(origin), None, _) => origin == hosts.main_origin().as_str(),
        (None, _, Some(site)) => site == "same-origin",
        (None, _, None) => !with_cookie,
    };
    if own {
        Ok(())
    } else {
        Err(Refusal::because(
            Code::CrossOrigin,
            format!("This must be sent from the pages of {}.", hosts.main_origin()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_exact_origin_passes() {
        const OWN: &str = "http://wakeful.localhost:7878";
        // Origin, Sec-Fetch-Site, passes with a cookie, passes without.
        let table = [
            (Some(OWN), None, true, true),
            (Some(OWN), Some("same-origin"), true, true),
            (Some("http://wakeful.localhost"), None, false, false),
            (Some("https://wakeful.localhost:7878"), None, false, false),
            (Some("http://x.apps.wakeful.localhost:7878"), Some("same-site"), false, false),
            (Some("http://x.apps.wakeful.localhost:7878"), Some("same-origin"), false, false),
            (Some("http://evil.example"), Some("cross-site"), false, false),
            (Some("http://localhost:7878"), None, false, false),
            (Some("null"), None, false, false),
            (Some(""), None, false, false),
            (None, Some("same-origin"), true, true),
            (None, Some("same-site"), false, false),
            (None, Some("cross-site"), false, false),
            (None, Some("none"), false, false),
            (None, None, false, true),
        ];
        let hosts = Hosts::default();
        for (origin, site, with_cookie, without) in table {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            if let Some(site) = site {
                headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            }
            let passes = |cookie| check(&headers, &hosts, cookie).is_ok();
            assert_eq!(passes(true), with_cookie, "{origin:?} {site:?} with a cookie");
            assert_eq!(passes(false), without, "{origin:?} {site:?} without");
        }
        let mut twice = HeaderMap::new();
        twice.append(header::ORIGIN, HeaderValue::from_static(OWN));
        twice.append(header::ORIGIN, HeaderValue::from_static("http://evil.example"));
        assert!(check(&twice, &hosts, false).is_err());
    }
}
