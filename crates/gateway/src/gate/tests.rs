use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
};

use proptest::prelude::*;
use wakeful_wire::{
    Phase, SurfaceName, UserName,
    gate::{LeaseKind, Principal, SignedInBy},
};

use super::*;
use crate::leases::{Hold, NoBell};

const IDLE: Duration = Duration::from_mins(10);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn env(n: u8) -> EnvId {
    format!("0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e{n:02x}").parse().unwrap()
}

fn sandbox(n: u64) -> SandboxUid {
    format!("0199f0a0-7b5c-7c3e-9d2f-{n:012x}").parse().unwrap()
}

fn key(n: u8) -> Key {
    Key { env: env(n), surface: SurfaceName::app(), principal: None, intent: true }
}

fn answer(state: GateState, generation: u64) -> EnsureAnswer {
    let ready = state == GateState::Ready;
    EnsureAnswer {
        state,
        phase: if ready { Phase::Ready } else { Phase::Starting },
        generation: Generation(generation),
        sandbox: ready.then(|| sandbox(generation)),
        upstream: None,
        retry_after_ms: None,
        reason: None,
    }
}

struct Bench {
    gate: Gate,
    leases: Leases,
}

impl Bench {
    fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        Self { gate: Gate::new(config), leases: Leases::new(Arc::new(NoBell)) }
    }

    fn load(&mut self, key: &Key, now: Duration) -> Load {
        let ask = self.gate.handle_request(key, now);
        let Ask::Load(load) = ask else { panic!("{ask:?}") };
        load
    }

    fn answer(&mut self, load: Load, answer: Option<EnsureAnswer>, now: Duration) {
        self.gate.handle_answer(load, answer, IDLE, &self.leases, now);
    }

    fn entry(&mut self, key: &Key, now: Duration) -> Arc<Entry> {
        let ask = self.gate.handle_request(key, now);
        let Ask::Answer(entry) = ask else { panic!("{ask:?}") };
        entry
    }

    fn ready(&mut self, key: &Key, generation: u64, now: Duration) -> Arc<Entry> {
        let load = self.load(key, now);
        self.answer(load, Some(answer(GateState::Ready, generation)), now);
        self.entry(key, now)
    }

    fn changed(&mut self, n: u8, generation: u64, phase: Phase) {
        let generation = Generation(generation);
        self.gate.handle_event(&GateEvent::Changed { env: env(n), generation, phase });
    }
}

#[test]
fn callers_of_one_key_share_one_question() {
    let mut bench = Bench::new();
    let load = bench.load(&key(1), ms(0));
    let id = load.id;
    for _ in 0..1000 {
        let ask = bench.gate.handle_request(&key(1), ms(1));
        assert!(matches!(ask, Ask::Wait(waited) if waited == id));
    }
    assert!(matches!(bench.gate.handle_wait(&key(1), id, ms(2)), Ask::Wait(_)));
    bench.answer(load, Some(answer(GateState::Ready, 1)), ms(5));
    assert_eq!(bench.gate.poll_stirred(), Some(env(1)));
    assert_eq!(bench.gate.poll_stirred(), None);
    for _ in 0..1000 {
        let ask = bench.gate.handle_wait(&key(1), id, ms(6));
        assert!(matches!(ask, Ask::Answer(_)));
    }
    assert_eq!(bench.gate.asked(), 1);
}

#[test]
fn keys_differ_by_environment_surface_principal_and_intent() {
    let mut bench = Bench::new();
    let principal =
        |user: &str| Some(Principal { user: UserName::new(user).unwrap(), by: SignedInBy::Cookie });
    let keys = [
        key(1),
        key(2),
        Key { surface: SurfaceName::agent(), ..key(1) },
        Key { principal: principal("alice"), ..key(1) },
        Key { principal: principal("bob"), ..key(1) },
        Key { intent: false, ..key(1) },
    ];
    for key in &keys {
        let _ = bench.load(key, ms(0)).id;
    }
    assert_eq!(bench.gate.asked(), 6);
}

