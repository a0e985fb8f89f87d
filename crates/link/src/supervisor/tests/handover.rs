//! The next session is made ready before the last one is given up.

use super::*;
use crate::supervisor::Foreground;

/// A far session whose host answered 600 ms after the check began, and the replacement that was
/// begun beside it: `(bench, session, replacement, check)`.
fn doubted(input: Input) -> (Bench, AttemptId, AttemptId, u64) {
    let mut bench = Bench::connected(RouteClass::Public);
    bench.pass_ms(60_000);
    let session = bench.last();
    bench.tell(input);
    let check = match bench.take()[..] {
        [Action::Probe { check, .. }] => check,
        ref other => panic!("{other:?}"),
    };
    bench.pass_ms(600);
    bench.take();
    bench.tell(Input::HostAnswered { check });
    let replacement = bench.last();
    assert_ne!(replacement, session);
    (bench, session, replacement, check)
}

fn ready(bench: &mut Bench, attempt: AttemptId) {
    bench.tell(Input::Route { attempt, class: RouteClass::Public });
    bench.tell(Input::Ready { attempt });
}

#[test]
fn a_replacement_is_begun_beside_a_doubted_session_and_wakes_nothing() {
    for (input, urgent) in [(Input::PathChanged, false), (Input::RetryNow { wake: true }, true)] {
        let (mut bench, session, attempt, check) = doubted(input);
        let deadline = bench.now.after(Duration::from_secs(15));
        assert_eq!(
            bench.take(),
            [
                Action::StopAsking { check },
                Action::Want { attempt, urgent },
                Action::Begin { attempt, wake: false, deadline },
            ],
        );
        assert_eq!(bench.phase(), ConnectionPhase::Connected);
        assert_eq!((bench.state().stage, bench.state().verifying), (None, true));
        assert_eq!(bench.supervisor.session(), Some(session));
        bench.tell(Input::HostAnswered { check });
        assert_eq!(bench.take(), [], "one is enough");
    }
}

#[test]
fn a_replacement_that_is_ready_takes_over_at_the_verdict_in_one_step() {
    let (mut bench, session, replacement, _) = doubted(Input::PathChanged);
    bench.pass_ms(100);
    bench.take();
    ready(&mut bench, replacement);
    assert_eq!(bench.take(), [], "held, unpublished");
    assert_eq!((bench.supervisor.session(), bench.state().generation), (Some(session), 1));
    bench.pass_ms(1_799);
    assert_eq!(bench.take(), []);
    bench.pass_ms(1);
    assert_eq!(
        bench.take(),
        [
            Action::Unpublish { attempt: session },
            Action::Publish { attempt: replacement, generation: 2 },
            Action::Release { attempt: session, why: ReleaseReason::Dead },
        ],
    );
    assert_eq!(bench.phase(), ConnectionPhase::Connected);
    assert_eq!(bench.supervisor.session(), Some(replacement));
    assert!(!bench.state().verifying);
    assert_eq!(bench.supervisor.poll_timeout(), None);
}

#[test]
fn a_sign_of_life_before_the_verdict_drops_the_replacement() {
    let signs: [fn(AttemptId, u64) -> Input; 2] =
        [|attempt, _| Input::Frame { attempt }, |attempt, check| Input::Alive { attempt, check }];
    for sign in signs {
        let (mut bench, session, replacement, check) = doubted(Input::PathChanged);
        bench.take();
        bench.tell(sign(session, check));
        assert_eq!(bench.take(), [Action::Abandon { attempt: replacement }]);
        bench.tell(Input::Ready { attempt: replacement });
        assert_eq!(
            bench.take(),
            [Action::Release { attempt: replacement, why: ReleaseReason::Late }],
        );
        let (mut bench, session, replacement, check) = doubted(Input::PathChanged);
        ready(&mut bench, replacement);
        bench.take();
        bench.tell(sign(session, check));
        let why = ReleaseReason::NotNeeded;
        assert_eq!(bench.take(), [Action::Release { attempt: replacement, why }]);
        assert_eq!((bench.supervisor.session(), bench.state().generation), (Some(session), 1));
    }
}

