//! What a program does: sign-up, API calls, visits with a token.

use std::{fs, path::PathBuf};

use serde_json::json;
use wakeful_wire::{
    EnvId, Phase, Slug, SurfaceName,
    api::{Environment, Explain, Project, SignedUp},
    hosts::{Hosts, Scheme},
};

use super::{Ask, Platform, until};

/// Somebody with an account.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) token: String,
    /// The Development environment of the first project.
    pub(crate) env: EnvId,
}

impl Platform {
    fn hosts(&self) -> Hosts {
        Hosts::new("wakeful.localhost", Scheme::Http, Some(self.port())).unwrap()
    }

    /// The main host, as it stands in `Host`.
    pub(crate) fn main_host(&self) -> String {
        self.hosts().authority("wakeful.localhost")
    }

    /// The main host's origin.
    pub(crate) fn origin(&self) -> String {
        self.hosts().main_origin()
    }

    /// A surface's own host, as it stands in `Host`.
    pub(crate) fn host(&self, env: EnvId, surface: &str) -> String {
        let hosts = self.hosts();
        let (slug, surface) = (Slug::new("dev").unwrap(), SurfaceName::new(surface).unwrap());
        hosts.authority(&hosts.surface_host(env, &slug, &surface))
    }

    /// A request to the main host.
    pub(crate) fn ask(&self, method: &str, target: &str) -> Ask {
        Ask::new(self.address(), method, &self.main_host(), target)
    }

    /// A request to any host.
    pub(crate) fn ask_at(&self, host: &str, method: &str, target: &str) -> Ask {
        Ask::new(self.address(), method, host, target)
    }

    /// A call of the API as a user.
    pub(crate) fn call(&self, user: &User, method: &str, target: &str) -> Ask {
        self.ask(method, target).token(&user.token)
    }

    /// A program's visit of the app of the user's first environment.
    pub(crate) fn app(&self, user: &User, method: &str, target: &str) -> Ask {
        self.app_of(user, user.env, method, target)
    }

    /// A program's visit of the app of any environment.
    pub(crate) fn app_of(&self, user: &User, env: EnvId, method: &str, target: &str) -> Ask {
        self.ask_at(&self.host(env, "app"), method, target).token(&user.token)
    }

    /// Signs up as a program does.
    pub(crate) fn sign_up(&self, name: &str) -> User {
        let answer = self.ask("POST", "/users").json(&json!({ "user": name })).send();
        assert!(matches!(answer.status, 201 | 202), "{} {}", answer.status, answer.text());
        let SignedUp { token, project, .. } = answer.json();
        User { token, env: project.environments[0].id }
    }

    /// Signs up and waits until the first environment is ready.
    pub(crate) fn sign_up_ready(&self, name: &str) -> User {
        let user = self.sign_up(name);
        self.await_phase(&user, user.env, Phase::Ready);
        user
    }

    /// Signs up and puts the first environment to sleep.
    pub(crate) fn sign_up_asleep(&self, name: &str) -> User {
        let user = self.sign_up_ready(name);
        self.suspend(&user);
        user
    }

    pub(crate) fn create_project(&self, user: &User, title: &str, template: &str) -> Project {
        let body = json!({ "title": title, "template": template });
        self.call(user, "POST", "/api/projects").json(&body).send().expect(201).json()
    }

    pub(crate) fn environment(&self, user: &User, env: EnvId) -> Environment {
        self.call(user, "GET", &format!("/api/environments/{env}")).send().expect(200).json()
    }

    pub(crate) fn explain(&self, user: &User) -> Explain {
        let target = format!("/api/environments/{}/explain", user.env);
        self.call(user, "GET", &target).send().expect(200).json()
    }

    pub(crate) fn await_phase(&self, user: &User, env: EnvId, phase: Phase) -> Environment {
        until(&format!("{env} is {phase}"), || {
            let environment = self.environment(user, env);
            (environment.phase == phase).then_some(environment)
        })
    }

    /// `POST /api/environments/{id}/{what}`.
    pub(crate) fn order(&self, user: &User, what: &str) -> Environment {
        let answer = self.call(user, "POST", &format!("/api/environments/{}/{what}", user.env));
        let answer = answer.send();
        assert!(matches!(answer.status, 200 | 202), "{} {}", answer.status, answer.text());
        answer.json()
    }

    /// Wakes the user's first environment and waits until it is ready.
    pub(crate) fn wake(&self, user: &User) -> Environment {
        self.order(user, "wake");
        self.await_phase(user, user.env, Phase::Ready)
    }

    /// Puts the user's first environment to sleep and waits until it sleeps.
    pub(crate) fn suspend(&self, user: &User) -> Environment {
        self.order(user, "suspend");
        self.await_phase(user, user.env, Phase::Suspended)
    }

    /// The process of the user's app, which starts the environment if need be.
    pub(crate) fn pid(&self, user: &User) -> u32 {
        self.app(user, "GET", "/pid").send().expect(200).text().parse().unwrap()
    }

    /// The sum of a metric over its labels.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.ask("GET", "/metrics").send().expect(200).text();
        let lines = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
        });
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        let (found, sum) = values.fold((false, 0.0), |(_, sum), value| (true, sum + value));
        assert!(found || text.contains(name.trim_end_matches("_total")), "no metric {name}");
        sum as u64
    }

    /// Where the files of an environment are.
    pub(crate) fn workspace(&self, env: EnvId) -> PathBuf {
        self.data().join("workspaces").join(env.to_string())
    }

    /// Puts the file into the workspace that somebody there waits for.
    pub(crate) fn release(&self, env: EnvId, name: &str) {
        fs::write(self.workspace(env).join(name), "").unwrap();
    }

    /// Waits until a file is in the workspace.
    pub(crate) fn await_file(&self, env: EnvId, name: &str) {
        until(name, || self.workspace(env).join(name).exists().then_some(()));
    }
}
