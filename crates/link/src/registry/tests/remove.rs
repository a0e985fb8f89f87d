use super::*;

const HOME: &str = "http://10.0.0.1:7880";

#[test]
fn a_removal_goes_step_by_step_and_leaves_nothing() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    bench.trace();
    let id = bench.registry.remove(host(1)).unwrap().unwrap();
    assert_eq!(bench.trace(), ["unpersist"]);
    assert_eq!(bench.hosts(), [host(1)], "not before it is sure");
    bench.answer(host(1), Ok(()));
    assert_eq!(bench.trace(), ["close"]);
    bench.answer(host(1), Ok(()));
    assert!(bench.hosts().is_empty());
    assert_eq!(bench.changes(), [Change::Removed(host(1))]);
    assert_eq!(bench.notes.len(), 1, "until its data are gone");
    bench.answer(host(1), Ok(()));
    assert_eq!(bench.outcome(id), Some(Ok(())));
    assert!(bench.kept.is_empty() && bench.cached.is_empty() && bench.notes.is_empty());
    assert!(bench.registry.slots.is_empty());
}

#[test]
fn a_removal_that_cannot_be_made_durable_leaves_the_host_registered_and_running() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let scope = bench.scope(host(1));
    bench.trace();
    let id = bench.registry.remove(host(1)).unwrap().unwrap();
    bench.answer(host(1), full());
    assert_eq!(bench.outcome(id), Some(Err(unkept())));
    assert_eq!(bench.trace(), ["unpersist", "refused"]);
    assert_eq!(bench.scope(host(1)), scope);
    assert!(bench.registry.accepts(host(1), scope));
}

#[test]
fn the_end_of_a_removed_host_writes_nothing_back() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let scope = bench.scope(host(1));
    bench.registry.remove(host(1)).unwrap();
    bench.drain();
    assert!(bench.registry.accepts(host(1), scope), "it may still stay");
    bench.answer(host(1), Ok(()));
    let told = bench.seen.iter().any(|action| matches!(action, Action::Close { save: false, .. }));
    assert!(told);
    assert!(!bench.registry.accepts(host(1), scope));
    bench.settle();
    assert!(bench.cached.is_empty());
    assert!(!bench.registry.accepts(host(1), scope));
}

#[test]
fn a_removed_host_that_comes_back_waits_until_its_data_are_gone() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    bench.trace();
    bench.registry.remove(host(1)).unwrap();
    bench.registry.register(paired(1, &[HOME])).unwrap();
    bench.answer(host(1), Ok(()));
    bench.answer(host(1), Ok(()));
    assert_eq!(bench.trace(), ["unpersist", "close", "clear"]);
    bench.settle();
    assert_eq!(bench.trace(), ["done", "persist", "open", "done"]);
    assert_eq!(bench.cached.get(&host(1)), Some(&bench.scope(host(1))));
}

#[test]
fn data_that_cannot_be_cleared_do_not_hold_a_removal_up_but_are_never_shown_again() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let removal = bench.registry.remove(host(1)).unwrap().unwrap();
    bench.answer(host(1), Ok(()));
    bench.answer(host(1), Ok(()));
    bench.answer(host(1), full());
    assert_eq!(bench.outcome(removal), Some(Ok(())));
    assert!(bench.hosts().is_empty());
    let detail = "disk is full".to_owned();
    assert!(bench.changes().contains(&Change::Unkept { host: host(1), detail }));

    let again = bench.registry.register(paired(1, &[HOME])).unwrap();
    bench.answer(host(1), full());
    assert_eq!(bench.outcome(again), Some(Err(unkept())));
    assert_eq!(bench.trace(), ["clear", "refused"]);
    bench.registry.register(paired(1, &[HOME])).unwrap();
    bench.settle();
    assert_eq!(bench.trace(), ["clear", "persist", "open", "done"]);
}

#[test]
fn a_pause_keeps_everything_holds_at_once_and_is_remembered() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let scope = bench.scope(host(1));
    bench.trace();
    let id = bench.registry.pause(host(1)).unwrap().unwrap();
    assert_eq!(bench.trace(), ["update", "persist"]);
    assert!(!bench.registry.entry(host(1)).unwrap().is_desired(), "before it is kept");
    assert!(!bench.registry.retry(host(1)), "a retry is not a wish to go on");
    bench.settle();
    assert_eq!(bench.outcome(id), Some(Ok(())));
    assert!(bench.kept[&host(1)].paused);
    assert!(bench.cached.contains_key(&host(1)));
    assert_eq!(bench.scope(host(1)), scope);

    let mut later = Bench::with(bench.kept.values().cloned().collect::<Vec<_>>(), []);
    assert!(!later.registry.entry(host(1)).unwrap().is_desired(), "after a new start");
    later.trace();
    later.registry.resume(host(1)).unwrap();
    later.settle();
    assert_eq!(later.trace(), ["update", "persist", "done"]);
    assert!(!later.kept[&host(1)].paused);
    assert!(later.registry.retry(host(1)));
    assert_eq!(later.trace(), ["retry"]);
}

#[test]
fn a_pause_that_cannot_be_kept_holds_and_says_so() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let id = bench.registry.pause(host(1)).unwrap().unwrap();
    bench.answer(host(1), full());
    assert_eq!(bench.outcome(id), Some(Err(unkept())));
    assert!(bench.registry.entry(host(1)).unwrap().paused);
    bench.registry.pause(host(1)).unwrap();
    bench.settle();
    assert!(bench.kept[&host(1)].paused, "asked once more, it is kept");
}

#[test]
fn a_pause_of_one_that_is_paused_is_not_kept_again() {
    let mut bench = Bench::with([Entry { paused: true, ..paired(1, &[HOME]) }], []);
    bench.trace();
    bench.registry.pause(host(1)).unwrap();
    assert_eq!(bench.trace(), ["done"]);
}
