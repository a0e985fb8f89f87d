//! The lists of hosts, printed once.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use wakeful_client::clock;
use wakeful_link::{ConnectionPhase, Instant};
use wakeful_wire::{
    EnvId, HostId, Phase, Timestamp,
    rpc::{Cursor, OlderSettled, ShellRow},
};

use super::{
    super::hosts::{Countdown, HostView, connection_json, data_words, words},
    table,
};
use crate::output::{Output, printable};

/// What `threads --json` prints.
#[derive(Debug, Serialize)]
struct Lists {
    environments: Vec<HostList>,
}

/// The list of one host, or why there is none.
#[derive(Debug, Serialize)]
pub(super) struct HostList {
    /// The environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<EnvId>,
    /// The paired host's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// The host's id.
    id: HostId,
    /// For people.
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Phase>,
    /// Why the list is not live, although that is not for sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What the connection is doing.
    connection: Value,
    /// Whether the rows are what the host has.
    live: bool,
    /// Else when they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<Cursor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Arc<ShellRow>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    older_settled: Option<OlderSettled>,
    /// How many threads are settled, those that are left out among them.
    settled: u64,
    #[serde(skip)]
    text: String,
}

impl HostList {
    pub(super) fn of(host: &HostView, now: Instant) -> Self {
        let rows = host.list.as_ref().map(|list| list.newest_first());
        let paired = host.env.is_none();
        let bare = || host.name.split_once(':').map_or(host.name.as_str(), |(_, name)| name);
        Self {
            environment: host.env,
            host: paired.then(|| bare().to_owned()),
            id: host.host,
            name: host.name.clone(),
            phase: phase(host),
            error: host.failure().map(|failure| failure.detail),
            connection: connection_json(host, now),
            live: host.is_live(),
            as_of: host.as_of,
            cursor: host.list.as_ref().map(|list| list.cursor()),
            older_settled: host.list.as_ref().and_then(|list| list.older_settled().cloned()),
            rows,
            settled: host.settled,
            text: text(host, now, Countdown::Over, clock::now()),
        }
    }
}

/// What an environment is doing, as far as it is known.
fn phase(host: &HostView) -> Option<Phase> {
    host.env?;
    match host.connection.phase {
        // It answers, whatever was said a moment ago.
        ConnectionPhase::Connected => Some(Phase::Ready),
        ConnectionPhase::Asleep => host.connection.environment.or(Some(Phase::Suspended)),
        ConnectionPhase::Available
        | ConnectionPhase::Offline
        | ConnectionPhase::Connecting
        | ConnectionPhase::Backoff
        | ConnectionPhase::Blocked => host.connection.environment,
    }
}

/// A host as people read it: its name, what is to be known of its connection and its data where not
/// all is well, and its threads.
pub(super) fn text(host: &HostView, at: Instant, countdown: Countdown, now: Timestamp) -> String {
    let name = printable(&host.name);
    let mut text = format!("{name}\n");
    let live = host.is_live() && host.connection.phase == ConnectionPhase::Connected;
    if !live || host.connection.verifying {
        text.push_str(&format!("  {}", words(host, at, countdown)));
        if host.connection.phase == ConnectionPhase::Asleep {
            text.push_str(&format!("; `wakeful threads '{name}' --wake` wakes it"));
        }
        text.push('\n');
    }
    if let Some(list) = &host.list {
        if !live {
            text.push_str(&format!("  its threads, {}:\n", data_words(host, now)));
        }
        let rows: Vec<_> = list.rows().cloned().collect();
        text.extend(table::table(&rows, host.settled, now).lines().map(indented));
    }
    text
}

fn indented(line: &str) -> String {
    format!("  {line}\n")
}

/// Prints them.
pub(super) fn show(lists: Vec<HostList>, output: Output) -> anyhow::Result<()> {
    output.print(&Lists { environments: lists }, |lists| {
        if lists.environments.is_empty() {
            return "no environments and no paired hosts".to_owned();
        }
        let texts: Vec<_> = lists.environments.iter().map(|list| list.text.as_str()).collect();
        texts.join("\n")
    })
}

#[cfg(test)]
mod tests {
    use wakeful_link::{DataStatus, Failure, FailureReason};

    use super::{
        super::{
            super::hosts::testing::{host, paired},
            tests::NOW,
        },
        *,
    };

    const AT: Instant = Instant(5_000);

    fn said(host: &HostView) -> String {
        text(host, AT, Countdown::Shown, NOW)
    }

    #[test]
    fn a_live_host_says_nothing_but_its_threads() {
        assert_eq!(said(&host("Site/dev")), "Site/dev\n  no threads\n");
        let list = HostList::of(&paired("lab"), AT);
        assert_eq!((list.host.as_deref(), &*list.name), (Some("lab"), "host:lab"));
        assert!(list.live && list.phase.is_none() && list.error.is_none());
    }

    #[test]
    fn rows_that_may_be_out_of_date_say_so_and_since_when() {
        let mut asleep = host("Site/dev");
        asleep.connection.phase = ConnectionPhase::Asleep;
        (asleep.status, asleep.as_of) = (DataStatus::Cached, Some(Timestamp(NOW.0 - 180_000)));
        let text = said(&asleep);
        assert!(
            text.contains("  asleep; `wakeful threads 'Site/dev' --wake` wakes it\n"),
            "{text}"
        );
        assert!(text.contains("  its threads, as it was 3m ago:\n"), "{text}");
        let list = HostList::of(&asleep, AT);
        assert_eq!((list.phase, list.live), (Some(Phase::Suspended), false));
        asleep.list = None;
        assert!(!said(&asleep).contains("threads,"));
    }

    #[test]
    fn a_host_that_cannot_be_reached_says_why() {
        let mut lost = host("Site/dev");
        lost.connection.phase = ConnectionPhase::Backoff;
        lost.connection.retry_at = Some(Instant(8_000));
        lost.connection.last_failure = Some(Failure::new(FailureReason::Network, "No route."));
        lost.status = DataStatus::Cached;
        lost.name = "Site\u{1b}[2J/dev".to_owned();
        let text = said(&lost);
        assert!(text.contains("not connected, next try in 3s: No route\n"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let list = HostList::of(&lost, AT);
        assert_eq!(list.error.as_deref(), Some("No route."));
        assert_eq!(list.connection["retry_in_ms"], 3_000);
    }
}