#[test]
fn a_frame_of_the_replacement_is_no_sign_of_the_session() {
    let (mut bench, session, replacement, _) = doubted(Input::PathChanged);
    ready(&mut bench, replacement);
    bench.tell(Input::Frame { attempt: replacement });
    bench.take();
    bench.pass_ms(1_900);
    assert_eq!(bench.take()[0], Action::Unpublish { attempt: session });
    assert_eq!(bench.supervisor.session(), Some(replacement));
}

#[test]
fn a_replacement_on_its_way_at_the_verdict_goes_on_as_the_attempt() {
    let (mut bench, session, replacement, _) = doubted(Input::PathChanged);
    bench.tell(Input::Stage { attempt: replacement, stage: crate::Stage::Synchronizing });
    let begun = bench.now;
    bench.take();
    bench.pass_ms(1_900);
    assert_eq!(
        bench.take(),
        [
            Action::Unpublish { attempt: session },
            Action::Release { attempt: session, why: ReleaseReason::Dead },
        ],
    );
    assert_eq!(bench.phase(), ConnectionPhase::Connecting);
    assert_eq!(bench.state().stage, Some(crate::Stage::Synchronizing));
    assert!(bench.state().last_failure.is_some());
    bench.pass_ms(13_099);
    assert_eq!(bench.phase(), ConnectionPhase::Connecting);
    bench.pass_ms(1);
    assert_eq!(bench.take_since(begun), [(15_000, Action::Abandon { attempt: replacement })]);
    assert_eq!((bench.phase(), bench.state().attempt), (ConnectionPhase::Backoff, 1));
    let (mut bench, _, replacement, _) = doubted(Input::PathChanged);
    bench.pass_ms(1_900);
    bench.take();
    ready(&mut bench, replacement);
    assert_eq!(bench.take(), [Action::Publish { attempt: replacement, generation: 2 }]);
}

#[test]
fn a_replacement_still_in_line_at_the_verdict_keeps_its_place() {
    let mut bench = Bench::connected(RouteClass::Tailnet);
    bench.pass_ms(60_000);
    bench.stingy = true;
    bench.tell(Input::PathChanged);
    bench.pass_ms(600);
    bench.tell(Input::HostAnswered { check: 1 });
    let replacement = bench.last();
    bench.pass_ms(1_900);
    assert_eq!(bench.state().stage, Some(crate::Stage::Waiting));
    assert_eq!(bench.begun(), 0);
    bench.tell(Input::Granted { attempt: replacement });
    assert_eq!((bench.begun(), bench.last()), (1, replacement));
}

#[test]
fn a_session_that_closes_before_the_verdict_is_replaced_at_once() {
    let (mut bench, session, replacement, _) = doubted(Input::PathChanged);
    ready(&mut bench, replacement);
    bench.take();
    bench.close(FailureReason::Transport);
    assert_eq!(
        bench.take(),
        [
            Action::Unpublish { attempt: session },
            Action::Release { attempt: session, why: ReleaseReason::Closed },
            Action::Publish { attempt: replacement, generation: 2 },
        ],
    );
    assert_eq!(bench.phase(), ConnectionPhase::Connected);
    let (mut bench, _, replacement, _) = doubted(Input::PathChanged);
    bench.take();
    bench.close(FailureReason::Transport);
    assert_eq!((bench.begun(), bench.last()), (0, replacement), "the same attempt goes on");
    assert_eq!(bench.phase(), ConnectionPhase::Connecting);
}

