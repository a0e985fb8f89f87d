//! Older content.

use super::*;

/// A desk that looks at the newest turn of five, each with three texts.
fn windowed() -> (Desk, ConsumerId) {
    let mut desk = Desk::new(WEB);
    desk.log.window = (1, 0);
    for number in 0..5 {
        let body = desk.log.turn_started(one());
        desk.log.push(one(), body);
        for text in 0..3 {
            let body = desk.log.text(one(), &format!("turn {number}, text {text}"));
            desk.log.push(one(), body);
        }
        let body = desk.log.turn_ended(one());
        desk.log.push(one(), body);
    }
    desk.connect();
    let consumer = desk.mount(one());
    desk.wait(seconds(1));
    desk.take();
    (desk, consumer)
}

fn load(desk: &mut Desk) -> FetchId {
    assert!(desk.threads.load_older(desk.now, one()));
    desk.fetch()
}

/// Answers with two segments, read now.
fn answer(desk: &mut Desk, fetch: FetchId) {
    let before = desk.page(one()).before.unwrap();
    let page = desk.log.page(one(), before, (2, 0));
    desk.threads.handle_page(desk.now, fetch, Ok(page));
}

#[test]
fn older_pages_come_one_at_a_time_until_the_beginning() {
    let (mut desk, _consumer) = windowed();
    for _ in 0..2 {
        assert!(desk.page(one()).has_more);
        let fetch = load(&mut desk);
        assert!(desk.page(one()).loading);
        assert!(!desk.threads.load_older(desk.now, one()), "one load at a time");
        assert_eq!(desk.take(), []);
        answer(&mut desk, fetch);
        assert!(!desk.page(one()).loading);
        assert!(desk.is_current(one()));
        answer_again_changes_nothing(&mut desk, fetch);
    }
    assert_eq!(*desk.page(one()), PageState::default(), "the beginning");
    assert!(!desk.threads.load_older(desk.now, one()));
    assert_eq!(desk.held(one()).detail.page.segments.len(), 5);
}

fn answer_again_changes_nothing(desk: &mut Desk, fetch: FetchId) {
    let state = desk.state(one()).clone();
    desk.threads.handle_page(desk.now, fetch, Ok(wakeful_wire::rpc::Page::default()));
    assert_eq!(*desk.state(one()), state);
}

#[test]
fn pagination_survives_reuse_and_the_loading_flag_does_not() {
    let (mut desk, consumer) = windowed();
    let fetch = load(&mut desk);
    answer(&mut desk, fetch);
    let fetch = load(&mut desk);
    let left = desk.state(one()).clone();
    assert!(left.page.loading);
    desk.unmount(consumer);
    assert!(desk.take().contains(&Action::CancelFetch { fetch }));

    desk.mount(one());
    let back = desk.state(one());
    assert_eq!(back.held.as_ref().unwrap().detail.page, left.detail().unwrap().page);
    assert_eq!(back.page, PageState { loading: false, ..left.page });
    answer_again_changes_nothing(&mut desk, fetch);
    desk.take();
    let fetch = load(&mut desk);
    answer(&mut desk, fetch);
    assert!(desk.is_current(one()));
}

#[test]
fn a_page_whose_base_has_moved_is_dropped() {
    let (mut desk, _consumer) = windowed();
    let fetch = load(&mut desk);
    let before = desk.page(one()).before.unwrap();
    let page = desk.log.page(one(), before, (2, 0));
    // A snapshot while the page is on its way.
    desk.begin(one());
    desk.log.gap = 1;
    desk.disconnect();
    desk.say(one(), "missed");
    desk.say(one(), "missed too");
    desk.connect();
    assert!(desk.take().contains(&Action::CancelFetch { fetch }));
    assert!(!desk.page(one()).loading);
    let state = desk.state(one()).clone();
    desk.threads.handle_page(desk.now, fetch, Ok(page));
    assert_eq!(*desk.state(one()), state);
    assert!(desk.is_current(one()));
}

#[test]
fn a_page_that_was_made_for_another_beginning_is_not_put_in() {
    // The thread's id is made anew by an event: the window is empty and begins elsewhere.
    let (mut desk, _consumer) = windowed();
    let fetch = load(&mut desk);
    let before = desk.page(one()).before.unwrap();
    let page = desk.log.page(one(), before, (2, 0));
    desk.log.push(one(), EventBody::Deleted {});
    let deleted = desk.log.events.last().cloned().unwrap();
    let created = desk.log.create(one());
    desk.deliver(one(), ThreadItem::Events { events: vec![deleted, created] });
    desk.threads.handle_page(desk.now, fetch, Ok(page));
    assert_eq!(desk.take(), [], "nobody wants it any more");
    assert!(!desk.page(one()).loading);
    assert!(desk.is_current(one()));
}

/// A desk that looks at the last item of a turn that runs.
fn inside_a_turn() -> Desk {
    let mut desk = Desk::new(WEB);
    desk.log.window = (1, 1);
    let body = desk.log.turn_started(one());
    desk.log.push(one(), body);
    for text in ["a", "b", "c"] {
        let body = desk.log.text(one(), text);
        desk.log.push(one(), body);
    }
    desk.connect();
    desk.mount(one());
    desk.take();
    desk
}

