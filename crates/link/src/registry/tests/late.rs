use super::*;

const HOME: &str = "http://10.0.0.1:7880";
const AWAY: &str = "https://lab.example/host";

#[test]
fn an_answer_counts_once_and_for_what_it_was_asked() {
    let mut bench = Bench::started();
    bench.registry.register(paired(1, &[HOME])).unwrap();
    bench.drain();
    let kept = token(&bench.waiting[0]).unwrap();
    assert!(!bench.registry.handle_unpersisted(kept, Ok(())));
    assert!(!bench.registry.handle_cleared(kept, Ok(())));
    assert!(!bench.registry.handle_closed(host(1), ScopeId(kept.number)));
    assert!(bench.registry.handle_persisted(kept, Ok(())));
    bench.waiting.clear();
    assert!(!bench.registry.handle_persisted(kept, Ok(())));
    bench.registry.remove(host(1)).unwrap();
    bench.drain();
    let removed = token(&bench.waiting[0]).unwrap();
    assert!(!bench.registry.handle_persisted(kept, Ok(())), "of before the removal");
    assert!(!bench.registry.handle_persisted(removed, Ok(())));
    bench.settle();
    assert!(!bench.registry.handle_persisted(kept, Ok(())), "of after it");
    assert!(bench.trace().iter().filter(|word| *word == "open").count() == 1);
    assert!(bench.hosts().is_empty());
}

#[test]
fn only_the_scope_that_was_told_to_close_is_awaited() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let first = bench.scope(host(1));
    assert!(!bench.registry.handle_closed(host(1), first), "nobody asked");
    bench.registry.register(paired(1, &[AWAY])).unwrap();
    bench.answer(host(1), Ok(()));
    assert!(!bench.registry.handle_closed(host(1), ScopeId(first.0 + 100)));
    assert!(!bench.registry.handle_closed(host(2), first));
    bench.settle();
    assert!(!bench.registry.handle_closed(host(1), first), "a second time");
    assert_eq!(bench.running[&host(1)], bench.scope(host(1)));
}

#[test]
fn what_an_old_scope_brings_is_not_taken() {
    let mut bench = Bench::with([paired(1, &[HOME])], []);
    let first = bench.scope(host(1));
    bench.registry.register(paired(1, &[AWAY])).unwrap();
    bench.settle();
    let second = bench.scope(host(1));
    assert!(!bench.registry.accepts(host(1), first));
    assert!(bench.registry.accepts(host(1), second));
    bench.registry.remove(host(1)).unwrap();
    bench.answer(host(1), Ok(()));
    assert!(!bench.registry.accepts(host(1), second), "a credential that was renewed meanwhile");
    bench.settle();
    bench.registry.register(paired(1, &[AWAY])).unwrap();
    bench.settle();
    assert!(!bench.registry.accepts(host(1), second), "also when the host is there again");
    assert!(!bench.registry.accepts(host(2), second));
}

#[test]
fn an_answer_to_an_earlier_step_of_the_same_kind_does_not_count() {
    let mut bench = Bench::started();
    let mut earlier = Vec::new();
    for _ in 0..2 {
        bench.registry.register(paired(1, &[HOME])).unwrap();
        bench.drain();
        let kept = token(&bench.waiting[0]).unwrap();
        assert!(earlier.iter().all(|one| !bench.registry.handle_persisted(*one, Ok(()))));
        bench.answer(host(1), Ok(()));
        bench.registry.remove(host(1)).unwrap();
        bench.drain();
        let removed = token(&bench.waiting[0]).unwrap();
        assert!(earlier.iter().all(|one| !bench.registry.handle_unpersisted(*one, Ok(()))));
        bench.answer(host(1), Ok(()));
        bench.answer(host(1), Ok(()));
        let cleared = token(&bench.waiting[0]).unwrap();
        assert!(earlier.iter().all(|one| !bench.registry.handle_cleared(*one, Ok(()))));
        bench.answer(host(1), Ok(()));
        earlier.extend([kept, removed, cleared]);
    }
    assert!(bench.hosts().is_empty() && bench.kept.is_empty());
}