#[test]
fn a_session_that_ends_for_a_reason_of_its_host_takes_the_replacement_with_it() {
    for (reason, phase) in [
        (FailureReason::Authentication, ConnectionPhase::Blocked),
        (FailureReason::Asleep, ConnectionPhase::Asleep),
    ] {
        let (mut bench, _, replacement, _) = doubted(Input::PathChanged);
        ready(&mut bench, replacement);
        bench.take();
        bench.close(reason);
        assert_eq!(
            released(&bench.take())[1..],
            [(replacement, ReleaseReason::NotNeeded)],
            "{reason}",
        );
        assert_eq!(bench.phase(), phase);
        let (mut bench, _, attempt, _) = doubted(Input::PathChanged);
        bench.take();
        bench.close(reason);
        assert_eq!(bench.take().pop(), Some(Action::Abandon { attempt }));
        assert_eq!(bench.phase(), phase);
    }
}

#[test]
fn a_replacement_that_failed_was_the_attempt_without_a_wait() {
    let endings: [fn(&mut Bench, AttemptId); 2] = [
        |bench, attempt| {
            let failure = Failure::new(FailureReason::Network, "no");
            bench.tell(Input::Failed { attempt, failure });
            assert_eq!(bench.take(), []);
        },
        |bench, attempt| {
            ready(bench, attempt);
            let failure = Failure::new(FailureReason::Network, "no");
            bench.tell(Input::Closed { attempt, failure });
            assert_eq!(bench.take(), [Action::Release { attempt, why: ReleaseReason::Closed }],);
        },
    ];
    for ending in endings {
        let (mut bench, session, replacement, _) = doubted(Input::PathChanged);
        bench.take();
        ending(&mut bench, replacement);
        assert_eq!(bench.phase(), ConnectionPhase::Connected);
        bench.pass_ms(1_900);
        assert_eq!(released(&bench.take()), [(session, ReleaseReason::Dead)]);
        assert_eq!((bench.phase(), bench.state().attempt), (ConnectionPhase::Backoff, 1));
    }
}

#[test]
fn a_replacement_has_the_same_time_as_every_attempt() {
    let mut bench = Bench::connected(RouteClass::Tailnet);
    // Answers that take so long that the verdict waits for ten seconds.
    bench.tell(Input::PathChanged);
    bench.pass_ms(14_000);
    bench.tell(Input::Alive { attempt: bench.last(), check: 1 });
    bench.tell(Input::PathChanged);
    bench.pass_ms(600);
    bench.tell(Input::HostAnswered { check: 2 });
    bench.pass_ms(9_399);
    assert_eq!(bench.phase(), ConnectionPhase::Connected);
    bench.pass_ms(1);
    assert_eq!(bench.phase(), ConnectionPhase::Connecting);
    let deadline = bench.supervisor.poll_timeout().unwrap();
    assert_eq!(bench.now.until(deadline), Duration::from_millis(5_600));
}

#[test]
fn what_ends_the_check_ends_the_replacement() {
    let (mut bench, session, replacement, check) = doubted(Input::PathChanged);
    bench.take();
    bench.tell(Input::Foreground(Foreground::Long));
    assert_eq!(
        bench.take(),
        [
            Action::Abandon { attempt: replacement },
            Action::Probe { attempt: session, check: check + 1 },
        ],
    );
    for (input, why) in [
        (Input::Disconnect, ReleaseReason::Disconnected),
        (Input::CredentialsChanged { bound: true }, ReleaseReason::CredentialsChanged),
    ] {
        let (mut bench, session, replacement, _) = doubted(Input::PathChanged);
        ready(&mut bench, replacement);
        bench.take();
        bench.tell(input);
        assert_eq!(
            released(&bench.take()),
            [(replacement, ReleaseReason::NotNeeded), (session, why)],
        );
    }
}

#[test]
fn a_near_session_needs_no_replacement_beside_it() {
    for class in [RouteClass::Loopback, RouteClass::Lan] {
        let mut bench = Bench::connected(class);
        bench.tell(Input::PathChanged);
        bench.pass_ms(600);
        bench.tell(Input::HostAnswered { check: 1 });
        assert_eq!(bench.phase(), ConnectionPhase::Connecting, "dead at once");
    }
}
