//! Kept prompts over a real database, an engine and scripted sandboxes.

use std::time::Duration;

use wakeful_lifecycle::{
    Command, StartFault,
    port::{DeliverError, Driver as _},
};
use wakeful_wire::{
    Code, EnvId, Phase, Problem, ProjectId,
    api::PromptState,
    rpc::{Call, Seq},
};

use super::{
    PromptError, WAITING_MAX, admit,
    store::{Kept, PromptStore, ROWS_MAX, Settled},
    testing::{World, a_client, a_request},
};

/// The texts that an environment's host has taken, in order.
fn delivered(world: &World, env: EnvId) -> Vec<String> {
    let text = |call: Call| {
        if let Call::ThreadCreate(create) = call {
            create.prompt.unwrap().plain()
        } else if let Call::ThreadPrompt(prompt) = call {
            prompt.prompt.plain()
        } else {
            panic!("{call:?}")
        }
    };
    world.driver.delivered(env).into_iter().map(text).collect()
}

/// Hands the first waiting prompt to the host and dies before it is marked.
async fn deliver_without_a_mark(world: &World, env: EnvId) {
    let store = PromptStore::new(world.database.clone());
    let (seq, _) = store.head(env).await.unwrap().unwrap();
    let call: Call = serde_json::from_str(&store.call(seq).await.unwrap().unwrap()).unwrap();
    let (_, sandbox) = world.engine.sandbox(env).await.unwrap();
    assert!(world.engine.deliver(&sandbox.unwrap(), &call).await.unwrap().changed);
}

/// Makes an environment's host answer nothing for a minute.
async fn hang(world: &World, env: EnvId) {
    let (_, sandbox) = world.engine.sandbox(env).await.unwrap();
    world.driver.drain(&sandbox.unwrap(), Duration::from_secs(60)).await.unwrap();
}

#[tokio::test]
async fn a_prompt_wakes_its_environment_and_is_delivered() {
    let mut world = World::new().await;
    world.deliver();
    let env = world.env().await;
    let kept = world.keep(env, 1, "wash").await;
    assert_eq!(kept.state, PromptState::Waiting);
    let settled = world.settled(env, 1).await;
    assert_eq!((settled.state, settled.seq), (PromptState::Delivered, Some(Seq(1))));
    assert_eq!((settled.thread, settled.phase), (kept.thread, Phase::Ready));
    let [Call::ThreadCreate(create)] = &world.driver.delivered(env)[..] else { panic!() };
    assert_eq!(create.thread, kept.thread);
    // Repeated, it is answered and not delivered again.
    let again = world.keep(env, 1, "wash").await;
    assert_eq!((again.state, again.thread), (PromptState::Delivered, kept.thread));
    world.keep(env, 2, "dry").await;
    world.settled(env, 2).await;
    assert_eq!(delivered(&world, env), ["wash", "dry"]);
}

#[tokio::test]
async fn a_prompt_is_in_use_of_what_is_awake() {
    let world = World::new().await;
    let env = world.env().await;
    world.keep(env, 1, "wash").await;
    world.phase(env, Phase::Ready).await;
    world.time.advance(Duration::from_secs(600));
    let before = world.environment(env).await.clocks.agent.expires_in_ms;
    world.keep(env, 2, "dry").await;
    assert!(world.environment(env).await.clocks.agent.expires_in_ms > before);
}

#[tokio::test]
async fn a_prompt_whose_delivery_was_not_marked_is_not_carried_out_again() {
    let mut world = World::new().await;
    let env = world.env().await;
    world.keep(env, 1, "wash").await;
    world.phase(env, Phase::Ready).await;
    deliver_without_a_mark(&world, env).await;
    world.restart();
    world.deliver();
    let settled = world.settled(env, 1).await;
    assert_eq!((settled.state, settled.seq), (PromptState::Delivered, Some(Seq(1))));
    assert_eq!(delivered(&world, env), ["wash"]);
}

#[tokio::test]
async fn a_start_of_the_platform_wakes_whatever_prompts_wait_for() {
    let mut world = World::new().await;
    let env = world.env().await;
    world.keep(env, 1, "wash").await;
    world.phase(env, Phase::Ready).await;
    world.engine.command(env, Command::Suspend).await.unwrap();
    world.phase(env, Phase::Suspended).await;
    world.restart();
    world.deliver();
    assert_eq!(world.settled(env, 1).await.state, PromptState::Delivered);
}

#[tokio::test]
async fn an_environment_that_is_put_to_sleep_before_the_delivery_is_woken_again() {
    let mut world = World::new().await;
    let env = world.env().await;
    world.driver.refuse_deliveries(Some(DeliverError::Later("busy".into())));
    world.keep(env, 1, "wash").await;
    world.phase(env, Phase::Ready).await;
    world.deliver();
    world.until(async || world.find(env, 1).await.problem.is_some()).await;
    world.engine.command(env, Command::Suspend).await.unwrap();
    world.until(async || world.driver.creates() == 2).await;
    world.driver.refuse_deliveries(None);
    assert_eq!(world.settled(env, 1).await.state, PromptState::Delivered);
}

