//! Which answer a request is for: its method and path alone decide.

use axum::http::Method;
use wakeful_wire::{
    Code, HostSessionId, Problem,
    host::{DESCRIPTOR_PATH, PAIRING_PATH, SOCKET_PATH, TICKET_PATH, TOKEN_PATH},
    rpc::ThreadId,
};

use super::answer::Refusal;

/// Where a host of its own answers its descriptor as well, so that one can be found on a network.
const WELL_KNOWN: &str = "/.well-known/wakeful-host";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// Who the host is.
    Descriptor,
    /// A one-time credential for an access token.
    Token,
    /// A socket's ticket.
    Ticket,
    /// The socket.
    Socket,
    /// The list.
    Shell,
    /// How many settled threads are below the cut.
    Counts,
    /// Settled threads.
    Settled,
    /// Archived threads.
    Archived,
    /// Threads that hold some words.
    Search,
    /// A thread with its newest page.
    Thread(ThreadId),
    /// An older page of a thread.
    Page(ThreadId),
    /// The threads that share a root with one.
    Family(ThreadId),
    /// The sessions.
    Sessions,
    /// The end of a session.
    Session(HostSessionId),
    /// The end of all sessions but one.
    RevokeOthers,
    /// A pairing code.
    Pairing,
}

/// The methods of a route.
#[derive(Clone, Copy)]
enum Methods {
    /// `GET`, and `HEAD` with it.
    Read,
    /// `GET` alone: what is no answer to `HEAD`.
    Get,
    Post,
    Delete,
}

impl Methods {
    fn have(self, method: &Method) -> bool {
        match self {
            Self::Read => method == Method::GET || method == Method::HEAD,
            Self::Get => method == Method::GET,
            Self::Post => method == Method::POST,
            Self::Delete => method == Method::DELETE,
        }
    }

    const fn allow(self) -> &'static str {
        match self {
            Self::Read => "GET, HEAD",
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

impl Route {
    /// The route of a request. Paths are compared as they are sent: none of them needs an escape.
    ///
    /// # Errors
    /// 404 for an unknown path, 405 with `Allow` for a method that the path does not have.
    pub(super) fn of(method: &Method, path: &str) -> Result<Self, Refusal> {
        let (route, methods) = Self::at(path).ok_or_else(|| {
            Refusal::from(Problem::new(Code::NotFound).detail("The host has nothing here."))
        })?;
        if methods.have(method) { Ok(route) } else { Err(Refusal::method(methods.allow())) }
    }

    fn at(path: &str) -> Option<(Self, Methods)> {
        Some(match path {
            DESCRIPTOR_PATH | WELL_KNOWN => (Self::Descriptor, Methods::Read),
            TOKEN_PATH => (Self::Token, Methods::Post),
            TICKET_PATH => (Self::Ticket, Methods::Post),
            SOCKET_PATH => (Self::Socket, Methods::Get),
            PAIRING_PATH => (Self::Pairing, Methods::Post),
            "/shell" => (Self::Shell, Methods::Read),
            "/shell/counts" => (Self::Counts, Methods::Read),
            "/shell/settled" => (Self::Settled, Methods::Read),
            "/shell/archived" => (Self::Archived, Methods::Read),
            "/search" => (Self::Search, Methods::Read),
            "/sessions" => (Self::Sessions, Methods::Read),
            "/sessions/revoke-others" => (Self::RevokeOthers, Methods::Post),
            _ => return Self::named(path),
        })
    }

    fn named(path: &str) -> Option<(Self, Methods)> {
        if let Some(id) = path.strip_prefix("/sessions/") {
            return Some((Self::Session(id.parse().ok()?), Methods::Delete));
        }
        let rest = path.strip_prefix("/threads/")?;
        let (id, below) =
            rest.split_once('/').map_or((rest, None), |(id, below)| (id, Some(below)));
        let thread = id.parse().ok()?;
        let route = match below {
            None => Self::Thread(thread),
            Some("page") => Self::Page(thread),
            Some("family") => Self::Family(thread),
            Some(_) => return None,
        };
        Some((route, Methods::Read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50";

    fn found(method: Method, path: &str) -> Result<Route, u16> {
        Route::of(&method, path).map_err(|refusal| refusal.status())
    }

    #[test]
    fn a_path_and_its_method_say_what_is_asked_for() {
        let thread = ID.parse().unwrap();
        let table = [
            (Method::GET, "/descriptor".to_owned(), Route::Descriptor),
            (Method::HEAD, "/.well-known/wakeful-host".to_owned(), Route::Descriptor),
            (Method::POST, "/oauth/token".to_owned(), Route::Token),
            (Method::POST, "/ticket".to_owned(), Route::Ticket),
            (Method::GET, "/rpc".to_owned(), Route::Socket),
            (Method::GET, "/shell".to_owned(), Route::Shell),
            (Method::GET, "/shell/counts".to_owned(), Route::Counts),
            (Method::GET, "/shell/settled".to_owned(), Route::Settled),
            (Method::GET, "/shell/archived".to_owned(), Route::Archived),
            (Method::GET, "/search".to_owned(), Route::Search),
            (Method::GET, format!("/threads/{ID}"), Route::Thread(thread)),
            (Method::GET, format!("/threads/{ID}/page"), Route::Page(thread)),
            (Method::GET, format!("/threads/{ID}/family"), Route::Family(thread)),
            (Method::GET, "/sessions".to_owned(), Route::Sessions),
            (Method::DELETE, format!("/sessions/{ID}"), Route::Session(ID.parse().unwrap())),
            (Method::POST, "/sessions/revoke-others".to_owned(), Route::RevokeOthers),
            (Method::POST, "/pairing".to_owned(), Route::Pairing),
        ];
        for (method, path, route) in table {
            assert_eq!(found(method, &path), Ok(route), "{path}");
        }
    }

    #[test]
    fn other_paths_are_unknown_and_other_methods_refused() {
        for path in
            ["", "/", "/shell/", "//shell", "/Shell", "/threads/", "/threads/x", "/sessions/"]
        {
            assert_eq!(found(Method::GET, path), Err(404), "{path}");
        }
        for below in ["/", "/pages", "/page/", "/page/x"] {
            assert_eq!(found(Method::GET, &format!("/threads/{ID}{below}")), Err(404), "{below}");
        }
        let table = [
            (Method::GET, "/oauth/token"),
            (Method::HEAD, "/rpc"),
            (Method::POST, "/shell"),
            (Method::OPTIONS, "/shell"),
            (Method::GET, "/sessions/revoke-others"),
            (Method::PUT, "/descriptor"),
        ];
        for (method, path) in table {
            assert_eq!(found(method, path), Err(405), "{path}");
        }
    }
}
