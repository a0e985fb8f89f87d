use super::*;

#[test]
fn reads_wait_for_the_first_authoritative_list_and_an_answer_for_another_is_dropped() {
    let mut families = Families::new();
    let shell = ShellRows::new();
    families.mount(START, &shell, thread(1)).unwrap();
    families.search(START, "soup", 10);
    assert_eq!(families.absence(START, &shell, thread(5)), Absence::Unknown);
    assert_eq!(reads(&mut families), []);
    families.handle_generation(START, 1, Basis::Snapshot);
    let first = reads(&mut families);
    assert_eq!(first.iter().filter(|read| read.generation == 1).count(), 3);

    families.handle_generation(START, 2, Basis::Snapshot);
    let actions = drain(&mut families);
    for read in &first {
        assert!(actions.contains(&Action::Cancel(read.id)));
        let gone = ReadAnswer::Gone;
        families.handle_read(START, read.id, read.generation, Ok(gone));
    }
    assert_eq!(drain(&mut families), [], "answers for generation 1 change nothing");
    assert_eq!(families.absence(START, &shell, thread(5)), Absence::Unknown);
    let again = actions
        .iter()
        .filter(|action| matches!(action, Action::Read(read) if read.generation == 2));
    assert_eq!(again.count(), 3, "each is asked once more");

    for action in actions {
        if let Action::Read(read) = action {
            families.handle_read(START, read.id, 1, Ok(ReadAnswer::Gone));
        }
    }
    assert_eq!(drain(&mut families), [], "nor do they under a number of today");

    families.handle_generation(START, 0, Basis::Snapshot);
    drain(&mut families);
    families.mount(START, &shell, thread(7)).unwrap();
    assert_eq!(reads(&mut families), [], "no session, no reads");
}

#[test]
fn what_was_read_holds_over_a_resume_and_is_read_again_after_a_snapshot() {
    let mut families = opened();
    let shell = list([row(1, 1)]);
    families.mount(START, &shell, thread(1)).unwrap();
    let read = one_read(&mut families);
    answer(&mut families, &read, rows(7, [row(1, 1), child(2, 1, 1), child(3, 1, 1)]));
    families.handle_generation(START, 0, Basis::Snapshot);
    assert_eq!(families.family(&shell, thread(1)).status, DataStatus::Cached);
    families.handle_generation(START, 2, Basis::Resumed);
    assert_eq!(reads(&mut families), []);
    assert_eq!(families.family(&shell, thread(1)).status, DataStatus::Live);

    families.handle_generation(START, 3, Basis::Snapshot);
    let read = one_read(&mut families);
    let view = families.family(&shell, thread(1));
    assert_eq!(numbers(&view.rows), [3, 2, 1], "what was there is shown meanwhile");
    assert_eq!(view.status, DataStatus::Synchronizing);
    assert_eq!(families.absence(START, &shell, thread(2)), Absence::Unknown, "but proves nothing");
    answer(&mut families, &read, rows(4, [row(1, 1), child(3, 1, 1)]));
    assert_eq!(numbers(&families.family(&shell, thread(1)).rows), [3, 1], "also at a lower number");
}

#[test]
fn a_thread_that_left_while_the_answer_was_on_its_way_is_not_brought_back() {
    let mut families = opened();
    let shell = list([row(1, 1)]);
    families.mount(START, &shell, thread(1)).unwrap();
    families.search(START, "soup", 10);
    let read = reads(&mut families);
    families.handle_changes(changes(3, 9, &[], &[thread(2)]));
    let all = [row(1, 1), child(2, 1, 1)];
    let family = read.iter().find(|read| read.what == family_read(1)).unwrap();
    let search = read.iter().find(|read| read.what != family_read(1)).unwrap();
    answer(&mut families, family, rows(8, all.clone()));
    let rows = all.map(Arc::new).to_vec();
    answer(
        &mut families,
        search,
        ReadAnswer::Found(SearchAnswer { seq: Seq(8), rows, found: vec![] }),
    );
    assert_eq!(families.row(&shell, thread(2)), None);
    assert_eq!(families.searched().threads(), [thread(1)]);
}

#[test]
fn a_row_that_changed_while_the_answer_was_on_its_way_stays_as_it_became() {
    let mut families = opened();
    let mut shell = list([row(1, 1)]);
    families.mount(START, &shell, thread(1)).unwrap();
    let read = one_read(&mut families);
    let pinned = Arc::new(ShellRow { pinned: true, ..child(2, 1, 9) });
    let born = Arc::new(child(3, 1, 10));
    families.handle_changes(changes(3, 10, &[pinned, born], &[]));
    answer(&mut families, &read, rows(8, [row(1, 1), child(2, 1, 4)]));
    // A later snapshot of the list leaves both out again.
    shell.retain(|id, _| *id == thread(1));
    assert!(families.row(&shell, thread(2)).unwrap().pinned);
    assert!(families.row(&shell, thread(3)).is_some());
}

#[test]
fn a_removed_thread_is_gone_from_every_family_and_search() {
    let mut families = opened();
    let shell = ShellRows::new();
    families.mount(START, &shell, thread(1)).unwrap();
    let read = one_read(&mut families);
    answer(&mut families, &read, rows(8, [row(1, 1), child(2, 1, 4)]));
    families.handle_changes(changes(8, 8, &[], &[thread(1)]));
    assert!(families.row(&shell, thread(1)).is_some(), "what is not newer is a repetition");
    families.handle_changes(changes(8, 9, &[], &[thread(1), thread(2)]));
    assert_eq!(families.row(&shell, thread(1)), None);
    assert_eq!(families.family(&shell, thread(1)).rows, []);
}
