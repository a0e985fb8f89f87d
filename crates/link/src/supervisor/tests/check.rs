//! Whether a session lives.

use super::*;
use crate::supervisor::Foreground;

const NEAR: [RouteClass; 2] = [RouteClass::Loopback, RouteClass::Lan];
const FAR: [RouteClass; 2] = [RouteClass::Tailnet, RouteClass::Public];
const ALL: [RouteClass; 4] =
    [RouteClass::Loopback, RouteClass::Lan, RouteClass::Tailnet, RouteClass::Public];

/// A session that lasted, on this way, with an empty log.
fn lasting(class: RouteClass) -> Bench {
    let mut bench = Bench::connected(class);
    bench.pass_ms(60_000);
    bench
}

/// The same, being looked at for an ordinary reason that may ask the host.
fn checked(class: RouteClass) -> (Bench, Instant, u64) {
    let mut bench = lasting(class);
    let check = look(&mut bench, Input::PathChanged);
    let started = bench.now;
    (bench, started, check)
}

/// Tells it and returns the number of the check that it started.
fn look(bench: &mut Bench, input: Input) -> u64 {
    bench.take();
    bench.tell(input);
    match bench.take()[..] {
        [Action::Probe { attempt, check }] => {
            assert_eq!(Some(attempt), bench.supervisor.session());
            assert!(bench.state().verifying);
            assert_eq!(bench.phase(), ConnectionPhase::Connected);
            check
        }
        ref other => panic!("{other:?}"),
    }
}

fn alive(bench: &mut Bench, check: u64) {
    let attempt = bench.supervisor.session().unwrap();
    bench.tell(Input::Alive { attempt, check });
}

/// When a session was given up, in milliseconds after the check's start.
fn given_up(bench: &mut Bench, started: Instant) -> Option<u64> {
    bench
        .take_since(started)
        .into_iter()
        .find_map(|(at, action)| matches!(action, Action::Unpublish { .. }).then_some(at))
}

#[test]
fn whatever_may_mean_a_dead_session_probes_it_and_changes_nothing_else() {
    let inputs = [
        Input::Foreground(Foreground::Desk),
        Input::Foreground(Foreground::Short),
        Input::Foreground(Foreground::Long),
        Input::RetryNow { wake: false },
        OFFLINE,
        ONLINE,
        Input::PathChanged,
        Input::Silent { attempt: AttemptId(1) },
    ];
    for class in ALL {
        for input in inputs.clone() {
            let mut bench = lasting(class);
            let check = look(&mut bench, input.clone());
            bench.pass_ms(499);
            alive(&mut bench, check);
            assert!(!bench.state().verifying);
            bench.pass_ms(3_600_000);
            assert_eq!(bench.take(), [], "{input:?} on {class:?}");
            assert_eq!((bench.phase(), bench.state().generation), (ConnectionPhase::Connected, 1));
            assert_eq!(bench.supervisor.poll_timeout(), None);
        }
    }
}

#[test]
fn a_session_survives_an_offline_report_and_stays_connected_while_offline() {
    for class in ALL {
        let mut bench = lasting(class);
        let check = look(&mut bench, OFFLINE);
        alive(&mut bench, check);
        bench.tell(OFFLINE);
        assert_eq!(bench.take(), [], "the same again is no news");
        bench.pass_ms(3_600_000);
        assert_eq!(bench.phase(), ConnectionPhase::Connected);
        assert_eq!(bench.state().network, Network::Offline);
    }
}

#[test]
fn a_silent_probe_asks_the_host_after_half_a_second_and_each_second_until_it_answers() {
    let (mut bench, started, check) = checked(RouteClass::Public);
    bench.pass_ms(4_600);
    let ask = Action::AskHost { check };
    assert_eq!(
        bench.take_since(started),
        [(500, ask), (1_500, ask), (2_500, ask), (3_500, ask), (4_500, ask)],
    );
    bench.tell(Input::HostFailed { check });
    bench.pass_ms(900);
    assert_eq!(bench.take_since(started), [(5_500, ask)], "a failed request is no answer");
    alive(&mut bench, check);
    assert_eq!(bench.take(), [Action::StopAsking { check }]);
}

