use wakeful_wire::rpc::Role;

use super::super::{
    change::{Change, Place},
    render::Render,
    screen::{Connection, Screen},
    testing::Printed,
};

fn hello() -> [Change; 1] {
    let place = Place { segment: 1, item: 1 };
    [Change::Text { place, role: Role::Agent, more: "Hel".to_owned() }]
}

#[test]
fn a_line_that_was_open_when_the_connection_broke_is_ended_by_the_notice() {
    let printed = Printed::default();
    let mut screen = Screen::new(printed.clone(), Some(Render::new(false, true)));
    screen.standing(Connection::Connected, None).unwrap();
    screen.changes(&hello()).unwrap();
    assert_eq!(printed.out.take(), "Hel");
    screen.raw("\u{1b}7").unwrap();
    assert_eq!(printed.out.take(), "\u{1b}7", "what is drawn elsewhere ends no line");
    screen.standing(Connection::Lost, Some("connection lost")).unwrap();
    assert_eq!(printed.out.take(), "\n");
    assert_eq!(printed.notes.take(), ["connection lost"]);
    assert!(!screen.is_for_programs());
}

#[test]
fn a_program_gets_each_standing_as_a_line_and_nothing_that_is_for_people() {
    let printed = Printed::default();
    let mut screen = Screen::new(printed.clone(), None);
    assert!(screen.is_for_programs());
    for connection in [Connection::Connected, Connection::Lost, Connection::Asleep] {
        screen.standing(connection, Some("for people")).unwrap();
    }
    screen.note("for people").unwrap();
    screen.changes(&hello()).unwrap();
    screen.lines(&["{}\n".to_owned(), "[]\n".to_owned()]).unwrap();
    let lines = ["connected", "lost", "asleep"]
        .map(|state| format!("{{\"type\":\"connection\",\"state\":\"{state}\"}}\n"));
    assert_eq!(printed.out.take(), lines.concat() + "{}\n[]\n");
    assert_eq!(printed.notes.take(), [""; 0]);
}