#[test]
fn ready_is_cached_for_five_seconds_or_a_fifth_of_the_idle_timeout() {
    for (idle, ttl) in [(IDLE, 5_000), (Duration::from_secs(10), 2_000)] {
        let mut bench = Bench::new();
        let load = bench.load(&key(1), ms(0));
        let ready = answer(GateState::Ready, 1);
        bench.gate.handle_answer(load, Some(ready), idle, &bench.leases, ms(100));
        let entry = bench.entry(&key(1), ms(100));
        assert_eq!(entry.valid_until(), ms(100 + ttl));
        assert!(entry.admit(ms(100 + ttl - 1), LeaseKind::Request).is_some());
        assert!(entry.admit(ms(100 + ttl), LeaseKind::Request).is_none());
        let _ = bench.load(&key(1), ms(100 + ttl)).id;
    }
}

#[test]
fn an_admission_is_counted_until_its_lease_ends() {
    let mut bench = Bench::new();
    let entry = bench.ready(&key(1), 1, ms(0));
    let lease = entry.admit(ms(1), LeaseKind::Request).unwrap();
    assert_eq!(bench.leases.in_flight(env(1)), 1);
    drop(lease);
    assert_eq!(bench.leases.in_flight(env(1)), 0);
    assert!(entry.hold().is_touched(), "it reaches the clock with the next report");
}

#[test]
fn those_who_wait_ask_again_once_a_second_and_once_at_once_when_it_is_ready() {
    let mut bench = Bench::new();
    let load = bench.load(&key(1), ms(0));
    bench.answer(load, Some(answer(GateState::Starting, 2)), ms(5));
    let entry = bench.entry(&key(1), ms(10));
    assert!(entry.admit(ms(10), LeaseKind::Request).is_none(), "it is not ready");
    // The same step again is no news.
    bench.changed(1, 2, Phase::Starting);
    let _ = bench.entry(&key(1), ms(20));
    // Ready is, and need not wait for the second.
    bench.changed(1, 3, Phase::Ready);
    let load = bench.load(&key(1), ms(50));
    bench.answer(load, Some(answer(GateState::SurfaceStarting, 3)), ms(55));
    // From now on once a second, whatever is pushed.
    for n in 4..8 {
        bench.changed(1, n, Phase::Ready);
        let ask = bench.gate.handle_request(&key(1), ms(60 + n));
        assert!(matches!(ask, Ask::Later(at) if at == ms(1_000)), "{ask:?}");
    }
    let load = bench.load(&key(1), ms(1_000));
    bench.answer(load, Some(answer(GateState::SurfaceStarting, 8)), ms(1_005));
    let _ = bench.entry(&key(1), ms(2_000));
    let load = bench.load(&key(1), ms(2_005));
    bench.answer(load, Some(answer(GateState::Ready, 9)), ms(2_010));
    assert_eq!(bench.gate.asked(), 4);
}

#[test]
fn a_question_that_could_not_be_put_is_told_to_those_who_waited_and_not_cached() {
    let mut bench = Bench::new();
    let load = bench.load(&key(1), ms(0));
    let id = load.id;
    bench.answer(load, None, ms(5));
    assert_eq!(bench.gate.poll_stirred(), Some(env(1)));
    assert!(matches!(bench.gate.handle_wait(&key(1), id, ms(6)), Ask::Unavailable));
    let load = bench.load(&key(1), ms(7));
    let again = load.id;
    bench.answer(load, Some(answer(GateState::Ready, 1)), ms(8));
    assert!(matches!(bench.gate.handle_wait(&key(1), again, ms(9)), Ask::Answer(_)));
    assert!(matches!(bench.gate.handle_wait(&key(1), id, ms(9)), Ask::Answer(_)));
}

