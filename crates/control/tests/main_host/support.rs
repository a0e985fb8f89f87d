//! A whole main host, and requests to it.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use wakeful_control::{
    accounts::{AccountSettings, Accounts, HashCost, LimitSettings, Sources},
    api::{ApiSettings, AppState, router},
    engine::{Engine, EngineConfig, EngineMetrics, Parts, Surroundings},
    prompts::Prompts,
    store::{Database, SqliteStore},
    variables::Variables,
    workspaces::DirectoryWorkspaces,
};
use wakeful_lifecycle::{FreshSandbox, Policy, testing::ScriptedDriver};
use wakeful_wire::{
    ProjectId, SandboxUid, TemplateName, Timestamp, hosts::Hosts, template::Template,
};

pub(crate) const ORIGIN: &str = "http://wakeful.localhost:7878";
pub(crate) const PASSWORD: &str = "correct horse";

pub(crate) struct TestTime(AtomicU64);

impl Surroundings for TestTime {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn fresh_sandbox(&self) -> FreshSandbox {
        FreshSandbox {
            uid: SandboxUid::from_uuid(uuid::Uuid::new_v4()),
            secret: wakeful_lifecycle::Secret(uuid::Uuid::new_v4().to_string()),
        }
    }

    fn fresh_project(&self) -> ProjectId {
        ProjectId::from_uuid(uuid::Uuid::now_v7())
    }
}

pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) driver: Arc<ScriptedDriver>,
    pub(crate) accounts: Accounts,
    pub(crate) time: Arc<TestTime>,
    workspaces: PathBuf,
    _dir: tempfile::TempDir,
}

fn templates() -> Vec<(TemplateName, Arc<Template>)> {
    let plain = json!({ "command": "true" });
    let demo = json!({
        "title": "Demo", "description": "A page to begin with.", "home": "app",
        "surfaces": { "app": plain, "agent": plain },
    });
    let exotic = json!({
        "title": "Exotic", "install": "install exotic", "surfaces": { "app": plain },
    });
    [("demo", demo), ("exotic", exotic)]
        .into_iter()
        .map(|(name, template)| {
            let template: Template = serde_json::from_value(template).unwrap();
            (TemplateName::new(name).unwrap(), Arc::new(template))
        })
        .collect()
}

fn policy() -> Policy {
    let seconds = Duration::from_secs;
    Policy {
        idle_agent: seconds(1_800),
        idle_app: seconds(600),
        unready_grace: seconds(60),
        start_timeout: seconds(120),
        start_attempts: 3,
        retry_base: seconds(5),
        retry_cap: seconds(60),
        stable_after: seconds(60),
        heal_after: seconds(300),
        drain_deadline: seconds(10),
        stop_grace: seconds(5),
        step_retry: seconds(5),
        ..Policy::default()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        let settings = ApiSettings {
            upload_max: 1 << 20,
            streams_per_user: 2,
            log_poll: Duration::from_millis(10),
            heartbeat: Duration::from_millis(20),
            ..ApiSettings::default()
        };
        Self::with(settings, LimitSettings::default()).await
    }

    pub(crate) async fn with(settings: ApiSettings, limits: LimitSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("wakeful.db")).await.unwrap();
        let workspaces = dir.path().join("workspaces");
        let driver = ScriptedDriver::new();
        let time = Arc::new(TestTime(AtomicU64::new(1_800_000_000_000)));
        let now = Arc::clone(&time);
        let sources = Sources::system(move || now.now());
        let variables = Variables::new(database.clone(), sources.clone());
        let hash_cost = HashCost { memory_kib: 8, passes: 1 };
        let account_settings = AccountSettings { limits, hash_cost };
        let accounts = Accounts::new(database.clone(), sources, account_settings);
        let config = EngineConfig {
            policy: policy(),
            templates: templates().into_iter().collect(),
            default_template: TemplateName::new("demo").unwrap(),
            hosts: Hosts::default(),
            retention: Duration::from_secs(7 * 86_400),
        };
        let parts = Parts {
            store: Arc::new(SqliteStore::new(database.clone())),
            driver: Arc::clone(&driver) as _,
            workspaces: Arc::new(DirectoryWorkspaces::open(&workspaces).unwrap()),
            launch: Arc::new(variables.clone()),
            surroundings: Arc::clone(&time) as _,
            programs: Arc::new(|template| {
                template.install.as_ref().map(|how| format!("exotic is not installed: {how}"))
            }),
        };
        let metrics = EngineMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let engine = Engine::new(config, parts, metrics);
        let running = engine.clone();
        tokio::spawn(async move { running.run().await });
        let prompts = Prompts::new(database, engine.clone());
        let delivering = prompts.clone();
        tokio::spawn(async move { delivering.run().await });
        let state = AppState::new(
            engine,
            accounts.clone(),
            variables,
            prompts,
            Arc::new(registry),
            settings,
        );
        Self { router: router(state), driver, accounts, time, workspaces, _dir: dir }
    }

    pub(crate) fn advance(&self, duration: Duration) {
        let ms = u64::try_from(duration.as_millis()).unwrap();
        self.time.0.fetch_add(ms, Ordering::SeqCst);
    }

    /// Signs up by JSON, and waits until the environment is ready.
    pub(crate) async fn user(&self, name: &str) -> User {
        let answer = self
            .send(Call::post("/users").json(&json!({ "user": name, "password": PASSWORD })))
            .await;
        assert!(answer.status.is_success(), "{answer:?}");
        let body = answer.json();
        let user = User {
            name: name.to_owned(),
            token: body["token"].as_str().unwrap().to_owned(),
            project: body["project"]["id"].as_str().unwrap().to_owned(),
        };
        let wake = format!("/api/environments/{}/wake?wait_ms=20000", user.project);
        assert_eq!(self.send(user.call(Method::POST, &wake)).await.status, StatusCode::OK);
        user
    }

    /// Signs in by form and returns the cookie.
    pub(crate) async fn cookie(&self, user: &User) -> String {
        let form = [("user", user.name.as_str()), ("password", PASSWORD)];
        let answer = self.send(Call::post("/login").origin(ORIGIN).form(&form)).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
        answer.session().unwrap()
    }

    pub(crate) fn workspace(&self, user: &User) -> PathBuf {
        self.workspaces.join(&user.project)
    }

    pub(crate) async fn send(&self, call: Call) -> Answer {
        let response = self.router.clone().oneshot(call.request()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// Waits until the environment of a user's project is in a phase.
    pub(crate) async fn phase(&self, user: &User, phase: &str) -> Value {
        for _ in 0..2_000 {
            let path = format!("/api/environments/{}", user.project);
            let answer = self.send(user.get(&path)).await;
            assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
            let environment = answer.json();
            if environment["phase"] == phase {
                return environment;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never became {phase}");
    }
}

/// Somebody with a token, and a project that was made at sign-up.
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) project: String,
}

impl User {
    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        Call::new(method, path).header("authorization", &format!("Bearer {}", self.token))
    }

    pub(crate) fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str) -> Call {
        self.call(Method::POST, path)
    }
}

