//! Crowds of whole clients whose one host goes and comes back (cases C37 and C38).

use std::{fmt::Write as _, time::Duration};

use wakeful_sim::link_crowd::{Crowd, Door};

/// What happens to a crowd's host.
type Happens = fn(&mut Crowd);

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// A crowd that is live, with a seed of its own for each client.
fn live(size: usize) -> Crowd {
    live_with(size, |place| 0x00c0_ffee + place as u64 * 7_919)
}

fn live_with(size: usize, seed_of: impl Fn(usize) -> u64) -> Crowd {
    let mut crowd = Crowd::new(1, size, seed_of);
    crowd.start();
    crowd.count_anew();
    crowd
}

/// The host is gone for so long, and its wires are cut.
fn gone_for(crowd: &mut Crowd, milliseconds: u64) {
    crowd.host.door = Door::Closed;
    crowd.drop_all(None);
    crowd.pass(milliseconds);
    crowd.host.restart();
    crowd.host.door = Door::Open;
}

/// From the second attempt on, no second holds more than a twentieth of the clients.
fn assert_spread(crowd: &Crowd, size: usize, what: &str) {
    let fullest = crowd.figures.fullest_second(2);
    assert!(fullest * 20 <= size, "{what}: {fullest} of {size} in one second");
}

fn assert_back(crowd: &Crowd, size: usize, what: &str) {
    assert_eq!((crowd.connected(), crowd.live()), (size, size), "{what}");
    assert_eq!(crowd.host.lists, 0, "{what}: whole lists are loaded");
}

#[test]
fn ten_thousand_clients_of_a_restarted_host_come_back_spread_and_load_nothing() {
    const SIZE: usize = 10_000;
    let mut crowd = live(SIZE);
    gone_for(&mut crowd, 2_000);
    crowd.pass(10 * MINUTE);
    assert_back(&crowd, SIZE, "a restart of two seconds");
    assert_spread(&crowd, SIZE, "a restart of two seconds");
    let figures = &crowd.figures;
    let first = figures.fullest_second(1);
    assert!(first * 4 <= SIZE, "{first} first attempts in one second");
    let all = figures.live_by(100).expect("all are back");
    assert!(all < 2 * MINUTE, "the last one after {all} ms");
    let bytes = figures.frame_bytes() / SIZE as u64;
    assert!(bytes < 2_048, "{bytes} bytes of frames a client");

    let mut said = String::new();
    let _ = writeln!(said, "10,000 clients, host gone for 2 s:");
    let _ = writeln!(
        said,
        "  most attempts in one second: {first}, from the second on {}",
        figures.fullest_second(2)
    );
    for percent in [50, 90, 99, 100] {
        let _ = writeln!(said, "  {percent} % live after {:?} ms", figures.live_by(percent));
    }
    let _ = writeln!(
        said,
        "  attempts of a client: {:.2} on average, {} at most",
        figures.mean_attempts(),
        figures.most_attempts()
    );
    let _ = writeln!(said, "  lists loaded: {}, resumed: {}", crowd.host.lists, crowd.host.resumes);
    let _ = writeln!(said, "  bytes of frames a client, both ways: {bytes}");
    tell(&said);
}

#[test]
fn a_thousand_clients_come_back_spread_whatever_happened_to_their_host() {
    const SIZE: usize = 1_000;
    let cases: [(&str, Happens); 4] = [
        ("gone for half a minute", |crowd| gone_for(crowd, 30_000)),
        ("a blip of five milliseconds", |crowd| gone_for(crowd, 5)),
        ("restarting, and saying so", |crowd| {
            crowd.host.door = Door::Closed;
            crowd.drop_all(Some(1012));
            crowd.pass(3_000);
            crowd.host.restart();
            crowd.host.door = Door::Open;
        }),
        ("too busy, for twenty seconds", |crowd| {
            crowd.host.door = Door::Busy { retry_after: Duration::from_secs(20) };
            crowd.drop_all(None);
            crowd.pass(15_000);
            crowd.host.door = Door::Open;
        }),
    ];
    for (what, happens) in cases {
        let mut crowd = live(SIZE);
        happens(&mut crowd);
        crowd.pass(15 * MINUTE);
        assert_back(&crowd, SIZE, what);
        assert_spread(&crowd, SIZE, what);
        let figures = &crowd.figures;
        let first = figures.fullest_second(1);
        assert!(first * 3 <= SIZE, "{what}: {first} first attempts in one second");
        tell(&format!(
            "1,000 clients, {what}: at most {first} attempts in a second, {} from the second on, all live after {:?} ms\n",
            figures.fullest_second(2),
            figures.live_by(100),
        ));
    }
}

#[test]
fn nobody_comes_back_before_the_time_that_a_busy_host_named() {
    const SIZE: usize = 1_000;
    let mut crowd = live(SIZE);
    crowd.host.door = Door::Busy { retry_after: Duration::from_secs(20) };
    crowd.drop_all(None);
    crowd.pass(5 * MINUTE);
    let attempts = &crowd.figures.attempts;
    for second in attempts.iter().filter(|attempt| attempt.number == 2) {
        let first = attempts.iter().find(|one| one.client == second.client && one.number == 1);
        let waited = second.at - first.expect("the one before").at;
        assert!(waited >= 20_000, "a client came back after {waited} ms");
    }
    assert_spread(&crowd, SIZE, "too busy for five minutes");
}

