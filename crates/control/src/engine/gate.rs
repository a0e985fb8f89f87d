//! The ensure gate, failure reports and activity: what gateways ask.
//!
//! No call here waits for an environment. Each commits a wish at most and answers from the record
//! and the driver's last sight.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use wakeful_lifecycle::{
    Command, Intent, Observation, Record, Refused, Seen, Verdict, Woken, apply,
    port::{LeaseReport, Loaded, Touch},
    verdict,
};
use wakeful_wire::{
    ClockKind, EnvId, SurfaceName, TemplateName, Timestamp, UserName,
    gate::{
        ActivityReport, EnsureAnswer, EnsureRequest, FailureAnswer, FailureReport, GateState,
        Route, SignedInBy, Upstream,
    },
    sandbox::{BASIC_USER, SurfaceState},
    template::{Auth, Surface},
    time::millis,
};

use super::{Engine, EngineError, worker::RACES_MAX};

/// How long a failure report may look for a certain answer, and how often.
const SURE_WITHIN: Duration = Duration::from_secs(2);
const SURE_PAUSE: Duration = Duration::from_millis(20);

/// How soon a waiting request asks again when no event comes.
const ASK_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// What a gateway must know to route to an environment. `None`: no such environment, or it is
    /// being deleted.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn route(&self, env: EnvId) -> Result<Option<Route>, EngineError> {
        let Some(loaded) = self.inner.parts.store.load(env).await? else { return Ok(None) };
        let record = loaded.record;
        if record.intent == Intent::Deleted {
            return Ok(None);
        }
        let project = self.inner.parts.store.project(record.project).await?;
        let title = project.map(|(row, _)| row.title).unwrap_or_default();
        let template = self.template(&record.template);
        let surfaces: BTreeMap<SurfaceName, Arc<Surface>> = template
            .map(|template| {
                let shared = |(name, surface): (&SurfaceName, &Surface)| {
                    (name.clone(), Arc::new(surface.clone()))
                };
                template.surfaces.iter().map(shared).collect()
            })
            .unwrap_or_default();
        Ok(Some(Route {
            env,
            owner: record.owner,
            slug: record.slug,
            title,
            home: template.and_then(|template| template.home().cloned()),
            surfaces,
            idle_min_ms: millis(self.policy().idle_min()),
        }))
    }

    /// A user's default environment and its home surface: the oldest project's Development.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn home(&self, user: &UserName) -> Result<Option<(EnvId, SurfaceName)>, EngineError> {
        for (row, environments) in self.inner.parts.store.projects(user).await? {
            let development = EnvId::from(row.id);
            let live = environments.iter().any(|loaded| {
                loaded.record.id == development && loaded.record.intent != Intent::Deleted
            });
            let home = self.template(&row.template).and_then(|template| template.home().cloned());
            if let (true, Some(home)) = (live, home) {
                return Ok(Some((development, home)));
            }
        }
        Ok(None)
    }

    fn surface(&self, template: &TemplateName, name: &SurfaceName) -> Option<&Surface> {
        self.template(template)?.surfaces.get(name)
    }

    /// The gate. Touches the surface's clock and wakes, if the request has intent; starts the
    /// surface, if it is lazy.
    ///
    /// # Errors
    /// When the store cannot be used. A phase that refuses is an answer, not an error.
    pub async fn ensure(&self, request: &EnsureRequest) -> Result<EnsureAnswer, EngineError> {
        self.inner.metrics.ensures.inc();
        let Some(loaded) = self.wanted(request).await? else {
            return Ok(answer_nothing());
        };
        let record = &loaded.record;
        // The gateway has checked the same.
        if !may_see(request, record) {
            return Ok(answer_nothing());
        }
        let reference = record.sandbox.as_ref().map(|sandbox| sandbox.reference(record.id));
        let seen = reference
            .as_ref()
            .map_or(Seen::Absent, |sandbox| self.inner.parts.driver.glance(sandbox));
        let verdict = verdict(record, &seen, &request.surface);
        if verdict.state == GateState::SurfaceStarting && !matches!(seen, Seen::Present(_)) {
            // The record says ready, but nothing is in sight: look.
            self.nudge(record.id);
        }
        if request.intent
            && let Seen::Present(present) = &seen
        {
            let asleep = present.surfaces.get(&request.surface).is_some_and(|status| {
                matches!(status.state, SurfaceState::Stopped | SurfaceState::GivenUp)
            });
            if asleep && let Some(sandbox) = &reference {
                let started =
                    self.inner.parts.driver.start_surface(sandbox, &request.surface).await;
                if let Err(error) = started {
                    tracing::warn!(env = %record.id, reason = error.fault.reason, "surface start");
                }
            }
        }
        let upstream = match (verdict.state, &reference) {
            (GateState::Ready, Some(sandbox)) => {
                let upstream = self.inner.parts.driver.upstream(sandbox, &request.surface);
                match upstream {
                    Some(upstream) => {
                        Some(self.with_credential(&loaded, &request.surface, upstream).await?)
                    }
                    None => None,
                }
            }
            _ => None,
        };
        let answer = answer(&loaded, verdict, upstream, self.now());
        tracing::debug!(
            env = %request.env,
            surface = %request.surface,
            intent = request.intent,
            state = ?answer.state,
            phase = %answer.phase,
            generation = answer.generation.0,
            "ensure"
        );
        Ok(answer)
    }

    /// The record after the request's wish was committed; `None` when there is none.
    async fn wanted(&self, request: &EnsureRequest) -> Result<Option<Loaded>, EngineError> {
        let store = &self.inner.parts.store;
        for _ in 0..RACES_MAX {
            let Some(loaded) = store.load(request.env).await? else { return Ok(None) };
            let Some(clock) = self.gate_clock(&loaded.record.template, &request.surface) else {
                return Ok(Some(loaded));
            };
            if !request.intent || !may_see(request, &loaded.record) {
                return Ok(Some(loaded));
            }
            let touch = Touch { clock, now: self.now() };
            // The touch reads the phase in its own transaction: either it comes before a suspend's
            // commit, which then loses, or it sees that suspend.
            let Some(loaded) = store.touch(request.env, touch).await? else { return Ok(None) };
            match apply(&loaded.record, Command::Wake, self.policy(), self.now()) {
                Ok(None) => return Ok(Some(loaded)),
                Ok(Some(mut next)) => {
                    let by = visit(request);
                    next.woken = Some(Woken { at: self.now(), by: by.clone() });
                    let made = self.make_plan(&loaded, &next, &Observation::unknown());
                    // Woken from sleep, the touch goes with the wake.
                    if self.commit(&loaded, &made, Some(touch)).await? {
                        tracing::info!(env = %request.env, surface = %request.surface, by, "wake");
                        self.nudge(request.env);
                        let record = made.change.unwrap_or(next);
                        return Ok(Some(Loaded { record, clocks: loaded.clocks }));
                    }
                }
                Err(Refused::Gone | Refused::Disabled | Refused::Failed | Refused::WrongPhase) => {
                    return Ok(Some(loaded));
                }
            }
        }
        Err(EngineError::Contended)
    }

    async fn with_credential(
        &self,
        loaded: &Loaded,
        surface: &SurfaceName,
        upstream: Upstream,
    ) -> Result<Upstream, EngineError> {
        let declared = self.surface(&loaded.record.template, surface).map(|surface| surface.auth);
        let pair = match declared {
            Some(Auth::Basic) => {
                let own = self.inner.parts.launch.launch(loaded.record.id).await?;
                Some(format!("{BASIC_USER}:{}", own.basic_password))
            }
            Some(Auth::None) | None => None,
        };
        Ok(match upstream {
            Upstream::Broker { socket, secret, authority, .. } => {
                Upstream::Broker { socket, secret, authority, basic: pair }
            }
            Upstream::Tcp { address, .. } => Upstream::Tcp { address, basic: pair },
        })
    }

    /// A request to a ready sandbox failed. Looks at the sandbox: gone means that a new one starts
    /// (503, try again); alive means that a program in it died (502), and it is left alone.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn failure(&self, report: &FailureReport) -> Result<FailureAnswer, EngineError> {
        for _ in 0..RACES_MAX {
            let Some(loaded) = self.inner.parts.store.load(report.env).await? else {
                return Ok(FailureAnswer { restart: false });
            };
            let record = &loaded.record;
            let wanted =
                record.intent == Intent::Running && !record.disabled && record.failure.is_none();
            let same = record.sandbox.as_ref().filter(|sandbox| sandbox.uid == report.sandbox);
            let Some(sandbox) = same else {
                // It has been replaced already.
                return Ok(FailureAnswer { restart: wanted });
            };
            if sandbox.stop.is_some() {
                return Ok(FailureAnswer { restart: true });
            }
            let observation = self.observe_surely(record).await;
            match observation.seen {
                Seen::Present(_) | Seen::Unknown => return Ok(FailureAnswer { restart: false }),
                Seen::Absent => {
                    let made = self.make_plan(&loaded, record, &observation);
                    if self.carry_out(&loaded, &made).await? {
                        self.nudge(report.env);
                        return Ok(FailureAnswer { restart: wanted });
                    }
                }
            }
        }
        Err(EngineError::Contended)
    }

    /// Looks until the look is certain, but not for long: just after a sandbox has died, others
    /// look at it as well, and a look that meets another one is in doubt.
    async fn observe_surely(&self, record: &Record) -> Observation {
        let until = tokio::time::Instant::now() + SURE_WITHIN;
        loop {
            let observation = self.observe(record).await;
            if observation.seen != Seen::Unknown || tokio::time::Instant::now() >= until {
                return observation;
            }
            tokio::time::sleep(SURE_PAUSE).await;
        }
    }

    /// What a gateway holds open, aggregated. The clock is the one that the gate would touch.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn activity(&self, report: &ActivityReport) -> Result<(), EngineError> {
        let clock = match self.inner.parts.store.load(report.env).await? {
            Some(loaded) => self.clock_of(&loaded.record.template, &report.surface),
            None => return Ok(()),
        };
        let report = LeaseReport {
            env: report.env,
            holder: report.holder,
            surface: report.surface.clone(),
            kind: report.kind,
            count: report.count,
            expires: Duration::from_millis(report.expires_ms),
            touch: report.touch.then_some(clock),
        };
        self.inner.parts.store.report(&report, self.now()).await?;
        Ok(())
    }

    /// The clock that visits of this surface feed, by the one mapping that the gate uses too.
    pub(super) fn clock_of(&self, template: &TemplateName, surface: &SurfaceName) -> ClockKind {
        self.gate_clock(template, surface).unwrap_or(ClockKind::Agent)
    }

    /// The clock that the gate touches. `None`: the environment has no such surface.
    fn gate_clock(&self, template: &TemplateName, surface: &SurfaceName) -> Option<ClockKind> {
        if *surface == SurfaceName::host() {
            return Some(ClockKind::Agent);
        }
        self.surface(template, surface).map(|declared| declared.clock(surface))
    }
}

