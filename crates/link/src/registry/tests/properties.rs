//! Whatever is asked and answered, in whatever order. The bench itself fails on two scopes of one
//! host, on two steps of one host at once, and on a scope that opens over data of before.

use proptest::prelude::*;

use super::*;

const HOSTS: u128 = 4;
const ADDRESSES: [&str; 3] = ["http://localhost:7880", "http://10.0.0.1:7880", "https://a.example"];

#[derive(Debug, Clone)]
enum Happening {
    Register {
        number: u128,
        first: usize,
        more: usize,
    },
    Remove(u128),
    AddRoute(u128, usize),
    RemoveRoute(u128, usize),
    Pause(u128, bool),
    Enable(u128, bool),
    Retry(u128),
    List {
        at: bool,
        name: bool,
        listed: Vec<u128>,
    },
    SignOut(bool),
    /// The answer for one of the hosts that wait.
    Answer {
        which: usize,
        well: bool,
    },
    /// Answers that nobody asked for.
    Stray {
        number: u128,
        value: u64,
    },
}

fn happening() -> impl Strategy<Value = Happening> {
    let number = || 1..=HOSTS;
    let way = || 0..ADDRESSES.len();
    prop_oneof![
        3 => (number(), way(), way())
            .prop_map(|(number, first, more)| Happening::Register { number, first, more }),
        2 => number().prop_map(Happening::Remove),
        1 => (number(), way()).prop_map(|(number, way)| Happening::AddRoute(number, way)),
        1 => (number(), way()).prop_map(|(number, way)| Happening::RemoveRoute(number, way)),
        1 => (number(), any::<bool>()).prop_map(|(number, on)| Happening::Pause(number, on)),
        1 => (number(), any::<bool>()).prop_map(|(number, on)| Happening::Enable(number, on)),
        1 => number().prop_map(Happening::Retry),
        2 => (any::<bool>(), any::<bool>(), prop::collection::vec(number(), 0..4))
            .prop_map(|(at, name, listed)| Happening::List { at, name, listed }),
        1 => any::<bool>().prop_map(Happening::SignOut),
        12 => (any::<usize>(), prop::bool::weighted(0.85))
            .prop_map(|(which, well)| Happening::Answer { which, well }),
        1 => (number(), 0..200_u64).prop_map(|(number, value)| Happening::Stray { number, value }),
    ]
}

fn at(first: bool) -> Address {
    platform(if first { "a" } else { "b" })
}

fn answer(bench: &mut Bench, which: usize, well: bool) {
    bench.drain();
    let waits = bench.waiting.len();
    if let Some(host) = which.checked_rem(waits).and_then(|at| subject(&bench.waiting[at])) {
        // A scope ends in any case: that is what its end means.
        let closes = bench
            .waiting
            .iter()
            .any(|action| matches!(action, Action::Close { host: one, .. } if *one == host));
        bench.answer(host, if well || closes { Ok(()) } else { full() });
    }
}

fn stray(bench: &mut Bench, number: u128, value: u64) {
    let token = Token { host: host(number), number: value };
    let is_it = |action: &Action| {
        let closes = matches!(action, Action::Close { host: one, scope, .. }
            if *one == token.host && scope.0 == value);
        closes || super::token(action) == Some(token)
    };
    bench.drain();
    if bench.waiting.iter().any(is_it) {
        return;
    }
    assert!(!bench.registry.handle_persisted(token, Ok(())));
    assert!(!bench.registry.handle_unpersisted(token, Ok(())));
    assert!(!bench.registry.handle_cleared(token, Ok(())));
    assert!(!bench.registry.handle_closed(host(number), ScopeId(value)));
    bench.drain();
}

