//! Events that nobody decided: whatever a log holds, reading it gives a state, the same one each
//! time, however it is cut into checkpoints and text.

use std::collections::HashMap;

use proptest::prelude::*;
use uuid::Uuid;
use wakeful_wire::{
    Timestamp,
    rpc::{
        By, ClientId, Detail, Epoch, Event, EventBody, Outcome, Page, PermissionOption,
        PermissionOptionKind, Prompt, Remember, RequestId, Role, Segment, Seq, Thread, ThreadId,
        ToolPatch, ToolStatus, TurnId, WithdrawnWhy,
    },
};

use crate::thread::{
    state::{Entry, State},
    view::{Recorded, View},
};

fn small(number: u8) -> Uuid {
    Uuid::from_u128(u128::from(number) + 1)
}

fn thread(number: u8) -> ThreadId {
    ThreadId::from_uuid(small(number))
}

fn prompt(number: u8) -> Prompt {
    Prompt::text(ClientId::from_uuid(small(number)), "text")
}

/// A body out of a few numbers, so that events meet one another.
fn body() -> impl Strategy<Value = EventBody> {
    (0..32_u8, 0..4_u8, 0..6_u32, any::<bool>()).prop_map(|(kind, id, item, flag)| {
        let turn = TurnId::from_uuid(small(id));
        let request = RequestId::from_uuid(small(id));
        let key = Some(format!("key {id}")).filter(|_| flag);
        match kind {
            0 | 1 => EventBody::ThreadCreated {
                parent: flag.then(|| thread(id)),
                root: thread(id),
                project: String::new(),
                agent: "shell".to_owned(),
                title: None,
            },
            2 => EventBody::Titled { title: "t".to_owned(), by: By::Agent },
            3 => EventBody::Pinned {},
            4 => EventBody::Unpinned {},
            5 => EventBody::Snoozed { until: Timestamp(u64::from(item)) },
            6 => EventBody::Unsnoozed { by: By::Rule },
            7 => EventBody::Archived {},
            8 => EventBody::Restored {},
            9 => EventBody::Deleted {},
            10 | 11 => EventBody::Settled { by: By::Hand },
            12 => EventBody::Unsettled { by: By::Hand },
            13 | 14 => EventBody::PromptQueued { prompt: prompt(id) },
            15 => EventBody::PromptRemoved { client: prompt(id).client },
            16 => EventBody::QueueReleased {},
            17 | 18 => EventBody::TurnStarted { turn, segment: item, prompt: prompt(id) },
            19 => EventBody::CancelRequested { turn },
            20 | 21 => EventBody::TurnEnded {
                turn,
                outcome: if flag { Outcome::Cut } else { Outcome::Other },
            },
            22 => EventBody::Text { item, role: Role::Agent, text: "é".to_owned(), message: key },
            23 => EventBody::Tool {
                item,
                tool: ToolPatch {
                    id: id.to_string(),
                    status: flag.then_some(ToolStatus::InProgress),
                    ..ToolPatch::default()
                },
            },
            24 => EventBody::Terminal {
                item: item.wrapping_mul(u32::from(id) * 5_000_000),
                terminal: id.to_string(),
                text: "out".to_owned(),
                exit: None,
            },
            25 => EventBody::PermissionRequested {
                item,
                request,
                tool: None,
                title: String::new(),
                options: vec![PermissionOption {
                    id: "y".to_owned(),
                    name: "y".to_owned(),
                    kind: PermissionOptionKind::AllowOnce,
                }],
                key,
            },
            26 => EventBody::PermissionAnswered {
                item,
                request,
                option: "y".to_owned(),
                by: wakeful_wire::rpc::AnsweredBy::Hand,
                remember: flag.then_some(Remember::Thread),
                allow: Some(flag),
            },
            27 => EventBody::PermissionWithdrawn { item, request, why: WithdrawnWhy::TurnEnded },
            28 => EventBody::SessionBound { session: id.to_string() },
            29 => EventBody::AgentEnded { why: String::new() },
            30 => EventBody::HostStarted { epoch: Epoch(u64::from(item)) },
            _ => serde_json::from_value(serde_json::json!({ "kind": "newer", "n": id })).unwrap(),
        }
    })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (proptest::option::weighted(0.95, 0..4_u8), 1..3_u64, body());
    proptest::collection::vec(event, 0..120).prop_map(|events| {
        let mut seq = Seq::ZERO;
        let mut all = Vec::new();
        for (owner, gap, body) in events {
            // Gaps are what removals leave.
            seq = Seq(seq.0 + gap);
            all.push(Event { seq, at: Timestamp(seq.0 / 7), thread: owner.map(thread), body });
        }
        all
    })
}

fn read(events: &[Event]) -> (State, View) {
    let (mut state, mut view) = (State::default(), View::default());
    for event in events {
        state.apply(event);
        view.apply(&Recorded::new(event.clone(), 100).into_shared());
    }
    (state, view)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_log_gives_one_state(all in events(), cut in 0..120_usize) {
        let (state, view) = read(&all);
        // Once more, through text, each event twice.
        let text = serde_json::to_string(&all).unwrap();
        let again: Vec<Event> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&again, &all);
        let twice: Vec<_> = again.into_iter().flat_map(|event| [event.clone(), event]).collect();
        let (same, same_view) = read(&twice);
        prop_assert!(same == state && same_view.shell() == view.shell());

        // From a checkpoint anywhere.
        let (before, after) = all.split_at(cut.min(all.len()));
        let (saved, saved_view) = read(before);
        let mut restored = State {
            head: saved.head,
            epochs: saved.epochs.clone(),
            remembered: saved.remembered.clone(),
            clients: saved.clients.clone(),
            ..State::default()
        };
        let mut changed = HashMap::new();
        for entry in saved.threads.values() {
            let at = saved_view.shell().changed_at(entry.thread.id);
            changed.insert(entry.thread.id, at.unwrap_or(entry.thread.seq));
            let text = serde_json::to_string(entry.as_ref()).unwrap();
            restored.put(std::sync::Arc::new(serde_json::from_str::<Entry>(&text).unwrap()));
        }
        let mut view_again = View::load(&restored, &changed);
        for event in after {
            restored.apply(event);
            view_again.apply(&Recorded::new(event.clone(), 100).into_shared());
        }
        prop_assert!(restored == state);
        prop_assert!(view_again.shell() == view.shell());
    }

    #[test]
    fn any_events_of_a_thread_can_be_shown(all in events()) {
        let mut shown: HashMap<ThreadId, Detail> = HashMap::new();
        for event in &all {
            let Some(id) = event.thread else { continue };
            if let Some(detail) = shown.get_mut(&id) {
                detail.apply(event);
            } else if let Some(thread) = Thread::created(event) {
                let page = Page { segments: vec![Segment::new(0)], before: None, seq: thread.seq };
                shown.insert(id, Detail::new(thread, page));
            }
        }
        let (state, _) = read(&all);
        for (id, detail) in shown {
            prop_assert_eq!(&detail.thread, state.thread(id).unwrap());
            let text = serde_json::to_string(&detail).unwrap();
            prop_assert_eq!(serde_json::from_str::<Detail>(&text).unwrap(), detail);
        }
    }
}
