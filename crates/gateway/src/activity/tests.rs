use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use wakeful_wire::Phase;

use super::*;
use crate::leases::{Bell, Lease};

const INTERVAL: Duration = Duration::from_mins(1);

#[derive(Default)]
struct Counted(AtomicUsize);

impl Bell for Counted {
    fn ring(&self) {
        self.0.fetch_add(1, SeqCst);
    }
}

struct Bench {
    leases: Leases,
    bell: Arc<Counted>,
    activity: Activity,
    drains: Drains,
}

fn holder() -> HolderId {
    "0199f0a0-7b5c-7c3e-9d2f-000000000001".parse().unwrap()
}

fn env() -> EnvId {
    "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f".parse().unwrap()
}

impl Bench {
    fn new() -> Self {
        let bell = Arc::new(Counted::default());
        Self {
            leases: Leases::new(Arc::clone(&bell) as Arc<dyn Bell>),
            bell,
            activity: Activity::new(holder(), INTERVAL, Duration::ZERO),
            drains: Drains::new(holder()),
        }
    }

    fn open(&self, kind: LeaseKind) -> Lease {
        Lease::take(&self.leases.hold(env(), &SurfaceName::app()), kind)
    }

    /// What is reported at a time: kind, count, touch. `arrives`: whether the reports do.
    fn reports(&mut self, now: Duration, arrives: bool) -> Vec<(LeaseKind, u32, bool)> {
        let mut out = Vec::new();
        while let Some(report) = self.activity.poll_report(now, &self.leases) {
            assert_eq!((report.env, report.holder), (env(), holder()));
            assert_eq!(report.expires_ms, 150_000);
            out.push((report.kind, report.count, report.touch));
            self.activity.handle_reported(&report, arrives, &self.leases);
        }
        out
    }

    fn tick(&mut self) -> Vec<(LeaseKind, u32, bool)> {
        self.reports(self.activity.poll_timeout(), true)
    }

    fn drain(&mut self, generation: u64, forced: bool) -> Vec<DrainAction> {
        let generation = Generation(generation);
        self.drains
            .handle_event(&GateEvent::Drain { env: env(), generation, forced }, &self.leases);
        self.actions()
    }

    fn actions(&mut self) -> Vec<DrainAction> {
        std::iter::from_fn(|| self.drains.poll_action(&self.leases)).collect()
    }
}

fn answer(generation: u64, drained: bool) -> DrainAction {
    let generation = Generation(generation);
    DrainAction::Answer(DrainAnswer { holder: holder(), env: env(), generation, drained })
}

const fn close(env: EnvId, all: bool) -> DrainAction {
    DrainAction::Close { env, all }
}

use LeaseKind::{Request, Socket, Stream};

#[test]
fn the_first_socket_reports_at_once_and_a_second_waits_for_the_tick() {
    let mut bench = Bench::new();
    let first = bench.open(Socket);
    assert_eq!(bench.bell.0.load(SeqCst), 1);
    assert_eq!(bench.reports(Duration::from_secs(1), true), [(Socket, 1, true)]);
    let second = bench.open(Socket);
    assert!(bench.reports(Duration::from_secs(2), true).is_empty());
    assert_eq!(bench.tick(), [(Socket, 2, true)]);
    assert_eq!(bench.tick(), [(Socket, 2, true)], "it holds as long as it is open");
    drop(first);
    assert!(bench.reports(INTERVAL * 2 + Duration::from_secs(1), true).is_empty());
    let rings = bench.bell.0.load(SeqCst);
    drop(second);
    assert_eq!(bench.bell.0.load(SeqCst), rings + 1);
    let end = bench.reports(INTERVAL * 2 + Duration::from_secs(2), true);
    assert_eq!(end, [(Socket, 0, true)], "the end of the last one reports at once");
    assert!(bench.tick().is_empty());
    assert!(bench.leases.all().is_empty(), "nothing is kept of it");
    assert!(bench.activity.paces.is_empty() && bench.activity.hurried.is_empty());
}

