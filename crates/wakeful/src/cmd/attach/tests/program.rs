use serde_json::Value;
use wakeful_link::DataStatus;
use wakeful_wire::rpc::ThreadItem;

use super::super::{
    program::Program,
    testing::{DONE, Log},
};

fn talk() -> Log {
    let mut log = Log::new();
    log.begin(1, "one").text(1, "Hel").text(1, "lo").end(1, DONE);
    log
}

/// The kinds of lines, an event by its number.
fn kinds(program: &mut Program, items: Vec<ThreadItem>, log: &Log, at: usize) -> Vec<String> {
    let state = log.state(at, DataStatus::Live);
    let lines = program.lines(items, Some(&state)).unwrap();
    let kind = |line: &String| {
        let value: Value = serde_json::from_str(line.strip_suffix('\n').unwrap()).unwrap();
        match value["event"]["seq"].as_u64() {
            Some(seq) => seq.to_string(),
            None => value["type"].as_str().unwrap().to_owned(),
        }
    };
    lines.iter().map(kind).collect()
}

fn seq(log: &Log, at: usize) -> String {
    log.0[at].seq.0.to_string()
}

#[test]
fn a_program_gets_a_snapshot_and_then_each_event_once_in_order() {
    let log = talk();
    let mut program = Program::default();
    let items = vec![log.snapshot(2, 1), log.synchronized(2, 1), log.events(2..4)];
    let expected = ["snapshot".to_owned(), "synchronized".to_owned(), seq(&log, 2), seq(&log, 3)];
    assert_eq!(kinds(&mut program, items, &log, 4), expected);
    // The connection broke, and the host went on from where this client was.
    let items = vec![log.resumed(4, 2), log.events(3..6), log.synchronized(6, 2)];
    let expected = [seq(&log, 4), seq(&log, 5), "synchronized".to_owned()];
    assert_eq!(kinds(&mut program, items, &log, 6), expected);
}

#[test]
fn a_kept_copy_is_passed_on_when_the_host_has_confirmed_it_and_not_before() {
    let log = talk();
    let mut program = Program::default();
    assert_eq!(kinds(&mut program, vec![log.resumed(2, 1)], &log, 2), [""; 0]);
    assert_eq!(kinds(&mut program, vec![log.events(2..4)], &log, 4), [""; 0]);
    // The state is ahead of the mark: what comes behind it in the same batch is in the snapshot.
    let items = vec![log.synchronized(4, 1), log.events(4..5)];
    assert_eq!(kinds(&mut program, items, &log, 5), ["snapshot", "synchronized"]);
    assert_eq!(kinds(&mut program, vec![log.events(5..6)], &log, 6), [seq(&log, 5)]);
}

#[test]
fn the_end_of_a_thread_is_passed_on_only_where_something_was() {
    let log = talk();
    let deleted = || vec![ThreadItem::Deleted { seq: log.0[5].seq.next() }];
    let mut program = Program::default();
    assert_eq!(kinds(&mut program, deleted(), &log, 6), [""; 0]);
    kinds(&mut program, vec![log.snapshot(6, 1)], &log, 6);
    assert_eq!(kinds(&mut program, deleted(), &log, 6), ["deleted"]);
}
