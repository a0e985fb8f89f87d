//! The task of one environment: look, plan, commit, run the steps, until nothing is left to do.

use wakeful_lifecycle::{
    Drained, Moment, Observation, Plan, Record, Seen, StartFault, Step, StopReason, StopStage,
    plan,
    port::{Commit, DriverError, Launch, Loaded, Touch},
};
use wakeful_wire::{EnvId, Timestamp, sandbox::HostSpec, time::millis};

use super::{Engine, EngineError, SuspendLabels};

/// How often a plan may lose its commit in a row before the task gives way to the sweep.
pub(super) const RACES_MAX: usize = 32;

/// How many rounds of steps one run of the task takes before it gives way to others.
const ROUNDS_MAX: usize = 64;

impl Engine {
    /// Makes an environment's task run, or run once more if it does.
    pub fn nudge(&self, env: EnvId) {
        let mut workers = self.inner.workers.lock();
        if let Some(again) = workers.get_mut(&env) {
            *again = true;
            return;
        }
        workers.insert(env, false);
        drop(workers);
        let engine = self.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = engine.settle(env).await {
                    tracing::warn!(%env, error = &error as &dyn std::error::Error, "will look again");
                    engine.look_later(env).await;
                }
                let mut workers = engine.inner.workers.lock();
                match workers.get_mut(&env) {
                    Some(again) if *again => *again = false,
                    Some(_) | None => {
                        workers.remove(&env);
                        return;
                    }
                }
            }
        });
    }

    /// After an error: due again soon, by the sweep, so that nothing is lost and nothing spins.
    async fn look_later(&self, env: EnvId) {
        let due = self.now().after(self.policy().step_retry);
        if let Err(error) = self.inner.parts.store.set_due(env, Some(due)).await {
            tracing::warn!(%env, error = &error as &dyn std::error::Error, "cannot set a due time");
        }
        self.inner.sweep.notify_one();
    }

    /// Looks, plans, commits and runs, until nothing is left to do now.
    async fn settle(&self, env: EnvId) -> Result<(), EngineError> {
        for _ in 0..ROUNDS_MAX {
            let Some(steps) = self.advance(env).await? else { return Ok(()) };
            if steps.is_empty() {
                return Ok(());
            }
            let mut look_again = false;
            for step in steps {
                look_again |= self.run_step(env, step).await?;
            }
            if !look_again {
                return Ok(());
            }
        }
        self.look_later(env).await;
        Ok(())
    }

    /// One look, plan and commit. `None` when there is no such environment.
    async fn advance(&self, env: EnvId) -> Result<Option<Vec<Step>>, EngineError> {
        for _ in 0..RACES_MAX {
            let Some(loaded) = self.inner.parts.store.load(env).await? else { return Ok(None) };
            let observation = self.observe(&loaded.record).await;
            let made = self.make_plan(&loaded, &loaded.record, &observation);
            if !self.carry_out(&loaded, &made).await? {
                continue;
            }
            if observation.seen != Seen::Unknown {
                self.forget_faults(&loaded.record);
            }
            self.notice_turns(&loaded, &observation.seen);
            return Ok(Some(made.steps));
        }
        Err(EngineError::Contended)
    }

    /// Looks at the record's sandbox.
    pub(super) async fn observe(&self, record: &Record) -> Observation {
        let Some(sandbox) = &record.sandbox else { return Observation::of(Seen::Absent) };
        let seen = self.inner.parts.driver.observe(&sandbox.reference(record.id)).await;
        Observation {
            seen,
            fault: self.inner.faults.lock().get(&sandbox.uid).cloned(),
            drained: self.drain_state(record),
        }
    }

    /// How the drain before the sandbox's end stands. One that was asked for by a process that is
    /// gone, so that nobody will answer, is asked for anew.
    fn drain_state(&self, record: &Record) -> Drained {
        let stop = record.sandbox.as_ref().and_then(|sandbox| sandbox.stop.as_ref());
        let draining = stop.filter(|stop| matches!(stop.stage, StopStage::Draining { .. }));
        let Some(stop) = draining else { return Drained::Pending };
        if !self.inner.drains.lock().is_under_way(record.id, stop.decided) {
            self.begin_drain(record, stop.decided, stop.forced());
        }
        self.inner.drains.lock().state(record.id, stop.decided, self.now())
    }

    fn forget_faults(&self, before: &Record) {
        if let Some(sandbox) = &before.sandbox {
            self.inner.faults.lock().remove(&sandbox.uid);
        }
    }

    /// Plans from what is stored and a record that a command may have changed.
    pub(super) fn make_plan(
        &self,
        base: &Loaded,
        record: &Record,
        observation: &Observation,
    ) -> Plan {
        let fresh = self.inner.parts.surroundings.fresh_sandbox();
        let moment = Moment { now: self.now(), policy: self.policy(), fresh: &fresh };
        plan(&base.record, record, observation, &base.clocks, &moment)
    }

    /// Commits a plan and tells everybody. False when it lost the race.
    pub(super) async fn carry_out(&self, base: &Loaded, made: &Plan) -> Result<bool, EngineError> {
        let touch = made.touch.map(|clock| Touch { clock, now: self.now() });
        self.commit(base, made, touch).await
    }

    /// Commits a plan with a touch of the caller's choice.
    pub(super) async fn commit(
        &self,
        base: &Loaded,
        made: &Plan,
        touch: Option<Touch>,
    ) -> Result<bool, EngineError> {
        let store = &self.inner.parts.store;
        let due = made.look_again.map(|look| look.at);
        let Some(next) = &made.change else {
            store.set_due(base.record.id, due).await?;
            self.sweep_sooner(due);
            return Ok(true);
        };
        if store.commit(next, made.guard, due, touch).await? == Commit::Lost {
            self.inner.metrics.lost_commits.inc();
            return Ok(false);
        }
        self.sweep_sooner(due);
        if next.phase() != base.record.phase() {
            tracing::info!(
                env = %next.id,
                from = %base.record.phase(),
                to = %next.phase(),
                generation = next.generation.0,
                look_again = made.look_again.map(|look| look.why),
                "phase"
            );
        }
        let clocks = base.clocks.clone();
        self.publish_change(&base.record, &Loaded { record: next.clone(), clocks });
        for step in &made.steps {
            // Asked for by whoever committed it: no later plan asks again.
            if let Step::Drain { decided, forced, .. } = step {
                self.begin_drain(next, *decided, *forced);
            }
        }
        self.release_drained(&base.record, next);
        let uid = |record: &Record| record.sandbox.as_ref().map(|sandbox| sandbox.uid);
        if uid(&base.record) != uid(next) {
            self.sandbox_changed(next.id);
        }
        Ok(true)
    }

    fn sweep_sooner(&self, due: Option<Timestamp>) {
        if due.is_some() {
            self.inner.sweep.notify_one();
        }
    }

    /// Runs one step. True when the world has changed and is to be looked at at once.
    async fn run_step(&self, env: EnvId, step: Step) -> Result<bool, EngineError> {
        match step {
            Step::Create(sandbox) => {
                self.inner.metrics.starts.inc();
                let created = match self.launch(env, &sandbox).await {
                    Ok(launch) => self.inner.parts.driver.create(&launch).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = created {
                    self.inner.metrics.start_failures.inc();
                    tracing::warn!(%env, reason = error.fault.reason, "start failed");
                    self.inner.faults.lock().insert(sandbox.uid, error.fault);
                }
                Ok(true)
            }
            // Begun with the commit.
            Step::Drain { .. } => Ok(false),
            Step::Stop(sandbox, reason) => {
                let grace = self.policy().stop_grace;
                match self.inner.parts.driver.stop(&sandbox, grace).await {
                    Ok(()) => {
                        self.inner.drains.lock().end(env);
                        self.count_stop(reason);
                        Ok(true)
                    }
                    Err(error) => {
                        tracing::warn!(%env, reason = error.fault.reason, "stop failed");
                        Ok(false)
                    }
                }
            }
            Step::Bury(env) => {
                self.bury(env).await?;
                Ok(false)
            }
        }
    }

    fn count_stop(&self, reason: StopReason) {
        let labels = SuspendLabels { reason: reason.as_str() };
        self.inner.metrics.suspends.get_or_create(&labels).inc();
    }

    /// Everything that a sandbox of this environment is launched with.
    async fn launch(
        &self,
        env: EnvId,
        sandbox: &wakeful_lifecycle::SandboxRef,
    ) -> Result<Launch, DriverError> {
        let internal = |error: &(dyn std::error::Error + 'static)| {
            tracing::error!(%env, error, "cannot prepare a start");
            DriverError::passing("the platform could not prepare the start")
        };
        let parts = &self.inner.parts;
        let loaded = parts.store.load(env).await.map_err(|error| internal(&error))?;
        let Some(record) = loaded.map(|loaded| loaded.record) else {
            return Err(DriverError::permanent("the environment was deleted"));
        };
        let Some(template) = self.template(&record.template) else {
            let name = &record.template;
            return Err(DriverError::permanent(format!("there is no template `{name}` any more")));
        };
        if let Some(missing) = (parts.programs)(template) {
            return Err(DriverError { fault: StartFault { reason: missing, permanent: true } });
        }
        let own = parts.launch.launch(env).await.map_err(|error| internal(&error))?;
        let mut variables = template.env.clone();
        variables.extend(self.platform_variables(&record));
        variables.extend(own.variables);
        let workspace = parts.workspaces.create(env).await.map_err(|error| internal(&error))?;
        let project =
            parts.store.project(record.project).await.map_err(|error| internal(&error))?;
        let title = project.map(|(row, _)| row.title).unwrap_or_default();
        let host = HostSpec {
            label: format!("{title} ({})", record.slug),
            default_agent: Some(template.default_agent().to_owned()),
            turn_limit_ms: millis(self.policy().turn_limit),
            activity_interval_ms: millis(self.policy().keepalive_interval),
        };
        Ok(Launch {
            sandbox: sandbox.clone(),
            workspace,
            template: template.as_ref().clone(),
            variables,
            basic_password: own.basic_password,
            host,
        })
    }

    /// Variables by which a program finds its way back.
    fn platform_variables(&self, record: &Record) -> [(String, String); 3] {
        let hosts = self.hosts();
        [
            ("WAKEFUL_ENVIRONMENT".into(), record.id.to_string()),
            ("WAKEFUL_PROJECT".into(), record.project.to_string()),
            (
                "WAKEFUL_DASHBOARD_URL".into(),
                hosts.main_url(&format!("/environments/{}", record.id)),
            ),
        ]
    }
}