#[test]
fn a_flood_of_short_streams_is_no_flood_of_reports_and_its_end_is_told_soon() {
    let mut bench = Bench::new();
    let mut told = Vec::new();
    let second = |ms| Duration::from_secs(1) + Duration::from_millis(ms);
    for ms in 0..1000 {
        let stream = bench.open(Stream);
        told.extend(bench.reports(second(ms), true));
        drop(stream);
        told.extend(bench.reports(second(ms), true));
    }
    assert_eq!(told.len(), 5, "one in 200 ms: {told:?}");
    let again = bench.activity.poll_timeout();
    assert_eq!(again, second(1000));
    assert_eq!(bench.reports(again, true), [(Stream, 0, true)]);
    assert_eq!(bench.activity.poll_timeout(), INTERVAL);
    assert!(bench.tick().is_empty());
    assert!(bench.activity.paces.is_empty() && bench.activity.hurried.is_empty());
}

#[test]
fn a_zero_waits_for_the_report_of_the_beginning_and_does_not_overtake_it() {
    let mut bench = Bench::new();
    let socket = bench.open(Socket);
    let now = Duration::from_secs(1);
    let beginning = bench.activity.poll_report(now, &bench.leases).unwrap();
    assert_eq!(beginning.count, 1);
    drop(socket);
    let later = now + Duration::from_secs(5);
    assert_eq!(bench.activity.poll_report(later, &bench.leases), None);
    assert_eq!(bench.activity.poll_timeout(), INTERVAL, "there is nothing to look for before");
    bench.activity.handle_reported(&beginning, true, &bench.leases);
    assert!(bench.activity.poll_timeout() <= later);
    assert_eq!(bench.reports(later, true), [(Socket, 0, true)]);
    assert!(bench.tick().is_empty());
}

#[test]
fn requests_that_ended_between_two_ticks_touch_the_clock_once() {
    let mut bench = Bench::new();
    for _ in 0..1000 {
        drop(bench.open(Request));
    }
    assert!(bench.reports(Duration::from_secs(30), true).is_empty());
    assert_eq!(bench.tick(), [(Request, 0, true)]);
    assert!(bench.tick().is_empty());
}

#[test]
fn a_long_request_is_reported_while_it_runs_and_when_it_has_ended() {
    let mut bench = Bench::new();
    let long = bench.open(Request);
    assert_eq!(bench.tick(), [(Request, 1, true)]);
    assert_eq!(bench.tick(), [(Request, 1, true)]);
    drop(long);
    assert_eq!(bench.tick(), [(Request, 0, true)]);
    assert!(bench.tick().is_empty());
}

#[test]
fn kinds_are_reported_side_by_side() {
    let mut bench = Bench::new();
    let open = [bench.open(Request), bench.open(Stream), bench.open(Socket)];
    let expected = [(Request, 1, true), (Stream, 1, true), (Socket, 1, true)];
    assert_eq!(bench.tick(), expected);
    drop(open);
    assert_eq!(bench.tick(), expected.map(|(kind, _, touch)| (kind, 0, touch)));
}

#[test]
fn a_report_that_did_not_arrive_is_made_again_at_the_next_tick() {
    let mut bench = Bench::new();
    drop(bench.open(Request));
    let now = bench.activity.poll_timeout();
    assert_eq!(bench.reports(now, false), [(Request, 0, true)]);
    assert!(bench.reports(now + Duration::from_secs(1), true).is_empty(), "not sooner");
    assert_eq!(bench.tick(), [(Request, 0, true)]);
    assert!(bench.tick().is_empty());

    let socket = bench.open(Socket);
    let now = bench.activity.poll_timeout();
    assert_eq!(bench.reports(now, false), [(Socket, 1, true)]);
    drop(socket);
    let now = bench.activity.poll_timeout();
    assert_eq!(bench.reports(now, false), [(Socket, 0, true)]);
    assert_eq!(bench.tick(), [(Socket, 0, true)], "its end is told until it is taken");
    assert!(bench.tick().is_empty());
}

#[test]
fn ticks_that_were_slept_through_are_not_made_up_for() {
    let mut bench = Bench::new();
    let _socket = bench.open(Socket);
    let late = INTERVAL * 10;
    assert_eq!(bench.reports(late, true).len(), 1);
    assert_eq!(bench.activity.poll_timeout(), late + INTERVAL);
}

