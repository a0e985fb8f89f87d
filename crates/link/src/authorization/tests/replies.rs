//! Answers of all kinds, among them those of others on the way.

use super::*;

fn read(reply: &Reply, side: Side) -> Failure {
    reply.read::<Vec<u8>>(side).unwrap_err()
}

#[test]
fn what_was_asked_for_is_read() {
    assert_eq!(json_of(200, &json!([1, 2])).read::<Vec<u8>>(Side::Host), Ok(vec![1, 2]));
    assert_eq!(json_of(201, &json!([])).read::<Vec<u8>>(Side::Platform), Ok(vec![]));
}

#[test]
fn a_page_or_a_redirect_means_that_somebody_wants_a_sign_in() {
    let table = [
        answered(200, "text/html; charset=utf-8", "welcome"),
        answered(200, "Text/HTML", ""),
        answered(200, "application/json", "\u{feff} \n<!doctype html>"),
        answered(200, "application/xhtml+xml", "x"),
        answered(302, "text/html", "<a href=/login>"),
        answered(303, "application/json", "[1]"),
        answered(0, "", ""),
        answered(401, "text/html", "<html>"),
        answered(407, "text/plain", ""),
        answered(511, "text/html", "<html>"),
    ];
    for reply in table {
        for side in [Side::Host, Side::Platform] {
            assert_eq!(read(&reply, side).reason, FailureReason::Authentication, "{reply:?}");
        }
    }
}

#[test]
fn an_answer_without_words_is_judged_by_its_status() {
    let table = [
        (200, FailureReason::Remote),
        (204, FailureReason::Remote),
        (403, FailureReason::Permission),
        (404, FailureReason::Platform),
        (408, FailureReason::Timeout),
        (429, FailureReason::Overloaded),
        (500, FailureReason::Platform),
        (502, FailureReason::Platform),
        (504, FailureReason::Platform),
        (999, FailureReason::Platform),
    ];
    for (status, reason) in table {
        let reply = answered(status, "text/plain", "no");
        assert_eq!(read(&reply, Side::Host).reason, reason, "{status}");
    }
    let garbled = answered(200, "application/json", "{\"a\":");
    assert_eq!(read(&garbled, Side::Platform).reason, FailureReason::Platform);
    let page = answered(502, "text/html", "<h1>Bad gateway</h1>");
    assert_eq!(read(&page, Side::Host).reason, FailureReason::Platform, "no sign-in helps");
}

#[test]
fn a_problem_says_what_it_means_and_the_header_when_to_come_back() {
    let problem = Problem::new(Code::Starting).phase(Phase::Starting).detail("Soon.");
    let mut reply = problem_of(&problem);
    if let Reply::Answered(answer) = &mut reply {
        answer.retry_after = Some(Duration::from_secs(7));
    }
    let failure = read(&reply, Side::Platform);
    assert_eq!(failure.reason, FailureReason::Starting);
    assert_eq!((failure.phase, failure.detail.as_str()), (Some(Phase::Starting), "Soon."));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
}

#[test]
fn a_refused_proof_mentions_the_clocks() {
    for (sentence, times) in [("It is wrong.", 1), ("Too old (clock skew).", 1)] {
        let mut reply = problem_of(&Problem::new(Code::Unauthenticated).detail(sentence));
        if let Reply::Answered(answer) = &mut reply {
            answer.challenge = Some("DPoP error=\"invalid_dpop_proof\"".to_owned());
        }
        let detail = read(&reply, Side::Host).detail;
        assert_eq!(detail.matches("clock skew").count(), times, "{detail}");
    }
}

#[test]
fn a_body_that_is_too_long_is_not_looked_at() {
    let long = [vec![b'['], vec![b' '; ANSWER_MAX - 1], vec![b']']].concat();
    assert_eq!(long.len(), ANSWER_MAX + 1);
    let failure = read(&answered(200, "application/json", long.clone()), Side::Host);
    assert_eq!(failure.reason, FailureReason::Remote);
    let mut fits = long;
    fits.remove(1);
    assert_eq!(answered(200, "application/json", fits).read::<Vec<u8>>(Side::Host), Ok(vec![]));
}

#[test]
fn words_of_the_other_side_are_cut() {
    let endless = Problem::new(Code::Internal).detail("wörter ".repeat(1_000));
    assert_eq!(read(&problem_of(&endless), Side::Host).detail.chars().count(), 500);
}
