//! Waiting until a client knows what there is to know.

use std::time::Duration;

use tokio::{
    sync::broadcast::error::RecvError,
    time::{Instant as Moment, timeout_at},
};
use wakeful_client::runtime::Client;
use wakeful_link::{
    ConnectionPhase, ConnectionState, DataStatus, FailureReason, Instant, Link,
    platform::PlatformState, shell::ShellState,
};
use wakeful_wire::{EnvId, HostId};

/// How long hosts that can answer are waited for.
pub(in crate::cmd) const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until `look` finds something, which it is asked at the beginning and after each change.
/// Nothing if it does not in time.
pub(in crate::cmd) async fn until<T>(
    client: &Client,
    patience: Duration,
    mut look: impl FnMut(&mut Link, Instant) -> Option<T>,
) -> Option<T> {
    let mut changes = client.changes();
    let end = Moment::now() + patience;
    loop {
        if let Some(found) = client.with(&mut look) {
            return Some(found);
        }
        // Whoever missed some changes looks anew, as after one.
        match timeout_at(end, changes.recv()).await {
            Ok(Ok(_) | Err(RecvError::Lagged(_))) => {}
            Ok(Err(RecvError::Closed)) | Err(_) => return None,
        }
    }
}

/// Waits until each host is live, asleep or has failed, but no longer than `patience`. With `wake`
/// these hosts are needed: they are woken where they sleep. Whether all are that far.
pub(in crate::cmd) async fn settle(
    client: &Client,
    only: Option<&[HostId]>,
    wake: bool,
    patience: Duration,
) -> bool {
    let mut wanted = if wake { only.unwrap_or_default().to_vec() } else { Vec::new() };
    until(client, patience, |link, now| {
        // An environment that is not known yet comes with its platform's list.
        wanted.retain(|host| !link.intend(now, *host));
        is_settled(link, now, only, wake).then_some(())
    })
    .await
    .is_some()
}

/// Whether nothing more is to be expected soon.
fn is_settled(link: &Link, now: Instant, only: Option<&[HostId]>, wake: bool) -> bool {
    let concerns = |host: HostId| only.is_none_or(|only| only.contains(&host));
    let of_platforms = link.platforms().all(|address| {
        let known = |envs: Vec<EnvId>| {
            let mut hosts = envs.into_iter().map(HostId::from).filter(|host| concerns(*host));
            hosts.all(|host| link.connection(host).is_some())
        };
        link.listed_by(address).is_some_and(known)
            || link.platform(address).is_none_or(has_failed)
            // Whoever is known already is waited for itself.
            || only.is_some_and(|only| only.iter().all(|host| link.connection(*host).is_some()))
    });
    let mut hosts = link.entries().map(|entry| entry.host).filter(|host| concerns(*host));
    link.first_paint(now)
        && of_platforms
        && hosts.all(|host| match (link.connection(host), link.shell(host)) {
            (Some(connection), Some(shell)) => is_done(connection, shell, wake),
            _ => false,
        })
}

const fn has_failed(state: &PlatformState) -> bool {
    match state {
        PlatformState::Opening { last_failure } => last_failure.is_some(),
        PlatformState::Following => false,
        PlatformState::Idle
        | PlatformState::Backoff { .. }
        | PlatformState::Offline
        | PlatformState::Blocked(_) => true,
    }
}

/// Whether one host is that far. One that is woken passes through failures that are none.
fn is_done(connection: &ConnectionState, shell: &ShellState, wake: bool) -> bool {
    let ends = |reason| !wake || matches!(reason, FailureReason::Network | FailureReason::Platform);
    let failed = connection.last_failure.as_ref().is_some_and(|failure| ends(failure.reason));
    match connection.phase {
        ConnectionPhase::Available | ConnectionPhase::Offline | ConnectionPhase::Blocked => true,
        ConnectionPhase::Asleep => !wake,
        ConnectionPhase::Backoff => failed,
        ConnectionPhase::Connecting => failed && connection.attempt > 1,
        ConnectionPhase::Connected => shell.status == DataStatus::Live || shell.error.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use wakeful_link::{Failure, FailureReason};

    use super::*;

    fn lost(reason: FailureReason) -> Option<Failure> {
        Some(Failure::new(reason, "x"))
    }

    #[test]
    fn a_host_is_waited_for_until_it_is_live_asleep_or_has_failed() {
        type Change = &'static dyn Fn(&mut ConnectionState, &mut ShellState);
        // What is so, and whether that is an end: without waking, and with.
        let table: [(&str, ConnectionPhase, Change, bool, bool); 10] = [
            (
                "live",
                ConnectionPhase::Connected,
                &|_, shell| shell.status = DataStatus::Live,
                true,
                true,
            ),
            ("behind", ConnectionPhase::Connected, &|_, _| {}, false, false),
            (
                "without a list",
                ConnectionPhase::Connected,
                &|_, shell| shell.error = lost(FailureReason::Remote),
                true,
                true,
            ),
            ("asleep", ConnectionPhase::Asleep, &|_, _| {}, true, false),
            ("not there", ConnectionPhase::Backoff, &|_, _| {}, true, true),
            (
                "starting",
                ConnectionPhase::Backoff,
                &|at, _| at.last_failure = lost(FailureReason::Starting),
                true,
                false,
            ),
            ("blocked", ConnectionPhase::Blocked, &|_, _| {}, true, true),
            ("first try", ConnectionPhase::Connecting, &|at, _| at.attempt = 1, false, false),
            ("another try", ConnectionPhase::Connecting, &|at, _| at.attempt = 2, true, true),
            ("not wanted", ConnectionPhase::Available, &|_, _| {}, true, true),
        ];
        for (name, phase, change, passive, waking) in table {
            let mut connection = ConnectionState {
                phase,
                last_failure: lost(FailureReason::Network),
                ..ConnectionState::default()
            };
            let mut shell = ShellState::default();
            change(&mut connection, &mut shell);
            assert_eq!(is_done(&connection, &shell, false), passive, "{name}");
            assert_eq!(is_done(&connection, &shell, true), waking, "{name}, to be woken");
        }
    }
}
