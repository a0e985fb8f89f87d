use super::*;

const HOME: &str = "http://10.0.0.1:7880";

fn signed_in(numbers: impl IntoIterator<Item = u128>) -> Bench {
    let mut bench = Bench::started();
    reconcile(&mut bench, "a", "ada", numbers);
    bench.settle();
    bench.trace();
    bench
}

fn reconcile(bench: &mut Bench, at: &str, name: &str, numbers: impl IntoIterator<Item = u128>) {
    bench.registry.reconcile(&platform(at), &user(name), list(numbers)).unwrap();
}

#[test]
fn a_list_registers_what_is_new_and_leaves_what_is_known_alone() {
    let mut bench = signed_in([1, 2]);
    assert_eq!(bench.hosts(), [host(1), host(2)]);
    let scopes = [bench.scope(host(1)), bench.scope(host(2))];
    reconcile(&mut bench, "a", "ada", [1, 2]);
    assert!(bench.trace().is_empty());
    assert_eq!([bench.scope(host(1)), bench.scope(host(2))], scopes);
}

#[test]
fn another_label_changes_no_connection() {
    let mut bench = signed_in([1]);
    let scope = bench.scope(host(1));
    let renamed = vec![(env(1), "shop".to_owned())];
    bench.registry.reconcile(&platform("a"), &user("ada"), renamed).unwrap();
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "update"]);
    assert_eq!(bench.scope(host(1)), scope);
    assert_eq!(bench.registry.entry(host(1)).unwrap().label, "shop");
}

#[test]
fn what_a_list_has_no_longer_is_torn_down_with_its_data() {
    let mut bench = signed_in([1, 2]);
    reconcile(&mut bench, "a", "ada", [2, 3]);
    bench.settle();
    assert_eq!(bench.hosts(), [host(2), host(3)]);
    assert_eq!(bench.kept.keys().copied().collect::<Vec<_>>(), [host(2), host(3)]);
    assert_eq!(bench.cached.keys().copied().collect::<Vec<_>>(), [host(2), host(3)]);
    assert_eq!(bench.registry.slots.len(), 2);
}

#[test]
fn an_environment_cannot_be_registered_or_removed_by_a_person() {
    let mut bench = signed_in([1]);
    assert_eq!(bench.registry.remove(host(1)), Err(Refusal::Managed));
    assert_eq!(bench.registry.register(paired(1, &[HOME])), Err(Refusal::Managed));
    assert_eq!(bench.registry.register(environment(2, "a", "ada")), Err(Refusal::Managed));
    assert_eq!(bench.registry.add_route(host(1), route(HOME)), Err(Refusal::Managed));
    assert!(bench.trace().is_empty());
}

#[test]
fn an_operation_that_waited_finds_that_the_host_is_an_environment_now() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    bench.registry.pause(host(1)).unwrap();
    let removal = bench.registry.remove(host(1)).unwrap().unwrap();
    reconcile(&mut bench, "a", "ada", [1]);
    bench.settle();
    assert_eq!(bench.outcome(removal), Some(Err(Refusal::Managed)));
    let entry = bench.registry.entry(host(1)).unwrap();
    assert!(entry.target.account().is_some());
    assert!(entry.paused, "a pause stays");
}

#[test]
fn an_environment_may_be_paused_or_disabled_and_a_list_keeps_that() {
    let mut bench = signed_in([1]);
    bench.registry.pause(host(1)).unwrap();
    bench.settle();
    reconcile(&mut bench, "a", "ada", [1]);
    bench.settle();
    assert_eq!(bench.trace(), ["update", "persist", "done"]);
    assert!(bench.registry.entry(host(1)).unwrap().paused);
    bench.registry.enable(host(1), false).unwrap();
    bench.settle();
    bench.trace();
    reconcile(&mut bench, "a", "ada", [1]);
    assert!(bench.trace().is_empty());
    assert!(!bench.registry.entry(host(1)).unwrap().enabled);
}

#[test]
fn an_environment_shadows_a_pairing_of_the_same_host() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    bench.trace();
    reconcile(&mut bench, "a", "ada", [1]);
    bench.settle();
    assert_eq!(bench.trace(), ["persist, drop credentials", "close, save", "open"]);
    assert_eq!(bench.kept[&host(1)], environment(1, "a", "ada"));
    assert!(bench.cached.contains_key(&host(1)));
}

#[test]
fn a_sign_out_touches_the_environments_of_that_platform_alone() {
    let mut bench = Bench::with([paired(9, &[HOME])], []);
    reconcile(&mut bench, "a", "ada", [1, 2]);
    reconcile(&mut bench, "b", "ada", [3]);
    bench.settle();
    let untouched = [bench.scope(host(3)), bench.scope(host(9))];
    bench.registry.sign_out(&platform("a")).unwrap();
    bench.settle();
    assert_eq!(bench.hosts(), [host(3), host(9)]);
    assert_eq!([bench.scope(host(3)), bench.scope(host(9))], untouched);
    assert_eq!(bench.cached.keys().copied().collect::<Vec<_>>(), [host(3), host(9)]);
    assert_eq!(bench.registry.user(&platform("a")), None);
    assert_eq!(bench.registry.user(&platform("b")), Some(&user("ada")));
}

#[test]
fn another_user_of_a_platform_sees_nothing_of_the_one_before() {
    let mut bench = signed_in([1, 2]);
    reconcile(&mut bench, "a", "bob", [2, 3]);
    bench.settle();
    assert_eq!(bench.hosts(), [host(2), host(3)]);
    assert_eq!(bench.kept[&host(2)], environment(2, "a", "bob"));
    bench.seen.retain(|action| subject(action) == Some(host(2)));
    assert_eq!(bench.trace(), ["unpersist", "close", "clear", "persist", "open"]);
}