#[test]
fn an_answer_older_than_what_is_known_meanwhile_is_dropped() {
    let mut bench = Bench::new();
    let load = bench.load(&key(1), ms(0));
    let id = load.id;
    let drain = GateEvent::Drain { env: env(1), generation: Generation(5), forced: false };
    bench.gate.handle_event(&drain);
    bench.answer(load, Some(answer(GateState::Ready, 4)), ms(5));
    let Ask::Load(load) = bench.gate.handle_wait(&key(1), id, ms(6)) else { panic!() };
    bench.answer(load, Some(answer(GateState::Ready, 6)), ms(7));
    assert_eq!(bench.entry(&key(1), ms(8)).answer().generation, Generation(6));
    // Another key's older answer is dropped as well.
    let other = Key { intent: false, ..key(1) };
    let load = bench.load(&other, ms(8));
    bench.answer(load, Some(answer(GateState::Ready, 5)), ms(9));
    let _ = bench.load(&other, ms(10)).id;
}

#[test]
fn absence_is_taken_whatever_its_generation_and_lowers_nothing() {
    for state in [GateState::NotFound, GateState::Gone] {
        let mut bench = Bench::new();
        let _ = bench.ready(&key(1), 7, ms(0));
        bench.changed(1, 8, Phase::Deleted);
        let load = bench.load(&key(1), ms(10));
        bench.answer(load, Some(answer(state, 0)), ms(10));
        let entry = bench.entry(&key(1), ms(11));
        assert_eq!(entry.answer().state, state);
        assert_eq!(entry.valid_until(), ms(1_010));
        // What is older than the deletion is still older than what is known.
        let load = bench.load(&key(1), ms(2_000));
        bench.answer(load, Some(answer(GateState::Ready, 7)), ms(2_000));
        let load = bench.load(&key(1), ms(4_000));
        bench.answer(load, Some(answer(GateState::Ready, 9)), ms(4_000));
        assert_eq!(bench.entry(&key(1), ms(4_000)).answer().state, GateState::Ready);
    }
}

#[test]
fn what_is_deleted_is_known_until_it_is_there_again() {
    let mut bench = Bench::new();
    bench.changed(1, 8, Phase::Deleted);
    assert!(!bench.gate.is_deleted(env(1)), "nobody has asked for it");
    let _ = bench.ready(&key(1), 7, ms(0));
    bench.changed(1, 8, Phase::Deleted);
    assert!(bench.gate.is_deleted(env(1)) && !bench.gate.is_deleted(env(2)));
    bench.changed(1, 7, Phase::Ready);
    let load = bench.load(&key(1), ms(10));
    bench.answer(load, Some(answer(GateState::NotFound, 0)), ms(10));
    assert!(bench.gate.is_deleted(env(1)), "neither is news");
    let load = bench.load(&key(1), ms(2_000));
    bench.changed(1, 9, Phase::Suspended);
    assert!(!bench.gate.is_deleted(env(1)));
    bench.answer(load, Some(answer(GateState::NotFound, 0)), ms(2_000));
    let load = bench.load(&key(1), ms(2_000));
    bench.answer(load, Some(answer(GateState::Asleep, 9)), ms(2_000));
    assert_eq!(bench.entry(&key(1), ms(2_000)).answer().state, GateState::Asleep);
    bench.changed(1, 10, Phase::Deleted);
    let load = bench.load(&key(1), ms(4_000));
    bench.answer(load, Some(answer(GateState::Asleep, 11)), ms(4_000));
    assert!(!bench.gate.is_deleted(env(1)), "an answer tells it as well");
}

