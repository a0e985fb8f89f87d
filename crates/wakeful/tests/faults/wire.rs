//! A wire that loses packets without a word, between a client and a host elsewhere.

use std::time::{Duration, Instant};

use wakeful_client::signals;
use wakeful_link::{ConnectionPhase, DataStatus, Failure, FailureReason, supervisor::Foreground};
use wakeful_wire::rpc::{Call, ThreadCancel, ThreadId};

use crate::{
    fixture::{Desk, Running, Server, printed},
    network::{Far, Network},
};

/// A host in a network of its own, and a client that is connected to it.
struct Elsewhere {
    client: Running,
    _desk: Desk,
    _server: Server,
    /// Ends after the host that is in it.
    network: Network,
}

impl Elsewhere {
    async fn new(far: Far) -> Option<Self> {
        let network = Network::new()?;
        let server = Server::start_in(&network);
        // A host lets itself be paired with from its own network alone.
        let desk = Desk::pair(&server, &server.at(network.host(Far::Lan))).await;
        desk.move_host(&server.at(network.host(far)));
        let client = desk.start().await;
        client.live().await;
        Some(Self { client, _desk: desk, _server: server, network })
    }

    /// Waits until the session is over. Says why, unless the next one is there already.
    async fn lost(&self) -> Option<Failure> {
        let host = self.client.host;
        let look = |link: &mut wakeful_link::Link, _| {
            link.connection(host)
                .filter(|state| state.phase != ConnectionPhase::Connected || state.generation > 1)
                .map(|state| state.last_failure.clone())
        };
        self.client.until("the end of the session", look).await
    }

    async fn another_session(&self) {
        let host = self.client.host;
        let look = |link: &mut wakeful_link::Link, _| {
            link.connection(host)
                .filter(|state| state.generation == 2 && state.phase == ConnectionPhase::Connected)
                .map(drop)
        };
        self.client.until("another session", look).await;
        self.client.live().await;
    }

    fn come_to_the_foreground(&self) -> Instant {
        self.client.client.with(|link, now| link.handle_foreground(now, Foreground::Short));
        Instant::now()
    }

    /// A thread that prints numbered lines without an end, and is looked at.
    async fn counting(&self) -> ThreadId {
        let thread = self.client.thread().await;
        let host = self.client.host;
        self.client.client.with(|link, now| link.mount(now, host, thread)).unwrap();
        let endless = "i=0; while :; do i=$((i+1)); echo line-$i; sleep 0.05; done";
        self.client.run(thread, endless).await;
        self.lines(thread, 10).await;
        thread
    }

    async fn lines(&self, thread: ThreadId, least: usize) {
        let host = self.client.host;
        let look = |link: &mut wakeful_link::Link, _| {
            let detail = link.thread(host, thread)?.detail()?;
            (printed(detail).len() >= least).then_some(())
        };
        self.client.until("lines", look).await;
    }

    /// Ends the counting; every number is there once.
    async fn counted(&self, thread: ThreadId) {
        let host = self.client.host;
        let cancel = ThreadCancel { thread, turn: None };
        self.client.call(Call::ThreadCancel(cancel)).await.unwrap();
        let look = |link: &mut wakeful_link::Link, _| {
            let state = link.thread(host, thread)?;
            let detail = state.detail().filter(|_| state.status == DataStatus::Live)?;
            detail.thread.last_turn.as_ref().map(|_| printed(detail))
        };
        let lines = self.client.until("the end of the turn", look).await;
        let numbers = lines.iter().filter_map(|line| line.strip_prefix("line-")?.parse().ok());
        let numbers: Vec<usize> = numbers.collect();
        let expected: Vec<usize> = (1..=numbers.len()).collect();
        assert_eq!(numbers, expected);
    }
}

#[tokio::test]
async fn in_the_local_network_the_hosts_fresh_answer_ends_a_connection_that_died_without_a_close() {
    let Some(world) = Elsewhere::new(Far::Lan).await else { return };
    let thread = world.counting().await;
    // Also those that are kept for further requests are dead: a fresh one needs a new connection.
    assert!(world.network.lose_open_connections() >= 1);
    let begun = world.come_to_the_foreground();
    let lost = world.lost().await;
    assert!(begun.elapsed() >= Duration::from_millis(500), "{:?}", begun.elapsed());
    // Not the deadline: that would be a timeout.
    if let Some(failure) = lost {
        assert_eq!(failure.reason, FailureReason::Transport, "{failure:?}");
    }
    world.another_session().await;
    world.counted(thread).await;
    world.client.client.close().await;
}

#[tokio::test]
async fn far_away_the_hosts_fresh_answer_counts_only_after_two_and_a_half_seconds() {
    let Some(world) = Elsewhere::new(Far::Anywhere).await else { return };
    let thread = world.counting().await;
    assert!(world.network.lose_open_connections() >= 1);
    let begun = world.come_to_the_foreground();
    let _reason = world.lost().await;
    let taken = begun.elapsed();
    assert!(taken >= Duration::from_millis(2_450), "{taken:?}");
    // The deadline alone has fifteen seconds.
    assert!(taken < Duration::from_secs(13), "{taken:?}");
    world.another_session().await;
    world.counted(thread).await;
    world.client.client.close().await;
}

#[tokio::test]
async fn a_network_that_carries_nothing_is_given_up_after_three_seconds_and_nothing_is_lost() {
    let Some(world) = Elsewhere::new(Far::Lan).await else { return };
    let host = world.client.host;
    let thread = world.counting().await;
    world.network.lose_everything();
    let begun = world.come_to_the_foreground();
    let lost = world.lost().await;
    assert!(begun.elapsed() >= Duration::from_millis(2_950), "{:?}", begun.elapsed());
    assert_eq!(lost.unwrap().reason, FailureReason::Timeout);
    // What was read stays, and does not claim to be current.
    world.client.client.with(|link, _| {
        let state = link.thread(host, thread).unwrap();
        assert!(state.detail().is_some());
        assert_ne!(state.status, DataStatus::Live);
    });
    // The first attempt begins at once, hangs, and the next one waits.
    let waiting = world.client.phase(ConnectionPhase::Backoff).await;
    assert!(waiting.retry_at.is_some(), "{waiting:?}");
    world.network.lose_nothing();
    world.client.client.with(|link, now| link.retry(now, host));
    world.another_session().await;
    world.counted(thread).await;
    world.client.client.close().await;
}

#[tokio::test]
async fn another_address_of_this_machine_is_noticed_and_the_connection_from_the_old_one_replaced() {
    let Some(world) = Elsewhere::new(Far::Lan).await else { return };
    let _watching = signals::attach(&world.client.client);
    let thread = world.counting().await;
    world.network.move_client();
    // Nobody says anything but the machine itself.
    let _reason = world.lost().await;
    world.another_session().await;
    world.counted(thread).await;
    world.client.client.close().await;
}
