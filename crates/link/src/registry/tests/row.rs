use super::*;

const HOME: &str = "http://10.0.0.1:7880";

#[test]
fn hosts_never_wait_for_each_other() {
    let mut bench = Bench::started();
    bench.registry.register(paired(1, &[HOME])).unwrap();
    bench.registry.register(paired(2, &[HOME])).unwrap();
    bench.registry.reconcile(&platform("a"), &user("ada"), list([3])).unwrap();
    bench.drain();
    assert_eq!(bench.waiting.len(), 3, "all are under way");
    bench.answer(host(3), Ok(()));
    bench.answer(host(2), Ok(()));
    assert_eq!(bench.hosts(), [host(2), host(3)], "though the first is not answered");
}

#[test]
fn what_is_asked_of_one_host_is_done_in_its_order() {
    let mut bench = Bench::started();
    let mut asked = vec![bench.registry.register(paired(1, &[HOME])).unwrap()];
    for operation in [
        bench.registry.pause(host(1)),
        bench.registry.resume(host(1)),
        bench.registry.add_route(host(1), route("https://lab.example")),
        bench.registry.remove(host(1)),
        bench.registry.remove(host(1)),
    ] {
        asked.push(operation.unwrap().unwrap());
    }
    let late = bench.registry.pause(host(1)).unwrap().unwrap();
    assert_eq!(bench.trace(), ["persist"], "one after the other");
    bench.settle();
    let finished: Vec<OperationId> =
        bench.finished().filter(|(_, outcome)| outcome.is_ok()).map(|(id, _)| id).collect();
    assert_eq!(finished, asked);
    assert_eq!(bench.outcome(late), Some(Err(Refusal::NotRegistered)));
    assert!(bench.registry.slots.is_empty());
}

#[test]
fn a_full_row_refuses_what_a_person_asks_but_not_what_a_list_says() {
    let mut bench = Bench::with([environment(1, "a", "ada")], [account("a", "ada")]);
    let mut paused = false;
    let mut toggle = |bench: &mut Bench| {
        paused = !paused;
        if paused { bench.registry.pause(host(1)) } else { bench.registry.resume(host(1)) }
    };
    for _ in 0..=QUEUE_MAX {
        toggle(&mut bench).unwrap();
    }
    assert_eq!(toggle(&mut bench), Err(Refusal::Busy));
    bench.registry.sign_out(&platform("a")).unwrap();
    bench.settle();
    assert!(bench.hosts().is_empty());
}