#[test]
fn an_answer_that_cannot_know_what_happened_is_dropped_whatever_its_generation() {
    let principal = Principal { user: UserName::new("alice").unwrap(), by: SignedInBy::Token };
    let theirs = Key { principal: Some(principal), ..key(1) };
    let happenings: [&dyn Fn(&mut Gate); 4] = [
        &|gate| gate.handle_event(&GateEvent::RouteChanged { env: env(1) }),
        &|gate| {
            let user = UserName::new("alice").unwrap();
            gate.handle_event(&GateEvent::SignedOut { user });
        },
        &|gate| gate.handle_failure(env(1), sandbox(1)),
        &Gate::handle_lagged,
    ];
    for happen in happenings {
        let mut bench = Bench::new();
        let load = bench.load(&theirs, ms(0));
        happen(&mut bench.gate);
        bench.answer(load, Some(answer(GateState::Ready, 9)), ms(1));
        let load = bench.load(&theirs, ms(1));
        bench.answer(load, Some(answer(GateState::Ready, 9)), ms(2));
        let _ = bench.entry(&theirs, ms(2));
    }
}

#[test]
fn events_kill_what_they_make_untrue_in_every_map_that_holds_it() {
    let mut bench = Bench::new();
    let principal = Principal { user: UserName::new("alice").unwrap(), by: SignedInBy::Token };
    let theirs = Key { principal: Some(principal), ..key(1) };
    let drain = GateEvent::Drain { env: env(1), generation: Generation(1), forced: true };
    let changed = |generation| GateEvent::Changed {
        env: env(1),
        generation: Generation(generation),
        phase: Phase::Ready,
    };
    let out = |user: &str| GateEvent::SignedOut { user: UserName::new(user).unwrap() };
    let table = [
        (drain, false),
        (changed(1), true),
        (changed(2), false),
        (GateEvent::RouteChanged { env: env(1) }, false),
        (GateEvent::RouteChanged { env: env(2) }, true),
        (out("alice"), false),
        (out("bob"), true),
    ];
    for (event, lives) in table {
        let mut bench = Bench::new();
        let entry = bench.ready(&theirs, 1, ms(0));
        bench.gate.handle_event(&event);
        assert_eq!(entry.admit(ms(1), LeaseKind::Request).is_some(), lives, "{event:?}");
        assert_eq!(entry.is_live(ms(1)), lives, "{event:?}");
    }
    let entry = bench.ready(&theirs, 1, ms(0));
    bench.gate.handle_failure(env(1), sandbox(2));
    assert!(entry.is_live(ms(1)), "another sandbox failed");
    bench.gate.handle_failure(env(1), sandbox(1));
    assert!(!entry.is_live(ms(1)));
    let entry = bench.ready(&theirs, 1, ms(1));
    bench.gate.handle_lagged();
    assert!(!entry.is_live(ms(1)));
}

#[test]
fn who_waits_for_a_start_that_somebody_stops_waits_in_vain_and_others_do_not() {
    let drain = |bench: &mut Bench, generation, forced| {
        let generation = Generation(generation);
        bench.gate.handle_event(&GateEvent::Drain { env: env(1), generation, forced });
    };
    let (starting, ready) = (answer(GateState::Starting, 3), answer(GateState::Ready, 3));
    let stirred = |bench: &mut Bench| bench.gate.poll_stirred().is_some();
    let mut bench = Bench::new();
    let load = bench.load(&key(1), ms(0));
    bench.answer(load, Some(starting.clone()), ms(1));
    assert!(stirred(&mut bench));

    // Idleness is no wish: whoever waits asks again, which averts it.
    bench.changed(1, 4, Phase::Suspending);
    drain(&mut bench, 4, false);
    assert!(stirred(&mut bench) && !bench.gate.was_put_to_sleep(env(1), &starting));
    // A restart is no wish to sleep.
    bench.changed(1, 5, Phase::Starting);
    drain(&mut bench, 5, true);
    assert!(stirred(&mut bench) && !bench.gate.was_put_to_sleep(env(1), &starting));

    bench.changed(1, 6, Phase::Suspending);
    assert!(!stirred(&mut bench), "whose wish it is comes with the drain");
    drain(&mut bench, 6, true);
    assert!(stirred(&mut bench));
    assert!(bench.gate.was_put_to_sleep(env(1), &starting));
    assert!(!bench.gate.was_put_to_sleep(env(1), &ready), "it had not waited for a start");
    assert!(!bench.gate.was_put_to_sleep(env(1), &answer(GateState::Asleep, 3)));
    // Whoever came afterwards has woken it anew.
    assert!(!bench.gate.was_put_to_sleep(env(1), &answer(GateState::Starting, 7)));
    assert!(!bench.gate.was_put_to_sleep(env(2), &starting));
}

