//! What every [`Store`] must do.

use std::time::Duration;

use wakeful_wire::{ClockKind, SurfaceName, Timestamp, gate::LeaseKind};

use crate::{
    Clock, Guard, Intent, Record, Sandbox,
    port::{Commit, LeaseReport, Store, StoreError, Touch},
    testing::{a_fresh_sandbox, a_holder, a_project, an_env},
};

const NOW: Timestamp = Timestamp(1_800_000_000_000);

/// Runs the whole suite on an empty store.
///
/// # Panics
/// When the contract is broken.
pub async fn store_contract(store: &dyn Store) {
    records_and_commits(store).await;
    touches_and_leases(store).await;
    the_race_of_suspend_and_touch(store).await;
    looking_again(store).await;
    burial(store).await;
}

fn guard(record: &Record) -> Guard {
    Guard { generation: record.generation, activity: None }
}

fn running(record: &Record) -> Record {
    let fresh = a_fresh_sandbox();
    let mut next = record.clone();
    next.generation = next.generation.next();
    next.intent = Intent::Running;
    next.sandbox = Some(Sandbox {
        uid: fresh.uid,
        secret: fresh.secret,
        created_at: NOW,
        launched: true,
        ready_since: Some(NOW),
        unready_since: None,
        recovery: false,
        stop: None,
    });
    next
}

async fn load(store: &dyn Store, record: &Record) -> crate::port::Loaded {
    store.load(record.id).await.expect("load").expect("the record is there")
}

async fn records_and_commits(store: &dyn Store) {
    let (project, record) = a_project("alice", NOW);
    store.create_project(&project, &record).await.expect("create");
    assert!(matches!(store.create_project(&project, &record).await, Err(StoreError::Conflict)));
    assert_eq!(load(store, &record).await.record, record);
    assert!(store.load(an_env()).await.expect("load").is_none());

    // A commit names the generation that it was planned from; the second one loses.
    let next = running(&record);
    assert_eq!(
        store.commit(&next, guard(&record), None, None).await.expect("commit"),
        Commit::Done
    );
    assert_eq!(
        store.commit(&next, guard(&record), None, None).await.expect("commit"),
        Commit::Lost
    );
    assert_eq!(load(store, &record).await.record, next, "every field survives");
    // One for a record that is not there loses, too.
    let (_, stranger) = a_project("alice", NOW);
    let commit = store.commit(&stranger, guard(&stranger), None, None).await.expect("commit");
    assert_eq!(commit, Commit::Lost);

    let (row, environments) = store.project(project.id).await.expect("read").expect("there");
    assert_eq!(row, project);
    assert_eq!(environments.len(), 1);
    let (second, other) = a_project("alice", Timestamp(NOW.0 + 1));
    store.create_project(&second, &other).await.expect("create");
    let titles = store.projects(&project.owner).await.expect("read");
    assert_eq!(titles.iter().map(|(row, _)| row.id).collect::<Vec<_>>(), [project.id, second.id]);
    let bob = "bob".parse().expect("a name");
    assert!(store.projects(&bob).await.expect("read").is_empty());
}

