//! Whatever happens in whatever order: what is held is what the log says up to its position.

mod world;

use proptest::{collection::vec, prelude::*};

use self::world::World;
use crate::threads::Options;

/// How many threads there are.
const THREADS: u64 = 3;

/// One step of a schedule.
#[derive(Debug, Clone)]
enum Step {
    /// Something happens in a thread.
    Happen(u64, Happening),
    /// Frames of the socket arrive, so many of those that wait.
    Arrive(u8),
    /// The socket is lost with everything on it; an attempt begins.
    Lose,
    /// Another session takes over at once, while frames of the earlier one still come.
    HandOver,
    Connect,
    Mount(u64),
    /// One of the consumers goes.
    Unmount(u8),
    LoadOlder(u64),
    CancelOlder(u64),
    /// The host reads a page that was asked for; it is not there yet.
    ReadPage,
    /// A page arrives.
    Page,
    FailPage,
    /// The disk does one thing that waits.
    Disk,
    TellRow(u64),
    Head,
    /// An item cannot be read.
    Unreadable(u64),
    FailSubscription(u64),
    Wait(u16),
    Restart,
    /// The host loses its newest events and goes on elsewhere.
    Restore(u8),
}

#[derive(Debug, Clone, Copy)]
enum Happening {
    Queue,
    Begin,
    Say,
    /// More text in an item of the newest segment.
    Add(u8),
    Finish,
    Pin,
    DeleteAndCreate,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        1 => Just(Happening::Queue),
        3 => Just(Happening::Begin),
        8 => Just(Happening::Say),
        5 => (0..6_u8).prop_map(Happening::Add),
        3 => Just(Happening::Finish),
        1 => Just(Happening::Pin),
        1 => Just(Happening::DeleteAndCreate),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 1..=THREADS;
    prop_oneof![
        12 => (which(), happening()).prop_map(|(thread, what)| Step::Happen(thread, what)),
        12 => (1..8_u8).prop_map(Step::Arrive),
        2 => Just(Step::Lose),
        1 => Just(Step::HandOver),
        4 => Just(Step::Connect),
        5 => which().prop_map(Step::Mount),
        4 => any::<u8>().prop_map(Step::Unmount),
        5 => which().prop_map(Step::LoadOlder),
        1 => which().prop_map(Step::CancelOlder),
        5 => Just(Step::ReadPage),
        5 => Just(Step::Page),
        1 => Just(Step::FailPage),
        6 => Just(Step::Disk),
        3 => which().prop_map(Step::TellRow),
        1 => Just(Step::Head),
        1 => which().prop_map(Step::Unreadable),
        1 => which().prop_map(Step::FailSubscription),
        4 => (0..3_000_u16).prop_map(Step::Wait),
        1 => Just(Step::Wait(u16::MAX)),
        1 => Just(Step::Restart),
        1 => (1..12_u8).prop_map(Step::Restore),
    ]
}

fn schedules() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "how far to search is said from outside")]
    let many = std::env::var("WAKEFUL_LINK_SCHEDULES").ok();
    many.and_then(|many| many.parse().ok()).unwrap_or(256)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: schedules(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_held_is_the_log_up_to_its_position_and_in_the_end_all_of_it(
        keep_alive in any::<bool>(),
        persist in any::<bool>(),
        steps in vec(step(), 1..160),
    ) {
        let mut world = World::new(Options { keep_alive, persist });
        steps.iter().for_each(|step| world.run(step));
        world.settle();
    }
}