#[test]
fn an_idle_suspend_goes_on_only_where_nothing_is_open() {
    let mut bench = Bench::new();
    assert_eq!(bench.drain(1, false), [answer(1, true)]);
    for kind in [Request, Stream, Socket] {
        let open = bench.open(kind);
        assert_eq!(bench.drain(2, false), [answer(2, false)], "{kind:?}");
        drop(open);
        assert_eq!(bench.drain(3, false), [answer(3, false)], "the clock does not know of it yet");
        assert!(!bench.reports(Duration::from_secs(1), true).is_empty(), "it is told at once");
        assert!(bench.tick().is_empty());
        assert_eq!(bench.drain(4, false), [answer(4, true)]);
    }
}

#[test]
fn a_forced_drain_closes_and_answers_again_when_the_last_lease_has_ended() {
    let mut bench = Bench::new();
    let socket = bench.open(Socket);
    let request = bench.open(Request);
    assert_eq!(bench.drain(5, true), [close(env(), true), answer(5, false)]);
    drop(socket);
    assert!(bench.actions().is_empty());
    let rings = bench.bell.0.load(SeqCst);
    drop(request);
    assert_eq!(bench.bell.0.load(SeqCst), rings + 1);
    assert_eq!(bench.actions(), [answer(5, true)]);
    assert!(bench.actions().is_empty());
    drop(bench.open(Request));
    assert_eq!(bench.bell.0.load(SeqCst), rings + 1, "nobody waits any more");
}

#[test]
fn a_forced_drain_of_an_environment_without_leases_is_answered_at_once() {
    let mut bench = Bench::new();
    assert_eq!(bench.drain(1, true), [close(env(), true), answer(1, true)]);
}

#[test]
fn a_drain_that_the_record_has_left_behind_is_not_answered() {
    let mut bench = Bench::new();
    let request = bench.open(Request);
    let _ = bench.drain(5, true);
    let changed = |generation, phase| GateEvent::Changed {
        env: env(),
        generation: Generation(generation),
        phase,
    };
    bench.drains.handle_event(&changed(5, Phase::Suspending), &bench.leases);
    bench.drains.handle_event(&changed(6, Phase::Ready), &bench.leases);
    drop(request);
    assert!(bench.actions().is_empty());
}

#[test]
fn sockets_of_the_environment_server_do_not_hold_and_are_closed_once_it_sleeps() {
    let mut bench = Bench::new();
    let hold = bench.leases.hold(env(), &SurfaceName::host());
    let _socket = Lease::take(&hold, Socket);
    assert!(bench.tick().is_empty());
    assert_eq!(bench.drain(1, false), [answer(1, true)], "it may still be given up");
    let mut change = |phase| {
        let event = GateEvent::Changed { env: env(), generation: Generation(2), phase };
        bench.drains.handle_event(&event, &bench.leases);
        bench.actions()
    };
    for phase in [Phase::Starting, Phase::Ready, Phase::Suspending, Phase::Failed] {
        assert_eq!(change(phase), [], "{phase:?}");
    }
    for phase in [Phase::Suspended, Phase::Frozen, Phase::Disabled, Phase::Deleted] {
        assert_eq!(change(phase), [close(env(), false)], "{phase:?}");
    }
}

#[test]
fn a_quiet_request_is_waited_for_and_told_to_nobody() {
    let mut bench = Bench::new();
    let hold = bench.leases.hold(env(), &SurfaceName::host());
    let quiet = Lease::take_quiet(&hold);
    assert!(bench.tick().is_empty());
    assert_eq!(bench.drain(1, false), [answer(1, false)]);
    drop(quiet);
    assert!(bench.tick().is_empty());
    assert_eq!(bench.drain(2, false), [answer(2, true)], "nothing waits to be told");
    let quiet = Lease::take_quiet(&hold);
    assert_eq!(bench.drain(3, true), [close(env(), true), answer(3, false)]);
    let rings = bench.bell.0.load(SeqCst);
    drop(quiet);
    assert_eq!(bench.bell.0.load(SeqCst), rings + 1);
    assert_eq!(bench.actions(), [answer(3, true)]);
}

#[test]
fn a_quiet_request_that_becomes_a_socket_of_the_environment_server_holds_nothing() {
    let mut bench = Bench::new();
    let hold = bench.leases.hold(env(), &SurfaceName::host());
    let mut socket = Lease::take_quiet(&hold);
    socket.become_kind(Socket);
    assert_eq!(bench.drain(1, false), [answer(1, true)]);
    drop(socket);
    assert_eq!(hold.in_flight(), 0);
    assert!(bench.tick().is_empty());
}