#[test]
fn the_host_is_not_asked_again_once_it_has_answered() {
    let (mut bench, started, check) = checked(RouteClass::Public);
    bench.pass_ms(600);
    bench.tell(Input::HostAnswered { check });
    let asked: Vec<_> = bench.take_since(started);
    assert_eq!(asked[..2], [(500, Action::AskHost { check }), (600, Action::StopAsking { check })]);
    bench.pass_ms(1_800);
    assert!(!bench.take().contains(&Action::AskHost { check }));
    bench.tell(Input::HostAnswered { check });
    bench.pass_ms(99);
    assert_eq!(bench.phase(), ConnectionPhase::Connected);
}

#[test]
fn a_late_timer_asks_once_and_keeps_its_pace() {
    let (mut bench, _, check) = checked(RouteClass::Public);
    bench.now = bench.now.after(Duration::from_millis(4_700));
    bench.pass_ms(0);
    assert_eq!(bench.take(), [Action::AskHost { check }]);
    bench.pass_ms(999);
    assert_eq!(bench.take(), []);
    bench.pass_ms(1);
    assert_eq!(bench.take(), [Action::AskHost { check }]);
}

#[test]
fn on_a_near_way_a_silent_socket_beside_an_answering_host_is_dead_at_once() {
    for class in NEAR {
        let (mut bench, _, check) = checked(class);
        let old = bench.last();
        bench.pass_ms(507);
        bench.take();
        bench.tell(Input::HostAnswered { check });
        let mut expected = vec![
            Action::StopAsking { check },
            Action::Unpublish { attempt: old },
            Action::Release { attempt: old, why: ReleaseReason::Dead },
        ];
        expected.extend(begins(&bench, false));
        assert_eq!(bench.take(), expected);
        assert_eq!(bench.phase(), ConnectionPhase::Connecting, "left in the same step");
        assert!(!bench.state().verifying);
    }
}

#[test]
fn on_a_far_way_the_same_evidence_waits_for_two_and_a_half_seconds() {
    for class in FAR {
        for (answers, dead) in [(600, 2_500), (2_499, 2_500), (2_600, 2_600), (4_000, 4_000)] {
            let (mut bench, started, check) = checked(class);
            bench.pass_ms(answers);
            bench.tell(Input::HostAnswered { check });
            if dead > answers {
                bench.pass_ms(dead - answers - 1);
                assert_eq!(bench.phase(), ConnectionPhase::Connected);
                bench.pass_ms(1);
            }
            assert_eq!(given_up(&mut bench, started), Some(dead), "answered at {answers}");
        }
    }
}

#[test]
fn a_frame_before_the_verdict_saves_a_far_session() {
    for class in FAR {
        let (mut bench, started, check) = checked(class);
        bench.pass_ms(600);
        bench.tell(Input::HostAnswered { check });
        bench.pass_ms(1_400);
        bench.frame();
        bench.pass_ms(14_999);
        assert_eq!(given_up(&mut bench, started), None);
        alive(&mut bench, check);
        assert_eq!((bench.phase(), bench.state().generation), (ConnectionPhase::Connected, 1));
    }
}

#[test]
fn frames_show_a_busy_host_that_its_own_answer_does_not_kill() {
    for class in ALL {
        let (mut bench, started, check) = checked(class);
        bench.pass_ms(100);
        bench.frame();
        bench.pass_ms(400);
        bench.tell(Input::HostAnswered { check });
        bench.pass_ms(2_500);
        assert_eq!(given_up(&mut bench, started), None, "{class:?}");
        assert!(bench.state().verifying);
    }
}

#[test]
fn a_host_that_sends_for_long_is_alive_and_one_that_never_answers_is_given_up_in_the_end() {
    for class in ALL {
        let (mut bench, started, check) = checked(class);
        for _ in 0..40 {
            bench.frame();
            bench.pass_ms(1_000);
        }
        assert_eq!(given_up(&mut bench, started), None, "a large snapshot on {class:?}");
        alive(&mut bench, check);
        assert_eq!((bench.take(), bench.state().generation), (vec![], 1));
        let (mut bench, started, _) = checked(class);
        while bench.phase() == ConnectionPhase::Connected {
            bench.frame();
            bench.pass_ms(1_000);
        }
        assert_eq!(given_up(&mut bench, started), Some(60_000));
    }
}

