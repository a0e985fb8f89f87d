//! A platform that dies in the middle of a stream.

use std::time::Duration;

use wakeful_link::{ConnectionPhase, DataStatus};
use wakeful_wire::{
    HostId, Phase,
    rpc::{Call, ThreadCancel},
};

use super::desk::Desk;
use crate::support::{Setup, stays, until};

#[test]
fn a_stream_goes_on_after_the_death_of_the_platform_with_nothing_twice_and_nothing_left_out() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let host = HostId::from(user.env);
    let desk = Desk::new();
    let client = desk.start(&platform, "ada", &user);
    client.live(host);
    let thread = client.thread(host);
    client.run(host, thread, "i=0; while :; do i=$((i+1)); echo line-$i; sleep 0.05; done");
    let after = |lines: usize| {
        until("lines", || (client.lines(host, thread).len() >= lines).then_some(()));
    };
    after(10);

    platform.kill_9();
    let lost = until("the loss", || {
        client.connection(host).filter(|state| state.phase != ConnectionPhase::Connected)
    });
    assert!(lost.last_failure.is_some(), "{lost:?}");
    // What was read stays, does not grow, and does not claim to be current. The environment is not
    // taken to have gone or to sleep.
    let held = client.lines(host, thread);
    stays("not connected", Duration::from_secs(2), || {
        !client.is(host, ConnectionPhase::Connected) && !client.is(host, ConnectionPhase::Asleep)
    });
    let (_, status) = client.detail(host, thread).unwrap();
    assert_ne!(status, DataStatus::Live);
    assert_eq!(client.lines(host, thread), held);

    platform.start_again();
    assert!(client.with(|link, now| link.retry(now, host)));
    assert_eq!(client.live(host).generation, 2);
    after(held.len() + 10);
    let running = client.detail(host, thread).unwrap().0.thread.last_turn.clone();
    assert!(running.is_none(), "the turn outlived the platform: {running:?}");
    client.call(host, Call::ThreadCancel(ThreadCancel { thread, turn: None }));
    until("the end of the turn", || client.detail(host, thread)?.0.thread.last_turn.clone());
    let numbers: Vec<usize> = client
        .lines(host, thread)
        .iter()
        .filter_map(|line| line.strip_prefix("line-")?.parse().ok())
        .collect();
    let expected: Vec<usize> = (1..=numbers.len()).collect();
    assert_eq!(numbers, expected);
    assert_eq!(platform.environment(&user, user.env).phase, Phase::Ready);
    client.close();
}
