//! A host of its own: the environment server of a directory on somebody's machine, without a
//! control plane.
//!
//! Clients reach it by TCP and enter by a [pairing code](crate::credential::PairingCode). Whoever
//! sits at the machine asks it for more by its control socket ([`ask`]).
//!
//! Its threads and sessions are in the workspace, as in an environment. Its id and the pepper of its
//! tokens are in a state directory outside of it: what agents do to the workspace then neither
//! makes it another host nor opens it to anybody. Agents run as its user without isolation, so this
//! keeps out what works in the workspace, not what means harm.

pub mod ask;

mod answering;
mod place;
mod reach;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    signal::unix::{Signal, SignalKind, signal},
    sync::Semaphore,
};
use wakeful_wire::{HostId, host::capability, sandbox::HostSpec, template::Agent};

pub use self::place::PlaceError;
use self::{
    answering::Answering,
    ask::Status,
    place::{Identity, Place},
};
use crate::{
    agent::Surroundings,
    credential::{HttpAddress, Sources},
    environment::{
        agents, in_full,
        opening::{self, Opened, OpeningError, Pass, Plan},
        usage::Uses,
    },
    host::{Address, Farewell, Host},
    thread::log::LogError,
};

/// How many connections it has at once. Further ones are closed at once.
const CONNECTIONS_MAX: usize = 1_024;
/// How long agents and files may take to end. A second signal ends the wait.
const END_MAX: Duration = Duration::from_secs(30);
/// The pause after a failed accept: for want of descriptors it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// After how many milliseconds without an acknowledgement a client counts as gone.
const GONE_MS: u32 = 120_000;
/// How often use would count, if there were anybody to tell.
const ACTIVITY: Duration = Duration::from_secs(60);

/// How a host of its own is set up.
#[derive(Clone)]
pub struct AloneOptions {
    /// The workspace. It exists.
    pub workspace: PathBuf,
    /// Where it listens; [`AloneOptions::LISTEN`] unless somebody says otherwise. Port 0: any.
    pub listen: SocketAddr,
    /// The agents beside the built-in `shell`: ACP commands by name.
    pub agents: BTreeMap<String, String>,
    /// The agent that a thread gets when nobody chose one; absent: the only one named, or `shell`.
    pub default_agent: Option<String>,
    /// For people; empty: the machine's name and the workspace's.
    pub label: String,
    /// Where clients reach it, if a proxy stands before it. Proofs are then made for this address
    /// alone. Every client comes from the proxy, so whether one is near is for the proxy to see to.
    pub public: Option<HttpAddress>,
    /// The state directory, `$XDG_STATE_HOME/wakeful`. Its path is short: below it is a socket.
    pub state: PathBuf,
    /// The whole environment of its agents. May hold secrets.
    pub variables: Vec<(OsString, OsString)>,
}

impl AloneOptions {
    /// Where it listens unless somebody says otherwise.
    pub const LISTEN: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7880);
}

impl fmt::Debug for AloneOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AloneOptions")
            .field("workspace", &self.workspace)
            .field("listen", &self.listen)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Why a host of its own does not run.
#[derive(Debug, thiserror::Error)]
enum AloneError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("nothing can listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    #[error(
        "another host works in {} already; `wakeful pair` there gives a code for it", .0.display()
    )]
    Held(PathBuf),
    #[error("the threads of this workspace cannot be opened")]
    Opening(#[source] OpeningError),
    #[error("{what} failed")]
    System { what: &'static str, source: io::Error },
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> AloneError {
    move |source| AloneError::System { what, source }
}

/// Runs a host of its own until SIGTERM, SIGINT or SIGHUP. Returns the status to exit with.
///
/// Must be called on the program's first thread: its agents are bound to the life of the thread
/// that spawns them. On standard error it says where it listens and how to pair with it, or why it
/// does not run.
pub fn alone_blocking(options: AloneOptions) -> ExitCode {
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("wakeful: {}\n", in_full(&error)));
            ExitCode::FAILURE
        }
    }
}

fn run(options: AloneOptions) -> Result<(), AloneError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("making the runtime"))?;
    let ended = runtime.block_on(serve(options));
    // What is left is nobody's any more, and is not waited for.
    runtime.shutdown_background();
    ended
}