#[test]
fn without_an_answer_of_the_host_the_deadline_decides() {
    let cases = [
        (RouteClass::Loopback, 3_000),
        (RouteClass::Lan, 3_000),
        (RouteClass::Tailnet, 15_000),
        (RouteClass::Public, 15_000),
    ];
    for (class, deadline) in cases {
        for input in [
            Input::PathChanged,
            Input::RetryNow { wake: false },
            Input::Foreground(Foreground::Short),
            Input::Foreground(Foreground::Desk),
            Input::Silent { attempt: AttemptId(1) },
        ] {
            let mut bench = lasting(class);
            look(&mut bench, input);
            let started = bench.now;
            bench.pass_ms(deadline - 1);
            assert_eq!(bench.phase(), ConnectionPhase::Connected);
            bench.pass_ms(1);
            assert_eq!(given_up(&mut bench, started), Some(deadline), "{class:?}");
            assert_eq!(bench.phase(), ConnectionPhase::Connecting);
            let failure = bench.state().last_failure.clone().unwrap();
            assert_eq!(failure.reason, FailureReason::Timeout);
        }
    }
}

#[test]
fn after_a_long_suspension_three_seconds_decide_on_any_way() {
    for class in ALL {
        let mut bench = lasting(class);
        look(&mut bench, Input::Foreground(Foreground::Long));
        let started = bench.now;
        bench.pass_ms(3_000);
        assert_eq!(given_up(&mut bench, started), Some(3_000), "{class:?}");
    }
}

#[test]
fn a_probe_answered_late_over_a_slow_relay_keeps_the_session() {
    let (mut bench, started, check) = checked(RouteClass::Tailnet);
    bench.pass_ms(14_000);
    alive(&mut bench, check);
    bench.pass_ms(3_600_000);
    assert_eq!(given_up(&mut bench, started), None);
}

#[test]
fn without_a_network_an_ordinary_deadline_waits_and_evidence_replaces() {
    let cases: [(&str, Deed, ConnectionPhase); 4] = [
        ("deadline", |bench| bench.pass_ms(15_000), ConnectionPhase::Offline),
        (
            "the socket closed",
            |bench| bench.close(FailureReason::Transport),
            ConnectionPhase::Offline,
        ),
        (
            "evidence",
            |bench| {
                bench.pass_ms(600);
                bench.tell(Input::HostAnswered { check: 1 });
                bench.pass_ms(1_900);
            },
            ConnectionPhase::Connecting,
        ),
        (
            "long suspension",
            |bench| {
                bench.tell(Input::Foreground(Foreground::Long));
                bench.pass_ms(3_000);
            },
            ConnectionPhase::Connecting,
        ),
    ];
    for (name, ending, phase) in cases {
        let mut bench = lasting(RouteClass::Public);
        look(&mut bench, OFFLINE);
        ending(&mut bench);
        assert_eq!(bench.phase(), phase, "{name}");
        assert_eq!(bench.supervisor.session(), None);
        let begun = bench.begun();
        assert_eq!(begun, usize::from(phase == ConnectionPhase::Connecting), "{name}");
        if phase == ConnectionPhase::Offline {
            bench.pass_ms(3_600_000);
            assert_eq!(bench.begun(), 0, "{name}");
            bench.tell(ONLINE);
            assert_eq!((bench.begun(), bench.state().attempt), (1, 1), "{name}");
        }
    }
    let mut bench = lasting(RouteClass::Lan);
    look(&mut bench, OFFLINE);
    bench.pass_ms(3_000);
    assert_eq!((bench.phase(), bench.begun()), (ConnectionPhase::Offline, 0), "a real cut");
    let mut bench = lasting(RouteClass::Lan);
    look(&mut bench, OFFLINE);
    bench.pass_ms(500);
    bench.tell(Input::HostAnswered { check: 1 });
    assert_eq!((bench.phase(), bench.begun()), (ConnectionPhase::Connecting, 1));
}

