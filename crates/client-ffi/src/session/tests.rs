use std::{path::Path, sync::mpsc, time::Duration};

use super::*;
use crate::{Change, ClientConfig, Network, Observer, ObserverError};

/// An executor without time and IO, such as an application may have: whatever needs those runs on
/// the client's own.
fn bare() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn config(directory: &Path) -> ClientConfig {
    ClientConfig {
        config_dir: directory.join("config").display().to_string(),
        cache_dir: Some(directory.join("cache").display().to_string()),
        label: "test".to_owned(),
        accounts: Vec::new(),
        focus: None,
        keep_alive: false,
        watch_machine: true,
    }
}

const HOST: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50";

/// Passes on what it is told.
struct Telling(mpsc::Sender<Change>);

impl Observer for Telling {
    fn changed(&self, change: Change) -> Result<(), ObserverError> {
        self.0.send(change).map_err(|error| ObserverError::Failed(error.to_string()))
    }
}

#[test]
fn after_its_end_a_client_refuses_everything_and_breaks_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (tells, told) = mpsc::channel();
    let observer: Arc<dyn Observer> = Arc::new(Telling(tells));
    let session =
        bare().block_on(ClientSession::start(config(directory.path()), Some(observer))).unwrap();
    session.set_network(Network::Offline).unwrap();
    while told.recv_timeout(Duration::from_secs(60)).unwrap() != Change::Hosts {}
    assert_eq!(session.connection(HOST), Err(ClientError::NoSuchHost));
    assert!(matches!(session.connection("laptop"), Err(ClientError::Invalid(_))));
    let never = bare().block_on(session.remove(HOST.to_owned()));
    assert_eq!(never, Err(ClientError::NoSuchHost));
    assert!(!session.is_closed());
    bare().block_on(async { tokio::join!(session.close(), session.close()) });
    assert!(session.is_closed());
    while told.try_recv().is_ok() {}
    assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Disconnected), "the observer is let go");
    assert_eq!(session.hosts(), Err(ClientError::Closed));
    assert_eq!(session.path_changed(), Err(ClientError::Closed));
    assert_eq!(session.threads(HOST), Err(ClientError::Closed));
    assert_eq!(session.close_thread(HOST, HOST), Err(ClientError::Closed));
    let prompted = session.send_prompt(HOST.into(), HOST.into(), "ls".to_owned(), None);
    assert_eq!(bare().block_on(prompted), Err(ClientError::Closed));
    assert_eq!(bare().block_on(session.pause(HOST.to_owned())), Err(ClientError::Closed));
    bare().block_on(session.close());
}

#[test]
fn what_is_awaited_when_a_client_ends_fails_as_closed() {
    let directory = tempfile::tempdir().unwrap();
    let outcome = bare().block_on(async {
        let session = ClientSession::start(config(directory.path()), None).await.unwrap();
        let waiting = session.run(|live| async move {
            let _held = live;
            std::future::pending::<Result<(), ClientError>>().await
        });
        let (outcome, ()) = tokio::join!(waiting, session.close());
        outcome
    });
    assert_eq!(outcome, Err(ClientError::Closed));
}

#[test]
fn a_defect_in_a_call_is_an_error_and_the_client_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    bare().block_on(async {
        let session = ClientSession::start(config(directory.path()), None).await.unwrap();
        let broken = session.run::<(), _>(|_| async { panic!("a defect") }).await;
        assert_eq!(broken, Err(ClientError::Internal));
        assert_eq!(session.hosts(), Ok(Vec::new()));
        session.close().await;
    });
}

#[test]
fn a_client_may_be_let_go_anywhere_and_its_observer_goes_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (tells, told) = mpsc::channel();
    bare().block_on(async {
        let observer: Arc<dyn Observer> = Arc::new(Telling(tells));
        let session = ClientSession::start(config(directory.path()), Some(observer)).await;
        drop(session.unwrap());
    });
    while told.recv_timeout(Duration::from_secs(60)).is_ok() {}
    assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}
