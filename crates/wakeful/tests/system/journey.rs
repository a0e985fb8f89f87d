//! From sign-up to a page, and everything that its owner does with it; and what strangers get.

use serde_json::{Value, json};
use wakeful_wire::Phase;

use crate::support::{Browser, Setup, until};

#[test]
fn a_program_signs_up_and_its_first_request_is_answered_by_the_app() {
    let platform = Setup::default().up();
    let answer = platform.ask("POST", "/users").json(&json!({ "user": "ada" })).send();
    assert!(matches!(answer.status, 201 | 202), "{answer:?}");
    let signed_up: Value = answer.json();
    assert_eq!(signed_up["user"], "ada");
    let token = signed_up["token"].as_str().unwrap();
    assert!(token.starts_with("wk_"), "{signed_up}");
    let environment = &signed_up["project"]["environments"][0];
    assert_eq!(environment["slug"], "dev");
    assert_eq!(environment["id"], signed_up["project"]["id"]);
    // It may still be starting: the request is held until it is ready.
    let url = environment["surfaces"][0]["url"].as_str().unwrap();
    let host = url.strip_prefix("http://").unwrap().trim_end_matches('/');
    let answer = platform.ask_at(host, "GET", "/a%2Fb?q=%20").token(token).send();
    assert_eq!(answer.expect(200).text(), "GET /a%2Fb?q=%20");
    let again = platform.ask("POST", "/users").json(&json!({ "user": "ada" })).send();
    assert_eq!(again.expect(409).code(), "conflict");
}

#[test]
fn a_person_signs_up_by_a_form_and_lands_on_the_page_of_the_app() {
    let platform = Setup { template: "demo", ..Setup::default() }.up();
    let mut browser = Browser::new(&platform);
    let answer = browser.submit("/users", "user=ada&password=correct+horse+battery").expect(303);
    assert_eq!(answer.header("location"), Some("/u/ada/"));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with("wakeful_session="), "{cookie}");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    let loaded = browser.load_woken(&format!("{}/u/ada/", platform.origin()));
    loaded.answer.clone().expect(200);
    assert!(loaded.url.contains("-dev.apps.wakeful.localhost"), "{}", loaded.url);
    assert!(loaded.answer.text().contains("It is awake"), "{}", loaded.answer.text());
    // The dashboard's cookie is of the dashboard alone.
    let host = loaded.url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    assert!(browser.cookie(host, "wakeful_session").is_none());
    assert!(browser.cookie(host, "wakeful_surface").is_some());
    // The way without the slash leads to the one with it.
    let bare = platform.ask("GET", "/u/ada").page().send();
    assert!(bare.header("location").unwrap().ends_with("/u/ada/"), "{bare:?}");
}

#[test]
fn signing_out_ends_the_sessions_of_surfaces_too() {
    let platform = Setup::default().up();
    let mut browser = Browser::new(&platform);
    browser.sign_up("ada");
    let home = browser.load_woken(&format!("{}/u/ada/", platform.origin()));
    home.answer.expect(200);
    browser.script("GET", &home.url).send().expect(200);
    browser.submit("/logout", "").expect(303);
    until("the surface's cookie stands for nobody", || {
        (browser.script("GET", &home.url).send().status == 401).then_some(())
    });
    // A page load leads back to the sign-in page, not into the app.
    let loaded = browser.load(&home.url);
    assert!(loaded.url.contains("/login"), "{}", loaded.url);
}

#[test]
fn a_page_load_of_a_sleeping_environment_wakes_it_and_what_was_written_is_there() {
    let platform = Setup::default().up();
    let mut browser = Browser::new(&platform);
    let user = browser.sign_up("ada");
    let home = browser.load_woken(&format!("{}/u/ada/", platform.origin()));
    platform.app(&user, "PUT", "/file/notes.txt").body("kept").send().expect(201);
    let before = platform.environment(&user, user.env).sandbox;
    let asleep = platform.suspend(&user);
    assert_eq!(asleep.sandbox, None);
    assert_eq!(platform.processes(), []);
    let url = format!("{}file/notes.txt", home.url);
    assert_eq!(browser.load_woken(&url).answer.expect(200).text(), "kept");
    let after = platform.environment(&user, user.env).sandbox;
    assert!(after.is_some() && after != before, "a new sandbox: {before:?}, {after:?}");
}

