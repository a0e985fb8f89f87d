//! Several hosts in one client: environments of a platform, and a host that it is paired with.

use wakeful_link::ConnectionPhase;
use wakeful_wire::{EnvId, HostId};

use super::desk::{Desk, Running, address};
use crate::support::{Alone, Platform, Setup, User, until};

fn hosts(client: &Running<'_>) -> Vec<HostId> {
    client.with(|link, _| link.entries().map(|entry| entry.host).collect())
}

fn sorted(mut hosts: Vec<HostId>) -> Vec<HostId> {
    hosts.sort_unstable();
    hosts
}

/// A further environment of a user, which is awake.
fn second(platform: &Platform, user: &User) -> EnvId {
    let project = platform.create_project(user, "Second", "program");
    let user = User { env: project.environments[0].id, ..user.clone() };
    platform.wake(&user);
    user.env
}

#[test]
fn environments_and_a_paired_host_stand_side_by_side_and_a_sign_out_takes_only_its_own() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let second = second(&platform, &user);
    let alone = Alone::start();
    let desk = Desk::new();
    let paired = desk.pair(&alone.address, &alone.code);
    let client = desk.start(&platform, "ada", &user);
    let environments = [HostId::from(user.env), HostId::from(second)];
    let all = sorted(vec![environments[0], environments[1], paired]);
    for host in &all {
        assert_eq!(client.live(*host).generation, 1);
    }
    assert_eq!(sorted(hosts(&client)), all);
    // What happens at one shows at that one.
    let threads: Vec<_> = all.iter().map(|host| (*host, client.thread(*host))).collect();
    for (host, thread) in &threads {
        client.with(|link, _| {
            for (other, foreign) in &threads {
                assert_eq!(link.row(*host, *foreign).is_some(), other == host, "{thread}");
            }
        });
    }
    client.close();
    for host in &all {
        assert!(desk.has_cached(*host));
    }

    // Signed out, it has the paired host, whose session goes on, and nothing of the others.
    let client = desk.start(&platform, "ada", &user);
    for host in &all {
        client.live(*host);
    }
    client.with(|link, now| link.sign_out(now, &address(&platform))).unwrap();
    until("the environments are gone", || (hosts(&client) == [paired]).then_some(()));
    for host in environments {
        until("nothing is kept of it", || (!desk.has_cached(host)).then_some(()));
    }
    let state = client.connection(paired).unwrap();
    assert_eq!((state.phase, state.generation), (ConnectionPhase::Connected, 1));
    assert!(desk.has_cached(paired));
    client.run(paired, threads.iter().find(|(host, _)| *host == paired).unwrap().1, "echo on");
    client.close();
    assert!(!desk.has_cached(environments[0]), "an end brings nothing back");
}

#[test]
fn a_deleted_environment_disappears_from_a_client_with_what_is_kept_of_it() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let second = second(&platform, &user);
    let (first, second) = (HostId::from(user.env), HostId::from(second));
    let desk = Desk::new();
    let client = desk.start(&platform, "ada", &user);
    client.live(first);
    client.live(second);
    client.thread(second);
    until("its list is kept", || desk.has_cached(second).then_some(()));
    let project = format!("/api/projects/{second}");
    platform.call(&user, "DELETE", &project).send().expect(202);
    until("it is gone", || (hosts(&client) == [first]).then_some(()));
    until("nothing is kept of it", || (!desk.has_cached(second)).then_some(()));
    assert_eq!(client.live(first).generation, 1, "the other one goes on");
    client.close();
    assert!(!desk.has_cached(second), "an end brings nothing back");
}