/// Whether whoever asks may know of this surface. What belongs to another is not there (W31), and
/// the host of an environment is its owner's alone. A declared surface may be public, which the
/// gateway has checked.
fn may_see(request: &EnsureRequest, record: &Record) -> bool {
    match &request.principal {
        Some(principal) => principal.user == record.owner,
        None => request.surface != SurfaceName::host(),
    }
}

/// A visit, named for the log and for people.
fn visit(request: &EnsureRequest) -> String {
    let by = match &request.principal {
        Some(principal) => {
            let how = match principal.by {
                SignedInBy::Cookie => "cookie",
                SignedInBy::Token => "token",
            };
            format!("{} ({how})", principal.user)
        }
        None => "a stranger".to_owned(),
    };
    format!("a visit of {} by {by}", request.surface)
}

fn answer(
    loaded: &Loaded,
    verdict: Verdict,
    upstream: Option<Upstream>,
    now: Timestamp,
) -> EnsureAnswer {
    let state = match (verdict.state, &upstream) {
        // Ready by every sign, but the way there is not known yet.
        (GateState::Ready, None) => GateState::SurfaceStarting,
        (state, _) => state,
    };
    let waiting = matches!(state, GateState::Starting | GateState::SurfaceStarting);
    let heals = loaded.record.failure.as_ref().and_then(|failure| failure.heal_at);
    EnsureAnswer {
        state,
        phase: verdict.phase,
        generation: loaded.record.generation,
        sandbox: verdict.sandbox,
        upstream,
        retry_after_ms: if state == GateState::Failed {
            heals.map(|at| millis(now.until(at)))
        } else {
            waiting.then(|| millis(ASK_AGAIN))
        },
        reason: verdict.reason,
    }
}

fn answer_nothing() -> EnsureAnswer {
    EnsureAnswer {
        state: GateState::NotFound,
        phase: wakeful_wire::Phase::Deleted,
        generation: wakeful_wire::Generation(0),
        sandbox: None,
        upstream: None,
        retry_after_ms: None,
        reason: None,
    }
}
