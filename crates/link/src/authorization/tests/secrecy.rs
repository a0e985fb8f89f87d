//! No credential is printed by anything here.

use super::*;

#[test]
fn no_credential_is_printed() {
    let mut shown = String::new();
    let mut show =
        |value: &dyn std::fmt::Debug| shown.push_str(&format!("{value:?}\n{value:#?}\n"));

    let mut bench = Bench::new(pairing("sesame-refresh"));
    show(&bench.machine);
    show(&pairing("sesame-refresh"));
    bench.ask(false);
    let (renewal, credential) = bench.exchanging();
    show(&credential);
    let reply = rotated("sesame-access", "sesame-rotated");
    show(&reply);
    bench.exchanged(renewal, &reply);
    show(&bench.machine);
    for action in bench.actions() {
        show(&action);
    }
    bench.stored(renewal, Ok(()));
    for action in bench.actions() {
        show(&action);
    }
    show(&bench.machine);
    let held = bench.access(Need::default());
    show(&held);
    let Asked::Held(access) = held else { panic!("a token is held") };
    let ticket = json_of(200, &json!({"ticket": "sesame-ticket", "expires_in": 300}));
    show(&ticket);
    show(&bench.machine.handle_ticket(&access, &ticket));

    let mut bench = Bench::new(environment(None));
    bench.ask(true);
    let (renewal, _) = bench.granting();
    let body = json!({"grant": "sesame-grant", "expires_in": 60, "address": ADDRESS});
    bench.granted(renewal, &json_of(201, &body));
    show(&bench.actions());
    show(&bench.machine);

    assert!(!shown.contains("sesame"), "{shown}");
    assert!(shown.contains("Secret(..)"));
}