#[test]
fn a_window_that_comes_to_the_front_asks_no_host() {
    for class in ALL {
        let mut bench = lasting(class);
        let check = look(&mut bench, Input::Foreground(Foreground::Desk));
        bench.pass_ms(2_999);
        assert_eq!(bench.take(), [], "{class:?}");
        alive(&mut bench, check);
        assert_eq!(bench.take(), []);
    }
}

#[test]
fn twenty_changes_of_focus_are_one_check_each_at_most() {
    let mut bench = lasting(RouteClass::Public);
    let check = look(&mut bench, Input::Foreground(Foreground::Desk));
    for _ in 0..20 {
        bench.tell(Input::Foreground(Foreground::Desk));
        bench.pass_ms(500);
    }
    assert_eq!(bench.take(), [], "one check at a time");
    alive(&mut bench, check);
    assert_eq!((bench.take(), bench.state().generation), (vec![], 1));
}

#[test]
fn a_second_reason_starts_no_second_check_but_may_ask_the_host() {
    let mut bench = lasting(RouteClass::Public);
    let check = look(&mut bench, Input::Foreground(Foreground::Desk));
    let started = bench.now;
    bench.pass_ms(700);
    for input in [
        Input::PathChanged,
        ONLINE,
        Input::RetryNow { wake: false },
        Input::Foreground(Foreground::Short),
        Input::Silent { attempt: bench.last() },
    ] {
        bench.tell(input);
    }
    assert_eq!(bench.take(), []);
    bench.pass_ms(600);
    assert_eq!(bench.take_since(started), [(1_200, Action::AskHost { check })]);
    bench.pass_ms(13_700);
    assert_eq!(given_up(&mut bench, started), Some(15_000), "its own deadline");
}

#[test]
fn a_second_reason_does_not_ask_a_host_that_was_heard() {
    let mut bench = lasting(RouteClass::Public);
    look(&mut bench, Input::Foreground(Foreground::Desk));
    bench.frame();
    bench.tell(Input::PathChanged);
    bench.pass_ms(14_000);
    assert_eq!(bench.take(), []);
}

#[test]
fn a_long_suspension_during_a_check_begins_it_anew_by_its_own_rules() {
    let (mut bench, _, old) = checked(RouteClass::Public);
    let attempt = bench.last();
    bench.pass_ms(2_000);
    bench.take();
    bench.tell(Input::Foreground(Foreground::Long));
    let check = old + 1;
    assert_eq!(bench.take(), [Action::StopAsking { check: old }, Action::Probe { attempt, check }],);
    let started = bench.now;
    bench.tell(Input::HostAnswered { check: old });
    alive(&mut bench, old);
    assert!(bench.state().verifying, "what was asked before the suspension decides nothing");
    bench.pass_ms(2_999);
    assert_eq!(bench.phase(), ConnectionPhase::Connected);
    bench.pass_ms(1);
    assert_eq!(given_up(&mut bench, started), Some(3_000));
}

#[test]
fn a_failed_check_reconnects_without_a_wait_and_the_next_failure_is_the_first() {
    for lasted in [0, 60_000] {
        let mut bench = Bench::connected(RouteClass::Lan);
        bench.pass_ms(lasted);
        look(&mut bench, Input::PathChanged);
        bench.pass_ms(3_000);
        let mut expected =
            vec![Action::Release { attempt: AttemptId(1), why: ReleaseReason::Dead }];
        expected.extend(begins(&bench, false));
        assert!(bench.take().ends_with(&expected));
        assert!(bench.state().last_failure.is_some());
        bench.fail(FailureReason::Network);
        assert_eq!((bench.phase(), bench.state().attempt), (ConnectionPhase::Backoff, 1));
        assert!(bench.pass_to_retry() <= Duration::from_secs(6));
    }
}

#[test]
fn the_reconnect_of_a_check_that_a_person_caused_is_urgent() {
    for (input, urgent) in [
        (Input::RetryNow { wake: false }, true),
        (Input::Foreground(Foreground::Short), true),
        (Input::PathChanged, false),
    ] {
        let mut bench = lasting(RouteClass::Lan);
        look(&mut bench, input);
        bench.pass_ms(3_000);
        let attempt = bench.last();
        assert!(bench.take().contains(&Action::Want { attempt, urgent }));
    }
}

