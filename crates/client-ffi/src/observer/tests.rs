use std::sync::mpsc;

use uuid::Uuid;
use wakeful_wire::HostId;

use super::*;

/// Passes on what it is told, and by whom; fails at every second change in one of two ways.
struct Recorder {
    told: mpsc::Sender<(Change, ThreadId)>,
    fails: bool,
}

impl Observer for Recorder {
    fn changed(&self, change: Change) -> Result<(), ObserverError> {
        let is_hosts = change == Change::Hosts;
        self.told.send((change, std::thread::current().id())).unwrap();
        match (self.fails, is_hosts) {
            (false, _) => Ok(()),
            (true, false) => Err(ObserverError::Failed("it raised".to_owned())),
            (true, true) => panic!("it panicked"),
        }
    }
}

fn host(number: u64) -> HostId {
    HostId::from_uuid(Uuid::from_u64_pair(7, number))
}

fn begin(fails: bool, waiting: usize) -> (broadcast::Sender<link::Change>, Observing, Told) {
    let (sender, receiver) = broadcast::channel(waiting);
    let (told, tells) = mpsc::channel();
    let observing = Observing::begin(Arc::new(Recorder { told, fails }), receiver).unwrap();
    (sender, observing, Told(tells))
}

struct Told(mpsc::Receiver<(Change, ThreadId)>);

impl Told {
    fn next(&self) -> (Change, ThreadId) {
        self.0.recv_timeout(Duration::from_secs(60)).unwrap()
    }
}

#[test]
fn an_observer_that_fails_is_told_the_next_change_on_the_same_thread() {
    let (changes, observing, told) = begin(true, 16);
    let removed = || link::Change::Hosts(link::registry::Change::Removed(host(1)));
    let expected = |change: &link::Change| Change::of(change.clone()).unwrap();
    let sent = [link::Change::Lists, removed(), link::Change::Connection(host(1)), removed()];
    for change in &sent {
        changes.send(change.clone()).unwrap();
    }
    for change in &sent {
        let (heard, thread) = told.next();
        assert_eq!(heard, expected(change));
        assert_eq!(thread, observing.thread);
    }
}

#[test]
fn what_is_not_for_observers_is_not_told() {
    let (changes, _observing, told) = begin(false, 16);
    let absence = link::families::Absence::Unknown;
    let thread = Uuid::from_u64_pair(1, 1).to_string().parse().unwrap();
    changes.send(link::Change::Absence { host: host(1), thread, absence }).unwrap();
    changes.send(link::Change::Shell(host(2))).unwrap();
    assert_eq!(told.next().0, Change::Threads { host: host(2).to_string() });
}

/// Stands still at its first change until it is let go on.
struct Slow {
    told: mpsc::Sender<Change>,
    reached: mpsc::Sender<()>,
    go_on: parking_lot::Mutex<mpsc::Receiver<()>>,
}

impl Observer for Slow {
    fn changed(&self, change: Change) -> Result<(), ObserverError> {
        self.told.send(change).unwrap();
        self.reached.send(()).unwrap();
        // Once nobody holds it back any more, it goes on at once.
        let _released = self.go_on.lock().recv();
        Ok(())
    }
}

#[test]
fn an_observer_that_is_too_slow_is_told_that_it_missed_something() {
    let (changes, receiver) = broadcast::channel(2);
    let ((told, tells), (reached, reaches)) = (mpsc::channel(), mpsc::channel());
    let (release, go_on) = mpsc::channel();
    let slow = Slow { told, reached, go_on: parking_lot::Mutex::new(go_on) };
    let _observing = Observing::begin(Arc::new(slow), receiver).unwrap();
    changes.send(link::Change::Connection(host(0))).unwrap();
    reaches.recv().unwrap();
    for number in 1..=10 {
        changes.send(link::Change::Connection(host(number))).unwrap();
    }
    drop(release);
    let next = || tells.recv_timeout(Duration::from_secs(60)).unwrap();
    let connection = |number| Change::Connection { host: host(number).to_string() };
    assert_eq!(next(), connection(0));
    assert_eq!(next(), Change::Missed);
    assert_eq!([next(), next()], [connection(9), connection(10)]);
}

#[tokio::test]
async fn after_the_end_an_observer_is_told_nothing_and_is_let_go() {
    let (changes, observing, told) = begin(false, 16);
    changes.send(link::Change::Lists).unwrap();
    assert_eq!(told.next().0, Change::Lists);
    observing.stop();
    changes.send(link::Change::Lists).unwrap();
    observing.ended().await;
    assert_eq!(told.0.recv(), Err(mpsc::RecvError), "the observer, which held the sender, is gone");
}
