//! What a gateway is told.

use std::{sync::Arc, time::Duration};

use wakeful_wire::Hosts;

use crate::{
    gate, holding,
    server::{ClientLimits, Threads},
};

/// What a gateway is told. Resolved once by whoever composes it; the gateway reads no environment.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// The public hosts, with the names of the cookies.
    pub hosts: Arc<Hosts>,
    /// How the work is spread over threads.
    pub threads: Threads,
    /// How long a request is held while its environment wakes.
    pub wake_budget: Duration,
    /// How often what is open is reported, and so touches its clock.
    pub keepalive_interval: Duration,
    /// Timeouts and limits of client connections.
    pub client: ClientLimits,
    /// How many requests may be held.
    pub held: holding::Limits,
    /// How long the gate's answers are kept, and how many.
    pub gate: gate::Config,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            hosts: Arc::new(Hosts::default()),
            threads: Threads::PerCore(0),
            wake_budget: Duration::from_secs(60),
            keepalive_interval: Duration::from_secs(60),
            client: ClientLimits::default(),
            held: holding::Limits::default(),
            gate: gate::Config::default(),
        }
    }
}