#[test]
fn an_owner_wakes_suspends_restarts_extends_and_asks_why_by_the_api() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    // Of its surfaces it is told a moment after they have made it ready.
    let first = until("its app is told as ready", || {
        let environment = platform.environment(&user, user.env);
        assert_eq!(environment.phase, Phase::Ready);
        let mut surfaces = environment.surfaces.iter();
        let ready = surfaces.any(|surface| surface.name.as_str() == "app" && surface.ready);
        ready.then_some(environment)
    });

    let restarted = platform.order(&user, "restart?wait_ms=30000");
    assert_eq!(restarted.phase, Phase::Ready);
    assert!(restarted.sandbox.is_some() && restarted.sandbox != first.sandbox);

    let target = format!("/api/environments/{}/extend", user.env);
    platform.call(&user, "POST", &target).json(&json!({ "minutes": 90 })).send().expect(200);
    let explained = platform.explain(&user);
    let sleeps_in = explained.sleeps_in_ms.unwrap();
    assert!((80 * 60_000..=90 * 60_000).contains(&sleeps_in), "{explained:?}");

    assert_eq!(platform.suspend(&user).sandbox, None);
    let explained = platform.explain(&user);
    assert_eq!((explained.phase, explained.sleeps_in_ms), (Phase::Suspended, None));
    assert!(explained.awake_because.is_empty());

    let woken = platform.order(&user, "wake?wait_ms=30000");
    assert_eq!(woken.phase, Phase::Ready);
}

