use super::*;
use crate::families::sample::{child, list, row, settled};

fn opened() -> Desk {
    Desk::opened(list([settled(1, 200, 1), settled(2, 100, 2)]), 4)
}

fn asked(desk: &mut Desk) -> Read {
    desk.settled.load_more(desk.now);
    desk.one_read()
}

#[test]
fn pages_go_down_from_the_cut_until_there_is_nothing_more() {
    let mut desk = opened();
    assert_eq!(desk.settled.pages(), &PageState::More);
    assert_eq!(desk.reads(), [], "nobody asked for one");
    let read = asked(&mut desk);
    let below = cursor(100, 0);
    assert_eq!(read.what, ReadWhat::Settled { below, limit: PAGE_ROWS });
    assert_eq!(desk.settled.pages(), &PageState::Loading);
    desk.settled.load_more(desk.now);
    assert_eq!(desk.reads(), [], "one page at a time");
    desk.page(&read, 10, vec![settled(10, 90, 3), settled(11, 80, 3)], Some((80, 11)));
    assert_eq!(desk.settled.frontier(), Some(cursor(80, 11)));
    let read = asked(&mut desk);
    assert_eq!(read.what, ReadWhat::Settled { below: cursor(80, 11), limit: PAGE_ROWS });
    desk.page(&read, 10, vec![settled(12, 80, 3), settled(13, 5, 3)], None);
    assert_eq!(desk.settled.pages(), &PageState::Exhausted);
    assert_eq!(desk.listed(), [1, 2, 10, 12, 11, 13], "a tie is in the order of threads");
    desk.settled.load_more(desk.now);
    assert_eq!(desk.reads(), []);
    assert_eq!(desk.settled.row(thread(13)).unwrap().seq, Seq(3));
    assert_eq!(desk.settled.row(thread(1)), None);
}

#[test]
fn a_page_that_is_wanted_before_there_is_a_list_is_read_when_there_is_one() {
    let mut desk = Desk::default();
    desk.settled.load_more(START);
    assert_eq!(desk.reads(), []);
    assert_eq!(desk.settled.pages(), &PageState::Closed);
    desk.generation(1, Basis::Snapshot, Some(&older(100, 4)));
    assert_eq!(desk.one_read().generation, 1);
}

#[test]
fn without_a_cut_there_are_no_pages() {
    for older in [None, Some(OlderSettled::default())] {
        let mut desk = Desk::default();
        desk.generation(1, Basis::Snapshot, older.as_ref());
        desk.settled.load_more(START);
        assert_eq!(desk.reads(), []);
        assert_eq!(desk.settled.pages(), &PageState::Exhausted);
        assert_eq!(desk.settled.holds_at(), None);
    }
}

#[test]
fn a_failed_page_waits_for_a_person() {
    let mut desk = opened();
    let read = asked(&mut desk);
    desk.fail(&read, FailureReason::Network);
    assert!(matches!(desk.settled.pages(), PageState::Failed(_)));
    assert_eq!(desk.settled.poll_timeout(), None);
    desk.settled.handle_timeout(Instant(3_600_000));
    assert_eq!(desk.reads(), []);
    let again = asked(&mut desk);
    assert_eq!(again.what, read.what);
    desk.page(&again, 10, vec![settled(10, 90, 3)], Some((90, 10)));
    assert_eq!(desk.settled.pages(), &PageState::More);
}

#[test]
fn a_page_for_another_list_is_dropped_and_read_again() {
    let mut desk = opened();
    let read = asked(&mut desk);
    desk.page(&read, 10, vec![settled(10, 90, 3)], Some((90, 10)));
    let read = asked(&mut desk);

    desk.generation(0, Basis::Resumed, None);
    assert!(desk.actions().contains(&Action::Cancel(read.id)));
    assert_eq!(desk.settled.pages(), &PageState::Closed);
    desk.page(&read, 10, vec![settled(11, 80, 3)], None);
    assert_eq!(desk.listed(), [1, 2, 10], "rows stay, and none comes");

    desk.generation(2, Basis::Resumed, Some(&older(100, 4)));
    let read = desk.one_read();
    let below = cursor(90, 10);
    assert_eq!(read.what, ReadWhat::Settled { below, limit: PAGE_ROWS }, "it goes on");

    desk.generation(3, Basis::Snapshot, Some(&older(150, 5)));
    let below = cursor(150, 0);
    let read = desk.one_read();
    assert_eq!(read.what, ReadWhat::Settled { below, limit: PAGE_ROWS }, "or begins anew");
    assert_eq!(desk.listed(), [1, 2]);
}

