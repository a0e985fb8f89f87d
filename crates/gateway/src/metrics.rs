//! What the gateway counts. Each core has counters of its own, added up only when somebody reads
//! them, so that counting never makes two cores wait for one another.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Registry,
};
use wakeful_wire::gate::FailureKind;

/// How a request ended, as far as counting cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// 2xx.
    Success,
    /// 3xx.
    Redirect,
    /// 4xx.
    ClientError,
    /// 5xx.
    ServerError,
    /// 101.
    Upgraded,
    /// The client left before the end.
    Left,
}

impl Class {
    const ALL: [Self; 6] = [
        Self::Success,
        Self::Redirect,
        Self::ClientError,
        Self::ServerError,
        Self::Upgraded,
        Self::Left,
    ];

    /// The class of a status.
    pub(crate) const fn of(status: u16) -> Self {
        match status {
            101 => Self::Upgraded,
            0..300 => Self::Success,
            300..400 => Self::Redirect,
            499 => Self::Left,
            400..500 => Self::ClientError,
            _ => Self::ServerError,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "2xx",
            Self::Redirect => "3xx",
            Self::ClientError => "4xx",
            Self::ServerError => "5xx",
            Self::Upgraded => "101",
            Self::Left => "499",
        }
    }
}

const FAILURES: [FailureKind; 5] = [
    FailureKind::Connect,
    FailureKind::BeforeHead,
    FailureKind::MidStream,
    FailureKind::Malformed,
    FailureKind::Handshake,
];

const fn failure_index(kind: FailureKind) -> usize {
    match kind {
        FailureKind::Connect => 0,
        FailureKind::BeforeHead => 1,
        FailureKind::MidStream => 2,
        FailureKind::Malformed => 3,
        FailureKind::Handshake => 4,
    }
}

/// The counters of one core.
#[derive(Debug, Default)]
pub(crate) struct CoreCounters {
    requests: [AtomicU64; Class::ALL.len()],
    failures: [AtomicU64; FAILURES.len()],
    ensures: AtomicU64,
    dials: AtomicU64,
    replays: AtomicU64,
    connections: AtomicU64,
}

impl CoreCounters {
    pub(crate) fn request(&self, class: Class) {
        self.requests[class as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn failure(&self, kind: FailureKind) {
        self.failures[failure_index(kind)].fetch_add(1, Relaxed);
    }

    pub(crate) fn ensure(&self) {
        self.ensures.fetch_add(1, Relaxed);
    }

    pub(crate) fn dial(&self) {
        self.dials.fetch_add(1, Relaxed);
    }

    pub(crate) fn replay(&self) {
        self.replays.fetch_add(1, Relaxed);
    }

    pub(crate) fn connection(&self) {
        self.connections.fetch_add(1, Relaxed);
    }
}

/// Reads a number that changes up and down, when somebody scrapes.
pub(crate) type Gauge = Box<dyn Fn() -> u64 + Send + Sync>;

/// The counters of all cores, and the gauges.
pub(crate) struct Metrics {
    cores: Mutex<Vec<Arc<CoreCounters>>>,
    leases: Gauge,
    held: Gauge,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new(leases: Gauge, held: Gauge) -> Self {
        Self { cores: Mutex::default(), leases, held }
    }

    /// Counters for one more core.
    pub(crate) fn core(&self) -> Arc<CoreCounters> {
        let core = Arc::<CoreCounters>::default();
        self.cores.lock().push(Arc::clone(&core));
        core
    }

    fn sum(&self, of: impl Fn(&CoreCounters) -> &AtomicU64) -> u64 {
        self.cores.lock().iter().map(|core| of(core).load(Relaxed)).sum()
    }
}

/// Makes the metrics a part of a registry. Their names are written out in full: the registry has
/// no prefix of its own.
pub(crate) fn register(metrics: Arc<Metrics>, registry: &mut Registry) {
    registry.register_collector(Box::new(metrics));
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> std::fmt::Result {
    let counter = ConstCounter::new(value);
    counter.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> std::fmt::Result {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn family<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, label): (&str, &str, &str),
    values: impl Iterator<Item = (&'a str, u64)>,
) -> std::fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (value, count) in values {
        let labels = [(label, value)];
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let encoder = &mut encoder;
        counter(
            encoder,
            "wakeful_ensure_calls",
            "Times that the gate asked the control plane about an environment",
            self.sum(|core| &core.ensures),
        )?;
        gauge(
            encoder,
            "wakeful_leases",
            "Requests, streams and sockets open at this gateway",
            (self.leases)(),
        )?;
        gauge(
            encoder,
            "wakeful_held_requests",
            "Requests that wait for their environment",
            (self.held)(),
        )?;
        family(
            encoder,
            ("wakeful_upstream_failures", "Failures between gateway and surface", "kind"),
            FAILURES
                .iter()
                .map(|kind| (kind.as_str(), self.sum(|core| &core.failures[failure_index(*kind)]))),
        )?;
        family(
            encoder,
            ("wakeful_requests", "Requests by how they ended", "class"),
            Class::ALL
                .iter()
                .map(|class| (class.as_str(), self.sum(|core| &core.requests[*class as usize]))),
        )?;
        counter(
            encoder,
            "wakeful_surface_connections",
            "Connections made to surfaces",
            self.sum(|core| &core.dials),
        )?;
        counter(
            encoder,
            "wakeful_replayed_requests",
            "Requests sent again because a kept connection had gone stale",
            self.sum(|core| &core.replays),
        )?;
        counter(
            encoder,
            "wakeful_client_connections",
            "Connections accepted from clients",
            self.sum(|core| &core.connections),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_added_up_under_the_names_that_people_rely_on() {
        let metrics = Arc::new(Metrics::new(Box::new(|| 7), Box::new(|| 0)));
        let (one, two) = (metrics.core(), metrics.core());
        one.ensure();
        two.ensure();
        two.failure(FailureKind::MidStream);
        one.request(Class::of(204));
        two.request(Class::of(499));
        let mut registry = Registry::default();
        register(metrics, &mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "wakeful_ensure_calls_total 2",
            "wakeful_leases 7",
            r#"wakeful_upstream_failures_total{kind="mid_stream"} 1"#,
            r#"wakeful_upstream_failures_total{kind="connect"} 0"#,
            r#"wakeful_requests_total{class="2xx"} 1"#,
            r#"wakeful_requests_total{class="499"} 1"#,
        ] {
            assert!(text.lines().any(|have| have == line), "{line} is not in:\n{text}");
        }
    }
}
