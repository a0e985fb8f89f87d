use super::*;

const START: Instant = Instant(1_000);

fn env(number: u64) -> EnvId {
    EnvId::from_uuid(uuid::Uuid::from_u64_pair(1, number))
}

fn listed(number: u64, phase: Phase) -> Listed {
    Listed { env: env(number), label: format!("site/{number}"), phase }
}

fn after(seconds: u64) -> Instant {
    START.after(Duration::from_secs(seconds))
}

fn drain(platform: &mut Platform) -> Vec<Action> {
    std::iter::from_fn(|| platform.poll_action())
        .filter(|action| *action != Action::Changed)
        .collect()
}

/// A platform whose stream has been open since the start, and whose list is known.
fn following() -> Platform {
    let mut platform = Platform::new(Chance::seeded(1));
    platform.handle_wanted(START);
    platform.handle_opened(START, StreamId(1));
    platform.handle_listed(START, StreamId(1), Ok(vec![listed(1, Phase::Suspended)]));
    drain(&mut platform);
    platform
}

fn broken() -> Failure {
    Failure::new(FailureReason::Transport, "it broke")
}

#[test]
fn nothing_is_opened_until_somebody_wants_it() {
    let mut platform = Platform::new(Chance::seeded(1));
    platform.handle_network(START, Network::Online);
    platform.handle_foreground(START, Foreground::Long);
    assert_eq!((drain(&mut platform), platform.poll_timeout()), (vec![], None));
    platform.handle_wanted(START);
    platform.handle_wanted(START);
    assert_eq!(drain(&mut platform), [Action::Follow(StreamId(1))]);
}

#[test]
fn the_list_is_read_once_the_stream_is_open_so_that_no_change_falls_in_between() {
    let mut platform = Platform::new(Chance::seeded(1));
    platform.handle_wanted(START);
    drain(&mut platform);
    platform.handle_opened(START, StreamId(1));
    assert_eq!(drain(&mut platform), [Action::List(StreamId(1))]);
    // The stream is faster than the list, and right.
    platform.handle_environment(START, StreamId(1), env(1), Phase::Ready);
    platform.handle_listed(START, StreamId(1), Ok(vec![listed(1, Phase::Suspended)]));
    let actions = drain(&mut platform);
    assert_eq!(actions, [Action::Phase(env(1), Phase::Ready), Action::List(StreamId(1))]);
    platform.handle_listed(START, StreamId(1), Ok(vec![listed(1, Phase::Suspended)]));
    assert_eq!(drain(&mut platform), [Action::Listed(vec![listed(1, Phase::Ready)])]);
}

#[test]
fn an_environment_that_is_new_or_gone_has_the_list_read_again() {
    let mut platform = following();
    platform.handle_environment(START, StreamId(1), env(1), Phase::Starting);
    assert_eq!(drain(&mut platform), [Action::Phase(env(1), Phase::Starting)]);
    platform.handle_environment(START, StreamId(1), env(1), Phase::Starting);
    assert_eq!(drain(&mut platform), [], "nothing new");
    platform.handle_environment(START, StreamId(1), env(2), Phase::Starting);
    let actions = drain(&mut platform);
    assert_eq!(actions, [Action::List(StreamId(1)), Action::Phase(env(2), Phase::Starting)]);
    platform.handle_listed(START, StreamId(1), Ok(vec![listed(2, Phase::Suspended)]));
    assert_eq!(drain(&mut platform), [Action::Listed(vec![listed(2, Phase::Starting)])]);
    assert_eq!(platform.phase(env(1)), None);
}

#[test]
fn a_silent_stream_is_opened_anew_after_a_pause() {
    let mut platform = following();
    platform.handle_heard(after(40), StreamId(1));
    assert_eq!(platform.poll_timeout(), Some(after(90)));
    platform.handle_timeout(after(89));
    assert_eq!(platform.state(), &PlatformState::Following);
    platform.handle_timeout(after(90));
    assert_eq!(drain(&mut platform), [Action::Unfollow(StreamId(1))]);
    let PlatformState::Backoff { retry_at, .. } = platform.state() else { panic!("it waits") };
    let retry_at = *retry_at;
    assert!(retry_at > after(90));
    platform.handle_timeout(retry_at);
    assert_eq!(drain(&mut platform), [Action::Follow(StreamId(2))]);
    // What the first one still says is of the past.
    platform.handle_environment(retry_at, StreamId(1), env(1), Phase::Ready);
    platform.handle_ended(retry_at, StreamId(1), broken());
    assert_eq!(drain(&mut platform), []);
    assert!(matches!(platform.state(), PlatformState::Opening { last_failure: Some(_) }));
}

