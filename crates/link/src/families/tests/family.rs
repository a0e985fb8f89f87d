use super::*;

#[test]
fn a_row_of_the_list_wins_over_one_that_was_read() {
    let mut families = opened();
    let shell = list([ShellRow { title: Some("new".to_owned()), ..row(1, 9) }]);
    families.mount(START, &shell, thread(1)).unwrap();
    let read = one_read(&mut families);
    let old = ShellRow { title: Some("old".to_owned()), ..row(1, 5) };
    answer(&mut families, &read, rows(8, [old, child(2, 1, 5)]));
    let title = |thread| families.row(&shell, thread).unwrap().title.as_deref();
    assert_eq!(title(thread(1)), Some("new"));
    assert_eq!(title(thread(2)), None);
    let view = families.family(&shell, thread(2));
    assert_eq!(numbers(&view.rows), [2, 1], "newest first, each once");
    assert_eq!(view.rows[1].title.as_deref(), Some("new"));
    assert_eq!(view.status, DataStatus::Live);
    assert_eq!(numbers(&families.behind(&shell)), [2]);
}

#[test]
fn the_family_of_an_old_settled_thread_that_is_opened_by_link_includes_it() {
    let mut families = opened();
    let shell = list([row(90, 3)]);
    // The link leads to a subagent of it: nobody knows the root yet.
    let mount = families.mount(START, &shell, thread(2)).unwrap();
    let read = one_read(&mut families);
    assert_eq!(read.what, family_read(2));
    assert_eq!(families.family(&shell, thread(2)).status, DataStatus::Synchronizing);
    answer(&mut families, &read, rows(7, [child(2, 1, 4), settled(1, 30, 4)]));
    assert_eq!(numbers(&families.family(&shell, thread(2)).rows), [2, 1]);
    assert_eq!(numbers(&families.family(&shell, thread(1)).rows), [2, 1]);
    assert!(families.row(&shell, thread(1)).unwrap().settled.is_some());
    families.unmount(mount);
    assert!(families.row(&shell, thread(1)).is_some(), "kept for a return");
}

#[test]
fn two_views_of_one_family_share_one_read_and_a_return_reads_nothing() {
    let mut families = opened();
    let shell = list([row(1, 1), child(2, 1, 1)]);
    let one = families.mount(START, &shell, thread(1)).unwrap();
    let other = families.mount(START, &shell, thread(2)).unwrap();
    let read = one_read(&mut families);
    answer(&mut families, &read, rows(7, [row(1, 1), child(2, 1, 1), child(3, 1, 1)]));
    families.unmount(one);
    families.unmount(one);
    families.unmount(other);
    families.mount(START, &shell, thread(3)).unwrap();
    assert_eq!(reads(&mut families), []);
    assert_eq!(families.family(&shell, thread(3)).status, DataStatus::Live);
}

#[test]
fn views_that_did_not_know_their_root_end_in_one_family() {
    let mut families = opened();
    let shell = ShellRows::new();
    let one = families.mount(START, &shell, thread(2)).unwrap();
    let other = families.mount(START, &shell, thread(3)).unwrap();
    let both = reads(&mut families);
    let all = [row(1, 1), child(2, 1, 1), child(3, 1, 1)];
    answer(&mut families, &both[1], rows(9, all.clone()));
    answer(&mut families, &both[0], rows(8, all));
    assert_eq!(families.families.len(), 1);
    assert_eq!(families.families[&thread(1)].mounted, 2);
    families.unmount(one);
    families.unmount(other);
    assert_eq!(families.families[&thread(1)].mounted, 0);
}
