use std::sync::atomic::AtomicUsize;

use super::*;

#[derive(Default)]
struct Counted(AtomicUsize);

impl Bell for Counted {
    fn ring(&self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn env() -> EnvId {
    "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap()
}

fn leases() -> (Leases, Arc<Counted>) {
    let bell = Arc::new(Counted::default());
    (Leases::new(Arc::clone(&bell) as Arc<dyn Bell>), bell)
}

#[test]
fn a_lease_is_given_back_once_however_it_ends() {
    let (leases, _) = leases();
    let hold = leases.hold(env(), &SurfaceName::app());
    let mut lease = Lease::take(&hold, LeaseKind::Request);
    assert_eq!(leases.in_flight(env()), 1);
    lease.release();
    lease.release();
    drop(lease);
    assert_eq!(leases.in_flight(env()), 0);
    assert_eq!(hold.count(LeaseKind::Request), 0);
}

#[test]
fn a_request_that_becomes_a_stream_is_never_uncounted_and_reports_at_once() {
    let (leases, bell) = leases();
    let hold = leases.hold(env(), &SurfaceName::app());
    let mut lease = Lease::take(&hold, LeaseKind::Request);
    assert_eq!(bell.0.load(SeqCst), 0, "a request waits for the next tick");
    lease.become_kind(LeaseKind::Stream);
    assert_eq!((hold.count(LeaseKind::Request), hold.count(LeaseKind::Stream)), (0, 1));
    assert_eq!(bell.0.load(SeqCst), 1);
    hold.hurry();
    assert_eq!(leases.take_hurried().len(), 1, "it stands there once");
    assert!(leases.take_hurried().is_empty());
    let second = Lease::take(&hold, LeaseKind::Stream);
    assert_eq!(bell.0.load(SeqCst), 2, "a second stream adds no report");
    drop(second);
    assert_eq!(bell.0.load(SeqCst), 2, "nor does its end");
    drop(lease);
    assert_eq!(bell.0.load(SeqCst), 3, "the end of the last one does");
    assert_eq!(leases.take_hurried().len(), 1);
    assert_eq!(hold.in_flight(), 0);
}

#[test]
fn the_report_of_a_stream_does_not_tell_of_the_request_that_it_was() {
    /// Looks at the counters whenever it rings.
    #[derive(Default)]
    struct Looks(Mutex<(Option<Arc<Hold>>, Vec<u32>)>);
    impl Bell for Looks {
        fn ring(&self) {
            let (hold, seen) = &mut *self.0.lock();
            seen.extend(hold.as_ref().map(|hold| hold.count(LeaseKind::Request)));
        }
    }
    let bell = Arc::new(Looks::default());
    let leases = Leases::new(Arc::clone(&bell) as Arc<dyn Bell>);
    let hold = leases.hold(env(), &SurfaceName::app());
    bell.0.lock().0 = Some(Arc::clone(&hold));
    let mut lease = Lease::take(&hold, LeaseKind::Request);
    lease.become_kind(LeaseKind::Stream);
    assert_eq!(bell.0.lock().1, [0]);
}

#[test]
fn an_environment_that_closes_does_not_look_empty_while_a_request_becomes_a_socket() {
    let (leases, bell) = leases();
    let hold = leases.hold(env(), &SurfaceName::app());
    let mut lease = Lease::take(&hold, LeaseKind::Request);
    let other = Lease::take(&leases.hold(env(), &SurfaceName::agent()), LeaseKind::Request);
    hold.close();
    let rings = bell.0.load(SeqCst);
    lease.become_kind(LeaseKind::Upload);
    assert_eq!(bell.0.load(SeqCst), rings, "the last lease has not ended");
    drop((lease, other));
    assert_eq!(bell.0.load(SeqCst), rings + 1);
}

#[test]
fn the_end_of_a_lease_is_a_touch() {
    let (leases, _) = leases();
    let hold = leases.hold(env(), &SurfaceName::app());
    let lease = Lease::take(&hold, LeaseKind::Socket);
    assert!(hold.take_touched());
    assert!(!hold.take_touched());
    drop(lease);
    assert!(hold.take_touched());
}

#[test]
fn sockets_of_the_environment_server_hold_nothing_but_its_requests_do() {
    let (leases, bell) = leases();
    let hold = leases.hold(env(), &SurfaceName::host());
    let mut lease = Lease::take(&hold, LeaseKind::Request);
    assert_eq!(leases.in_flight(env()), 1);
    lease.become_kind(LeaseKind::Socket);
    assert_eq!(leases.in_flight(env()), 0);
    assert_eq!(bell.0.load(SeqCst), 0);
    drop(lease);
    assert_eq!(leases.in_flight(env()), 0);
}

#[test]
fn a_sweep_keeps_counters_that_somebody_could_still_count_on() {
    let (leases, _) = leases();
    let held = leases.hold(env(), &SurfaceName::app());
    drop(leases.hold(env(), &SurfaceName::agent()));
    leases.sweep(|_| false);
    assert_eq!(leases.all().len(), 1);
    let lease = Lease::take(&held, LeaseKind::Request);
    drop(held);
    leases.sweep(|_| false);
    assert_eq!(leases.in_flight(env()), 1);
    drop(lease);
    leases.sweep(|_| false);
    assert_eq!(leases.all().len(), 1, "its touch has not been reported");
    assert!(leases.all().iter().all(|hold| hold.take_touched()));
    leases.sweep(|_| false);
    assert!(leases.all().is_empty());
}

#[test]
fn the_last_end_of_a_closing_environment_rings() {
    let (leases, bell) = leases();
    let hold = leases.hold(env(), &SurfaceName::app());
    let first = Lease::take(&hold, LeaseKind::Request);
    let last = Lease::take(&hold, LeaseKind::Request);
    hold.close();
    drop(first);
    assert_eq!(bell.0.load(SeqCst), 0);
    drop(last);
    assert_eq!(bell.0.load(SeqCst), 1);
}