async fn touches_and_leases(store: &dyn Store) {
    let (project, record) = a_project("toucher", NOW);
    store.create_project(&project, &record).await.expect("create");
    let touch = Touch { clock: ClockKind::App, now: Timestamp(NOW.0 + 7) };
    // Asleep: a touch keeps nothing awake and counts for nothing.
    let asleep = store.touch(record.id, touch).await.expect("touch").expect("there");
    assert_eq!(asleep.clocks.app, Clock::Never);
    assert!(store.touch(an_env(), touch).await.expect("touch").is_none());

    let next = running(&record);
    let finished = Some(Touch { clock: ClockKind::Agent, now: NOW });
    store.commit(&next, guard(&record), None, finished).await.expect("commit");
    let loaded = load(store, &record).await;
    assert_eq!(loaded.clocks.agent, Clock::At(NOW), "touched with the commit");
    let after = store.touch(record.id, touch).await.expect("touch").expect("there");
    assert_eq!(after.clocks.app, Clock::At(touch.now));
    assert_eq!(after.clocks.agent, Clock::At(NOW), "the other clock is left alone");
    assert_eq!(after.clocks.seq, loaded.clocks.seq.next());
    assert_eq!(after.clocks.last_activity, touch.now);
    assert_eq!(after.record.generation, next.generation, "a touch is no new generation");

    let holder = a_holder();
    let report = |count, touch| LeaseReport {
        env: record.id,
        holder,
        surface: SurfaceName::app(),
        kind: LeaseKind::Socket,
        count,
        expires: Duration::from_secs(150),
        touch,
    };
    let now = Timestamp(NOW.0 + 1_000);
    let held =
        store.report(&report(2, Some(ClockKind::App)), now).await.expect("report").expect("there");
    assert_eq!(held.clocks.leases.len(), 1);
    assert_eq!(held.clocks.leases[0].count, 2);
    assert_eq!(held.clocks.leases[0].expires_at, now.after(Duration::from_secs(150)));
    assert_eq!(held.clocks.app, Clock::At(now));
    let later = Timestamp(NOW.0 + 2_000);
    let again = store.report(&report(3, None), later).await.expect("report").expect("there");
    assert_eq!((again.clocks.leases[0].count, again.clocks.leases[0].since), (3, now));
    assert_eq!(again.clocks.app, Clock::At(now), "a report without a touch touches nothing");
    let seq = again.clocks.seq;
    let ended = store.report(&report(0, None), later).await.expect("report").expect("there");
    assert!(ended.clocks.leases.is_empty());
    assert!(ended.clocks.seq > seq);
    store.report(&report(1, None), later).await.expect("report");
    store.release(holder).await.expect("release");
    assert!(load(store, &record).await.clocks.leases.is_empty());

    let until = Timestamp(NOW.0 + 99_000);
    store.extend(record.id, until).await.expect("extend");
    store.extend(record.id, NOW).await.expect("extend");
    assert_eq!(load(store, &record).await.clocks.extended_until, Some(until), "never shortened");
}

async fn the_race_of_suspend_and_touch(store: &dyn Store) {
    let (project, record) = a_project("racer", NOW);
    store.create_project(&project, &record).await.expect("create");
    let ready = running(&record);
    store.commit(&ready, guard(&record), None, None).await.expect("commit");
    let seen = load(store, &record).await;
    let suspend = Record { generation: ready.generation.next(), ..ready.clone() };
    let on_both = Guard { generation: ready.generation, activity: Some(seen.clocks.seq) };

    // A touch between the look and the commit wins.
    let touch = Touch { clock: ClockKind::Agent, now: NOW };
    store.touch(record.id, touch).await.expect("touch");
    let commit = store.commit(&suspend, on_both, None, None).await.expect("commit");
    assert_eq!(commit, Commit::Lost, "a touch that lands during a suspend wins");
    // And so does a lease that was reported.
    let seq = load(store, &record).await.clocks.seq;
    let report = LeaseReport {
        env: record.id,
        holder: a_holder(),
        surface: SurfaceName::agent(),
        kind: LeaseKind::Request,
        count: 1,
        expires: Duration::from_secs(10),
        touch: None,
    };
    store.report(&report, NOW).await.expect("report");
    let on_both = Guard { generation: ready.generation, activity: Some(seq) };
    let commit = store.commit(&suspend, on_both, None, None).await.expect("commit");
    assert_eq!(commit, Commit::Lost, "a lease that lands during a suspend wins");
    // An extension, too.
    let seq = load(store, &record).await.clocks.seq;
    store.extend(record.id, Timestamp(NOW.0 + 5)).await.expect("extend");
    let on_both = Guard { generation: ready.generation, activity: Some(seq) };
    let commit = store.commit(&suspend, on_both, None, None).await.expect("commit");
    assert_eq!(commit, Commit::Lost, "an extension that lands during a suspend wins");
    // With nothing in between it goes through.
    let seq = load(store, &record).await.clocks.seq;
    let on_both = Guard { generation: ready.generation, activity: Some(seq) };
    let commit = store.commit(&suspend, on_both, None, None).await.expect("commit");
    assert_eq!(commit, Commit::Done);
}

