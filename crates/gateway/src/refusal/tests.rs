use super::*;
use wakeful_wire::Generation;

fn answer(state: GateState) -> EnsureAnswer {
    EnsureAnswer {
        state,
        phase: Phase::Starting,
        generation: Generation(1),
        sandbox: None,
        upstream: None,
        retry_after_ms: Some(2_500),
        reason: Some("because".to_owned()),
    }
}

#[test]
fn each_verdict_of_the_gate_has_its_status() {
    let table = [
        (GateState::Starting, false, 503),
        (GateState::SurfaceStarting, false, 503),
        (GateState::SurfaceFailed, false, 502),
        (GateState::Asleep, false, 503),
        (GateState::Failed, true, 502),
        (GateState::Disabled, false, 423),
        (GateState::Gone, true, 410),
        (GateState::Gone, false, 404),
        (GateState::NotFound, true, 410),
        (GateState::NotFound, false, 404),
    ];
    for (state, waited, status) in table {
        let refusal = Refusal::of_answer(&answer(state), waited).unwrap();
        assert_eq!(refusal.code.status(), status, "{state:?}");
        assert_eq!(refusal.phase.is_none(), status == 404, "{state:?}");
        let told = status == 503 || state == GateState::Failed;
        let after = told.then_some(Duration::from_millis(2_500));
        assert_eq!(refusal.retry_after, after, "{state:?}");
    }
    assert_eq!(Refusal::of_answer(&answer(GateState::Ready), true), None);
}

#[test]
fn an_environment_that_cannot_start_is_worth_a_retry_only_if_it_says_when() {
    for (retry_after_ms, retry) in [(Some(30_000), true), (None, false)] {
        let failed = EnsureAnswer { retry_after_ms, ..answer(GateState::Failed) };
        let refusal = Refusal::of_answer(&failed, true).unwrap();
        assert_eq!(refusal.code, Code::EnvironmentFailed);
        assert_eq!(refusal.retry_after, retry_after_ms.map(Duration::from_millis));
        assert_eq!(refusal.problem().retry, retry);
    }
    assert!(Refusal::new(Code::UpstreamFailed).problem().retry, "a code's own word stands");
}

#[test]
fn a_sandbox_that_is_gone_differs_from_a_program_that_died_in_it() {
    let gone = Refusal::of_failure(FailureKind::Connect, Some(FailureAnswer { restart: true }));
    assert_eq!((gone.code, gone.close_code()), (Code::Restarting, Some(4503)));
    for answer in [Some(FailureAnswer { restart: false }), None] {
        let died = Refusal::of_failure(FailureKind::BeforeHead, answer);
        assert_eq!((died.code, died.close_code()), (Code::UpstreamFailed, Some(1011)));
    }
}

#[test]
fn close_codes_follow_the_table() {
    let table = [
        (Code::Unauthenticated, Some(4401)),
        (Code::CrossOrigin, Some(4403)),
        (Code::Forbidden, Some(4403)),
        (Code::NotFound, Some(4404)),
        (Code::Gone, Some(4404)),
        (Code::EnvironmentDisabled, Some(4423)),
        (Code::Asleep, Some(4503)),
        (Code::Starting, Some(4503)),
        (Code::UpstreamFailed, Some(1011)),
        (Code::BadRequest, None),
        (Code::Misdirected, None),
    ];
    for (code, close) in table {
        assert_eq!(Refusal::new(code).close_code(), close, "{code}");
    }
}
