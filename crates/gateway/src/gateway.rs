//! The gateway, put together.

use std::{io, net::TcpListener, sync::Arc, time::Duration};

use prometheus_client::registry::Registry;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wakeful_wire::HolderId;

use crate::{
    config::GatewayConfig,
    control::{ControlPlane, MainHost},
    core::{self, Core, Shared},
    ensure::Ensure,
    holding::Waiting,
    leases::{Bell, Leases},
    metrics::{self, Metrics},
    recall::Recalls,
    remembered::Remembered,
    reports, server,
};

/// How long the last reports may take.
const FAREWELL_MAX: Duration = Duration::from_secs(5);

struct Wakes(Arc<Notify>);

impl Bell for Wakes {
    fn ring(&self) {
        // Keeps one ring for whoever does not listen just now.
        self.0.notify_one();
    }
}

/// The data plane of one process.
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    bell: Arc<Notify>,
}

impl Gateway {
    /// A gateway that does not serve yet.
    #[must_use]
    pub fn new(
        config: GatewayConfig,
        control: Arc<dyn ControlPlane>,
        main: Arc<dyn MainHost>,
    ) -> Self {
        let bell = Arc::<Notify>::default();
        let leases = Arc::new(Leases::new(Arc::new(Wakes(Arc::clone(&bell)))));
        let waiting = Arc::new(Waiting::new(config.held));
        let ensure = Arc::new(Ensure::new(
            config.gate,
            Arc::clone(&control),
            Arc::clone(&leases),
            Arc::clone(&waiting),
            Instant::now(),
        ));
        let open = Arc::clone(&leases);
        let metrics = Arc::new(Metrics::new(
            Box::new(move || open.totals().iter().map(|(_, count)| count).sum()),
            Box::new(move || u64::from(waiting.len())),
        ));
        let shared = Arc::new(Shared {
            config,
            control,
            main,
            holder: HolderId::from_uuid(Uuid::new_v4()),
            ensure,
            leases,
            recalls: Arc::<Recalls>::default(),
            metrics,
            routes: Remembered::new(core::ROUTES),
            principals: Remembered::new(core::PRINCIPALS),
            homes: Remembered::new(core::HOMES),
            failures: Remembered::new(core::FAILURES),
            doubts: Remembered::new(core::FAILURES),
        });
        Self { shared, bell }
    }

    /// Who this gateway is in its reports and answers; new with every process.
    #[must_use]
    pub fn holder(&self) -> HolderId {
        self.shared.holder
    }

    /// Makes what the gateway counts a part of a registry, under full names (`wakeful_…`).
    pub fn register_metrics(&self, registry: &mut Registry) {
        metrics::register(Arc::clone(&self.shared.metrics), registry);
    }

    /// Serves these listeners until `shutdown`, then drains within
    /// [`ClientLimits::drain_timeout`](crate::ClientLimits::drain_timeout). The data cores are
    /// threads of their own; reports and events run on the runtime that this is called on.
    ///
    /// # Errors
    /// A thread, a runtime or a listener could not be made, or a core has panicked.
    pub async fn run(
        self,
        listeners: Vec<TcpListener>,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        let Self { shared, bell } = self;
        let events = shared.control.events();
        let reports = tokio::spawn(reports::run(Arc::clone(&shared), bell, events));
        let threads = shared.config.threads;
        let make_core = || Arc::new(Core::new(Arc::clone(&shared)));
        let served = server::run(make_core, threads, listeners, shutdown).await;
        reports.abort();
        let _ = tokio::time::timeout(FAREWELL_MAX, reports::farewell(&shared)).await;
        served
    }
}