async fn looking_again(store: &dyn Store) {
    let at = |ms| Timestamp(NOW.0 + ms);
    let mut records = Vec::new();
    for _ in 0..3 {
        let (project, record) = a_project("due", NOW);
        store.create_project(&project, &record).await.expect("create");
        records.push(record);
    }
    store.set_due(records[0].id, Some(at(20))).await.expect("set");
    store.set_due(records[1].id, Some(at(10))).await.expect("set");
    assert!(store.due(at(9), 10).await.expect("due").is_empty());
    assert_eq!(store.due(at(20), 10).await.expect("due"), [records[1].id, records[0].id]);
    assert_eq!(store.due(at(20), 1).await.expect("due"), [records[1].id]);
    assert_eq!(store.next_due().await.expect("due"), Some(at(10)));
    let next = running(&records[1]);
    store.commit(&next, guard(&records[1]), Some(at(30)), None).await.expect("commit");
    assert_eq!(store.next_due().await.expect("due"), Some(at(20)), "a commit says when to look");
    store.set_due(records[0].id, None).await.expect("set");
    store.set_due(records[1].id, None).await.expect("set");
}

async fn burial(store: &dyn Store) {
    let (project, record) = a_project("mourner", NOW);
    store.create_project(&project, &record).await.expect("create");
    let keep_until = Timestamp(NOW.0 + 1_000);
    store.bury(project.id, NOW, keep_until).await.expect("bury");
    store.bury(project.id, NOW, Timestamp(0)).await.expect("bury is idempotent");
    assert!(store.load(record.id).await.expect("load").is_none());
    assert!(store.project(project.id).await.expect("read").is_none());
    let tombstone = store.tombstone(project.id).await.expect("read").expect("there");
    assert_eq!(tombstone.project, project);
    assert_eq!(tombstone.environments, std::slice::from_ref(&record));
    assert_eq!(tombstone.keep_until, keep_until, "the first burial counts");
    assert_eq!(store.tombstones(&project.owner).await.expect("read"), [tombstone]);
    assert!(matches!(store.create_project(&project, &record).await, Err(StoreError::Conflict)));
    let stranger = an_env();
    assert_eq!(store.unnamed(&[record.id, stranger]).await.expect("read"), [stranger]);

    let later = Timestamp(NOW.0 + 500);
    store.restore(project.id, later).await.expect("restore");
    let back = load(store, &record).await;
    assert_eq!(back.record.intent, Intent::Suspended);
    assert!(back.record.generation > record.generation, "nobody has cached this generation");
    assert_eq!(back.clocks.last_activity, later);
    assert!(matches!(store.restore(project.id, later).await, Err(StoreError::Missing)));

    store.bury(project.id, NOW, keep_until).await.expect("bury");
    assert!(store.expired(Timestamp(keep_until.0 - 1)).await.expect("read").is_empty());
    let expired = store.expired(keep_until).await.expect("read");
    assert_eq!(expired.iter().map(|t| t.project.id).collect::<Vec<_>>(), [project.id]);
    assert!(matches!(store.restore(project.id, keep_until).await, Err(StoreError::Missing)));
    assert!(store.tombstone(project.id).await.expect("read").is_some(), "it is to be reaped");
    store.purge(project.id).await.expect("purge");
    assert_eq!(store.unnamed(&[record.id]).await.expect("read"), [record.id]);
    let (other, _) = a_project("mourner", NOW);
    assert!(matches!(store.bury(other.id, NOW, keep_until).await, Err(StoreError::Missing)));
}
