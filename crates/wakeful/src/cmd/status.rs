//! `status`: what the connection to each environment and paired host is doing, and why.

use std::process::ExitCode;

use serde_json::{Value, json};
use wakeful_client::{clock, runtime};
use wakeful_link::{ConnectionPhase, Instant};
use wakeful_wire::{HostId, Timestamp};

use super::{
    args::StatusArgs,
    hosts::{
        self, Countdown, HostView, Rows, View, connection_json, data_words, phase_word,
        platform_json, platform_words, words,
    },
    threads::{Watched, coarse, watch},
    which,
};
use crate::{
    client::{Client, ClientError},
    connect,
    output::{self, Output, printable},
};

/// `wakeful status`.
pub(super) async fn status(
    url: Option<&str>,
    client: impl FnOnce() -> anyhow::Result<Client>,
    options: StatusArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let only = match &options.env {
        Some(text) => Some(vec![which::choose(client, text).await?.id()]),
        None => None,
    };
    let client = connect::client(connect::Options {
        url: url.map(str::to_owned),
        focus: only.clone(),
        ..connect::Options::default()
    })
    .await?;
    let ended = run(&client, only.as_deref(), options.watch, output).await;
    client.close().await;
    ended
}

async fn run(
    client: &runtime::Client,
    only: Option<&[HostId]>,
    follow: bool,
    output: Output,
) -> anyhow::Result<ExitCode> {
    if follow {
        return watch(client, only, false, Watched::Connections(text), output).await;
    }
    hosts::settle(client, only, false, hosts::PATIENCE).await;
    let view = hosts::view(client, only, Rows::Live);
    if only.is_none() && view.hosts.is_empty() && view.platforms.is_empty() {
        return Err(ClientError::NotSignedIn.into());
    }
    output.print(&value(&view), |_| match view.hosts.as_slice() {
        [host] if only.is_some() => detail(host, &view, clock::now()),
        _ => text(&view, Countdown::Shown, clock::now()),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What programs read.
fn value(view: &View) -> Value {
    let hosts: Vec<_> = view.hosts.iter().map(|host| host_value(host, view.now)).collect();
    let platforms: Vec<_> =
        view.platforms.iter().map(|platform| platform_json(platform, view.now)).collect();
    json!({ "platforms": platforms, "environments": hosts })
}

fn host_value(host: &HostView, now: Instant) -> Value {
    let mut value = json!({
        "id": host.host,
        "name": host.name,
        "connection": connection_json(host, now),
        "live": host.is_live(),
    });
    if let Some(env) = host.env {
        value["environment"] = json!(env);
    }
    if let Some(phase) = host.connection.environment {
        value["phase"] = phase.as_str().into();
    }
    if let Some(at) = host.as_of {
        value["as_of"] = json!(at);
    }
    value
}

/// All of them, each in a line.
fn text(view: &View, countdown: Countdown, now: Timestamp) -> String {
    let mut text = String::new();
    for platform in &view.platforms {
        let words = platform_words(&platform.state, view.now, countdown);
        text.push_str(&format!("{}: {words}\n", platform.address));
    }
    let rows: Vec<[String; 6]> = view
        .hosts
        .iter()
        .map(|host| {
            [
                host.name.clone(),
                environment(host).to_owned(),
                phase_word(host.connection.phase).to_owned(),
                data_words(host, now),
                route(host),
                words(host, view.now, countdown),
            ]
        })
        .collect();
    if rows.is_empty() {
        text.push_str("no environments and no paired hosts\n");
        return text;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text + &output::table(
        ["NAME", "ENVIRONMENT", "CONNECTION", "THREADS", "ROUTE", "WHAT IT DOES"],
        &rows,
    )
}

/// What an environment is doing, as far as it is known.
fn environment(host: &HostView) -> &'static str {
    match host.connection.environment {
        _ if host.env.is_none() => "-",
        Some(phase) => phase.as_str(),
        None => "unknown",
    }
}

fn route(host: &HostView) -> String {
    host.address.as_ref().map_or_else(
        || "-".to_owned(),
        |address| format!("{address} ({})", format!("{:?}", address.class()).to_lowercase()),
    )
}

/// One of them, with all that is known.
fn detail(host: &HostView, view: &View, now: Timestamp) -> String {
    let connection = &host.connection;
    let mut lines = vec![("connection", words(host, view.now, Countdown::Shown))];
    if host.env.is_some() {
        lines.insert(0, ("environment", environment(host).to_owned()));
    }
    if connection.phase != ConnectionPhase::Connected && connection.attempt > 1 {
        lines.push(("tries", connection.attempt.to_string()));
    }
    lines.push(("route", route(host)));
    if let Some(at) = host.session_until {
        let left = coarse(view.now.until(at));
        lines.push(("session", format!("ends in {left}; it is renewed before")));
    }
    let many = host.list.as_ref().map_or(0, |list| list.len());
    lines.push(("threads", format!("{} ({many} listed)", data_words(host, now))));
    for platform in view.platforms.iter().filter(|_| host.env.is_some()) {
        let words = platform_words(&platform.state, view.now, Countdown::Shown);
        lines.push(("server", format!("{}: {words}", platform.address)));
    }
    let lines = lines.into_iter().map(|(name, what)| format!("  {name:<12} {what}\n"));
    format!("{}\n{}", printable(&host.name), lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use wakeful_link::{
        DataStatus, Failure, FailureReason, platform::PlatformState, route::Address,
    };
    use wakeful_wire::Phase;

    use super::{
        super::hosts::{
            PlatformView,
            testing::{host, paired},
        },
        *,
    };

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn view() -> View {
        let mut well = host("Site/dev");
        well.connection.environment = Some(Phase::Ready);
        well.address = Some(Address::new("http://127.0.0.1:7878/api/host/x").unwrap());
        well.session_until = Some(Instant(3_601_000));
        let mut lost = paired("lab");
        lost.connection.phase = ConnectionPhase::Backoff;
        lost.connection.attempt = 3;
        lost.connection.retry_at = Some(Instant(13_000));
        lost.connection.last_failure = Some(Failure::new(FailureReason::Network, "No route."));
        (lost.status, lost.as_of) = (DataStatus::Cached, Some(Timestamp(NOW.0 - 60_000)));
        let address = Address::new("http://127.0.0.1:7878").unwrap();
        let platform = PlatformView { address, state: PlatformState::Following };
        View { now: Instant(1_000), hosts: vec![well, lost], platforms: vec![platform] }
    }

    #[test]
    fn each_host_says_its_phase_its_way_and_what_comes_next_in_a_line() {
        let text = text(&view(), Countdown::Shown, NOW);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "http://127.0.0.1:7878: connected");
        assert!(lines[2].starts_with("NAME      ENVIRONMENT  CONNECTION"), "{text}");
        let way = "http://127.0.0.1:7878/api/host/x (loopback)";
        assert!(lines[3].contains("ready") && lines[3].contains(way), "{text}");
        assert!(lines[4].starts_with("host:lab  -"), "{text}");
        assert!(lines[4].contains("as it was 1m ago"), "{text}");
        assert!(lines[4].ends_with("not connected, next try in 12s: No route"), "{text}");
    }

    #[test]
    fn one_host_says_all_that_is_known_of_it() {
        let view = view();
        let well = detail(&view.hosts[0], &view, NOW);
        assert!(well.contains("  environment  ready\n"), "{well}");
        assert!(well.contains("  session      ends in 1h; it is renewed before\n"), "{well}");
        assert!(well.contains("  server       http://127.0.0.1:7878: connected\n"), "{well}");
        assert!(!well.contains("tries"), "{well}");
        let lost = detail(&view.hosts[1], &view, NOW);
        assert!(lost.contains("  tries        3\n") && !lost.contains("server"), "{lost}");
    }

    #[test]
    fn a_program_reads_the_same() {
        let value = value(&view());
        let [well, lost] = value["environments"].as_array().unwrap().as_slice() else {
            panic!("{value}")
        };
        assert_eq!((&well["phase"], &well["live"]), (&json!("ready"), &json!(true)));
        assert_eq!(lost["connection"]["retry_in_ms"], 12_000);
        assert_eq!(lost["connection"]["failure"]["reason"], "network");
        assert!(lost.get("environment").is_none() && lost["as_of"].is_u64());
        assert_eq!(value["platforms"][0]["phase"], "connected");
    }
}