#[test]
fn data_of_another_user_that_cannot_be_cleared_keep_the_environment_away() {
    let mut bench = signed_in([1]);
    reconcile(&mut bench, "a", "bob", [1]);
    bench.answer(host(1), Ok(()));
    bench.answer(host(1), Ok(()));
    bench.answer(host(1), full());
    assert_eq!(bench.trace(), ["unpersist", "close", "clear", "clear"]);
    bench.answer(host(1), full());
    assert!(bench.hosts().is_empty());
    assert!(bench.running.is_empty());
    reconcile(&mut bench, "a", "bob", [1]);
    bench.settle();
    assert_eq!(bench.trace(), ["clear", "persist", "open"]);
}

#[test]
fn a_sign_out_is_not_held_up_by_a_store_that_fails() {
    let mut bench = signed_in([1]);
    bench.registry.sign_out(&platform("a")).unwrap();
    bench.answer(host(1), full());
    bench.settle();
    assert!(bench.hosts().is_empty());
    assert!(bench.running.is_empty() && bench.cached.is_empty());
    let kept: Vec<Entry> = bench.kept.values().cloned().collect();
    assert_eq!(kept.len(), 1, "still kept");
    let mut later = Bench::with(kept, []);
    assert!(later.running.is_empty());
    later.settle();
    assert!(later.kept.is_empty(), "found again as nobody's");
}

#[test]
fn an_environment_that_cannot_be_kept_is_connected_to_all_the_same() {
    let mut bench = Bench::started();
    reconcile(&mut bench, "a", "ada", [1]);
    bench.answer(host(1), full());
    assert_eq!(bench.trace(), ["persist", "open"]);
    assert_eq!(bench.hosts(), [host(1)]);
    reconcile(&mut bench, "a", "ada", [1]);
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "update"], "and kept when the list comes again");
    assert_eq!(bench.kept.len(), 1);
}

#[test]
fn the_credentials_of_a_shadowed_pairing_go_as_soon_as_something_can_be_kept() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    bench.trace();
    reconcile(&mut bench, "a", "ada", [1]);
    bench.answer(host(1), full());
    bench.settle();
    assert_eq!(bench.trace(), ["persist, drop credentials", "close, save", "open"]);
    bench.registry.pause(host(1)).unwrap();
    bench.answer(host(1), full());
    assert_eq!(bench.trace(), ["update", "persist, drop credentials", "refused"]);
    reconcile(&mut bench, "a", "ada", [1]);
    bench.settle();
    assert_eq!(bench.trace(), ["persist, drop credentials", "update"]);
    reconcile(&mut bench, "a", "ada", [1]);
    assert!(bench.trace().is_empty());
}

#[test]
fn an_environment_that_is_another_users_by_its_turn_is_not_dialled_for_the_first() {
    let mut bench = Bench::started();
    reconcile(&mut bench, "a", "ada", [1]);
    reconcile(&mut bench, "a", "bob", [1]);
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "unpersist", "clear", "persist", "open"]);
    assert_eq!(bench.registry.entry(host(1)), Ok(&environment(1, "a", "bob")));
}

#[test]
fn of_lists_that_wait_only_the_latest_counts() {
    let mut bench = Bench::started();
    reconcile(&mut bench, "a", "ada", [1]);
    for round in 0..100 {
        if round % 2 == 0 {
            bench.registry.sign_out(&platform("a")).unwrap();
        } else {
            reconcile(&mut bench, "a", "ada", [1]);
        }
    }
    bench.registry.sign_out(&platform("a")).unwrap();
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "unpersist", "clear"], "and it is never dialled");
    assert!(bench.hosts().is_empty() && bench.kept.is_empty());
}

#[test]
fn a_listing_that_is_taken_back_before_its_turn_leaves_a_paired_host_alone() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    bench.trace();
    bench.registry.register(paired(1, &["https://lab.example"])).unwrap();
    reconcile(&mut bench, "a", "ada", [1]);
    reconcile(&mut bench, "a", "ada", []);
    bench.settle();
    assert_eq!(bench.trace(), ["persist", "close, save", "open", "done"]);
    assert_eq!(bench.hosts(), [host(1)]);
}

#[test]
fn an_environment_that_another_platform_already_has_is_left_out() {
    let mut bench = signed_in([1]);
    reconcile(&mut bench, "evil", "ada", [1, 2]);
    bench.drain();
    let contested = BTreeSet::from([host(1)]);
    let left_out = Change::LeftOut { platform: Some(platform("evil")), over_limit: 0, contested };
    assert!(bench.seen.contains(&Action::Publish(left_out)));
    bench.settle();
    assert_eq!(bench.registry.entry(host(1)), Ok(&environment(1, "a", "ada")));
    assert_eq!(bench.registry.entry(host(2)), Ok(&environment(2, "evil", "ada")));
}

#[test]
fn an_environment_is_reached_below_its_platform() {
    let entry = environment(1, "a", "ada");
    let routes = entry.target.routes().unwrap();
    let addresses: Vec<&str> = routes.iter().map(|route| route.address().as_str()).collect();
    let expected = format!("https://a.example/api/host/{}", env(1));
    assert_eq!(addresses, [expected]);
    assert_eq!(entry.host.to_string(), env(1).to_string());
}