#[tokio::test]
async fn what_the_host_does_not_take_now_is_tried_again_and_says_why_it_waits() {
    let mut world = World::new().await;
    world.driver.refuse_deliveries(Some(DeliverError::Later("its host is not open".into())));
    world.deliver();
    let env = world.env().await;
    world.keep(env, 1, "wash").await;
    world.until(async || world.find(env, 1).await.problem.is_some()).await;
    let waiting = world.find(env, 1).await;
    assert_eq!(waiting.state, PromptState::Waiting);
    assert_eq!(waiting.problem.unwrap().detail.unwrap(), "its host is not open");
    world.driver.refuse_deliveries(None);
    let settled = world.settled(env, 1).await;
    assert_eq!((settled.state, settled.problem), (PromptState::Delivered, None));
}

#[tokio::test]
async fn what_the_host_refuses_is_refused_for_good_and_the_next_one_goes_on() {
    let mut world = World::new().await;
    let problem = Problem::new(Code::Invalid).field("agent").detail("There is no such agent.");
    world.driver.refuse_deliveries(Some(DeliverError::Refused(problem.clone())));
    world.deliver();
    let env = world.env().await;
    world.keep(env, 1, "wash").await;
    let settled = world.settled(env, 1).await;
    assert_eq!((settled.state, settled.problem), (PromptState::Refused, Some(problem)));
    world.driver.refuse_deliveries(None);
    world.keep(env, 2, "dry").await;
    assert_eq!(world.settled(env, 2).await.state, PromptState::Delivered);
    assert_eq!(delivered(&world, env), ["dry"]);
}

#[tokio::test]
async fn prompts_of_one_environment_are_delivered_in_the_order_of_acceptance() {
    let mut world = World::new().await;
    world.deliver();
    let env = world.env().await;
    let texts: Vec<_> = (1..=30).map(|number| format!("number {number}")).collect();
    for (number, text) in (1..).zip(&texts) {
        // Their ids are in another order.
        world.keep(env, 100 - number, text).await;
    }
    world.settled(env, 70).await;
    assert_eq!(delivered(&world, env), texts);
}

#[tokio::test]
async fn one_environment_that_hangs_holds_no_other_up() {
    let mut world = World::new().await;
    let (hung, other) = (world.env().await, world.env().await);
    world.keep(hung, 1, "wash").await;
    world.phase(hung, Phase::Ready).await;
    hang(&world, hung).await;
    world.deliver();
    world.keep(other, 2, "dry").await;
    assert_eq!(world.settled(other, 2).await.state, PromptState::Delivered);
    assert_eq!(world.find(hung, 1).await.state, PromptState::Waiting);
    // What is being handed over cannot be taken back.
    let held = (hung, a_client(1));
    world.until(async || world.prompts.inner.held.lock().contains(&held)).await;
    let refused = world.prompts.withdraw(hung, a_client(1)).await;
    assert!(matches!(refused, Err(PromptError::Settled)), "{refused:?}");
}

#[tokio::test]
async fn a_prompt_waits_while_its_environment_cannot_start_and_says_so() {
    let mut world = World::new().await;
    world.deliver();
    let env = world.env().await;
    let reason = "the program is missing".to_owned();
    world.driver.fail_next_create(StartFault { reason: reason.clone(), permanent: true });
    world.keep(env, 1, "wash").await;
    world.phase(env, Phase::Failed).await;
    let waiting = world.find(env, 1).await;
    let problem = waiting.problem.unwrap();
    assert_eq!((waiting.state, problem.code), (PromptState::Waiting, Code::EnvironmentFailed));
    assert_eq!(problem.detail, Some(reason));
    // Whoever sends it again asks for another try.
    world.keep(env, 1, "wash").await;
    assert_eq!(world.settled(env, 1).await.state, PromptState::Delivered);
    assert_eq!(world.driver.creates(), 2);
}

#[tokio::test]
async fn a_prompt_that_waits_is_taken_back_and_one_that_is_settled_is_not() {
    let mut world = World::new().await;
    let env = world.env().await;
    for number in 1..=2 {
        world.keep(env, number, "wash").await;
    }
    world.prompts.withdraw(env, a_client(1)).await.unwrap();
    let gone = world.prompts.withdraw(env, a_client(1)).await;
    assert!(matches!(gone, Err(PromptError::NotFound)), "{gone:?}");
    world.deliver();
    world.settled(env, 2).await;
    let settled = world.prompts.withdraw(env, a_client(2)).await;
    assert!(matches!(settled, Err(PromptError::Settled)), "{settled:?}");
    assert_eq!(delivered(&world, env).len(), 1);
}

