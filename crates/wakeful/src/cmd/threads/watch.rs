//! `threads --watch`: lists that stand in one place and are told whenever they change.

use std::{process::ExitCode, time::Duration};

use tokio::{sync::broadcast::error::RecvError, time::timeout};
use wakeful_client::{clock, runtime::Client, signals};
use wakeful_link::{ConnectionPhase, platform::PlatformState};
use wakeful_wire::{HostId, Timestamp};

use super::{
    super::hosts::{self, Countdown, HostView, Rows, View, failure::HostFailure},
    changes::Told,
    keys::{Key, Keys},
    picture,
    redraw::Redraw,
};
use crate::output::Output;

/// How long changes are gathered before they are told.
const GATHERED: Duration = Duration::from_millis(150);
/// How often seconds are counted, while there are some to count.
const COUNTED: Duration = Duration::from_secs(1);
/// How often ages are told anew while nothing changes.
const AGED: Duration = Duration::from_secs(30);

/// What is watched.
#[derive(Debug, Clone, Copy)]
pub(in crate::cmd) enum Watched {
    /// The lists of threads.
    Lists,
    /// The connections alone, told to people by this text.
    Connections(fn(&View, Countdown, Timestamp) -> String),
}

/// Follows the hosts until a person ends it, or the one host that is followed refuses for good.
/// With `wake` these hosts are woken, once.
pub(in crate::cmd) async fn watch(
    client: &Client,
    only: Option<&[HostId]>,
    wake: bool,
    what: Watched,
    output: Output,
) -> anyhow::Result<ExitCode> {
    // A view that lasts outlives networks and suspensions.
    let _watching = signals::attach(client);
    let mut changes = client.changes();
    let mut wanted = if wake { only.unwrap_or_default().to_vec() } else { Vec::new() };
    let mut sink = Sink::new(what, output);
    let mut keys = Keys::listen(sink.is_terminal());
    loop {
        let painted = client.with(|link, now| {
            // An environment that is not known yet comes with its platform's list.
            wanted.retain(|host| !link.intend(now, *host));
            link.first_paint(now)
        });
        let view = hosts::view(client, only, sink.rows());
        if painted {
            sink.tell(&view)?;
            if let [host] = view.hosts.as_slice()
                && only.is_some()
                && let Some(refused) = refused(host)
            {
                return Err(refused.into());
            }
        }
        let again = sink.again(&view);
        tokio::select! {
            change = changes.recv() => match change {
                // Whoever missed some reads everything anew, as after one.
                Ok(_) | Err(RecvError::Lagged(_)) => {
                    if let Ok(Key::Quit) = timeout(GATHERED, keys.next()).await {
                        return Ok(ExitCode::SUCCESS);
                    }
                    while changes.try_recv().is_ok() {}
                }
                Err(RecvError::Closed) => return Ok(ExitCode::SUCCESS),
            },
            key = keys.next() => match key {
                Key::Quit => return Ok(ExitCode::SUCCESS),
                Key::Resized => sink.moved(),
            },
            () = tokio::time::sleep(again) => {}
        }
    }
}

/// Why following a host is of no use any more.
fn refused(host: &HostView) -> Option<HostFailure> {
    let blocked = host.connection.phase == ConnectionPhase::Blocked;
    let failure = host.failure().filter(|_| blocked)?;
    Some(HostFailure { name: host.name.clone(), paired: host.env.is_none(), failure })
}

/// Whether there are seconds to count.
fn counts(view: &View) -> bool {
    let hosts = view.hosts.iter().any(|host| host.connection.phase == ConnectionPhase::Backoff);
    let platforms = view
        .platforms
        .iter()
        .any(|platform| matches!(platform.state, PlatformState::Backoff { .. }));
    hosts || platforms
}

/// Where what is watched goes: a text in one place, or a line for each change.
#[derive(Debug)]
enum Sink {
    People(Redraw, Watched),
    Programs(Output, Told),
}

impl Sink {
    fn new(what: Watched, output: Output) -> Self {
        if output.json {
            Self::Programs(output, Told::of(what))
        } else {
            Self::People(Redraw::new(output), what)
        }
    }

    const fn is_terminal(&self) -> bool {
        match self {
            Self::People(redraw, _) => redraw.is_terminal(),
            Self::Programs(..) => false,
        }
    }

    const fn rows(&self) -> Rows {
        match self {
            Self::People(..) => Rows::Steady,
            Self::Programs(..) => Rows::Live,
        }
    }

    fn moved(&mut self) {
        match self {
            Self::People(redraw, _) => redraw.moved(),
            Self::Programs(..) => {}
        }
    }

    fn tell(&mut self, view: &View) -> anyhow::Result<()> {
        match self {
            Self::People(redraw, what) => {
                let (countdown, now) = (redraw.countdown(), clock::now());
                redraw.draw(match what {
                    Watched::Lists => picture::picture(view, countdown, now),
                    Watched::Connections(text) => text(view, countdown, now),
                })
            }
            Self::Programs(output, told) => {
                told.lines(view).iter().try_for_each(|line| output.line(&line.to_string()))
            }
        }
    }

    /// After which time it is told again although nothing changed.
    fn again(&self, view: &View) -> Duration {
        if self.is_terminal() && counts(view) { COUNTED } else { AGED }
    }
}

#[cfg(test)]
mod tests {
    use wakeful_link::{Failure, FailureReason, Instant};

    use super::{super::super::hosts::testing::host, *};

    #[test]
    fn a_host_that_refuses_for_good_is_not_watched_any_longer() {
        let mut view = host("Site/dev");
        assert!(refused(&view).is_none());
        view.connection.last_failure = Some(Failure::new(FailureReason::Network, "No route."));
        view.connection.phase = ConnectionPhase::Backoff;
        assert!(refused(&view).is_none(), "it is tried again");
        view.connection.phase = ConnectionPhase::Blocked;
        assert!(refused(&view).is_some());
    }

    #[test]
    fn seconds_are_counted_only_while_there_are_some() {
        let mut view = View { now: Instant(0), hosts: vec![host("Site/dev")], platforms: vec![] };
        assert!(!counts(&view));
        view.hosts[0].connection.phase = ConnectionPhase::Backoff;
        assert!(counts(&view));
    }
}