/// More text for an item that the window does not show.
fn change_before_the_window(desk: &mut Desk) {
    let body = EventBody::Text {
        item: 1,
        role: wakeful_wire::rpc::Role::Agent,
        text: "more".to_owned(),
        message: None,
    };
    desk.happen(one(), body);
}

#[test]
fn a_page_that_was_read_too_early_is_asked_for_anew() {
    let mut desk = inside_a_turn();
    let fetch = load(&mut desk);
    let early = desk.log.page(one(), desk.page(one()).before.unwrap(), (0, 0));
    change_before_the_window(&mut desk);
    desk.threads.handle_page(desk.now, fetch, Ok(early));
    assert!(desk.page(one()).loading);
    let again = desk.fetch();
    assert_ne!(again, fetch);
    let page = desk.log.page(one(), desk.page(one()).before.unwrap(), (0, 0));
    desk.threads.handle_page(desk.now, again, Ok(page));
    assert!(!desk.page(one()).loading && !desk.page(one()).has_more);
    assert!(desk.is_current(one()));
}

#[test]
fn a_page_that_never_fits_is_given_up_after_three_more_times() {
    let mut desk = inside_a_turn();
    let mut fetch = load(&mut desk);
    for _ in 0..STALE_MAX {
        let early = desk.log.page(one(), desk.page(one()).before.unwrap(), (0, 0));
        change_before_the_window(&mut desk);
        desk.threads.handle_page(desk.now, fetch, Ok(early));
        fetch = desk.fetch();
    }
    let early = desk.log.page(one(), desk.page(one()).before.unwrap(), (0, 0));
    change_before_the_window(&mut desk);
    desk.threads.handle_page(desk.now, fetch, Ok(early));
    assert_eq!(desk.take(), []);
    assert!(!desk.page(one()).loading && desk.page(one()).error.is_some());
    let fetch = load(&mut desk);
    assert_eq!(desk.page(one()).error, None, "a person may try again");
    let page = desk.log.page(one(), desk.page(one()).before.unwrap(), (0, 0));
    desk.threads.handle_page(desk.now, fetch, Ok(page));
    assert!(desk.is_current(one()));
}

#[test]
fn a_load_ends_by_failure_by_time_and_by_hand() {
    let (mut desk, _consumer) = windowed();
    let fetch = load(&mut desk);
    desk.threads.handle_page(desk.now, fetch, Err(failure()));
    assert_eq!(desk.page(one()).error, Some(failure()));
    assert!(!desk.page(one()).loading);

    let fetch = load(&mut desk);
    desk.wait(PAGE_WAIT);
    assert_eq!(desk.take(), [Action::CancelFetch { fetch }]);
    let error = desk.page(one()).error.clone().unwrap();
    assert_eq!(error.reason, FailureReason::Timeout);

    let fetch = load(&mut desk);
    desk.threads.cancel_older(desk.now, one());
    assert_eq!(desk.take(), [Action::CancelFetch { fetch }]);
    assert!(!desk.page(one()).loading && desk.page(one()).error.is_none());
    assert!(desk.page(one()).has_more);
}

#[test]
fn a_long_stay_keeps_the_newest_turns_and_the_way_to_the_older_ones() {
    let (mut desk, _consumer) = Desk::live(WEB);
    for _ in 0..SEGMENTS_KEPT + 20 {
        desk.begin(one());
        desk.finish(one());
    }
    assert_eq!(desk.held(one()).detail.page.segments.len(), SEGMENTS_KEPT);
    assert!(desk.page(one()).has_more);
    assert!(desk.is_current(one()));
    desk.take();
    let fetch = load(&mut desk);
    answer(&mut desk, fetch);
    assert_eq!(desk.held(one()).detail.page.segments.len(), SEGMENTS_KEPT + 2);
    desk.begin(one());
    let many = desk.held(one()).detail.page.segments.len();
    assert_eq!(many, SEGMENTS_KEPT + 3, "what a person has loaded stays");
    desk.finish(one());
    desk.wait(seconds(1));
    assert_eq!(desk.disk[&one()].detail.page.segments.len(), SEGMENTS_KEPT, "and is not saved");
    desk.log.check(&desk.disk[&one()]);
    assert!(desk.is_current(one()));
}

#[test]
fn a_snapshot_ends_what_a_person_has_loaded() {
    let (mut desk, _consumer) = windowed();
    let fetch = load(&mut desk);
    answer(&mut desk, fetch);
    assert_eq!(desk.held(one()).detail.page.segments.len(), 3);
    desk.log.gap = 1;
    desk.disconnect();
    desk.begin(one());
    desk.say(one(), "missed");
    desk.connect();
    assert_eq!(desk.held(one()).detail.page.segments.len(), 1);
    desk.finish(one());
    for _ in 0..SEGMENTS_KEPT {
        desk.begin(one());
        desk.finish(one());
    }
    assert_eq!(desk.held(one()).detail.page.segments.len(), SEGMENTS_KEPT);
}
