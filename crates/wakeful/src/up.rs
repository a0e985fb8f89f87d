//! `wakeful up`: every part on one machine, in one process.
//!
//! Parts are built in the order in which they depend on one another, and nothing runs before all
//! are built: data directory, database and clock, accounts and variables, driver, engine, API,
//! gateway. They end in the reverse order: the gateway drains first, then sandboxes are suspended
//! (or left, with `--keep-sandboxes`), then the database is closed.

mod data;
mod driver;
mod main_host;
mod plane;
mod settings;

use std::{net::TcpListener, sync::Arc, time::Duration};

use anyhow::Context as _;
use prometheus_client::registry::Registry;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use wakeful_control::{
    accounts::{AccountSettings, Accounts, Sources},
    api::{self, ApiSettings, AppState},
    clock::PlatformClock,
    engine::{Engine, EngineMetrics, Parts, RealSurroundings},
    prompts::Prompts,
    store::{Database, SqliteStore},
    variables::Variables,
    workspaces::DirectoryWorkspaces,
};
use wakeful_gateway::Gateway;
use wakeful_wire::{gate::GateEvent, hosts::Hosts};

use crate::{config::Config, output};

/// How long a clean stop waits for sandboxes to end.
const SUSPEND_PATIENCE: Duration = Duration::from_secs(30);

/// How often variables of environments that are gone for good are removed.
const FORGET_EVERY: Duration = Duration::from_secs(3_600);

/// Runs until told to stop.
///
/// # Errors
/// A part could not be started.
pub fn run(config: Config) -> anyhow::Result<()> {
    // The control plane's own runtime: database futures never run on data cores.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(16)
        .thread_name("control")
        .enable_all()
        .build()?;
    runtime.block_on(up(config))
}

/// Everything that runs, built and not started.
struct Composed {
    engine: Engine,
    accounts: Accounts,
    variables: Variables,
    prompts: Prompts,
    database: Database,
    gateway: Gateway,
    listeners: Vec<TcpListener>,
    hosts: Hosts,
    keep_sandboxes: bool,
    /// Last, so that it is given up last.
    data: data::DataDir,
}

async fn up(config: Config) -> anyhow::Result<()> {
    let composed = compose(config).await?;
    output::to_stderr(&format!(
        "Wakeful is up: {}\nData is kept in {}. Stop with Ctrl-C.",
        composed.hosts.main_url("/"),
        composed.data.path().display()
    ));
    // A program that started this one reads the address from standard output.
    output::to_program(&composed.hosts.main_url("/"));
    serve(composed).await
}

async fn compose(config: Config) -> anyhow::Result<Composed> {
    let data = data::DataDir::take(&config.data)?;
    let (listeners, port) = listen(&config)?;
    let hosts = config.hosts(port);

    let database = Database::open(&data.database()).await.context("the database")?;
    let clock = PlatformClock::resume(database.anchor().await?);
    database.set_anchor(clock.anchor()).await?;
    let time = clock.clone();
    let sources = Sources::system(move || time.now());
    let accounts = Accounts::new(database.clone(), sources.clone(), AccountSettings::default());
    let variables = Variables::new(database.clone(), sources);

    let mut registry = Registry::default();
    let metrics = EngineMetrics::default();
    metrics.register(&mut registry);

    let (driver, programs) = driver::build(&config, &data).await?;
    let parts = Parts {
        store: Arc::new(SqliteStore::new(database.clone())),
        driver,
        workspaces: Arc::new(DirectoryWorkspaces::open(&data.workspaces())?),
        launch: Arc::new(variables.clone()),
        surroundings: Arc::new(RealSurroundings::new(clock)),
        programs,
    };
    let engine = Engine::new(settings::engine(&config, &hosts), parts, metrics);

    let runtime = tokio::runtime::Handle::current();
    let prompts = Prompts::new(database.clone(), engine.clone());

    let plane = plane::LocalPlane {
        engine: engine.clone(),
        accounts: accounts.clone(),
        runtime: runtime.clone(),
    };
    // The API shows what the gateway counts, and the gateway serves the API: its metrics are
    // registered before the router exists.
    let router = main_host::Slot::default();
    let host = main_host::RouterHost { router: router.clone(), runtime };
    let gateway = Gateway::new(settings::gateway(&config, &hosts), Arc::new(plane), Arc::new(host));
    gateway.register_metrics(&mut registry);
    let state = AppState::new(
        engine.clone(),
        accounts.clone(),
        variables.clone(),
        prompts.clone(),
        Arc::new(registry),
        ApiSettings { wait_max: config.wake.budget, ..ApiSettings::default() },
    );
    router.fill(api::router(state));

    Ok(Composed {
        engine,
        accounts,
        variables,
        prompts,
        database,
        gateway,
        listeners,
        hosts,
        keep_sandboxes: config.keep_sandboxes,
        data,
    })
}

