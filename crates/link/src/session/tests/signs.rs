//! Signs of life, silence, heads and configurations.

use wakeful_wire::rpc::{CallId, Hello, ServerFrame};

use super::sample::{config, cursor, events, hello, hello_text, host, ready, text};
use crate::{
    Instant,
    session::{Session, SessionEvent},
};

const NOW: Instant = Instant(1_000);

fn hear(session: &mut Session, at: u64, frame: &ServerFrame) -> Vec<SessionEvent> {
    session.handle_frame(Instant(at), &text(frame)).unwrap();
    events(session)
}

fn heartbeat() -> ServerFrame {
    ServerFrame::Heartbeat { head: cursor(40) }
}

#[test]
fn two_missed_heartbeats_mean_nothing_and_the_third_is_silence() {
    let mut session = ready(NOW);
    assert_eq!(session.poll_timeout(), Some(Instant(16_000)), "three heartbeats of 5 s");
    for at in [6_000, 11_000, 15_999] {
        session.handle_timeout(Instant(at));
        assert_eq!(session.poll_event(), None, "{at}");
    }
    session.handle_timeout(Instant(16_000));
    assert_eq!(events(&mut session), [SessionEvent::Silent]);
    assert!(session.is_ready(), "it is a reason to look, nothing more");
}

#[test]
fn silence_is_told_once_until_something_is_heard() {
    let mut session = ready(NOW);
    session.handle_timeout(Instant(50_000));
    session.handle_timeout(Instant(90_000));
    assert_eq!(events(&mut session), [SessionEvent::Silent]);
    assert_eq!(session.poll_timeout(), None);
    hear(&mut session, 100_000, &heartbeat());
    assert_eq!(session.poll_timeout(), Some(Instant(115_000)));
    session.handle_timeout(Instant(115_000));
    assert_eq!(events(&mut session), [SessionEvent::Silent]);
}

#[test]
fn any_frame_is_a_sign_of_life() {
    let frames = [
        text(&heartbeat()),
        text(&ServerFrame::Alive { id: CallId(1), head: cursor(1) }),
        text(&ServerFrame::End { id: CallId(77) }),
        text(&ServerFrame::Config { config: config(0) }),
        r#"{"type":"fanfare"}"#.to_owned(),
    ];
    for frame in frames {
        let mut session = ready(NOW);
        session.handle_frame(Instant(15_000), &frame).unwrap();
        assert_eq!(session.poll_timeout(), Some(Instant(30_000)), "{frame}");
    }
}

#[test]
fn a_hosts_promise_is_believed_within_bounds() {
    for (heartbeat_ms, limit) in
        [(0, 3_000), (10, 3_000), (1_000, 3_000), (20_000, 60_000), (u64::MAX, 900_000)]
    {
        let mut session = Session::new(NOW, host());
        let text = hello_text(Hello { heartbeat_ms, ..hello() });
        session.handle_frame(NOW, &text).unwrap();
        assert_eq!(session.poll_timeout(), Some(Instant(1_000 + limit)), "{heartbeat_ms}");
    }
}

#[test]
fn a_probes_answer_says_which_check_it_was_and_where_the_host_is() {
    let mut session = ready(NOW);
    session.probe(12);
    let alive = ServerFrame::Alive { id: CallId(12), head: cursor(44) };
    assert_eq!(
        hear(&mut session, 2_000, &alive),
        [SessionEvent::Alive { check: 12, head: cursor(44) }, SessionEvent::Head(cursor(44))]
    );
}

#[test]
fn a_heartbeat_says_where_the_host_is() {
    let mut session = ready(NOW);
    let beat = ServerFrame::Heartbeat { head: cursor(45) };
    assert_eq!(hear(&mut session, 2_000, &beat), [SessionEvent::Head(cursor(45))]);
}

#[test]
fn a_configuration_is_reported_only_if_it_is_newer_and_gaps_do_not_matter() {
    let mut session = ready(NOW);
    let mut told = Vec::new();
    for revision in [3, 2, 4, 4, 90, 5, 91] {
        for event in hear(&mut session, 2_000, &ServerFrame::Config { config: config(revision) }) {
            let SessionEvent::Config(config) = event else { panic!("{event:?}") };
            told.push(config.revision);
        }
    }
    assert_eq!(told, [4, 90, 91]);
}
