//! Checks of single values. Each says what is wrong as the rest of a sentence.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use wakeful_wire::TemplateName;

use super::PublicUrl;

/// An address and a port: `127.0.0.1:7878`, `[::1]:7878`.
pub(crate) fn address(text: &str) -> Result<(), String> {
    text.parse::<SocketAddr>()
        .map(|_| ())
        .map_err(|_| format!("holds `{text}`, which is not an address and a port"))
}

/// Any path but an empty one, or one with NUL.
pub(crate) fn path(text: &str) -> Result<(), String> {
    match text {
        "" => Err("must not be empty".to_owned()),
        text if text.contains('\0') => Err("must not hold NUL".to_owned()),
        _ => Ok(()),
    }
}

/// A path from the root.
pub(crate) fn absolute_path(text: &str) -> Result<(), String> {
    path(text)?;
    if Path::new(text).is_absolute() {
        Ok(())
    } else {
        Err(format!("holds `{text}`, which is not an absolute path"))
    }
}

/// A host name: lower-case labels of `[a-z0-9-]` with dots between, at most 190 bytes, so that the
/// longest label that Wakeful puts before it still makes a name of 253.
pub(crate) fn domain(text: &str) -> Result<(), String> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    // Programs take a name that ends in a number for an address.
    let numeric =
        text.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if text.len() <= 190 && text.split('.').all(label) && !numeric {
        Ok(())
    } else {
        Err(format!(
            "is `{text}`, not a host name: lower-case letters, digits, dashes and dots, without \
             port and scheme"
        ))
    }
}

/// A public address, or nothing.
pub(crate) fn public_url_or_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { public_url(text).map(|_| ()) }
}

/// `http` or `https`, a host name or IPv4 address, perhaps a port, perhaps a slash, and nothing more.
pub(crate) fn public_url(text: &str) -> Result<PublicUrl, String> {
    let wrong =
        || format!("is `{text}`, but must be like `https://agents.example.org`, without a path");
    let (secure, rest) = match text.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        Some(_) | None => return Err(wrong()),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest).to_ascii_lowercase();
    let url = PublicUrl { secure, authority };
    let host = url.host();
    let port_fits = match url.authority[host.len()..].strip_prefix(':') {
        Some(port) => port.parse::<u16>().is_ok_and(|port| port > 0),
        None => true,
    };
    if (domain(host).is_ok() || host.parse::<Ipv4Addr>().is_ok()) && port_fits {
        Ok(url)
    } else {
        Err(wrong())
    }
}

/// A few characters that may stand in a cookie's name.
pub(crate) fn cookie_suffix(text: &str) -> Result<(), String> {
    let fits = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if fits && text.len() <= 32 {
        Ok(())
    } else {
        Err(format!("is `{text}`, but may hold at most 32 letters, digits and dashes"))
    }
}

/// A template's name.
pub(crate) fn template_name(text: &str) -> Result<(), String> {
    TemplateName::new(text).map(|_| ()).map_err(|why| format!("is `{text}`: a name {why}"))
}

/// A level, or directives of tracing's filter.
pub(crate) fn log_level(text: &str) -> Result<(), String> {
    let wrong = || {
        format!(
            "is `{text}`, but must be a level (`error`, `warn`, `info`, `debug`, `trace`, `off`) \
             or directives such as `info,wakeful_gateway=debug`"
        )
    };
    if text.trim().is_empty() {
        return Err(wrong());
    }
    // The filter takes a lone unknown word for the name of a crate; nobody means that.
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    let lone_word_fits = text
        .split(',')
        .map(str::trim)
        .all(|part| part.contains(['=', '[', ':']) || levels.contains(&part));
    if !lone_word_fits {
        return Err(wrong());
    }
    tracing_subscriber::EnvFilter::try_new(text).map(|_| ()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_a_bare_lower_case_host_name() {
        for good in ["wakeful.localhost", "a", "x-1.example.org", "1a.b2c"] {
            assert!(domain(good).is_ok(), "{good}");
        }
        let long = format!("{}.{}.{}.org", "a".repeat(63), "b".repeat(63), "c".repeat(63));
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "A.b",
            "a:80",
            "http://a",
            "-a",
            "a-",
            "127.0.0.1",
            "a_b",
            "é.org",
            &long,
        ] {
            assert!(domain(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_public_url_is_scheme_host_and_port() {
        let table = [
            ("https://Agents.example.org", Some("https://agents.example.org")),
            ("http://a.localhost:8080/", Some("http://a.localhost:8080")),
            ("http://192.168.1.5:7878", Some("http://192.168.1.5:7878")),
            ("http://[::1]:7878", None),
            ("http://::1", None),
            ("https://a.org/path", None),
            ("https://user@a.org", None),
            ("ftp://a.org", None),
            ("a.org", None),
            ("https://a.org:0", None),
            ("https://a.org:99999", None),
            ("https://a.org:", None),
            ("https://a.org?x", None),
        ];
        for (written, expected) in table {
            assert_eq!(
                public_url(written).ok().map(|url| url.to_string()).as_deref(),
                expected,
                "{written}"
            );
        }
    }

    #[test]
    fn a_log_level_is_a_known_word_or_a_directive() {
        for good in ["info", "off", "info,wakeful_gateway=debug", "warn,hyper=off"] {
            assert!(log_level(good).is_ok(), "{good}");
        }
        for bad in ["", "inof", "loud", "info,wakeful=loud"] {
            assert!(log_level(bad).is_err(), "{bad}");
        }
    }
}