#[test]
fn pauses_grow_until_a_stream_has_lasted() {
    let mut platform = following();
    let mut now = START;
    let mut pauses = Vec::new();
    for _ in 0..6 {
        platform.handle_ended(now, platform.stream, broken());
        let PlatformState::Backoff { retry_at, .. } = platform.state() else { panic!("it waits") };
        pauses.push(now.until(*retry_at));
        now = *retry_at;
        platform.handle_timeout(now);
        platform.handle_opened(now, platform.stream);
    }
    assert!(pauses[5] >= Duration::from_secs(100), "{pauses:?}");
    now = now.after(LASTING);
    platform.handle_heard(now, platform.stream);
    platform.handle_ended(now, platform.stream, broken());
    let PlatformState::Backoff { retry_at, .. } = platform.state() else { panic!("it waits") };
    assert!(now.until(*retry_at) <= Duration::from_secs(6));
}

#[test]
fn a_sign_in_that_is_needed_is_waited_for() {
    let mut platform = following();
    let refused = Failure::new(FailureReason::Authentication, "sign in");
    platform.handle_ended(after(1), StreamId(1), refused);
    assert_eq!(platform.poll_timeout(), None);
    platform.handle_network(after(2), Network::Online);
    assert_eq!(drain(&mut platform), [Action::Unfollow(StreamId(1))]);
    platform.handle_wanted(after(3));
    assert_eq!(drain(&mut platform), [Action::Follow(StreamId(2))]);
}

#[test]
fn without_a_network_no_attempt_is_spent_and_an_open_stream_is_left_alone() {
    let mut platform = following();
    platform.handle_network(after(1), Network::Offline);
    assert_eq!(platform.state(), &PlatformState::Following);
    platform.handle_ended(after(2), StreamId(1), broken());
    assert_eq!((platform.state(), platform.poll_timeout()), (&PlatformState::Offline, None));
    drain(&mut platform);
    platform.handle_network(after(3_600), Network::Online);
    assert_eq!(drain(&mut platform), [Action::Follow(StreamId(2))]);
}

#[test]
fn a_long_suspension_opens_the_stream_anew_and_a_short_one_does_not() {
    let mut platform = following();
    for foreground in [Foreground::Desk, Foreground::Short] {
        platform.handle_foreground(after(1), foreground);
        assert_eq!(drain(&mut platform), []);
    }
    platform.handle_foreground(after(1), Foreground::Long);
    let actions = drain(&mut platform);
    assert_eq!(actions, [Action::Unfollow(StreamId(1)), Action::Follow(StreamId(2))]);
}

#[test]
fn a_list_that_cannot_be_read_begins_everything_anew() {
    let mut platform = Platform::new(Chance::seeded(1));
    platform.handle_wanted(START);
    platform.handle_opened(START, StreamId(1));
    platform.handle_listed(START, StreamId(1), Err(broken()));
    assert!(matches!(platform.state(), PlatformState::Backoff { .. }));
}

#[test]
fn who_is_not_wanted_any_more_waits_for_nothing() {
    let mut platform = following();
    platform.handle_unwanted();
    assert_eq!(drain(&mut platform), [Action::Unfollow(StreamId(1))]);
    platform.handle_ended(after(1), StreamId(1), broken());
    assert_eq!((platform.poll_timeout(), platform.state()), (None, &PlatformState::Idle));
}

#[test]
fn streams_of_another_sign_in_are_never_taken_for_this_ones() {
    let mut platform = Platform::new(Chance::seeded(1)).numbered_from(StreamId(7 << 24));
    platform.handle_wanted(START);
    assert_eq!(drain(&mut platform), [Action::Follow(StreamId((7 << 24) + 1))]);
    platform.handle_opened(START, StreamId(1));
    platform.handle_ended(START, StreamId(1), broken());
    assert_eq!(drain(&mut platform), []);
    assert!(matches!(platform.state(), PlatformState::Opening { .. }));
}
