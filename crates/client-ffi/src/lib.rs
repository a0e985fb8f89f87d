#![doc = include_str!("../README.md")]

uniffi::setup_scaffolding!("wakeful");

mod config;
mod error;
mod observer;
mod session;
mod view;

pub use config::{ClientConfig, Secret, ServerAccount};
pub use error::ClientError;
pub use observer::{Change, Observer, ObserverError};
pub use session::{ClientSession, NewThread, Remembered};
pub use view::{
    host::{
        Agent, Connection, ConnectionPhase, ConnectionStage, Failure, Host, HostKind, Network,
        ServerState,
    },
    thread::{DataStatus, ThreadList, ThreadRow, ThreadView, TurnEnd},
};
