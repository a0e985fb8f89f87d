use super::*;

const HOME: &str = "http://10.0.0.1:7880";
const AWAY: &str = "https://lab.example/host";

#[test]
fn a_host_is_kept_before_it_is_connected_to() {
    let mut bench = Bench::started();
    let id = bench.registry.register(paired(1, &[HOME])).unwrap();
    assert_eq!(bench.trace(), ["persist"]);
    assert_eq!(bench.registry.entry(host(1)), Err(Refusal::NotRegistered));
    bench.answer(host(1), Ok(()));
    assert_eq!(bench.outcome(id), Some(Ok(())));
    assert_eq!(bench.trace(), ["open", "done"]);
    assert_eq!(bench.registry.entry(host(1)), Ok(&paired(1, &[HOME])));
}

#[test]
fn a_host_that_cannot_be_kept_is_not_registered() {
    let mut bench = Bench::started();
    let id = bench.registry.register(paired(1, &[HOME])).unwrap();
    bench.answer(host(1), full());
    assert_eq!(bench.outcome(id), Some(Err(unkept())));
    assert!(bench.hosts().is_empty());
    assert!(bench.running.is_empty());
    assert!(bench.registry.slots.is_empty(), "nothing is left of it");
}

#[test]
fn an_equal_entry_keeps_the_connection_and_is_not_kept_again() {
    let mut bench = Bench::with([paired(1, &[HOME, AWAY])], []);
    let scope = bench.scope(host(1));
    bench.trace();
    bench.registry.register(paired(1, &[HOME, AWAY])).unwrap();
    assert_eq!(bench.trace(), ["done"]);
    assert_eq!(bench.scope(host(1)), scope);
}

#[test]
fn a_changed_entry_opens_its_scope_only_after_the_old_one_has_ended() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let before = bench.scope(host(1));
    bench.trace();
    bench.registry.register(paired(1, &[AWAY])).unwrap();
    bench.answer(host(1), Ok(()));
    assert_eq!(bench.trace(), ["persist", "close, save"]);
    assert_eq!(bench.registry.scope(host(1)), Ok(None));
    assert!(bench.registry.accepts(host(1), before), "it saves at its end");
    bench.answer(host(1), Ok(()));
    assert_eq!(bench.trace(), ["open", "done"]);
    assert!(bench.scope(host(1)) > before);
    assert!(!bench.registry.accepts(host(1), before));
}

#[test]
fn whoever_follows_a_host_moves_to_its_new_scope_and_ends_with_its_registration() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let first = bench.scope(host(1));
    let follow = |bench: &Bench, seen| bench.registry.follow(host(1), seen);
    assert_eq!(follow(&bench, None), Following::Moved(first));
    assert_eq!(follow(&bench, Some(first)), Following::Current);

    bench.registry.register(paired(1, &[AWAY])).unwrap();
    bench.answer(host(1), Ok(()));
    assert_eq!(follow(&bench, Some(first)), Following::Between);
    bench.answer(host(1), Ok(()));
    let second = bench.scope(host(1));
    assert_eq!(follow(&bench, Some(first)), Following::Moved(second));
    assert_eq!(follow(&bench, None), Following::Moved(second), "a late one sees the present");

    bench.registry.remove(host(1)).unwrap();
    bench.settle();
    assert_eq!(follow(&bench, Some(second)), Following::Ended);
    bench.registry.register(paired(1, &[HOME])).unwrap();
    bench.settle();
    assert_eq!(follow(&bench, Some(second)), Following::Ended, "another registration");
    assert_eq!(follow(&bench, None), Following::Moved(bench.scope(host(1))));
}

#[test]
fn another_label_and_further_ways_leave_the_connection_alone() {
    let mut bench = Bench::with([paired(1, &[AWAY])], []);
    let scope = bench.scope(host(1));
    bench.trace();
    bench.registry.add_route(host(1), route(HOME)).unwrap();
    bench.settle();
    let order = [AWAY, HOME].map(|address| Address::new(address).unwrap());
    bench.registry.reorder_routes(host(1), order.to_vec()).unwrap();
    bench.settle();
    let label = "lab".to_owned();
    let entry = Entry { label, ..bench.registry.entry(host(1)).unwrap().clone() };
    bench.registry.register(entry.clone()).unwrap();
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "update", "done"].repeat(3));
    assert_eq!(bench.scope(host(1)), scope);
    assert_eq!(bench.kept[&host(1)], entry);
    let addresses: Vec<String> =
        entry.target.routes().unwrap().iter().map(|route| route.address().to_string()).collect();
    assert_eq!(addresses, [AWAY, HOME]);
}

#[test]
fn a_way_that_goes_ends_the_scope_that_may_use_it_and_the_last_one_takes_the_host_along() {
    let mut bench = Bench::with([paired(1, &[HOME, AWAY])], []);
    bench.trace();
    bench.registry.remove_route(host(1), Address::new(HOME).unwrap()).unwrap();
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "close, save", "open", "done"]);
    bench.registry.remove_route(host(1), Address::new(AWAY).unwrap()).unwrap();
    bench.settle();
    assert_eq!(bench.trace(), ["unpersist", "close", "clear", "done"]);
    assert!(bench.hosts().is_empty());
}

#[test]
fn ways_that_cannot_be_as_asked_are_refused() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let order = vec![Address::new(AWAY).unwrap()];
    let id = bench.registry.reorder_routes(host(1), order).unwrap().unwrap();
    bench.drain();
    let refused = Refusal::Routes(crate::route::RoutesError::Order);
    assert_eq!(bench.outcome(id), Some(Err(refused)));
    assert!(bench.waiting.is_empty());
}

#[test]
fn a_disabled_host_has_no_scope_and_keeps_everything() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    bench.trace();
    bench.registry.enable(host(1), false).unwrap();
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "close, save", "done"]);
    assert_eq!(bench.registry.scope(host(1)), Ok(None));
    assert!(bench.cached.contains_key(&host(1)));
    assert!(!bench.kept[&host(1)].enabled);
    assert!(!bench.registry.retry(host(1)));
    bench.registry.enable(host(1), true).unwrap();
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "open", "done"]);
}

#[test]
fn a_label_is_cut_between_letters() {
    let mut bench = Bench::started();
    let label = "é".repeat(LABEL_MAX);
    bench.registry.register(Entry { label, ..paired(1, &[HOME]) }).unwrap();
    bench.settle();
    let kept = &bench.registry.entry(host(1)).unwrap().label;
    assert_eq!(*kept, "é".repeat(LABEL_MAX / 2));
}

#[test]
fn commands_for_an_unknown_host_do_nothing() {
    let mut bench = Bench::started();
    assert_eq!(bench.registry.pause(host(1)), Ok(None));
    assert_eq!(bench.registry.resume(host(1)), Ok(None));
    assert_eq!(bench.registry.enable(host(1), true), Ok(None));
    assert_eq!(bench.registry.remove(host(1)), Ok(None));
    assert_eq!(bench.registry.add_route(host(1), route(HOME)), Ok(None));
    assert!(!bench.registry.retry(host(1)));
    assert_eq!(bench.registry.entry(host(1)), Err(Refusal::NotRegistered));
    assert_eq!(bench.registry.scope(host(1)), Err(Refusal::NotRegistered));
    assert!(bench.trace().is_empty());
    assert!(bench.registry.slots.is_empty());
}
