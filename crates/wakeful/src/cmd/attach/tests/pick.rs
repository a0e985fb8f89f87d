use wakeful_link::{
    ConnectionPhase, ConnectionState, DataStatus, Failure, FailureReason, Instant,
    shell::{ShellList, ShellState},
};
use wakeful_wire::rpc::{ShellSnapshot, ThreadId};

use super::super::{
    pick::{LIST_WAIT, Picked, Search, Wanted},
    testing::row,
};

const START: Instant = Instant(5_000);

fn id(number: u128) -> ThreadId {
    ThreadId::from_uuid(uuid::Uuid::from_u128(number << 96))
}

fn shell(ids: &[u128], live: bool) -> ShellState {
    let rows = ids.iter().zip(1..).map(|(number, at)| row(id(*number), at).into()).collect();
    let status = if live { DataStatus::Live } else { DataStatus::Cached };
    let list = ShellList::from(ShellSnapshot { rows, ..ShellSnapshot::default() });
    ShellState { list: Some(list), status, verified: live, ..ShellState::default() }
}

struct Case<'a> {
    wanted: Wanted,
    kept_will_do: bool,
    phase: ConnectionPhase,
    shell: &'a ShellState,
    now: Instant,
}

fn pick(case: Case<'_>) -> Result<Picked, String> {
    let Case { wanted, kept_will_do, phase, shell, now } = case;
    let connection = ConnectionState { phase, ..ConnectionState::default() };
    let search = Search { wanted: &wanted, kept_will_do, name: "lab", since: START };
    search.pick(now, &connection, shell).map_err(|error| format!("{error:#}"))
}

#[test]
fn the_newest_of_the_present_list_is_taken_or_of_the_kept_one_where_a_person_would_wait() {
    let (live, kept) = (shell(&[1, 3, 2], true), shell(&[1, 3, 2], false));
    let later = START.after(LIST_WAIT);
    let away = ConnectionPhase::Asleep;
    let up = ConnectionPhase::Connected;
    let table = [
        (&live, up, false, START, Picked::Thread(id(2))),
        (&kept, up, false, later, Picked::Later),
        (&kept, away, false, later, Picked::Later),
        (&kept, up, true, START, Picked::Later),
        (&kept, up, true, later, Picked::Thread(id(2))),
        (&kept, away, true, START, Picked::Thread(id(2))),
    ];
    for (shell, phase, kept_will_do, now, picked) in table {
        let case = Case { wanted: Wanted::Newest, kept_will_do, phase, shell, now };
        assert_eq!(pick(case), Ok(picked), "{phase:?} {kept_will_do} {now:?}");
    }
}

#[test]
fn a_list_without_threads_says_how_to_begin_one() {
    let empty = shell(&[], true);
    let phase = ConnectionPhase::Connected;
    let case =
        Case { wanted: Wanted::Newest, kept_will_do: true, phase, shell: &empty, now: START };
    assert!(pick(case).unwrap_err().contains("`wakeful send lab"));
    let none = ShellState::default();
    let case = Case { wanted: Wanted::Newest, kept_will_do: true, phase, shell: &none, now: START };
    assert_eq!(pick(case), Ok(Picked::Later));
}

#[test]
fn the_beginning_of_an_id_names_a_listed_thread_before_one_that_is_left_out() {
    let live = shell(&[0x0199_f0a0, 0x0199_f0b1, 0x7199_0000], true);
    let kept = shell(&[0x0199_f0a0], false);
    let phase = ConnectionPhase::Backoff;
    let named = |text: &str, shell: &ShellState| {
        let wanted = Wanted::read(Some(text));
        pick(Case { wanted, kept_will_do: true, phase, shell, now: START })
    };
    assert_eq!(named("7199", &live), Ok(Picked::Thread(id(0x7199_0000))));
    assert!(named("0199f0", &live).unwrap_err().contains("more than one"));
    assert_eq!(named("5555", &live), Ok(Picked::NotListed));
    assert_eq!(named("0199f0a0", &kept), Ok(Picked::Thread(id(0x0199_f0a0))));
    assert_eq!(named("7199", &kept), Ok(Picked::Later), "what is kept may lack it");
    let whole = id(0x5555);
    assert_eq!(named(&whole.to_string(), &kept), Ok(Picked::Thread(whole)), "not looked up");
}

#[test]
fn a_list_that_is_refused_is_an_error_and_one_that_is_late_is_not() {
    let refused =
        |reason| ShellState { error: Some(Failure::new(reason, "No.")), ..shell(&[1], false) };
    let phase = ConnectionPhase::Connected;
    let pick_of = |shell: &ShellState| {
        pick(Case { wanted: Wanted::Newest, kept_will_do: false, phase, shell, now: START })
    };
    assert!(pick_of(&refused(FailureReason::Permission)).unwrap_err().contains("No."));
    assert_eq!(pick_of(&refused(FailureReason::Remote)), Ok(Picked::Later));
}
