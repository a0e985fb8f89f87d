//! Many sockets on one host.

use std::time::{Duration, Instant};

use serde_json::json;
use wakeful_wire::{
    host::Scopes,
    rpc::{Seq, ServerFrame},
};

use crate::fixture::{Client, Held, NARROW, Place};

async fn followers(place: &Place, many: usize, thread: wakeful_wire::rpc::ThreadId) -> Vec<Client> {
    let (_, token) = place.session(1, Scopes::all()).await;
    let mut clients = Vec::with_capacity(many);
    for _ in 0..many {
        let (mut client, _) = place.socket(1, &token, 64 * 1024).await;
        client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
        clients.push(client);
    }
    clients
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_sockets_end_with_the_same_state_as_the_log() {
    let place = Place::new().await;
    let thread = place.thread().await;
    let clients = followers(&place, 200, thread).await;
    let mut last = Seq::ZERO;
    let (tell, told) = tokio::sync::watch::channel(Seq(u64::MAX));
    let following: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            let mut told = told.clone();
            tokio::spawn(async move {
                let mut held = Held::default();
                held.follow(&mut client, Seq::ZERO).await;
                let last = *told.wait_for(|last| last.0 < u64::MAX).await.unwrap();
                held.follow(&mut client, last).await;
                held.detail.unwrap()
            })
        })
        .collect();
    for _ in 0..20 {
        last = place.say(thread, "word ", 10).await;
    }
    tell.send_replace(last);
    let expected = place.detail(thread).await;
    for follower in following {
        assert!(follower.await.unwrap() == expected);
    }
}

/// Sends `rounds` of `per_round` events to all, and returns how long each round took to arrive.
async fn rounds(
    place: &Place,
    thread: wakeful_wire::rpc::ThreadId,
    clients: Vec<Client>,
    (rounds, per_round): (usize, usize),
) -> (Vec<Duration>, Vec<Client>) {
    let mut clients: Vec<_> = clients.into_iter().map(|client| (client, Held::default())).collect();
    for (client, held) in &mut clients {
        held.follow(client, Seq::ZERO).await;
    }
    let mut took = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        let last = place.say(thread, "a few words of an answer ", per_round).await;
        for (client, held) in &mut clients {
            held.follow(client, last).await;
        }
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    (took, clients.into_iter().map(|(client, _)| client).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, to be run with --release"]
async fn fan_out_to_a_thousand_sockets() {
    const SOCKETS: usize = 1_000;
    let place = Place::new().await;
    let thread = place.thread().await;
    let clients = followers(&place, SOCKETS, thread).await;
    let mut all = clients;
    for per_round in [1, 100] {
        let thread = place.thread().await;
        for client in &mut all {
            client.send(json!({ "type": "cancel", "id": 1 })).await;
            while !matches!(client.frame().await, ServerFrame::End { .. }) {}
            client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
        }
        let (took, back) = rounds(&place, thread, all, (20, per_round)).await;
        all = back;
        let median = took[took.len() / 2];
        let each = median.as_nanos() / u128::try_from(SOCKETS * per_round).unwrap();
        println!(
            "{SOCKETS} sockets, {per_round} events at once: {median:?} (worst {:?}) until the last \
             client has them, {each} ns per event and subscriber, clients included",
            took.last().unwrap(),
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, to be run with --release"]
async fn a_slow_reader_delays_nobody() {
    let place = Place::new().await;
    let thread = place.thread().await;
    let clients = followers(&place, 100, thread).await;
    let (without, clients) = rounds(&place, thread, clients, (50, 20)).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut client = place.client(NARROW).await;
        client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
        slow.push(client);
    }
    let mut others = clients;
    for client in &mut others {
        client.send(json!({ "type": "cancel", "id": 1 })).await;
        while !matches!(client.frame().await, ServerFrame::End { .. }) {}
        client.request(1, "thread.subscribe", json!({ "thread": thread })).await;
    }
    let (with, _others) = rounds(&place, thread, others, (50, 20)).await;
    let shown = |took: &[Duration]| (took[took.len() / 2], took[took.len() * 9 / 10]);
    println!(
        "median and 90th of 100 sockets: alone {:?}, beside 20 that take nothing {:?}",
        shown(&without),
        shown(&with)
    );
    drop(slow);
}