#[test]
fn a_session_that_closes_during_a_check_has_failed_it() {
    let (mut bench, _, check) = checked(RouteClass::Public);
    let old = bench.last();
    bench.pass_ms(600);
    bench.take();
    bench.close(FailureReason::Transport);
    let mut expected = vec![
        Action::StopAsking { check },
        Action::Unpublish { attempt: old },
        Action::Release { attempt: old, why: ReleaseReason::Closed },
    ];
    expected.extend(begins(&bench, false));
    assert_eq!(bench.take(), expected);
    assert!(!bench.state().verifying);
}

#[test]
fn a_host_that_asks_to_wait_is_not_reconnected_at_once_by_a_check() {
    let (mut bench, ..) = checked(RouteClass::Public);
    let mut failure = Failure::new(FailureReason::Starting, "restarting");
    failure.retry_after = Some(Duration::from_secs(20));
    bench.tell(Input::Closed { attempt: bench.last(), failure });
    assert_eq!(bench.phase(), ConnectionPhase::Backoff);
    assert!(bench.pass_to_retry() >= Duration::from_secs(20));
}

#[test]
fn sessions_that_end_in_checks_again_and_again_get_the_ladders_waits() {
    let mut bench = Bench::connected(RouteClass::Lan);
    let mut at_once = 0;
    for _ in 0..10 {
        look(&mut bench, Input::PathChanged);
        bench.close(FailureReason::Transport);
        if bench.phase() == ConnectionPhase::Connecting {
            at_once += 1;
        } else {
            bench.pass_to_retry();
        }
        bench.become_ready(RouteClass::Lan);
    }
    assert_eq!(at_once, 3);
    bench.pass_ms(30_000);
    look(&mut bench, Input::PathChanged);
    bench.close(FailureReason::Transport);
    assert_eq!(bench.phase(), ConnectionPhase::Connecting, "one that lasted counts anew");
}

#[test]
fn a_disconnect_during_a_stalled_probe_is_honoured() {
    let (mut bench, _, check) = checked(RouteClass::Public);
    let attempt = bench.last();
    bench.pass_ms(2_000);
    bench.take();
    bench.tell(Input::Disconnect);
    assert_eq!(
        bench.take(),
        [
            Action::StopAsking { check },
            Action::Unpublish { attempt },
            Action::Release { attempt, why: ReleaseReason::Disconnected },
        ],
    );
    assert!(!bench.state().verifying);
    bench.pass_ms(3_600_000);
    assert_eq!((bench.take(), bench.phase()), (vec![], ConnectionPhase::Available));
}

#[test]
fn an_answer_to_another_check_is_no_answer() {
    let (mut bench, started, check) = checked(RouteClass::Lan);
    bench.tell(Input::HostAnswered { check: check + 1 });
    bench.tell(Input::HostAnswered { check: 0 });
    bench.tell(Input::Alive { attempt: AttemptId(99), check });
    bench.tell(Input::Frame { attempt: AttemptId(99) });
    bench.tell(Input::Silent { attempt: AttemptId(99) });
    bench.pass_ms(2_999);
    assert_eq!(bench.phase(), ConnectionPhase::Connected);
    bench.pass_ms(1);
    assert_eq!(given_up(&mut bench, started), Some(3_000));
}

#[test]
fn a_slow_way_is_given_four_of_its_round_trips() {
    for (took, verdict) in [(100, 2_500), (1_500, 6_000), (9_000, 10_000)] {
        let (mut bench, _, check) = checked(RouteClass::Tailnet);
        bench.pass_ms(took);
        alive(&mut bench, check);
        let check = look(&mut bench, Input::PathChanged);
        let started = bench.now;
        bench.pass_ms(600);
        bench.tell(Input::HostAnswered { check });
        bench.pass_ms(14_000);
        assert_eq!(given_up(&mut bench, started), Some(verdict), "answers take {took} ms");
    }
}

#[test]
fn a_route_that_was_never_told_is_a_far_one() {
    let mut bench = Bench::connecting();
    bench.tell(Input::Ready { attempt: bench.last() });
    look(&mut bench, Input::PathChanged);
    let started = bench.now;
    bench.pass_ms(15_000);
    assert_eq!(given_up(&mut bench, started), Some(15_000));
}
