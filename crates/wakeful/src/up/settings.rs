//! What the parts are told, from the resolved configuration.

use std::{sync::Arc, time::Duration};

use wakeful_control::engine::EngineConfig;
use wakeful_gateway::{ClientLimits, GatewayConfig, Threads, gate, holding};
use wakeful_lifecycle::Policy;
use wakeful_wire::hosts::Hosts;

use crate::config::Config;

/// How long answers under way get when the platform is stopped.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn engine(config: &Config, hosts: &Hosts) -> EngineConfig {
    let policy = Policy {
        idle_agent: config.idle.agent,
        idle_app: config.idle.app,
        turn_limit: config.idle.turn_limit,
        keepalive_interval: config.proxy.ws_keepalive_interval,
        start_attempts: config.start.attempts,
        start_timeout: config.start.timeout,
        ..Policy::default()
    };
    EngineConfig {
        policy,
        templates: config
            .templates
            .iter()
            .map(|(name, template)| (name.clone(), Arc::new(template.clone())))
            .collect(),
        default_template: config.default_template.clone(),
        hosts: hosts.clone(),
        retention: config.retention.workspace,
    }
}

pub(super) fn gateway(config: &Config, hosts: &Hosts) -> GatewayConfig {
    let bounded = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    GatewayConfig {
        hosts: Arc::new(hosts.clone()),
        threads: Threads::PerCore(config.cores),
        wake_budget: config.wake.budget,
        keepalive_interval: config.proxy.ws_keepalive_interval,
        client: ClientLimits { drain_timeout: DRAIN_TIMEOUT, ..ClientLimits::default() },
        held: holding::Limits {
            per_env: bounded(config.proxy.held_per_environment),
            total: bounded(config.proxy.held_total),
        },
        gate: gate::Config::default(),
    }
}