async fn serve(options: AloneOptions) -> Result<(), AloneError> {
    let place = Place::of(&options.state, &options.workspace)?;
    let socket = place.socket()?;
    place.make()?;
    let mut signals = Signals::listen().map_err(system("listening for signals"))?;
    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(|error| AloneError::Listen(options.listen, error))?;
    let listening = listener.local_addr().map_err(system("reading the own address"))?;
    let identity = place.identity(fresh)?;
    let plan = plan(&options, &place, &identity);
    let (id, label) = (plan.descriptor.id, plan.descriptor.label.clone());
    let opened = Opened::open(&plan).await.map_err(|error| {
        if matches!(error, OpeningError::Log(LogError::Held)) {
            AloneError::Held(place.workspace.clone())
        } else {
            AloneError::Opening(error)
        }
    })?;
    let address = reach::address(options.public.as_ref(), listening, reach::outward(listening));
    let pid = std::process::id();
    let status = Status { id, label, workspace: place.workspace.clone(), address, pid };
    let answering = Answering::new(opened.authority.clone(), status)
        .and_then(|answering| Ok((answering::bind(&socket)?, Arc::new(answering))))
        .map_err(system("binding the control socket"));
    let ended = match answering {
        Ok((control, answering)) => {
            let offered = answering.offer(None, None);
            say(&reach::welcome(&place.workspace, listening, &offered));
            tokio::select! {
                () = answering::serve(control, answering) => {}
                () = accept(listener, opened.host.clone()) => {}
                () = signals.next() => {}
            }
            // Before the log is given back: afterwards the path may be another host's.
            let _gone = std::fs::remove_file(&socket);
            Ok(())
        }
        Err(error) => Err(error),
    };
    tokio::select! {
        _in_time = tokio::time::timeout(END_MAX, opened.end(Farewell::GOING_AWAY)) => {}
        () = signals.next() => say("wakeful: ended without waiting for its agents\n"),
    }
    ended
}

fn plan(options: &AloneOptions, place: &Place, identity: &Identity) -> Plan {
    let surroundings = Surroundings {
        program: "/proc/self/exe".into(),
        env: options.variables.clone(),
        workspace: place.workspace.clone(),
        scratch: place.scratch(),
    };
    let named: BTreeMap<String, Agent> = options
        .agents
        .iter()
        .map(|(name, command)| (name.clone(), Agent { command: command.clone(), title: None }))
        .collect();
    let only = (named.len() == 1).then(|| named.keys().next()).flatten();
    let default = options.default_agent.as_ref().or(only);
    let label = match options.label.as_str() {
        "" => own_label(&place.workspace),
        label => label.to_owned(),
    };
    Plan {
        workspace: place.workspace.clone(),
        sources: Sources::system(),
        pass: Pass::Pairing { pepper: identity.pepper.to_vec() },
        agents: agents::agents(
            &named,
            &surroundings,
            Duration::from_millis(HostSpec::default().turn_limit_ms),
        ),
        config: agents::config(&named, default.map(String::as_str)),
        descriptor: opening::descriptor(identity.id, None, label, &[capability::PAIRING]),
        address: Address::Own(options.public.clone()),
        uses: Uses::new(ACTIVITY),
    }
}

/// The machine's name and the workspace's.
fn own_label(workspace: &Path) -> String {
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    match workspace.file_name() {
        Some(name) => format!("{machine}: {}", name.to_string_lossy()),
        None => machine.into_owned(),
    }
}

/// # Panics
/// When the kernel has no randomness to give, which no supported system does once it has booted.
fn fresh() -> Identity {
    let mut id = [0; 16];
    let mut pepper = [0; 32];
    getrandom::fill(&mut id).expect("the kernel gives randomness");
    getrandom::fill(&mut pepper).expect("the kernel gives randomness");
    let id = HostId::from_uuid(uuid::Builder::from_random_bytes(id).into_uuid());
    Identity { id, pepper }
}

/// Serves connections for as long as it is polled.
async fn accept(listener: TcpListener, host: Host) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        tune(&stream);
        let host = host.clone();
        tokio::spawn(async move {
            host.serve(stream, Some(peer.ip())).await;
            drop(place);
        });
    }
}

/// Small frames go at once, and a client that has vanished is noticed: by its silence when the host
/// has something to say, which its heartbeat sees to. A socket that cannot be tuned serves as well.
fn tune(stream: &TcpStream) {
    let _as_it_is = stream.set_nodelay(true);
    let _as_it_is = rustix::net::sockopt::set_socket_keepalive(stream, true);
    let _as_it_is = rustix::net::sockopt::set_tcp_user_timeout(stream, GONE_MS);
}

/// What tells it to end.
struct Signals([Signal; 3]);

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self([
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        ]))
    }

    async fn next(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

fn say(text: &str) {
    let _nobody_reads = io::stderr().write_all(text.as_bytes());
}