/// A request.
pub(crate) struct Call {
    builder: http::request::Builder,
    body: Body,
    peer: SocketAddr,
}

impl Call {
    pub(crate) fn new(method: Method, path: &str) -> Self {
        let builder = Request::builder().method(method).uri(path);
        Self { builder, body: Body::empty(), peer: ([127, 0, 0, 1], 40_000).into() }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &str) -> Self {
        Self::new(Method::POST, path)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.builder = self.builder.header(name, value);
        self
    }

    pub(crate) fn origin(self, origin: &str) -> Self {
        self.header("origin", origin)
    }

    /// A browser's session, on a page of the main host.
    pub(crate) fn cookie(self, value: &str) -> Self {
        self.header("cookie", &format!("wakeful_session={value}"))
    }

    /// As a browser that loads a page.
    pub(crate) fn page(self) -> Self {
        self.header("sec-fetch-mode", "navigate").header("accept", "text/html")
    }

    pub(crate) fn from(mut self, address: &str) -> Self {
        self.peer = SocketAddr::new(address.parse().unwrap(), 40_000);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, value: &Value) -> Self {
        self.header("content-type", "application/json").body(value.to_string())
    }

    pub(crate) fn form(self, fields: &[(&str, &str)]) -> Self {
        let encode = |text: &str| {
            text.bytes().fold(String::new(), |mut out, byte| {
                out.push_str(&format!("%{byte:02X}"));
                out
            })
        };
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        self.header("content-type", "application/x-www-form-urlencoded").body(fields.join("&"))
    }

    fn request(self) -> Request<Body> {
        let mut request = self.builder.body(self.body).unwrap();
        request.extensions_mut().insert(self.peer);
        request
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn location(&self) -> &str {
        self.header(header::LOCATION.as_str())
    }

    /// The value of the session cookie that it sets.
    pub(crate) fn session(&self) -> Option<String> {
        let text = self.headers.get(header::SET_COOKIE)?.to_str().unwrap();
        let value = text.strip_prefix("wakeful_session=")?.split(';').next()?;
        Some(value.to_owned())
    }

    /// Asserts a problem of this code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
    }
}

/// An answer that goes on: reads what comes until a text was seen.
pub(crate) struct Streaming {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Body,
    pub(crate) seen: String,
}

impl World {
    pub(crate) async fn open(&self, call: Call) -> Streaming {
        let response = self.router.clone().oneshot(call.request()).await.unwrap();
        let (parts, body) = response.into_parts();
        Streaming { status: parts.status, headers: parts.headers, body, seen: String::new() }
    }
}

impl Streaming {
    /// Reads on until `text` has come; false if the answer ended before.
    pub(crate) async fn until(&mut self, text: &str) -> bool {
        let reading = async {
            while !self.seen.contains(text) {
                match self.body.frame().await {
                    Some(frame) => {
                        let data = frame.unwrap().into_data().unwrap();
                        self.seen.push_str(std::str::from_utf8(&data).unwrap());
                    }
                    None => return false,
                }
            }
            true
        };
        let waited = tokio::time::timeout(Duration::from_secs(30), reading).await;
        waited.unwrap_or_else(|_| panic!("{text:?} never came"))
    }

    /// Reads on until the answer ends.
    pub(crate) async fn ended(&mut self) {
        assert!(!self.until("\u{0}never").await);
    }
}