#[test]
fn a_ready_answer_that_died_is_asked_for_again_at_once() {
    let mut bench = Bench::new();
    for n in 1..20 {
        let entry = bench.ready(&key(1), n, ms(n));
        bench.gate.handle_failure(env(1), sandbox(n));
        assert!(!entry.is_live(ms(n)));
    }
}

#[test]
fn the_gate_is_bounded_and_what_it_forgets_is_dead() {
    let mut bench = Bench::with(Config { keys_max: 8, ..Config::default() });
    let first = bench.ready(&key(0), 1, ms(0));
    let open = bench.load(&key(1), ms(0));
    for n in 2..=255 {
        let _ = bench.ready(&key(n), 1, ms(u64::from(n)));
        assert!(bench.gate.len() <= 8);
    }
    assert!(!first.is_live(ms(1)), "no event would reach it where a core still holds it");
    bench.answer(open, Some(answer(GateState::Ready, 1)), ms(300));
    let _ = bench.entry(&key(1), ms(300));
    assert_eq!(bench.gate.by_env.len(), bench.gate.len());
    assert_eq!(bench.gate.known.len(), bench.gate.len());
    assert_eq!(bench.gate.order.len(), bench.gate.len());
}

#[test]
fn keys_that_are_not_asked_for_any_more_are_forgotten() {
    let mut bench = Bench::new();
    for n in 0..=254 {
        let _ = bench.ready(&key(n), 1, ms(0));
    }
    for round in 0..200 {
        let _ = bench.ready(&key(255), round, ms(60_000 + 10_000 * round));
        bench.gate.forget(&key(255));
    }
    assert!(bench.gate.len() < 8, "{}", bench.gate.len());
}

#[test]
fn open_questions_are_bounded() {
    let mut bench = Bench::with(Config { loads_max: 2, ..Config::default() });
    let first = bench.load(&key(1), ms(0));
    let _ = bench.load(&key(2), ms(0)).id;
    assert!(matches!(bench.gate.handle_request(&key(3), ms(0)), Ask::Overloaded));
    assert!(matches!(bench.gate.handle_request(&key(2), ms(0)), Ask::Wait(_)));
    bench.answer(first, None, ms(1));
    let _ = bench.load(&key(3), ms(1)).id;
}

/// The race of `crate::leases`, with real threads: a drain that finds nothing in flight has
/// stopped every admission; an admission that got through is seen by the drain.
#[test]
fn no_admission_from_the_cache_escapes_a_drain_at_the_same_moment() {
    let rounds = 2_000;
    let admitted_unseen = AtomicU32::new(0);
    for round in 0..rounds {
        let mut bench = Bench::new();
        let entry = bench.ready(&key(1), 1, ms(0));
        let start = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            let admissions: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        for _ in 0..round % 7 {
                            std::hint::spin_loop();
                        }
                        entry.admit(ms(1), LeaseKind::Request)
                    })
                })
                .collect();
            start.wait();
            let drain = GateEvent::Drain { env: env(1), generation: Generation(2), forced: false };
            bench.gate.handle_event(&drain);
            let drained = bench.leases.in_flight(env(1)) == 0;
            let leases: Vec<_> =
                admissions.into_iter().map(|thread| thread.join().unwrap()).collect();
            if drained && leases.iter().any(Option::is_some) {
                admitted_unseen.fetch_add(1, SeqCst);
            }
        });
    }
    assert_eq!(admitted_unseen.load(SeqCst), 0);
}

