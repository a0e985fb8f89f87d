//! What programs are told of a connection.

use serde_json::{Value, json};
use wakeful_link::{ConnectionState, DataStatus, Failure, Instant, Stage, platform::PlatformState};

use super::{HostView, PlatformView, phase_word};

/// A host's connection.
pub(in crate::cmd) fn connection_json(host: &HostView, now: Instant) -> Value {
    let mut value = connection_value(&host.connection);
    if let Some(at) = host.connection.retry_at {
        value["retry_in_ms"] = millis(now, at);
    }
    if let Some(at) = host.session_until {
        value["session_ends_in_ms"] = millis(now, at);
    }
    value["paused"] = host.paused.into();
    value["data"] = data(host.status).into();
    if let Some(address) = &host.address {
        value["route"] = json!({
            "address": address.as_str(),
            "class": format!("{:?}", address.class()).to_lowercase(),
        });
    }
    if let Some(error) = &host.error {
        value["data_failure"] = failure(error);
    }
    value
}

/// What of it does not change by the passing of time alone.
pub(in crate::cmd) fn connection_value(connection: &ConnectionState) -> Value {
    let mut value = json!({
        "phase": phase_word(connection.phase),
        "attempt": connection.attempt,
        "generation": connection.generation,
        "verifying": connection.verifying,
    });
    if let Some(stage) = connection.stage {
        value["stage"] = match stage {
            Stage::Waiting => "waiting",
            Stage::Preparing => "preparing",
            Stage::Opening => "opening",
            Stage::Synchronizing => "synchronizing",
        }
        .into();
    }
    if let Some(last) = &connection.last_failure {
        value["failure"] = failure(last);
    }
    value
}

/// A platform's stream.
pub(in crate::cmd) fn platform_json(platform: &PlatformView, now: Instant) -> Value {
    let mut value = json!({ "address": platform.address.as_str() });
    let (phase, last, retry_at) = match &platform.state {
        PlatformState::Idle => ("available", None, None),
        PlatformState::Opening { last_failure } => ("connecting", last_failure.as_ref(), None),
        PlatformState::Following => ("connected", None, None),
        PlatformState::Backoff { last_failure, retry_at } => {
            ("backoff", Some(last_failure), Some(*retry_at))
        }
        PlatformState::Offline => ("offline", None, None),
        PlatformState::Blocked(last) => ("blocked", Some(last), None),
    };
    value["phase"] = phase.into();
    if let Some(last) = last {
        value["failure"] = failure(last);
    }
    if let Some(at) = retry_at {
        value["retry_in_ms"] = millis(now, at);
    }
    value
}

/// Why something does not work.
pub(super) fn failure(failure: &Failure) -> Value {
    json!({ "reason": failure.reason.as_str(), "detail": failure.detail })
}

/// How current data are.
const fn data(status: DataStatus) -> &'static str {
    match status {
        DataStatus::Empty => "empty",
        DataStatus::Cached => "cached",
        DataStatus::Synchronizing => "synchronizing",
        DataStatus::Live => "live",
        DataStatus::Deleted => "deleted",
    }
}

fn millis(now: Instant, at: Instant) -> Value {
    u64::try_from(now.until(at).as_millis()).unwrap_or(u64::MAX).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wakeful_link::{ConnectionPhase, FailureReason, route::Address};

    use super::{super::testing::host, *};

    #[test]
    fn a_program_is_told_phase_route_cause_and_next_try() {
        let now = Instant(1_000);
        let mut host = host("Site/dev");
        host.address = Some(Address::new("http://127.0.0.1:7878/api/host/x").unwrap());
        host.session_until = Some(now.after(Duration::from_secs(60)));
        let live = connection_json(&host, now);
        assert_eq!((&live["phase"], &live["data"]), (&json!("connected"), &json!("live")));
        assert_eq!(live["session_ends_in_ms"], 60_000);
        assert_eq!(live["route"]["class"], "loopback");
        host.connection.phase = ConnectionPhase::Backoff;
        host.connection.retry_at = Some(now.after(Duration::from_millis(250)));
        host.connection.last_failure = Some(Failure::new(FailureReason::Network, "No route."));
        let lost = connection_json(&host, now);
        assert_eq!(lost["retry_in_ms"], 250);
        assert_eq!(lost["failure"], json!({ "reason": "network", "detail": "No route." }));
        assert!(connection_value(&host.connection).get("retry_in_ms").is_none());
    }

    #[test]
    fn a_platform_tells_the_same() {
        let address = Address::new("http://wakeful.localhost:7878").unwrap();
        let last_failure = Failure::new(FailureReason::Network, "No route.");
        let state = PlatformState::Backoff { last_failure, retry_at: Instant(1_500) };
        let told = platform_json(&PlatformView { address, state }, Instant(1_000));
        assert_eq!(told["address"], "http://wakeful.localhost:7878");
        assert_eq!((&told["phase"], &told["retry_in_ms"]), (&json!("backoff"), &json!(500)));
    }
}