#[tokio::test]
async fn whoever_waits_for_a_prompt_hears_that_it_was_taken_back() {
    let world = World::new().await;
    let env = world.env().await;
    world.keep(env, 1, "wash").await;
    let waits = world.prompts.find(env, a_client(1), Duration::from_secs(30));
    let withdraws = async {
        tokio::task::yield_now().await;
        world.prompts.withdraw(env, a_client(1)).await.unwrap();
    };
    let (found, ()) = tokio::join!(waits, withdraws);
    assert!(matches!(found, Err(PromptError::NotFound)), "{found:?}");
}

#[tokio::test]
async fn prompts_end_with_their_environment_and_do_not_come_back_with_it() {
    let world = World::new().await;
    let env = world.env().await;
    world.keep(env, 1, "wash").await;
    world.phase(env, Phase::Ready).await;
    let environment = world.environment(env).await;
    let project = ProjectId::from_uuid(env.uuid());
    world.engine.delete_project(project).await.unwrap();
    world.until(async || world.engine.sandbox(env).await.is_err()).await;
    let late = world.prompts.keep(&environment, &a_request(a_client(2), "dry")).await.unwrap_err();
    assert_eq!(late.code(), Code::Gone);
    world.engine.restore_project(project).await.unwrap();
    let environment = world.environment(env).await;
    assert!(world.prompts.list(&environment).await.unwrap().prompts.is_empty());
}

#[tokio::test]
async fn the_same_id_is_the_same_prompt_or_none() {
    let world = World::new().await;
    let (env, other) = (world.env().await, world.env().await);
    let first = world.keep(env, 1, "wash").await;
    assert_eq!(world.keep(env, 1, "wash").await.thread, first.thread);
    let environment = world.environment(env).await;
    let another = world.prompts.keep(&environment, &a_request(a_client(1), "dry")).await;
    assert!(matches!(another, Err(PromptError::Another)), "{another:?}");
    // Another environment's prompts are others.
    assert_ne!(world.keep(other, 1, "dry").await.thread, first.thread);
    assert_eq!(world.prompts.list(&environment).await.unwrap().prompts.len(), 1);
}

#[tokio::test]
async fn what_is_kept_and_remembered_is_bounded() {
    let world = World::new().await;
    let env = world.env().await;
    let store = PromptStore::new(world.database.clone());
    let now = world.engine.now();
    let keep = async |number: u32| {
        let request = a_request(a_client(number), "wash");
        let admitted =
            admit::admit(&request, "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e50".parse().unwrap());
        store.keep(env, request.client, &admitted.unwrap(), now).await.unwrap()
    };
    for number in 1..=WAITING_MAX {
        assert!(matches!(keep(number).await, Kept::Now(_)));
    }
    assert_eq!(keep(WAITING_MAX + 1).await, Kept::Full);
    assert!(matches!(keep(1).await, Kept::Before(_)), "repeated, it needs no room");
    let total = ROWS_MAX + 3;
    for number in WAITING_MAX + 1..=total {
        let (seq, _) = store.head(env).await.unwrap().unwrap();
        store.settle(seq, &Settled::Delivered(Seq(1)), now).await.unwrap();
        assert_eq!(store.call(seq).await.unwrap(), None, "what it said is kept no longer");
        assert!(matches!(keep(number).await, Kept::Now(_)));
    }
    let rows = store.list(env).await.unwrap();
    assert_eq!(rows.len(), usize::try_from(ROWS_MAX).unwrap());
    assert_eq!((rows[0].client, rows.last().unwrap().client), (a_client(4), a_client(total)));
}

#[tokio::test]
async fn what_is_settled_is_forgotten_after_a_while_and_what_waits_is_not() {
    let world = World::new().await;
    let env = world.env().await;
    for number in 1..=3 {
        world.keep(env, number, "wash").await;
    }
    let store = PromptStore::new(world.database.clone());
    for settled in [Settled::Delivered(Seq(3)), Settled::Refused(Problem::new(Code::Invalid))] {
        let (seq, _) = store.head(env).await.unwrap().unwrap();
        store.settle(seq, &settled, world.engine.now()).await.unwrap();
        // A second mark changes nothing.
        store.settle(seq, &Settled::Delivered(Seq(9)), world.engine.now()).await.unwrap();
    }
    let states: Vec<_> = store.list(env).await.unwrap().iter().map(|row| row.state).collect();
    let expected = [PromptState::Delivered, PromptState::Refused, PromptState::Waiting];
    assert_eq!(states, expected);
    assert_eq!(store.environments().await.unwrap(), [env]);
    assert_eq!(store.forget(world.engine.now()).await.unwrap(), 0);
    world.time.advance(Duration::from_millis(1));
    assert_eq!(store.forget(world.engine.now()).await.unwrap(), 2);
    assert_eq!(store.list(env).await.unwrap().len(), 1);
}
