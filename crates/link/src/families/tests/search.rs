use super::*;

#[test]
fn a_search_brings_the_rows_of_older_matches() {
    let mut families = opened();
    let shell = list([row(1, 1)]);
    families.search(START, "so", 5);
    let first = one_read(&mut families);
    families.search(START, "soup", 500);
    let actions = drain(&mut families);
    assert!(actions.contains(&Action::Cancel(first.id)));
    let what = ReadWhat::Search { q: "soup".to_owned(), limit: SEARCH_LIMIT_MAX };
    let read = actions
        .into_iter()
        .find_map(|action| match action {
            Action::Read(read) => Some(read),
            Action::Cancel(_) | Action::Changed | Action::Answered { .. } => None,
        })
        .unwrap();
    assert_eq!(read.what, what);
    let found = FoundText { thread: thread(2), segment: 1, excerpt: "hot soup".to_owned() };
    let said = SearchAnswer {
        seq: Seq(9),
        rows: vec![Arc::new(settled(2, 4, 1)), Arc::new(row(1, 1))],
        found: vec![found.clone()],
    };
    answer(&mut families, &first, ReadAnswer::Found(SearchAnswer::default()));
    assert_eq!(
        families.searched().state(),
        &SearchState::Searching,
        "an earlier answer is dropped"
    );
    answer(&mut families, &read, ReadAnswer::Found(said));
    assert_eq!(families.searched().state(), &SearchState::Done);
    assert_eq!(families.searched().threads(), [thread(2), thread(1)]);
    assert_eq!(families.searched().found(), [found]);
    assert!(families.row(&shell, thread(2)).unwrap().settled.is_some());
    // Its root is known now, so a view of a subagent of it would be the same family.
    families.end_search();
    assert_eq!(families.searched().threads(), []);
    assert!(families.row(&shell, thread(2)).is_some(), "kept for whoever opens it");
    assert_eq!(
        families.absence(START, &shell, thread(2)),
        Absence::Unknown,
        "a match proves nothing"
    );
    families.handle_changes(changes(9, 10, &[], &[thread(2)]));
    assert_eq!(families.row(&shell, thread(2)), None);
}

#[test]
fn rows_of_searches_are_bounded_and_a_failed_search_says_so() {
    let mut families = opened();
    let shell = ShellRows::new();
    for search in 0..6 {
        families.search(START, "soup", 100);
        let read = one_read(&mut families);
        let rows = (0..100).map(|number| Arc::new(row(search * 100 + number + 1, 1))).collect();
        let found = SearchAnswer { seq: Seq(9), rows, found: Vec::new() };
        answer(&mut families, &read, ReadAnswer::Found(found));
    }
    assert_eq!(families.row(&shell, thread(100)), None);
    assert!(families.row(&shell, thread(101)).is_some());
    families.search(START, &"ü".repeat(SEARCH_TEXT_MAX), 100);
    let read = one_read(&mut families);
    assert_eq!(families.searched().text().len(), SEARCH_TEXT_MAX);
    fail(&mut families, START, &read, FailureReason::Timeout);
    assert!(matches!(families.searched().state(), SearchState::Failed(_)));
    assert_eq!(families.poll_timeout(), None, "a person searches again");
}