#[test]
fn a_host_that_is_gone_for_six_hours_costs_about_a_hundred_attempts_and_is_found_within_the_cap() {
    const SIZE: usize = 1_000;
    let mut crowd = live(SIZE);
    gone_for(&mut crowd, 6 * HOUR);
    let (mean, most) = (crowd.figures.mean_attempts(), crowd.figures.most_attempts());
    assert!(mean > 80.0 && most <= 112, "{mean} attempts on average, {most} at most");
    let half: Vec<_> = crowd.figures.attempts.iter().filter(|one| one.at <= 30 * MINUTE).collect();
    let in_half = half.len() as f64 / SIZE as f64;
    assert!((10.0..=15.0).contains(&in_half), "{in_half} attempts in half an hour");
    crowd.pass(5 * MINUTE + 10_000);
    assert_back(&crowd, SIZE, "six hours");
    assert_spread(&crowd, SIZE, "six hours");
    tell(&format!(
        "1,000 clients, host gone for 6 h: {in_half:.1} attempts in the first half hour, {mean:.1} in all (at most {most}), at most {} in a second, all live {} ms after its return\n",
        crowd.figures.fullest_second(2),
        crowd.figures.live_by(100).expect("all are back") - 6 * HOUR,
    ));
}

#[test]
fn clients_that_wake_at_the_same_moment_are_spread_from_their_second_wait_on() {
    const SIZE: usize = 500;
    let mut crowd = live(SIZE);
    crowd.resume_at_once(SIZE);
    crowd.pass(MINUTE);
    assert_back(&crowd, SIZE, "a host that is there");
    let first = crowd.figures.fullest_second(1);

    let mut crowd = live(SIZE);
    crowd.host.door = Door::Closed;
    crowd.resume_at_once(SIZE);
    crowd.pass(30_000);
    crowd.host.door = Door::Open;
    crowd.pass(10 * MINUTE);
    assert_back(&crowd, SIZE, "a host that is not");
    let fullest = crowd.figures.fullest_second(3);
    tell(&format!(
        "500 clients that resume at one tick: {first} attempts in that second (each has a person before it), then at most {} and {fullest} in a second from the second and third attempt on\n",
        crowd.figures.fullest_second(2),
    ));
    assert!(fullest * 20 <= SIZE, "{fullest} of {SIZE} in one second");
}

#[test]
fn clients_whose_shells_drew_the_same_seed_are_spread_all_the_same() {
    const SIZE: usize = 1_000;
    let mut crowd = live_with(SIZE, |_| 7);
    gone_for(&mut crowd, 30_000);
    crowd.pass(15 * MINUTE);
    assert_back(&crowd, SIZE, "one seed");
    assert_spread(&crowd, SIZE, "one seed");
}

#[test]
fn a_host_that_flaps_is_visited_ever_more_seldom_by_everybody() {
    const SIZE: usize = 200;
    let table = [
        ("closes before it greets", Door::Ends { greets: false, after: 100, code: 1008 }),
        ("fails before it greets", Door::Ends { greets: false, after: 0, code: 1011 }),
        ("closes after two seconds", Door::Ends { greets: true, after: 2_000, code: 1011 }),
        ("says nothing", Door::Silent),
        ("cannot be understood", Door::Nonsense),
        ("is out of order", Door::Refuses { status: 503 }),
    ];
    for (what, door) in table {
        let mut crowd = live(SIZE);
        crowd.host.door = door;
        crowd.drop_all(None);
        crowd.pass(30 * MINUTE);
        let mean = crowd.figures.mean_attempts();
        let most = crowd.figures.most_attempts();
        assert!((10.0..=15.0).contains(&mean) && most <= 16, "{what}: {mean}, at most {most}");
        tell(&format!(
            "a host that {what}: {mean:.1} attempts a client in 30 min, at most {most}\n"
        ));
    }
    for (what, door) in [
        ("does not know them", Door::Ends { greets: false, after: 100, code: 4401 }),
        ("does not let them in", Door::Refuses { status: 403 }),
    ] {
        let mut crowd = live(SIZE);
        crowd.host.door = door;
        crowd.drop_all(None);
        crowd.pass(30 * MINUTE);
        assert_eq!((crowd.figures.most_attempts(), crowd.blocked()), (1, SIZE), "{what}");
    }
    let mut crowd = live(SIZE);
    crowd.host.door = Door::Ends { greets: true, after: MINUTE, code: 1011 };
    crowd.drop_all(None);
    crowd.pass(30 * MINUTE);
    let mean = crowd.figures.mean_attempts();
    assert!((26.0..=30.0).contains(&mean), "a minute each time is lasting: {mean}");
}

/// Says a figure, for whoever runs this to read it.
#[expect(clippy::print_stdout, reason = "the figures are what it is run for")]
fn tell(what: &str) {
    print!("{what}");
}
