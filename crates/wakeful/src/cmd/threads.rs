//! `threads`: what is in the lists of hosts.

mod changes;
mod find;
mod keys;
mod list;
mod picture;
mod redraw;
mod settled;
mod state;
mod table;
mod watch;

use std::process::ExitCode;

use wakeful_client::runtime;
use wakeful_link::platform::PlatformState;
use wakeful_wire::HostId;

use self::list::{HostList, show};
pub(super) use self::{
    find::find_unlisted,
    state::{ago, coarse},
    watch::{Watched, watch},
};
use super::{
    args::ThreadsArgs,
    hosts::{
        self, Countdown, PATIENCE, Rows, View, WAKING, failure::HostFailure, platform_words, words,
    },
    which,
};
use crate::{
    client::{Client, ClientError},
    connect,
    output::{Output, printable, to_stderr},
};

/// `wakeful threads`.
pub(super) async fn threads(
    url: Option<&str>,
    client: impl FnOnce() -> anyhow::Result<Client>,
    options: ThreadsArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let only = match &options.env {
        Some(text) => Some(vec![which::choose(client, text).await?.id()]),
        None => None,
    };
    let client = connect::client(connect::Options {
        url: url.map(str::to_owned),
        focus: only.clone(),
        keep_alive: false,
        whole_lists: options.all,
    })
    .await?;
    let ended = run(&client, only.as_deref(), &options, output).await;
    client.close().await;
    ended
}

async fn run(
    client: &runtime::Client,
    only: Option<&[HostId]>,
    options: &ThreadsArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    if options.watch {
        return watch(client, only, options.wake, Watched::Lists, output).await;
    }
    let patience = if options.wake { WAKING } else { PATIENCE };
    let complete = hosts::settle(client, only, options.wake, patience).await;
    if only.is_none() && is_nobody(&hosts::view(client, only, Rows::Live)) {
        return Err(ClientError::NotSignedIn.into());
    }
    if let Some(words) = &options.search {
        settled::search(client, only, words, options.limit, output).await?;
    } else if options.settled {
        settled::shelf(client, only, options.limit, output).await?;
    } else {
        let view = hosts::view(client, only, Rows::Live);
        show(view.hosts.iter().map(|host| HostList::of(host, view.now)).collect(), output)?;
    }
    let view = hosts::view(client, only, Rows::Live);
    told(&view, complete, only.is_some())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether nobody is signed in and no host is paired with, so that there is nothing to show.
fn is_nobody(view: &View) -> bool {
    view.hosts.is_empty() && view.platforms.is_empty()
}

/// What a list does not show: platforms that cannot be asked, and hosts that were not waited for
/// any longer.
///
/// # Errors
/// The one host that was asked for cannot be reached.
fn told(view: &View, complete: bool, one: bool) -> anyhow::Result<()> {
    for platform in &view.platforms {
        let following = matches!(platform.state, PlatformState::Following);
        // The one host that was asked for says itself what is the matter.
        let said = one && !view.hosts.is_empty();
        if !following && !said {
            let words = platform_words(&platform.state, view.now, Countdown::Over);
            to_stderr(&format!(
                "warning: {}: {words}. Its environments are as they were known before.",
                platform.address
            ));
        }
    }
    if !complete {
        for host in view.hosts.iter().filter(|host| !host.is_live()) {
            let words = words(host, view.now, Countdown::Over);
            to_stderr(&format!("warning: {}: {words}", printable(&host.name)));
        }
    }
    match view.hosts.as_slice() {
        [host] if one => match host.failure() {
            Some(failure) => {
                let (name, paired) = (host.name.clone(), host.env.is_none());
                Err(HostFailure { name, paired, failure }.into())
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use wakeful_link::{ConnectionPhase, Failure, FailureReason, Instant};
    use wakeful_wire::{
        Timestamp,
        rpc::{Seq, ShellRow, ThreadId},
    };

    use super::{super::hosts::testing::host, *};

    pub(super) const NOW: Timestamp = Timestamp(1_800_000_000_000);

    pub(super) fn id(number: u8) -> ThreadId {
        format!("{number:08x}-0000-4000-8000-000000000000").parse().unwrap()
    }

    /// An idle thread.
    pub(super) fn row(number: u8) -> ShellRow {
        ShellRow {
            id: id(number),
            seq: Seq(1),
            created_at: Timestamp(0),
            active_at: Timestamp(0),
            parent: None,
            root: id(number),
            project: String::new(),
            agent: "shell".to_owned(),
            title: None,
            pinned: false,
            snoozed_until: None,
            settled: None,
            running_since: None,
            cancelling: false,
            last_outcome: None,
            queued: 0,
            held: false,
            pending: 0,
            background: false,
            mode: None,
        }
    }

    #[test]
    fn only_the_one_host_that_was_asked_for_ends_the_command_with_its_failure() {
        let mut lost = host("Site/dev");
        lost.connection.phase = ConnectionPhase::Backoff;
        lost.connection.last_failure = Some(Failure::new(FailureReason::Network, "No route."));
        let view = |hosts| View { now: Instant(0), hosts, platforms: Vec::new() };
        let all = view(vec![lost.clone(), host("Other/dev")]);
        assert!(told(&all, true, false).is_ok());
        let error = told(&view(vec![lost.clone()]), true, true).unwrap_err();
        assert!(error.to_string().contains("No route"), "{error}");
        lost.connection.phase = ConnectionPhase::Asleep;
        assert!(told(&view(vec![lost]), true, true).is_ok(), "sleep is no failure");
        assert!(is_nobody(&view(Vec::new())));
    }
}
