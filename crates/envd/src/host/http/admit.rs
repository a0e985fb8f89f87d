//! What a request shows of who sent it, and what of it is taken.

use std::net::IpAddr;

use axum::{
    body::{Body, Bytes},
    extract::Query,
    http::{HeaderMap, HeaderName, header, request},
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use wakeful_wire::{
    Code, Problem,
    host::{PUBLIC_ADDRESS_HEADER, Scope},
};

use super::{BODY_TIME, answer::Refusal};
use crate::{
    credential::{HttpAddress, Presented, Session},
    host::{Address, Host},
};

/// Most bytes of a request's body.
pub(super) const BODY_MAX: usize = 64 * 1024;

/// A request without its body, and whom it is put to.
pub(super) struct Asked {
    /// The host.
    pub(super) host: Host,
    /// Who is at the other end of the connection, where that is the client.
    pub(super) peer: Option<IpAddr>,
    /// The request's head.
    pub(super) head: request::Parts,
}

impl Asked {
    /// The session that sends it, if that may do this.
    ///
    /// # Errors
    /// Whatever is wrong with the address or the credentials.
    pub(super) fn session(&self, scope: Scope) -> Result<Session, Refusal> {
        let address = self.address()?;
        let session = self.host.parts().authority.authorize(&self.presented(&address))?;
        session.allows(scope)?;
        Ok(session)
    }

    /// What it shows of who sent it. A header that is there twice counts as not there: which of
    /// the two is meant is not for the host to guess.
    pub(super) fn presented<'a>(&'a self, address: &'a HttpAddress) -> Presented<'a> {
        Presented {
            method: self.head.method.as_str(),
            address,
            authorization: only(&self.head.headers, &header::AUTHORIZATION),
            proof: only(&self.head.headers, &HeaderName::from_static("dpop")),
        }
    }

    /// The address that the client sent it to, without a query: what its proof must name.
    ///
    /// # Errors
    /// 400 when nobody states it, or it is no address.
    pub(super) fn address(&self) -> Result<HttpAddress, Refusal> {
        public(&self.host.parts().address, &self.head.headers, self.head.uri.path())
    }

    /// The parameters of its query. Unknown ones are ignored.
    ///
    /// # Errors
    /// 400 when one is missing or malformed.
    pub(super) fn query<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let query = Query::<T>::try_from_uri(&self.head.uri);
        let Query(query) = query.map_err(|error| invalid(error.body_text()))?;
        Ok(query)
    }
}

/// A value that is not as it must be.
pub(super) fn invalid(sentence: impl Into<String>) -> Refusal {
    Problem::new(Code::Invalid).detail(sentence).into()
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

fn public(address: &Address, headers: &HeaderMap, path: &str) -> Result<HttpAddress, Refusal> {
    let stated;
    let (base, remedy) = match address {
        Address::Stated => {
            let header = HeaderName::from_static(PUBLIC_ADDRESS_HEADER);
            let remedy = "This host is reached only through its gateway, which states the address.";
            stated = only(headers, &header).and_then(|text| HttpAddress::parse(text).ok());
            (stated.as_ref(), remedy)
        }
        Address::Own(None) => {
            let remedy = "Send one Host header with the address that this host is reached at.";
            stated = only(headers, &header::HOST)
                .and_then(|host| HttpAddress::parse(&format!("http://{host}")).ok());
            (stated.as_ref(), remedy)
        }
        Address::Own(Some(base)) => (Some(base), "The path is no path of an address."),
    };
    base.and_then(|base| base.below(path).ok())
        .ok_or_else(|| Problem::new(Code::BadRequest).detail(remedy).into())
}

/// A whole body.
///
/// # Errors
/// 413 beyond `max` bytes; 400 when it does not come whole, or not in time. Either way the
/// connection ends, since the rest of the body is not waited for.
pub(super) async fn body(body: Body, max: usize) -> Result<Bytes, Refusal> {
    let read = tokio::time::timeout(BODY_TIME, Limited::new(body, max).collect()).await;
    let problem = match read {
        Ok(Ok(body)) => return Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Problem::new(Code::TooLarge).detail(format!("The body may have {max} bytes."))
        }
        Ok(Err(_broken)) => Problem::new(Code::BadRequest).detail("The body did not come whole."),
        Err(_late) => Problem::new(Code::BadRequest)
            .detail(format!("The body did not come within {} seconds.", BODY_TIME.as_secs())),
    };
    Err(Refusal::closing_connection(problem))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn seen(address: &Address, pairs: &[(&'static str, &str)], path: &str) -> Result<String, u16> {
        public(address, &headers(pairs), path)
            .map(|address| address.to_string())
            .map_err(|refusal| refusal.status())
    }

    #[test]
    fn a_stated_address_counts_only_if_it_is_there_once_and_is_one() {
        let base = (PUBLIC_ADDRESS_HEADER, "https://w.example/api/host/e1");
        let host = ("host", "other.example");
        let whole = Ok("https://w.example/api/host/e1/shell".to_owned());
        assert_eq!(seen(&Address::Stated, &[host, base], "/shell"), whole);
        assert_eq!(seen(&Address::Stated, &[host], "/shell"), Err(400));
        assert_eq!(seen(&Address::Stated, &[base, base], "/shell"), Err(400));
        let bad = (PUBLIC_ADDRESS_HEADER, "w.example");
        assert_eq!(seen(&Address::Stated, &[bad], "/shell"), Err(400));
    }

    #[test]
    fn a_host_of_its_own_is_where_it_is_asked_or_where_it_says() {
        let host = ("host", "laptop.local:9000");
        let stated = (PUBLIC_ADDRESS_HEADER, "https://evil.example");
        let asked = Ok("http://laptop.local:9000/shell".to_owned());
        assert_eq!(seen(&Address::Own(None), &[host, stated], "/shell"), asked);
        assert_eq!(seen(&Address::Own(None), &[], "/shell"), Err(400));
        assert_eq!(seen(&Address::Own(None), &[host, host], "/shell"), Err(400));
        assert_eq!(seen(&Address::Own(None), &[("host", "a b")], "/shell"), Err(400));
        let own = Address::Own(HttpAddress::parse("https://me.example/w/").ok());
        let said = Ok("https://me.example/w/shell".to_owned());
        assert_eq!(seen(&own, &[host, stated], "/shell"), said);
    }

    #[test]
    fn a_header_that_is_there_twice_is_not_there() {
        let name = header::AUTHORIZATION;
        let one = headers(&[("authorization", "DPoP a")]);
        assert_eq!(only(&one, &name), Some("DPoP a"));
        let two = headers(&[("authorization", "DPoP a"), ("authorization", "DPoP a")]);
        assert_eq!(only(&two, &name), None);
        assert_eq!(only(&HeaderMap::new(), &name), None);
    }
}
