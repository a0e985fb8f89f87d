//! One line per request, written when its last byte has gone or its client has.
//!
//! Of a target only the names of its query fields are told: values and paths may be secrets
//! (`cases.md`, C34). The main host's own paths are told too, since they hold ids; tickets,
//! credentials and tokens reach it in a query, a header or a body. File names are left out.

use std::{fmt, sync::Arc, time::Duration};

use http::{Method, Uri};
use tokio::time::Instant;
use wakeful_wire::{EnvId, SurfaceName};

use crate::{
    metrics::{Class, CoreCounters},
    refusal::Origin,
};

/// The target of the lines, to be named in a filter.
pub const TARGET: &str = "access";

/// How far a request has come, in its own time.
#[derive(Debug, Clone, Copy, Default)]
struct Phases {
    admitted: Option<Duration>,
    ready: Option<Duration>,
    dialed: Option<Duration>,
    head: Option<Duration>,
}

/// What is known of a request. Dropping it writes the line: with status 499 unless an answer was
/// finished before.
pub(crate) struct Line {
    counters: Arc<CoreCounters>,
    started: Instant,
    phases: Phases,
    method: Method,
    uri: Option<Uri>,
    route: &'static str,
    /// The target is the main host's own, so its path may be told.
    main: bool,
    env: Option<EnvId>,
    surface: Option<SurfaceName>,
    status: u16,
    verdict: &'static str,
    origin: Option<Origin>,
    finished: bool,
}

impl Line {
    pub(crate) fn new(counters: Arc<CoreCounters>, method: &Method, uri: &Uri) -> Self {
        let wanted = tracing::enabled!(target: "access", tracing::Level::INFO);
        Self {
            counters,
            started: Instant::now(),
            phases: Phases::default(),
            method: method.clone(),
            uri: wanted.then(|| uri.clone()),
            route: "none",
            main: false,
            env: None,
            surface: None,
            status: 0,
            verdict: "none",
            origin: None,
            finished: false,
        }
    }

    pub(crate) const fn started(&self) -> Instant {
        self.started
    }

    /// By which kind of host or path it came.
    pub(crate) const fn route(&mut self, route: &'static str) {
        self.route = route;
    }

    /// It is for the main host.
    pub(crate) const fn main(&mut self) {
        self.route = "main";
        self.main = true;
    }

    pub(crate) fn surface(&mut self, env: EnvId, surface: &SurfaceName) {
        self.env = Some(env);
        if self.uri.is_some() {
            self.surface = Some(surface.clone());
        }
    }

    /// What the gate said, or which rule answered before it.
    pub(crate) const fn verdict(&mut self, verdict: &'static str) {
        self.verdict = verdict;
    }

    pub(crate) const fn origin(&mut self, origin: Origin) {
        self.origin = Some(origin);
    }

    pub(crate) const fn status(&mut self, status: u16) {
        self.status = status;
    }

    pub(crate) fn admitted(&mut self) {
        if self.uri.is_some() {
            self.phases.admitted = Some(self.started.elapsed());
        }
    }

    pub(crate) fn ready(&mut self) {
        if self.uri.is_some() {
            self.phases.ready = Some(self.started.elapsed());
        }
    }

    pub(crate) fn dialed(&mut self) {
        if self.uri.is_some() {
            self.phases.dialed = Some(self.started.elapsed());
        }
    }

    pub(crate) fn head(&mut self) {
        if self.uri.is_some() {
            self.phases.head = Some(self.started.elapsed());
        }
    }

    /// The answer's last byte has been handed on, or broke off for a reason of its own.
    pub(crate) const fn finish(&mut self) {
        self.finished = true;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // An upgraded connection always ends by somebody leaving.
        let left = !self.finished && self.status != 101;
        let status = if left { 499 } else { self.status };
        self.counters.request(Class::of(status));
        let Some(uri) = &self.uri else { return };
        let origin = if left { Some(Origin::Client) } else { self.origin };
        tracing::info!(
            target: "access",
            method = %self.method,
            route = self.route,
            env = self.env.map(tracing::field::display),
            surface = self.surface.as_ref().map(SurfaceName::as_str),
            path = self.main.then(|| main_path(uri.path())),
            query = %QueryNames(uri.query().unwrap_or_default()),
            status,
            verdict = self.verdict,
            origin = origin.map(Origin::as_str),
            admit_us = self.phases.admitted.map(micros),
            gate_us = self.phases.ready.map(micros),
            dial_us = self.phases.dialed.map(micros),
            head_us = self.phases.head.map(micros),
            total_us = micros(self.started.elapsed()),
        );
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("status", &self.status).finish_non_exhaustive()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The longest path that is told, in bytes.
const PATH_MAX: usize = 128;

/// What is told of a path of the main host: its beginning, and no name of a workspace's file.
fn main_path(path: &str) -> &str {
    const FILES: &str = "/files/";
    let end = path.find(FILES).map_or(path.len(), |at| at + FILES.len());
    &path[..path.floor_char_boundary(end.min(PATH_MAX))]
}

/// The names of a query's fields, and never a value. What has no `=` might be a value by itself.
struct QueryNames<'a>(&'a str);

impl fmt::Display for QueryNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.split('&').filter_map(|field| field.split_once('='));
        for (index, (name, _)) in names.take(32).enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let end = (0..=name.len().min(64)).rev().find(|end| name.is_char_boundary(*end));
            f.write_str(&name[..end.unwrap_or(0)])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_path_of_the_main_host_the_beginning_is_told_and_no_file() {
        let (long, wide) = (format!("/{}", "a".repeat(300)), format!("/{}", "é".repeat(300)));
        let table = [
            ("/", "/"),
            ("*", "*"),
            ("/environments/0199/wake", "/environments/0199/wake"),
            ("/api/projects/0199/files", "/api/projects/0199/files"),
            ("/api/projects/0199/files/SECRETaaa111/x", "/api/projects/0199/files/"),
            (&long, &long[..128]),
            (&wide, &wide[..127]),
        ];
        for (path, told) in table {
            assert_eq!(main_path(path), told, "{path}");
        }
    }

    #[test]
    fn of_a_query_only_names_are_told() {
        let table = [
            ("", ""),
            ("token=SECRETaaa111&x=1", "token,x"),
            ("SECRETaaa111", ""),
            ("a=1&SECRETaaa111&b=", "a,b"),
        ];
        for (query, names) in table {
            assert_eq!(QueryNames(query).to_string(), names, "{query}");
        }
    }
}
