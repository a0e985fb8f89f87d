//! Records as people and programs see them.

use wakeful_lifecycle::{
    Record, Seen,
    port::{Loaded, ProjectRow},
};
use wakeful_wire::{
    ClockKind, Phase, SurfaceName,
    api::{
        ClockView, ClocksView, Environment, FailureView, LeaseView, Project, SurfaceView, WokenView,
    },
    sandbox::SurfaceState,
    template::{RouteKind, Surface},
    time::millis,
};

use super::Engine;

impl Engine {
    pub(super) fn project_view(&self, row: &ProjectRow, environments: &[Loaded]) -> Project {
        Project {
            id: row.id,
            title: row.title.clone(),
            template: row.template.clone(),
            environments: environments.iter().map(|loaded| self.view(loaded)).collect(),
        }
    }

    pub(super) fn view(&self, loaded: &Loaded) -> Environment {
        let record = &loaded.record;
        let now = self.now();
        let seen = self.glance(record);
        let isolation = match &seen {
            Seen::Present(present) => Some(present.isolation.clone()),
            Seen::Absent | Seen::Unknown => None,
        };
        let clock = |kind| ClockView {
            expires_in_ms: millis(loaded.clocks.runs_for(kind, self.policy(), now)),
        };
        Environment {
            id: record.id,
            project: record.project,
            slug: record.slug.clone(),
            phase: record.phase(),
            generation: record.generation,
            sandbox: record.sandbox.as_ref().map(|sandbox| sandbox.uid),
            since: record.since,
            surfaces: self.surface_views(record, &seen),
            clocks: ClocksView { agent: clock(ClockKind::Agent), app: clock(ClockKind::App) },
            leases: loaded
                .clocks
                .held(now)
                .map(|lease| LeaseView {
                    surface: lease.surface.clone(),
                    kind: lease.kind,
                    count: lease.count,
                    since: lease.since,
                    holder: lease.holder.to_string(),
                })
                .collect(),
            home: self.template(&record.template).and_then(|template| template.home().cloned()),
            woken: record
                .woken
                .as_ref()
                .map(|woken| WokenView { at: woken.at, by: woken.by.clone() }),
            failure: self.failure_view(record),
            isolation,
        }
    }

    fn glance(&self, record: &Record) -> Seen {
        record.sandbox.as_ref().map_or(Seen::Absent, |sandbox| {
            self.inner.parts.driver.glance(&sandbox.reference(record.id))
        })
    }

    fn surface_views(&self, record: &Record, seen: &Seen) -> Vec<SurfaceView> {
        let Some(template) = self.template(&record.template) else { return Vec::new() };
        let view = |(name, declared): (&SurfaceName, &Surface)| {
            let status = match seen {
                Seen::Present(present) => present.surfaces.get(name),
                Seen::Absent | Seen::Unknown => None,
            };
            let hosts = self.hosts();
            SurfaceView {
                name: name.clone(),
                url: hosts.open_url(record.id, &record.slug, name, declared.route),
                path_url: match declared.route {
                    RouteKind::Host => None,
                    RouteKind::Path | RouteKind::Both => hosts.path_url(record.id, name),
                },
                ready: record.phase() == Phase::Ready
                    && status.is_some_and(|status| status.state == SurfaceState::Ready),
                reason: status.and_then(|status| status.reason.clone()),
            }
        };
        template.surfaces.iter().map(view).collect()
    }

    fn failure_view(&self, record: &Record) -> Option<FailureView> {
        let now = self.now();
        if let Some(failure) = &record.failure {
            return Some(FailureView {
                reason: failure.reason.clone(),
                permanent: failure.permanent,
                attempts: failure.attempts,
                retry_in_ms: failure.heal_at.map(|at| millis(now.until(at))),
            });
        }
        let starts = &record.starts;
        starts.reason.as_ref().filter(|_| starts.failed > 0).map(|reason| FailureView {
            reason: reason.clone(),
            permanent: false,
            attempts: starts.failed,
            retry_in_ms: starts.retry_at.map(|at| millis(now.until(at))),
        })
    }
}