/// The same race at one exact moment: the bell of the first socket rings after it was counted and
/// before its admission looks at the entry. A drain then sees it, and it sees the drain.
#[test]
fn a_drain_in_the_middle_of_an_admission_and_the_admission_see_one_another() {
    #[derive(Default)]
    struct DrainAtTheBell(parking_lot::Mutex<Option<(Gate, Arc<Hold>)>>, AtomicU32);
    impl crate::leases::Bell for DrainAtTheBell {
        fn ring(&self) {
            let Some((mut gate, hold)) = self.0.lock().take() else { return };
            let drain = GateEvent::Drain { env: env(1), generation: Generation(2), forced: false };
            gate.handle_event(&drain);
            self.1.store(hold.in_flight(), SeqCst);
        }
    }
    let bell = Arc::new(DrainAtTheBell::default());
    let leases = Leases::new(Arc::clone(&bell) as Arc<dyn crate::leases::Bell>);
    let mut bench = Bench { gate: Gate::new(Config::default()), leases };
    let entry = bench.ready(&key(1), 1, ms(0));
    *bell.0.lock() = Some((bench.gate, Arc::clone(entry.hold())));
    assert!(entry.admit(ms(1), LeaseKind::Socket).is_none(), "it sees the drain");
    assert_eq!(bell.1.load(SeqCst), 1, "the drain saw it");
    assert_eq!(bench.leases.in_flight(env(1)), 0);
}

#[test]
fn stale_answers_and_failures_are_not_asked_for_again_without_end() {
    let mut bench = Bench::new();
    let _ = bench.ready(&key(1), 5, ms(0));
    bench.changed(1, 9, Phase::Ready);
    // A replica that lags behind the events, and one that cannot be reached.
    for (n, told) in [(1, Some(answer(GateState::Ready, 5))), (2, None)] {
        let load = bench.load(&key(1), ms(n));
        bench.answer(load, told, ms(n));
    }
    let ask = bench.gate.handle_request(&key(1), ms(4));
    assert!(matches!(ask, Ask::Later(at) if at > ms(900)), "{ask:?}");
    let load = bench.load(&key(1), ms(2_000));
    bench.answer(load, Some(answer(GateState::Ready, 9)), ms(2_000));
    let _ = bench.entry(&key(1), ms(2_000));
}

/// What a gate may do, without any of its bookkeeping: every answer that came, every event that
/// came, and rules over them.
#[derive(Default)]
struct Model {
    /// The highest generation told of each environment since it was first asked for.
    known: BTreeMap<u8, u64>,
    /// Until when the last answer that was taken holds, and its generation and state.
    answers: BTreeMap<(u8, bool), (Duration, u64, GateState)>,
    /// The questions that are open, each with the highest generation told since it was put: below
    /// that an answer must be dropped. The gate may know of a higher one from before, or have
    /// forgotten it together with everything else about the environment.
    open: BTreeMap<(u8, bool), u64>,
}

