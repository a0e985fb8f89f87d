//! From admission to a connection: intent, the gate, the wait, the dial.

use std::{sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::body::{Body as _, Incoming};
use tokio::time::Instant;
use wakeful_wire::{
    Code, Phase, SandboxUid,
    gate::{EnsureAnswer, FailureKind},
    hosts::STATUS_PATH,
    sandbox,
};

use crate::{
    answer::{Answer, Carried},
    core::Core,
    dial::DialError,
    ensure::{Asking, Gated},
    entry::Admitted,
    exchange::{Bound, exchange},
    forward::{self, Way},
    gate::Entry,
    holding::{self, Patience, Then},
    intent::{self, Rules, Visit},
    own,
    pages::Waking,
    refusal::Refusal,
    rescue::{self, Asked},
    serve::{Named, path_and_query, upgrade_of},
    upgrade,
};

/// How often a request that found no connection, and of which nothing was sent, asks the gate again
/// before it fails.
const ATTEMPTS: u32 = 3;
/// The pause before it does, unless news of its environment arrive before.
const AGAIN: Duration = Duration::from_secs(1);

/// From the gate to the answer.
pub(crate) async fn pass(
    core: &Arc<Core>,
    mut carried: Carried,
    mut request: Request<Incoming>,
    named: &Named,
    admitted: &Admitted,
) -> Response<Answer> {
    let (method, headers) = (request.method(), request.headers());
    let target = path_and_query(request.uri());
    let rest = named.rest(target);
    let path = rest.split_once('?').map_or(rest, |(path, _)| path);
    let by = admitted.principal.as_ref().map(|principal| principal.by);
    let mut visit = intent::visit(method, headers, by);
    if named.is_env_host() && visit == Visit::PageLoad {
        // There is no waking page of what is no page.
        visit = Visit::Resource;
    }
    let wakes = match &admitted.declared {
        Some(declared) => {
            let rules = Rules::of(declared, &admitted.surface);
            intent::wakes(visit, method, path, headers, rules)
        }
        None => intent::host_surface_wakes(visit, method, headers),
    };
    let own = named.is_own();
    let patience = if own {
        Patience { hold: Duration::ZERO, then: Then::Unavailable }
    } else {
        holding::patience(visit, wakes, core.shared().config.wake_budget)
    };
    let asking = Asking {
        env: admitted.env,
        surface: &admitted.surface,
        principal: admitted.principal.as_ref(),
        intent: wakes && !own,
        patience,
        started: carried.line.started(),
        idle_min: Duration::from_millis(admitted.route.idle_min_ms),
    };
    if own {
        carried.line.verdict("own");
        let asked = Asked::new(method, headers, core.hosts());
        let answered = if path == STATUS_PATH {
            Box::pin(own::status(core, asked, asking)).await
        } else {
            Err(Refusal::new(Code::NotFound))
        };
        return match answered {
            Ok(response) => upgrade::own(response, carried),
            Err(refusal) => {
                let upgrade = upgrade_of(&mut request);
                let about = (request.method(), request.headers());
                upgrade::refuse(core, carried, &refusal, about, upgrade)
            }
        };
    }
    let ensure = &core.shared().ensure;
    let mut attempt = 0;
    let mut was_ready = false;
    let stopped = loop {
        let gated = {
            let _watch = carried.busy.watch(!request.body().is_end_stream());
            ensure.ask(core, &asking).await
        };
        let (entry, lease) = match gated {
            Gated::Ready(entry, lease) => (entry, lease),
            other @ (Gated::Refused { .. }
            | Gated::Over(_)
            | Gated::PutToSleep
            | Gated::Unavailable
            | Gated::Overloaded) => break stopped(&other, patience, was_ready),
        };
        was_ready = true;
        carried.line.ready();
        let answer = entry.answer();
        let (Some(sandbox), Some(upstream)) = (answer.sandbox, answer.upstream.as_ref()) else {
            break Stopped::Refused(Refusal::new(Code::Internal));
        };
        let way = Way { sandbox, surface: &admitted.surface, upstream };
        let connected = if intent::is_websocket(request.headers()) {
            // A socket keeps its connection, and a kept one may be stale.
            Box::pin(forward::connect_anew(core, way)).await
        } else {
            forward::connect(core, way).await
        };
        let error = match connected {
            Ok(ready) => {
                carried.line.dialed();
                let bound = Bound { entry: &entry, lease, ready, wakes };
                return exchange(core, carried, request, named, admitted, bound).await;
            }
            Err(error) => error,
        };
        drop(lease);
        let unreached = Box::pin(unreached(core, admitted, sandbox, error)).await;
        attempt += u32::from(unreached.counts);
        let over = carried.line.started() + patience.hold;
        let gone = unreached.refusal.code == Code::Gone;
        if gone || !wakes || attempt >= ATTEMPTS {
            break Stopped::Refused(unreached.refusal);
        }
        if Instant::now() >= over {
            break match patience.then {
                Then::WakingPage => Stopped::Page(None),
                Then::Unavailable => Stopped::Refused(unreached.refusal),
            };
        }
        let _watch = carried.busy.watch(!request.body().is_end_stream());
        let news = ensure.stirred(admitted.env, over.min(Instant::now() + AGAIN));
        if Box::pin(news).await.is_err() {
            break Stopped::Refused(Refusal::new(Code::Overloaded));
        }
    };
    match stopped {
        Stopped::Refused(refusal) => {
            let upgrade = upgrade_of(&mut request);
            let about = (request.method(), request.headers());
            upgrade::refuse(core, carried, &refusal, about, upgrade)
        }
        Stopped::Page(entry) => {
            carried.line.verdict("waking");
            waking(core, carried, &request, named, admitted, entry.as_deref())
        }
    }
}

/// Why a request did not get past the gate.
enum Stopped {
    Refused(Refusal),
    /// The waking page, with what was last known.
    Page(Option<Arc<Entry>>),
}

/// `was_ready`: it had been admitted before, so that an environment that is gone now was there.
fn stopped(gated: &Gated, patience: Patience, was_ready: bool) -> Stopped {
    let refused = |entry: &Entry, waited| {
        Refusal::of_answer(entry.answer(), waited).unwrap_or_else(|| Refusal::new(Code::Starting))
    };
    match gated {
        Gated::Refused { entry, waited } => Stopped::Refused(refused(entry, *waited || was_ready)),
        Gated::Over(entry) => match (patience.then, entry) {
            (Then::WakingPage, entry) => Stopped::Page(entry.clone()),
            (Then::Unavailable, Some(entry)) => Stopped::Refused(refused(entry, true)),
            (Then::Unavailable, None) => Stopped::Refused(Refusal::new(Code::Starting)),
        },
        Gated::PutToSleep => Stopped::Refused(
            Refusal::new(Code::Asleep)
                .phase(Phase::Suspending)
                .detail("It was put to sleep while this request waited."),
        ),
        Gated::Unavailable => Stopped::Refused(Refusal::control_unavailable()),
        Gated::Overloaded => Stopped::Refused(Refusal::new(Code::Overloaded)),
        // Whoever is ready is not stopped.
        Gated::Ready(..) => Stopped::Refused(Refusal::new(Code::Internal)),
    }
}

fn waking(
    core: &Core,
    carried: Carried,
    request: &Request<Incoming>,
    named: &Named,
    admitted: &Admitted,
    entry: Option<&Entry>,
) -> Response<Answer> {
    let target = path_and_query(request.uri());
    let status_url = format!("{}{STATUS_PATH}", named.prefix(target).unwrap_or_default());
    let answer: Option<&EnsureAnswer> = entry.map(Entry::answer);
    let waking = Waking {
        title: &admitted.route.title,
        phase: answer.map_or(Phase::Starting, |answer| answer.phase),
        reason: answer.and_then(|answer| answer.reason.as_deref()),
        status_url: &status_url,
        dashboard_url: &core.hosts().main_url(&format!("/environments/{}", admitted.env)),
    };
    let asked = Asked::new(request.method(), request.headers(), core.hosts());
    upgrade::own(rescue::waking(&waking, asked), carried)
}

/// What comes of a surface that could not be reached.
struct Unreached {
    refusal: Refusal,
    /// Whether it may fail for this: a surface that is on its way costs only time.
    counts: bool,
}

/// No connection to the surface could be had. What `envd` itself says is believed; anything else
/// is a failure, and reported.
async fn unreached(
    core: &Core,
    admitted: &Admitted,
    sandbox: SandboxUid,
    error: DialError,
) -> Unreached {
    use sandbox::Refusal as Envd;
    match &error {
        DialError::Refused(Envd::NotReady) => {
            core.doubt(admitted.env, &admitted.surface, sandbox).await;
            return Unreached { refusal: Refusal::new(Code::Starting), counts: false };
        }
        DialError::Refused(Envd::GivenUp { reason }) => {
            core.doubt(admitted.env, &admitted.surface, sandbox).await;
            let refusal = Refusal::new(Code::SurfaceFailed).detail(reason.clone());
            return Unreached { refusal, counts: true };
        }
        DialError::Refused(
            Envd::Unauthorized
            | Envd::Unknown
            | Envd::Connect { .. }
            | Envd::Host { .. }
            | Envd::Stopping,
        )
        | DialError::Io(_)
        | DialError::TimedOut
        | DialError::Answer(_) => {}
    }
    tracing::debug!(env = %admitted.env, surface = %admitted.surface, ?error, "no connection");
    let kind = FailureKind::Connect;
    let (env, surface) = (admitted.env, admitted.surface.clone());
    let refusal = core.refusal_of_failure(env, surface, sandbox, kind).await;
    Unreached { refusal, counts: true }
}