#[test]
fn what_changed_or_left_is_the_lists_and_no_longer_the_pages() {
    let mut desk = opened();
    let read = asked(&mut desk);
    let page = vec![settled(10, 90, 3), settled(11, 80, 3), settled(12, 70, 3)];
    desk.page(&read, 10, page, Some((70, 12)));
    desk.changes([row(10, 11), settled(11, 80, 11)], &[12]);
    assert_eq!(desk.listed(), [1, 2, 11]);
    assert_eq!(desk.settled.row(thread(11)), None);
    assert_eq!(desk.settled.frontier(), Some(cursor(70, 12)), "a place stays a place");
}

#[test]
fn a_thread_that_left_while_its_page_was_on_the_way_is_not_brought_back() {
    let mut desk = opened();
    let read = asked(&mut desk);
    desk.changes([row(11, 11)], &[10]);
    desk.page(&read, 10, vec![settled(10, 90, 3), settled(11, 80, 3)], None);
    assert_eq!(desk.listed(), [1, 2]);
    // Without the list's own row for it, the page's would count; with it, it never does.
    assert_eq!(desk.settled.row(thread(10)), None);
}

#[test]
fn more_removals_than_are_remembered_make_an_older_page_be_read_again() {
    let mut desk = opened();
    let read = asked(&mut desk);
    let many = u64::try_from(crate::families::REMOVALS_MAX).unwrap();
    let removed: Vec<_> = (500..=500 + many).collect();
    desk.changes([], &removed);
    let counts = desk.one_read();
    assert_eq!(counts.what, ReadWhat::Counts);
    desk.page(&read, 10, vec![settled(500, 90, 3)], None);
    assert_eq!(desk.listed(), [1, 2]);
    let read = desk.one_read();
    desk.page(&read, 11, vec![settled(10, 90, 3)], None);
    assert_eq!(desk.listed(), [1, 2, 10]);
}

#[test]
fn rows_that_are_not_settled_top_level_threads_are_left_out() {
    let mut desk = opened();
    let read = asked(&mut desk);
    desk.page(&read, 10, vec![row(10, 3), child(11, 10, 3), settled(12, 70, 3)], None);
    assert_eq!(desk.listed(), [1, 2, 12]);
}

#[test]
fn a_page_that_does_not_lead_down_is_the_hosts_failure() {
    let mut desk = opened();
    for next in [(100, 0), (100, 5), (200, 1)] {
        let read = asked(&mut desk);
        desk.page(&read, 10, vec![settled(10, 90, 3)], Some(next));
        let PageState::Failed(failure) = desk.settled.pages() else { panic!("it goes on") };
        assert_eq!(failure.reason, FailureReason::Remote);
    }
    let read = asked(&mut desk);
    desk.answer(&read, ReadAnswer::Gone);
    assert!(matches!(desk.settled.pages(), PageState::Failed(_)));
}

#[test]
fn at_the_bound_no_further_page_is_read_and_the_shelf_ends_there() {
    let mut desk = Desk::default();
    desk.generation(1, Basis::Snapshot, Some(&older(100_000, 9_999)));
    let many = u64::try_from(PAGE_ROWS_MAX).unwrap();
    let read = asked(&mut desk);
    let page = (1..=many).map(|number| settled(number, 90_000 - number, 1)).collect();
    desk.page(&read, 10, page, Some((90_000 - many, many)));
    assert_eq!(desk.settled.pages(), &PageState::Full);
    desk.settled.load_more(START);
    assert_eq!(desk.reads(), []);
    assert_eq!(desk.settled.holds_at(), Some(cursor(90_000 - many, many)));
    desk.generation(0, Basis::Resumed, None);
    desk.generation(2, Basis::Resumed, Some(&older(100_000, 9_999)));
    assert_eq!(desk.settled.pages(), &PageState::Full);
}
