use super::*;

#[test]
fn every_enabled_host_starts_at_once_and_waits_for_no_other() {
    let disabled = Entry { enabled: false, ..paired(3, &["http://10.0.0.3:7880"]) };
    let kept = [paired(1, &["http://10.0.0.1:7880"]), environment(2, "a", "ada"), disabled];
    let mut bench = Bench::with(kept, [account("a", "ada")]);
    assert_eq!(bench.running.keys().copied().collect::<Vec<_>>(), [host(1), host(2)]);
    assert_eq!(bench.hosts(), [host(1), host(2), host(3)]);
    assert_eq!(bench.registry.scope(host(3)), Ok(None));
    assert_eq!(bench.trace(), ["open", "open"]);
}

#[test]
fn a_scope_begins_with_the_entry_that_was_kept_whole() {
    let kept = Entry {
        paused: true,
        ..paired(1, &["https://a.example/h", "http://10.0.0.1:7880", "http://localhost:7880"])
    };
    let text = serde_json::to_string(&kept).unwrap();
    let mut bench = Bench::with([serde_json::from_str(&text).unwrap()], []);
    bench.drain();
    let opened = bench.seen.iter().find_map(|action| {
        if let Action::Open { entry, .. } = action { Some(entry) } else { None }
    });
    assert_eq!(opened, Some(&kept));
    assert!(!opened.unwrap().is_desired(), "a pause is remembered");
}

#[test]
fn a_second_start_changes_nothing() {
    let mut bench = Bench::with([paired(1, &["http://10.0.0.1:7880"])], []);
    bench.trace();
    let entries = vec![paired(2, &["http://10.0.0.2:7880"])];
    bench.registry.start(Persisted { entries, ..Persisted::default() });
    assert!(bench.trace().is_empty());
    assert_eq!(bench.hosts(), [host(1)]);
}

#[test]
fn a_start_after_the_end_opens_nothing() {
    let mut bench = Bench::default();
    bench.registry.close();
    let entries = vec![paired(1, &["http://10.0.0.1:7880"])];
    bench.registry.start(Persisted { entries, ..Persisted::default() });
    assert!(bench.trace().is_empty());
    assert!(bench.hosts().is_empty());
    assert!(bench.registry.is_closed());
}

#[test]
fn before_the_start_nothing_is_taken() {
    let mut bench = Bench::default();
    let registered = bench.registry.register(paired(1, &["http://10.0.0.1:7880"]));
    assert_eq!(registered, Err(Refusal::NotRunning));
    let listed = bench.registry.reconcile(&platform("a"), &user("ada"), list([1]));
    assert_eq!(listed, Err(Refusal::NotRunning));
    assert!(bench.trace().is_empty());
}

#[test]
fn environments_of_somebody_who_is_not_signed_in_go_at_the_start_and_are_never_opened() {
    let kept = [
        environment(1, "a", "ada"),
        environment(2, "a", "bob"),
        environment(3, "b", "ada"),
        paired(4, &["http://10.0.0.4:7880"]),
    ];
    let mut bench = Bench::with(kept, [account("a", "ada")]);
    assert_eq!(bench.hosts(), [host(1), host(4)]);
    bench.settle();
    assert_eq!(bench.kept.keys().copied().collect::<Vec<_>>(), [host(1), host(4)]);
    let cleared = bench.seen.iter().filter(|action| matches!(action, Action::Clear { .. })).count();
    assert_eq!(cleared, 2);
}

#[test]
fn a_removal_that_an_earlier_client_began_is_finished_before_the_host_comes_back() {
    let mut bench = Bench::default();
    bench.notes.insert(host(1));
    bench.registry.start(Persisted { uncleared: vec![host(1)], ..Persisted::default() });
    bench.registry.register(paired(1, &["http://10.0.0.1:7880"])).unwrap();
    assert_eq!(bench.trace(), ["clear"]);
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "open", "done"]);
}

#[test]
fn hosts_beyond_the_bound_are_left_out_and_told() {
    let most = u128::try_from(HOSTS_MAX).unwrap();
    let kept = (1..=most + 2).map(|number| paired(number, &["http://10.0.0.1:7880"]));
    let mut bench = Bench::with(kept, []);
    assert_eq!(bench.running.len(), HOSTS_MAX);
    let left_out = Change::LeftOut { platform: None, over_limit: 2, contested: BTreeSet::new() };
    assert!(bench.changes().contains(&left_out));
    let refused = bench.registry.register(paired(most + 1, &["http://10.0.0.1:7880"]));
    assert_eq!(refused, Err(Refusal::Full));
    bench.registry.reconcile(&platform("a"), &user("ada"), list([1, most + 9])).unwrap();
    let left_out = Change::LeftOut {
        platform: Some(platform("a")),
        over_limit: 1,
        contested: BTreeSet::new(),
    };
    assert!(bench.changes().contains(&left_out));
}

#[test]
fn the_network_is_told_without_any_host() {
    let mut bench = Bench::default();
    bench.registry.handle_network(Network::Online);
    bench.registry.handle_network(Network::Online);
    bench.registry.handle_network(Network::Offline);
    assert_eq!(
        bench.changes(),
        [Change::Network(Network::Online), Change::Network(Network::Offline)]
    );
    assert_eq!(bench.registry.network(), Network::Offline);
}