async fn serve(composed: Composed) -> anyhow::Result<()> {
    let Composed { engine, accounts, variables, prompts, database, gateway, listeners, .. } =
        composed;
    let shutdown = CancellationToken::new();
    let holder = gateway.holder();
    engine.gateway_joined(holder);

    let engine_task = tokio::spawn({
        let (engine, shutdown) = (engine.clone(), shutdown.clone());
        async move {
            let ended = engine.run().await;
            // Without the engine nothing would sleep or be recovered: better to end, and be started
            // again, than to go on half.
            shutdown.cancel();
            ended
        }
    });
    let sign_outs = tokio::spawn(forward_sign_outs(engine.clone(), accounts));
    let forgetting = tokio::spawn(forget_variables(engine.clone(), variables));
    let delivering = tokio::spawn(async move { prompts.run().await });
    let terminate = signal(SignalKind::terminate())?;
    let interrupt = signal(SignalKind::interrupt())?;
    let signals = tokio::spawn(wait_for_signal(terminate, interrupt, shutdown.clone()));

    let served = gateway.run(listeners, shutdown.clone()).await;
    if let Err(error) = engine.gateway_left(holder).await {
        tracing::warn!(%error, "leases lapse by themselves");
    }
    // What waits for an environment would wake it again.
    delivering.abort();
    drop(delivering.await);
    if !composed.keep_sandboxes {
        output::to_stderr("Suspending environments…");
    }
    let left = engine.close(!composed.keep_sandboxes, SUSPEND_PATIENCE).await?;
    if left > 0 {
        tracing::warn!(left, "sandboxes still stopping; the next start goes on with it");
    }
    for task in [sign_outs, forgetting, signals] {
        task.abort();
    }
    engine_task.await??;
    database.close().await;
    served.context("the gateway")
}

/// Binds every address, with one port for all: where the first is 0, the others take what it got.
/// An IPv6 address that nobody asked for may be missing on the machine.
fn listen(config: &Config) -> anyhow::Result<(Vec<TcpListener>, u16)> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut port = None;
    for address in &config.listen {
        let mut address = *address;
        if let (0, Some(port)) = (address.port(), port) {
            address.set_port(port);
        }
        match wakeful_gateway::listen(&[address]) {
            Ok(bound) => listeners.extend(bound),
            Err(error) if !listeners.is_empty() && config.is_default("listen") => {
                tracing::info!(%address, %error, "not listening there");
            }
            Err(error) => {
                let hint = "stop the other program, or choose another address with --listen";
                return Err(anyhow::Error::new(error).context(hint));
            }
        }
        if port.is_none() {
            port = listeners
                .first()
                .map(|listener| listener.local_addr())
                .transpose()?
                .map(|a| a.port());
        }
    }
    let port = port.context("no address to listen on")?;
    Ok((listeners, port))
}

/// Whoever cached a principal for a user that signed out forgets it.
async fn forward_sign_outs(engine: Engine, accounts: Accounts) {
    use tokio::sync::broadcast::error::RecvError;
    let mut signed_out = accounts.signed_out();
    loop {
        match signed_out.recv().await {
            Ok(user) => engine.announce(GateEvent::SignedOut { user }),
            // What a gateway remembers of a principal ends by itself within seconds.
            Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "sign-outs pushed late"),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Removes variables of environments that neither a row nor a tombstone names any more.
async fn forget_variables(engine: Engine, variables: Variables) {
    loop {
        tokio::time::sleep(FORGET_EVERY).await;
        let before = wakeful_wire::Timestamp(
            engine.now().0.saturating_sub(wakeful_wire::time::millis(FORGET_EVERY)),
        );
        if let Err(error) = variables.forget_unnamed(before).await {
            tracing::warn!(%error, "variables of removed environments are kept for now");
        }
    }
}

async fn wait_for_signal(
    mut terminate: Signal,
    mut interrupt: Signal,
    shutdown: CancellationToken,
) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    shutdown.cancel();
}
