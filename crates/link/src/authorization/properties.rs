//! Whatever comes in whatever order.

use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;
use wakeful_wire::{Code, host::Denial};

use super::{tests::*, *};
use crate::{Chance, Failure, FailureReason, Instant};

#[derive(Debug, Clone)]
enum Input {
    Ask { wake: bool, rejects: bool },
    Leave(u64),
    Reject(u64),
    Granted(u64, u8),
    Exchanged(u64, u8),
    Stored(u64, bool),
    Ticket(u8),
    Live(Option<u64>),
    Pass(u64),
    Enter(bool),
    SignOut,
}

fn inputs() -> impl Strategy<Value = Input> {
    let near = 0_u64..12;
    prop_oneof![
        6 => any::<(bool, bool)>().prop_map(|(wake, rejects)| Input::Ask { wake, rejects }),
        1 => near.clone().prop_map(Input::Leave),
        1 => near.clone().prop_map(Input::Reject),
        6 => (near.clone(), 0..6_u8).prop_map(|(id, reply)| Input::Granted(id, reply)),
        6 => (near.clone(), 0..6_u8).prop_map(|(id, reply)| Input::Exchanged(id, reply)),
        2 => (near, any::<bool>()).prop_map(|(id, ok)| Input::Stored(id, ok)),
        2 => (0..6_u8).prop_map(Input::Ticket),
        1 => proptest::option::of(0_u64..7_200_000).prop_map(Input::Live),
        3 => (0_u64..4_000_000).prop_map(Input::Pass),
        1 => any::<bool>().prop_map(Input::Enter),
        1 => Just(Input::SignOut),
    ]
}

fn reply(kind: u8, good: Reply) -> Reply {
    match kind {
        0 | 1 => good,
        2 => asleep(),
        3 => denied(400, Denial::GrantSignature),
        4 => problem(Code::Unauthenticated),
        _ => Reply::TimedOut,
    }
}

/// What the rules say of every run: each caller is answered exactly once or has left, there is one
/// renewal at most, and nothing that was had before a sign-out is given out after it.
#[derive(Default)]
struct Watch {
    waiting: BTreeMap<CallerId, ()>,
    requested: Option<RenewalId>,
    /// Tokens below it are of before the last sign-out.
    newest: Option<TokenId>,
    floor: Option<TokenId>,
    last: Option<Access>,
}

impl Watch {
    fn see(&mut self, action: Action) {
        match action {
            Action::Grant { renewal, .. }
            | Action::Exchange { renewal, .. }
            | Action::Store { renewal, .. } => {
                assert!(self.requested.is_none_or(|before| before <= renewal));
                self.requested = Some(renewal);
            }
            Action::Answer { caller, answer } => {
                assert!(self.waiting.remove(&caller).is_some(), "told twice, or has left");
                if let Ok(access) = answer {
                    self.given(access);
                }
            }
            Action::Renewed { access } => self.given(access),
            Action::Cancel { renewal } => assert!(Some(renewal) <= self.requested),
            Action::Forget => {}
        }
    }

    fn given(&mut self, access: Access) {
        assert!(self.floor.is_none_or(|floor| access.id > floor), "of before the sign-out");
        self.newest = self.newest.max(Some(access.id));
        self.last = Some(access);
    }
}

proptest! {
    #[test]
    fn no_order_of_inputs_breaks_a_rule(
        inputs in proptest::collection::vec(inputs(), 1..120),
        paired in any::<bool>(),
    ) {
        let entry = |other: bool| match (paired, other) {
            (true, other) => pairing(if other { "r2" } else { "r1" }),
            (false, other) => environment(Some(if other { "bob" } else { "alice" })),
        };
        let mut machine = Authorization::new(Some(entry(false)), Chance::seeded(3));
        let mut watch = Watch::default();
        let mut now = Instant(0);
        for input in inputs {
            let requested = watch.requested.map_or(0, |renewal| renewal.0);
            // Mostly the renewal under way, sometimes another one.
            let aimed = |id: u64| RenewalId(if id < 9 { requested } else { id });
            match input {
                Input::Ask { wake, rejects } => {
                    let rejected = watch.last.as_ref().filter(|_| rejects).map(|last| last.id);
                    match machine.access(now, Need { wake, rejected }) {
                        Asked::Held(access) => {
                            prop_assert_ne!(Some(access.id), rejected);
                            prop_assert!(now.until(access.until) > LIFE_LEFT);
                            watch.given(access);
                        }
                        Asked::Waiting(caller) => {
                            watch.waiting.insert(caller, ());
                        }
                        Asked::Refused(_) => {}
                    }
                }
                Input::Leave(caller) => {
                    machine.cancel(CallerId(caller));
                    watch.waiting.remove(&CallerId(caller));
                }
                Input::Reject(token) => machine.reject(TokenId(token)),
                Input::Granted(id, kind) => {
                    machine.handle_granted(now, aimed(id), &reply(kind, grant()));
                }
                Input::Exchanged(id, kind) => {
                    let good = if kind == 0 { rotated("t", "r3") } else { token("t", 3_600) };
                    machine.handle_exchanged(now, aimed(id), &reply(kind, good));
                }
                Input::Stored(id, ok) => {
                    let failed = || Failure::new(FailureReason::Configuration, "The disk is full.");
                    machine.handle_stored(now, aimed(id), ok.then_some(()).ok_or_else(failed));
                }
                Input::Ticket(kind) => {
                    if let Some(last) = &watch.last {
                        let good = json_of(200, &serde_json::json!({"ticket": "t", "expires_in": 9}));
                        machine.handle_ticket(last, &reply(kind, good));
                    }
                }
                Input::Live(until) => {
                    machine.handle_live(now, until.map(|ms| now.after(Duration::from_millis(ms))));
                }
                Input::Pass(ms) => {
                    now = now.after(Duration::from_millis(ms));
                    machine.handle_timeout(now);
                    prop_assert!(machine.poll_timeout().is_none_or(|next| next > now));
                }
                Input::Enter(other) => {
                    machine.enter(entry(other));
                }
                Input::SignOut => {
                    machine.sign_out();
                    watch.floor = watch.newest.or(watch.floor);
                }
            }
            while let Some(action) = machine.poll_action() {
                watch.see(action);
            }
        }
        // Time alone ends whatever is under way: nobody waits forever.
        for _ in 0..20 {
            if let Some(next) = machine.poll_timeout() {
                now = now.max(next);
                machine.handle_timeout(now);
            }
            while let Some(action) = machine.poll_action() {
                watch.see(action);
            }
        }
        prop_assert!(watch.waiting.is_empty());
    }
}