impl Model {
    fn learn(&mut self, env: u8, generation: u64) {
        if let Some(known) = self.known.get_mut(&env) {
            *known = (*known).max(generation);
        }
        for (_, floor) in self.open.iter_mut().filter(|((other, _), _)| *other == env) {
            *floor = (*floor).max(generation);
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Request { env: u8, intent: bool },
    Answer { nth: usize, generation: u64, state: Option<GateState> },
    Changed { env: u8, generation: u64, ready: bool },
    Drain { env: u8, generation: u64 },
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let state = prop::sample::select(vec![
        Some(GateState::Ready),
        Some(GateState::Ready),
        Some(GateState::Starting),
        Some(GateState::Asleep),
        Some(GateState::Gone),
        None,
    ]);
    prop_oneof![
        4 => (0..3_u8, any::<bool>()).prop_map(|(env, intent)| Step::Request { env, intent }),
        4 => (0..4_usize, 0..8_u64, state)
            .prop_map(|(nth, generation, state)| Step::Answer { nth, generation, state }),
        1 => (0..3_u8, 0..8_u64, any::<bool>())
            .prop_map(|(env, generation, ready)| Step::Changed { env, generation, ready }),
        1 => (0..3_u8, 0..8_u64).prop_map(|(env, generation)| Step::Drain { env, generation }),
        2 => (1..3_000_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn the_gate_does_what_the_model_allows(steps in prop::collection::vec(step(), 0..80)) {
        let mut bench = Bench::new();
        let mut model = Model::default();
        let mut open: Vec<(u8, bool, Load)> = Vec::new();
        let mut held: Vec<((u8, bool), Arc<Entry>)> = Vec::new();
        let mut now = ms(0);
        for step in steps {
            match step {
                Step::Request { env, intent } => {
                    let at = (env, intent);
                    model.known.entry(env).or_default();
                    match bench.gate.handle_request(&Key { intent, ..key(env) }, now) {
                        Ask::Answer(entry) => {
                            let (until, generation, state) = model.answers[&at];
                            prop_assert!(now < until);
                            prop_assert_eq!(entry.answer().generation, Generation(generation));
                            prop_assert_eq!(entry.answer().state, state);
                            held.push((at, entry));
                        }
                        Ask::Load(load) => {
                            prop_assert!(!model.open.contains_key(&at), "one question at a time");
                            let live = model.answers.get(&at).is_some_and(|(until, ..)| now < *until);
                            prop_assert!(!live, "an answer holds");
                            model.open.insert(at, 0);
                            open.push((env, intent, load));
                        }
                        Ask::Wait(_) => prop_assert!(model.open.contains_key(&at)),
                        Ask::Later(until) => {
                            prop_assert!(until > now && until <= now + ms(1_000));
                            prop_assert!(!model.open.contains_key(&at));
                        }
                        Ask::Unavailable | Ask::Overloaded => prop_assert!(false),
                    }
                }
                Step::Answer { nth, generation, state } => {
                    if open.is_empty() {
                        continue;
                    }
                    let (env, intent, load) = open.remove(nth % open.len());
                    let floor = model.open.remove(&(env, intent)).unwrap();
                    let answer = state.map(|state| answer(state, generation));
                    let before = bench.gate.known[&self::env(env)].generation.0;
                    prop_assert!((floor..=model.known[&env]).contains(&before));
                    bench.answer(load, answer, now);
                    let absent = state == Some(GateState::Gone);
                    if let Some(state) = state.filter(|_| absent || generation >= before) {
                        model.learn(env, generation);
                        let ttl = if state == GateState::Ready { 5_000 } else { 1_000 };
                        model.answers.insert((env, intent), (now + ms(ttl), generation, state));
                    }
                }
                Step::Changed { env, generation, ready } => {
                    let phase = if ready { Phase::Ready } else { Phase::Starting };
                    bench.changed(env, generation, phase);
                    model.learn(env, generation);
                    model.answers.retain(|(at, _), (_, told, state)| {
                        *at != env || (*told >= generation && (*state == GateState::Ready || !ready))
                    });
                }
                Step::Drain { env: n, generation } => {
                    let drain = GateEvent::Drain {
                        env: env(n),
                        generation: Generation(generation),
                        forced: false,
                    };
                    bench.gate.handle_event(&drain);
                    model.learn(n, generation);
                    model.answers.retain(|(at, _), _| *at != n);
                }
                Step::Pass(by) => now += ms(by),
            }
            // What a core kept admits exactly while the model says that the answer is ready.
            for (at, entry) in &held {
                let told = entry.answer().generation;
                let allowed = model.answers.get(at).is_some_and(|(until, generation, state)| {
                    now < *until && Generation(*generation) == told && *state == GateState::Ready
                });
                let admitted = entry.admit(now, LeaseKind::Request).is_some();
                prop_assert!(!admitted || allowed);
            }
        }
    }
}
