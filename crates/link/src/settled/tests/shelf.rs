use super::*;
use crate::{
    families::sample::{list, settled},
    settled::frontier::{HostRows, Shelf, is_above, line, shelf},
};

fn listed(desks: &[Desk]) -> Shelf<usize> {
    shelf(desks.iter().enumerate().map(|(host, desk)| HostRows {
        host,
        holds_at: desk.settled.holds_at(),
        rows: desk.settled.rows(&desk.shell),
    }))
}

fn shown(desks: &[Desk]) -> Vec<u64> {
    numbers(listed(desks).rows.into_iter().map(|(_, row)| row.id))
}

/// A host with one settled thread above its cut of 100, and one with everything.
fn two() -> [Desk; 2] {
    let all = list([settled(21, 150, 1), settled(22, 95, 1), settled(23, 60, 1)]);
    let mut other = Desk { shell: all, ..Desk::default() };
    other.generation(1, Basis::Snapshot, Some(&OlderSettled::default()));
    [Desk::opened(list([settled(1, 200, 1)]), 9), other]
}

fn ask(desk: &mut Desk) -> Read {
    desk.settled.load_more(desk.now);
    desk.one_read()
}

#[test]
fn while_one_of_two_hosts_loads_only_rows_above_its_frontier_are_listed() {
    let mut desks = two();
    assert_eq!(shown(&desks), [1, 21]);
    let shelf = listed(&desks);
    assert_eq!((shelf.line, shelf.next, shelf.waiting), (Some(cursor(100, 0)), vec![0], true));
    let read = ask(&mut desks[0]);
    assert_eq!(shown(&desks), [1, 21]);
    desks[0].page(&read, 10, vec![settled(2, 97, 1), settled(3, 80, 1)], Some((80, 3)));
    assert_eq!(shown(&desks), [1, 21, 2, 22, 3]);
    let read = ask(&mut desks[0]);
    desks[0].page(&read, 10, vec![settled(4, 20, 1)], None);
    let shelf = listed(&desks);
    assert_eq!((shelf.line, shelf.next, shelf.waiting), (None, vec![], false));
    assert_eq!(shown(&desks), [1, 21, 2, 22, 3, 23, 4]);
}

#[test]
fn a_host_whose_page_failed_holds_no_one_back_nor_while_it_is_tried_again() {
    let mut desks = two();
    let read = ask(&mut desks[0]);
    desks[0].fail(&read, FailureReason::Network);
    assert_eq!(shown(&desks), [1, 21, 22, 23]);
    let read = ask(&mut desks[0]);
    assert_eq!(desks[0].settled.pages(), &PageState::Loading);
    assert_eq!(shown(&desks), [1, 21, 22, 23], "the trying hides nothing");
    desks[0].fail(&read, FailureReason::Network);
    assert_eq!(shown(&desks), [1, 21, 22, 23]);
    let read = ask(&mut desks[0]);
    desks[0].page(&read, 10, vec![settled(2, 97, 1)], Some((97, 2)));
    assert_eq!(shown(&desks), [1, 21, 2]);
}

#[test]
fn a_host_without_a_list_of_this_session_holds_no_one_back() {
    let mut desks = two();
    desks[0].generation(0, Basis::Resumed, None);
    assert_eq!(shown(&desks), [1, 21, 22, 23]);
    desks[0].generation(2, Basis::Resumed, Some(&older(100, 9)));
    assert_eq!(shown(&desks), [1, 21]);
}

#[test]
fn a_host_that_has_nothing_more_holds_no_one_back() {
    let mut desks = two();
    let read = ask(&mut desks[0]);
    desks[0].page(&read, 10, vec![], None);
    assert_eq!(shown(&desks), [1, 21, 22, 23]);
}

#[test]
fn the_line_is_the_newest_frontier_and_what_stands_on_it_is_known() {
    assert_eq!(line([None, None]), None);
    let frontiers = [Some(cursor(5, 1)), None, Some(cursor(9, 1)), Some(cursor(9, 3))];
    assert_eq!(line(frontiers), Some(cursor(9, 3)));
    assert!(is_above(cursor(9, 3), Some(cursor(9, 3))));
    assert!(is_above(cursor(9, 4), Some(cursor(9, 3))));
    assert!(!is_above(cursor(9, 2), Some(cursor(9, 3))));
    assert!(is_above(cursor(0, 0), None));
}