#[test]
fn an_owner_does_the_same_from_the_command_line() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let env = user.env.to_string();
    let run = |args: &[&str]| -> Value {
        let output = platform.cli(&user, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"))
    };
    assert_eq!(run(&["whoami"])["user"], "ada");
    assert_eq!(run(&["projects"])[0]["id"], env.as_str());
    assert_eq!(run(&["envs"])[0]["phase"], "ready");
    assert_eq!(run(&["suspend", &env])["phase"], "suspended");
    assert_eq!(run(&["explain", &env])["phase"], "suspended");
    let woken = run(&["wake", &env]);
    assert_eq!(woken["phase"], "ready");
    let restarted = run(&["restart", &env]);
    assert_eq!(restarted["phase"], "ready");
    assert_ne!(restarted["sandbox"], woken["sandbox"]);
    let extended = run(&["extend", &env, "--for", "2h"]);
    let sleeps_in = extended["sleeps_in_ms"].as_u64().unwrap();
    assert!((110 * 60_000..=120 * 60_000).contains(&sleeps_in), "{extended}");
    // What a stranger asks for fails with a problem for programs.
    let output = platform.cli(&user, &["wake", "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    serde_json::from_slice::<Value>(&output.stderr).unwrap();
}

#[test]
fn an_environment_of_somebody_else_is_not_there() {
    let platform = Setup { surfaces: vec![("agent", "")], ..Setup::default() }.up();
    let (ada, bob) = (platform.sign_up_asleep("ada"), platform.sign_up_asleep("bob"));
    let starts = platform.metric("wakeful_sandbox_starts_total");
    let env = ada.env;
    let calls = [
        ("GET", format!("/api/environments/{env}")),
        ("GET", format!("/api/environments/{env}/explain")),
        ("POST", format!("/api/environments/{env}/wake")),
        ("POST", format!("/api/environments/{env}/suspend")),
        ("GET", format!("/api/projects/{env}")),
        ("DELETE", format!("/api/projects/{env}")),
        ("GET", format!("/api/proxy/{env}/pid")),
        ("GET", "/u/ada/".to_owned()),
    ];
    for (method, target) in calls {
        let answer = platform.call(&bob, method, &target).send();
        assert_eq!(answer.status, 404, "{method} {target}: {}", answer.text());
    }
    for surface in ["app", "agent"] {
        let host = platform.host(env, surface);
        let answer = platform.ask_at(&host, "GET", "/pid").token(&bob.token).send();
        assert_eq!(answer.status, 404, "{host}");
        // Without any credential nobody learns whether there is something.
        platform.ask_at(&host, "GET", "/pid").send().expect(401);
    }
    let projects: Value = platform.call(&bob, "GET", "/api/projects").send().expect(200).json();
    assert_eq!(projects.as_array().unwrap().len(), 1);
    assert_eq!(platform.environment(&ada, env).phase, Phase::Suspended);
    assert_eq!(platform.metric("wakeful_sandbox_starts_total"), starts, "nothing was woken");
}

#[test]
fn a_host_name_that_is_not_ours_is_misdirected() {
    let platform = Setup::default().up();
    for host in ["evil.example", "wakeful.localhost.evil.example", "notwakeful.localhost"] {
        let host = format!("{host}:{}", platform.port());
        let answer =
            platform.ask_at(&host, "POST", "/users").json(&json!({ "user": "eve" })).send();
        assert_eq!(answer.status, 421, "{host}: {}", answer.text());
    }
    let answer = platform.ask("POST", "/users").header("Origin", "http://evil.example");
    assert_eq!(answer.json(&json!({ "user": "eve" })).send().expect(403).code(), "cross_origin");
}

#[test]
fn a_variable_reaches_the_program_at_its_next_start_and_a_secret_is_not_shown_again() {
    let platform =
        Setup { variables: vec![("GREETING", "of the template")], ..Setup::default() }.up();
    let user = platform.sign_up_ready("ada");
    let said = |name: &str| {
        platform.app(&user, "GET", &format!("/variable/{name}")).send().expect(200).text()
    };
    assert_eq!(said("GREETING"), "of the template");
    let variables = format!("/api/environments/{}/variables", user.env);
    for (name, value, secret) in [("GREETING", "mine", false), ("KEY", "hunter2-hunter2", true)] {
        let body = json!({ "value": value, "secret": secret });
        let answer = platform.call(&user, "PUT", &format!("{variables}/{name}")).json(&body).send();
        assert!((200..300).contains(&answer.status), "{answer:?}");
    }
    platform.order(&user, "restart?wait_ms=30000");
    assert_eq!((said("GREETING").as_str(), said("KEY").as_str()), ("mine", "hunter2-hunter2"));
    let listed = platform.call(&user, "GET", &variables).send().expect(200).text();
    assert!(listed.contains("mine") && !listed.contains("hunter2-hunter2"), "{listed}");
    let shown = platform.processes().into_iter().any(|process| process.command.contains("hunter2"));
    assert!(!shown && !platform.log().contains("hunter2"));
}

#[test]
fn files_are_put_and_read_whether_or_not_it_is_awake() {
    let platform = Setup::default().up();
    let user = platform.sign_up_asleep("ada");
    let files = format!("/api/projects/{}/files", user.env);
    let put = platform.call(&user, "PUT", &format!("{files}/notes.txt")).body("uploaded").send();
    assert!(matches!(put.status, 200 | 201), "{put:?}");
    let got = platform.call(&user, "GET", &format!("{files}/notes.txt")).send().expect(200);
    assert_eq!(got.text(), "uploaded");
    assert_eq!(platform.environment(&user, user.env).phase, Phase::Suspended);
    assert_eq!(platform.app(&user, "GET", "/file/notes.txt").send().expect(200).text(), "uploaded");
    let sneaky = platform.call(&user, "GET", &format!("{files}/..%2f..%2fwakeful.db")).send();
    assert!(matches!(sneaky.status, 400 | 404), "{sneaky:?}");
}

#[test]
fn what_a_program_wrote_is_in_its_log_also_after_it_fell_asleep() {
    let platform = Setup::default().up();
    let user = platform.sign_up_ready("ada");
    let target = format!("/api/environments/{}/logs?surface=app", user.env);
    let log = || platform.call(&user, "GET", &target).send().expect(200).text();
    // A program may answer before what it wrote has been taken from it.
    until("its first line is in the log", || log().contains("the program has begun").then_some(()));
    platform.suspend(&user);
    assert!(log().contains("the program has begun"), "{}", log());
}

#[test]
fn events_tell_each_change_of_phase_to_its_owner_alone() {
    let platform = Setup::default().up();
    let (user, bob) = (platform.sign_up_ready("ada"), platform.sign_up_ready("bob"));
    let follow = |user| {
        let mut stream = platform.call(user, "GET", "/api/events").open().unwrap();
        let answer = stream.head().unwrap();
        assert_eq!(answer.status, 200);
        (stream, answer)
    };
    let (mut stream, mut answer) = follow(&user);
    let (mut others, mut others_answer) = follow(&bob);
    platform.suspend(&user);
    stream.chunks_until(&mut answer, "\"phase\":\"suspended\"");
    platform.app(&user, "GET", "/hit").send().expect(200);
    stream.chunks_until(&mut answer, "\"phase\":\"starting\"");
    assert!(answer.text().contains("event: environment"), "{}", answer.text());
    platform.suspend(&bob);
    others.chunks_until(&mut others_answer, "\"phase\":\"suspended\"");
    assert!(!others_answer.text().contains(&user.env.to_string()), "{}", others_answer.text());
}