fn happen(bench: &mut Bench, what: Happening) -> Option<OperationId> {
    let registry = &mut bench.registry;
    let asked = match what {
        Happening::Register { number, first, more } => {
            let mut entry = paired(number, &[ADDRESSES[first]]);
            if let Target::Paired { routes } = &mut entry.target {
                routes.add(route(ADDRESSES[more])).unwrap();
            }
            registry.register(entry).map(Some)
        }
        Happening::Remove(number) => registry.remove(host(number)),
        Happening::AddRoute(number, way) => registry.add_route(host(number), route(ADDRESSES[way])),
        Happening::RemoveRoute(number, way) => {
            registry.remove_route(host(number), Address::new(ADDRESSES[way]).unwrap())
        }
        Happening::Pause(number, true) => registry.pause(host(number)),
        Happening::Pause(number, false) => registry.resume(host(number)),
        Happening::Enable(number, on) => registry.enable(host(number), on),
        Happening::Retry(number) => {
            registry.retry(host(number));
            Ok(None)
        }
        Happening::List { at: first, name, listed } => {
            let name = user(if name { "ada" } else { "bob" });
            registry.reconcile(&at(first), &name, list(listed)).map(|()| None)
        }
        Happening::SignOut(first) => registry.sign_out(&at(first)).map(|()| None),
        Happening::Answer { which, well } => {
            answer(bench, which, well);
            Ok(None)
        }
        Happening::Stray { number, value } => {
            stray(bench, number, value);
            Ok(None)
        }
    };
    bench.drain();
    asked.ok().flatten()
}

/// What must hold at every moment.
fn check(bench: &Bench) {
    for (host, scope) in &bench.running {
        let closing = bench
            .waiting
            .iter()
            .any(|action| matches!(action, Action::Close { host: one, .. } if one == host));
        let current = bench.registry.scope(*host).ok().flatten();
        assert!(closing || current == Some(*scope), "a scope that nobody owns");
        assert!(!closing || current.is_none(), "a scope that is open and closing");
    }
    for entry in bench.registry.entries() {
        let scope = bench.registry.scope(entry.host).unwrap();
        assert!(scope.is_none_or(|scope| bench.running.get(&entry.host) == Some(&scope)));
        if let Some(one) = entry.target.account()
            && bench.registry.user(&one.platform) != Some(&one.user)
        {
            let going = bench.registry.slots[&entry.host].claim().is_none_or(|now| now != one);
            assert!(going, "an environment of somebody who is not signed in stays");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_host_has_one_scope_and_everything_comes_to_rest(
        happenings in prop::collection::vec(happening(), 0..120),
        ends in any::<bool>(),
    ) {
        let mut bench = Bench::with([paired(1, &ADDRESSES)], [account("a", "ada")]);
        let mut asked = BTreeSet::new();
        for what in happenings {
            asked.extend(happen(&mut bench, what));
            check(&bench);
        }
        if ends {
            bench.registry.close();
        }
        bench.settle();
        prop_assert_eq!(bench.registry.is_closed(), ends);
        if ends {
            // What was to be torn down and is still kept is found at the next start.
            prop_assert!(bench.running.is_empty());
            return Ok(());
        }
        check(&bench);
        for entry in bench.registry.entries() {
            let open = bench.registry.scope(entry.host).unwrap().is_some();
            prop_assert_eq!(open, entry.enabled);
        }
        let running: Vec<HostId> = bench.running.keys().copied().collect();
        let open: Vec<HostId> = bench
            .registry
            .entries()
            .filter(|entry| entry.enabled)
            .map(|entry| entry.host)
            .collect();
        prop_assert_eq!(running, open);
        // Every operation has come to one end.
        let mut finished = BTreeSet::new();
        for (operation, _) in bench.finished() {
            prop_assert!(finished.insert(operation), "finished twice");
        }
        prop_assert_eq!(finished, asked);
        // What of a removed host is still there is known, and cleared before it comes back.
        let gone = bench.cached.keys().filter(|host| bench.registry.entry(**host).is_err());
        for host in gone {
            prop_assert!(bench.registry.slots.contains_key(host));
        }
    }

    #[test]
    fn with_a_store_that_works_what_is_registered_is_what_is_kept(
        happenings in prop::collection::vec(happening(), 0..120),
    ) {
        let mut bench = Bench::with([paired(1, &ADDRESSES)], [account("a", "ada")]);
        for what in happenings {
            if let Happening::Answer { which, .. } = what {
                answer(&mut bench, which, true);
            } else {
                happen(&mut bench, what);
            }
        }
        bench.settle();
        let registered: Vec<Entry> = bench.registry.entries().cloned().collect();
        prop_assert_eq!(registered, bench.kept.values().cloned().collect::<Vec<_>>());
        prop_assert!(bench.notes.is_empty());
        for host in bench.cached.keys() {
            prop_assert!(bench.registry.entry(*host).is_ok(), "a ghost");
        }
        prop_assert_eq!(bench.registry.slots.len(), bench.kept.len());
    }
}
