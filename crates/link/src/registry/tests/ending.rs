use super::*;

const HOME: &str = "http://10.0.0.1:7880";

#[test]
fn the_end_closes_every_scope_and_keeps_every_registration() {
    let mut bench =
        Bench::with([paired(1, &[HOME]), environment(2, "a", "ada")], [account("a", "ada")]);
    bench.trace();
    bench.registry.close();
    assert_eq!(bench.trace(), ["close, save", "close, save"]);
    assert!(!bench.registry.is_closed());
    bench.settle();
    assert!(bench.registry.is_closed());
    assert_eq!(bench.kept.len(), 2);
    assert!(bench.running.is_empty());
}

#[test]
fn after_the_end_no_answer_opens_anything() {
    let mut bench = Bench::with([paired(2, &[HOME])], []);
    let id = bench.registry.register(paired(1, &[HOME])).unwrap();
    let waits = bench.registry.pause(host(1)).unwrap().unwrap();
    bench.registry.register(paired(2, &["https://lab.example"])).unwrap();
    bench.answer(host(2), Ok(()));
    bench.trace();
    bench.registry.close();
    bench.settle();
    assert_eq!(bench.outcome(id), Some(Ok(())), "it is kept");
    assert_eq!(bench.outcome(waits), Some(Err(Refusal::NotRunning)));
    assert!(!bench.trace().contains(&"open".to_owned()));
    assert!(bench.running.is_empty());
    assert!(bench.registry.is_closed());
    assert_eq!(bench.registry.pause(host(1)), Err(Refusal::NotRunning));
    assert_eq!(bench.registry.sign_out(&platform("a")), Err(Refusal::NotRunning));
}

#[test]
fn a_removal_that_is_under_way_is_finished_at_the_end() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    bench.registry.remove(host(1)).unwrap();
    bench.drain();
    bench.trace();
    bench.registry.close();
    bench.settle();
    assert_eq!(bench.trace(), ["close", "clear", "done"]);
    assert!(bench.kept.is_empty() && bench.cached.is_empty());
    assert!(bench.registry.is_closed());
}
