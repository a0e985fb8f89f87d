//! Layers in, plain values or faults out.

use std::{path::Path, time::Duration};

use wakeful::config::{
    Config, ConfigError, Layers, Origin, build::resolve_settings, layers::FlagValue,
    setting::SETTINGS, show,
};
use wakeful_wire::hosts::{PathOrigin, Scheme};

fn layers(file: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> Layers {
    Layers {
        flags: flags
            .iter()
            .map(|(key, value)| FlagValue {
                flag: format!("--set {key}"),
                key: (*key).to_owned(),
                values: vec![(*value).to_owned()],
            })
            .collect(),
        variables: variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        file: Some(("wakeful.toml".to_owned(), file.to_owned())),
        directory: "/srv/here".into(),
        machine_cores: 3,
    }
}

fn resolve(
    file: &str,
    variables: &[(&str, &str)],
    flags: &[(&str, &str)],
) -> Result<Config, ConfigError> {
    Config::resolve(&layers(file, variables, flags))
}

#[test]
fn nothing_configured_means_the_documented_defaults() {
    let config = resolve("", &[], &[]).unwrap();
    let listen: Vec<_> = config.listen.iter().map(ToString::to_string).collect();
    assert_eq!(listen, ["127.0.0.1:7878", "[::1]:7878"]);
    assert_eq!(config.data, Path::new("/srv/here/.wakeful"));
    assert_eq!(config.domain, "wakeful.localhost");
    assert_eq!(config.default_template.as_str(), "demo");
    assert_eq!(config.idle.agent, Duration::from_secs(30 * 60));
    assert_eq!(config.idle.app, Duration::from_secs(10 * 60));
    assert_eq!(config.idle.floor, Duration::from_secs(5 * 60));
    assert_eq!(config.idle.turn_limit, Duration::from_secs(6 * 3_600));
    assert_eq!(config.proxy.ws_keepalive_interval, Duration::from_secs(60));
    assert_eq!(config.proxy.held_per_environment, 16_384);
    assert_eq!(config.proxy.held_total, 65_536);
    assert_eq!(config.wake.budget, Duration::from_secs(60));
    assert_eq!(config.retention.workspace, Duration::from_secs(7 * 86_400));
    assert_eq!(config.path_origin, PathOrigin::Separate);
    assert_eq!(config.cores, 3);
    assert!(config.is_default("listen") && !config.keep_sandboxes);
    assert!(config.warnings.is_empty());
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let file = "[idle]\napp = '20m'\n";
    let variable = [("WAKEFUL_IDLE_APP", "21m")];
    let flag = [("idle.app", "22m")];
    let table: [(Config, u64, Origin); 4] = [
        (resolve("", &[], &[]).unwrap(), 10, Origin::Default),
        (
            resolve(file, &[], &[]).unwrap(),
            20,
            Origin::File { path: "wakeful.toml".to_owned(), line: 2 },
        ),
        (
            resolve(file, &variable, &[]).unwrap(),
            21,
            Origin::Variable("WAKEFUL_IDLE_APP".to_owned()),
        ),
        (resolve(file, &variable, &flag).unwrap(), 22, Origin::Flag("--set idle.app".to_owned())),
    ];
    for (config, minutes, origin) in table {
        assert_eq!(config.idle.app, Duration::from_secs(minutes * 60));
        assert_eq!(config.origins["idle.app"], origin);
    }
}

#[test]
fn every_setting_can_be_set_in_each_layer() {
    let values = [
        ("listen", "127.0.0.1:1,[::1]:2", r#"["127.0.0.1:1", "[::1]:2"]"#),
        ("data", "/d", "'/d'"),
        ("domain", "a.example", "'a.example'"),
        ("public_url", "https://wakeful.localhost", "'https://wakeful.localhost'"),
        ("cookie_suffix", "b", "'b'"),
        ("path_origin", "shared", "'shared'"),
        ("cores", "7", "7"),
        ("keep_sandboxes", "true", "true"),
        ("default_template", "opencode", "'opencode'"),
        ("idle.agent", "31m", "'31m'"),
        ("idle.app", "11m", "'11m'"),
        ("idle.floor", "6m", "'6m'"),
        ("idle.turn_limit", "7h", "'7h'"),
        ("proxy.ws_keepalive_interval", "30s", "'30s'"),
        ("proxy.held_per_environment", "5", "5"),
        ("proxy.held_total", "70000", "70000"),
        ("wake.budget", "2m", "'2m'"),
        ("start.attempts", "2", "2"),
        ("start.timeout", "3m", "'3m'"),
        ("retention.workspace", "1d", "'1d'"),
        ("isolation.mode", "none", "'none'"),
        ("isolation.readable", "/a,/b", "['/a', '/b']"),
        ("isolation.limits.files", "100", "100"),
        ("isolation.limits.core", "1", "1"),
        ("log.format", "json", "'json'"),
        ("log.level", "debug", "'debug'"),
    ];
    let declared: Vec<_> = SETTINGS.iter().map(|setting| setting.key).collect();
    assert_eq!(values.map(|(key, ..)| key).to_vec(), declared, "a row for every setting");
    for (setting, (key, text, toml)) in SETTINGS.iter().zip(values) {
        let file = format!("{key} = {toml}\n");
        let by_file = resolve_settings(&layers(&file, &[], &[])).unwrap().settings;
        let variable = setting.variable();
        let variables = [(variable.as_str(), text)];
        let by_variable = resolve_settings(&layers("", &variables, &[])).unwrap().settings;
        let by_flag = resolve_settings(&layers("", &[], &[(key, text)])).unwrap().settings;
        let default = resolve_settings(&layers("", &[], &[])).unwrap().settings;
        assert_eq!(by_file[key], by_variable[key], "{key}");
        assert_eq!(by_file[key], by_flag[key], "{key}");
        assert_ne!(by_file[key], default[key], "{key} is not changed by this row");
    }
}

#[test]
fn faults_name_their_place_their_key_and_the_remedy() {
    let table = [
        ("idel = 1\n", "wakeful.toml:1: `idel` is no known key; did you mean `idle`?"),
        (
            "[idle]\nagnet = '1h'\n",
            "wakeful.toml:2: `idle.agnet` is no known key; did you mean `agent`?",
        ),
        (
            "[isolation.limits]\nfile = 1\n",
            "`isolation.limits.file` is no known key; did you mean `files`?",
        ),
        ("[wake]\nfloor = '1m'\n", "`wake.floor` is no known key; `idle.floor` is one"),
        ("[idle]\nqqqqqq = 1\n", "known here: agent, app, floor, turn_limit"),
        ("idle = '5m'\n", "`idle` is a string, but must be a table"),
        (
            "[idle]\napp = 10\n",
            "`idle.app` is a whole number, but must be a duration in quotes, for example: [idle] app = \"10m\"",
        ),
        ("[idle]\napp = '10'\n", "needs a unit"),
        ("[idle]\napp = '10 m'\n", "it is not a duration"),
        (
            "[proxy]\nheld_total = '5'\n",
            "`proxy.held_total` is a string, but must be a whole number",
        ),
        ("[proxy]\nheld_total = -5\n", "must not be negative"),
        ("[proxy]\nheld_total = 0\n", "must lie between 1 and 10000000"),
        (
            "[proxy]\nheld_total = 5\n",
            "must be at least `proxy.held_per_environment`, which is 16384",
        ),
        ("listen = '127.0.0.1:1'\n", "must be a list of strings"),
        ("listen = [1]\n", "must hold strings only"),
        ("listen = ['localhost:1']\n", "holds `localhost:1`, which is not an address and a port"),
        ("listen = []\n", "must name at least one address"),
        ("domain = 'http://a'\n", "not a host name"),
        ("path_origin = 'sharde'\n", "must be one of `own`, `shared`; did you mean `shared`?"),
        ("keep_sandboxes = 'yes'\n", "must be true or false"),
        ("default_template = 'demos'\n", "is `demos`, which is no template; did you mean `demo`?"),
        ("[isolation]\nreadable = ['opt']\n", "holds `opt`, which is not an absolute path"),
        ("[log]\nlevel = 'loud'\n", "must be a level"),
        ("[wake]\nbudget = '2h'\n", "must lie between 1ms and 1h"),
        ("public_url = 'https://a.org/x'\n", "without a path"),
        ("templates = 1\n", "`templates` is a whole number, but must be a table"),
        ("[idle\n", "wakeful.toml:1:"),
        ("a = 1\na = 2\n", "duplicate key"),
    ];
    for (file, expected) in table {
        let message = resolve(file, &[], &[]).unwrap_err().to_string();
        assert!(message.contains(expected), "{file}\n{message}\nlacks: {expected}");
    }
}

#[test]
fn a_floor_below_five_keepalive_intervals_is_refused_with_both_values() {
    let message =
        resolve("[idle]\nfloor = '4m59s'\n[proxy]\nws_keepalive_interval = '1m'\n", &[], &[])
            .unwrap_err()
            .to_string();
    for part in ["wakeful.toml:2", "4m59s", "five times `proxy.ws_keepalive_interval`", "1m", "5m"]
    {
        assert!(message.contains(part), "{message}\nlacks: {part}");
    }
    let variables = [("WAKEFUL_PROXY_WS_KEEPALIVE_INTERVAL", "61s")];
    let message = resolve("", &variables, &[]).unwrap_err().to_string();
    assert!(message.contains("1m1s (WAKEFUL_PROXY_WS_KEEPALIVE_INTERVAL)"), "{message}");
    assert!(resolve("[idle]\nfloor = '5m'\n", &[], &[]).is_ok());
    let short = [
        ("WAKEFUL_PROXY_WS_KEEPALIVE_INTERVAL", "100ms"),
        ("WAKEFUL_IDLE_FLOOR", "500ms"),
        ("WAKEFUL_IDLE_APP", "500ms"),
        ("WAKEFUL_IDLE_AGENT", "1s"),
    ];
    assert!(resolve("", &short, &[]).is_ok());
}

#[test]
fn a_turn_limit_below_a_minute_is_refused() {
    for limit in ["0", "0s", "59s"] {
        let message = resolve(&format!("[idle]\nturn_limit = '{limit}'\n"), &[], &[])
            .unwrap_err()
            .to_string();
        assert!(message.contains("`idle.turn_limit`"), "{message}");
    }
    let config = resolve("[idle]\nturn_limit = '1m'\n", &[], &[]).unwrap();
    assert_eq!(config.idle.turn_limit, Duration::from_secs(60));
}

#[test]
fn an_idle_timeout_below_the_floor_is_refused() {
    for key in ["agent", "app"] {
        let message =
            resolve(&format!("[idle]\n{key} = '4m'\n"), &[], &[]).unwrap_err().to_string();
        let expected =
            format!("`idle.{key}` is 4m, but must be at least `idle.floor`, which is 5m");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let file = "[idle]\nap = 1\nfloor = '1m'\n[wake]\nbudget = 2\n[log]\nformat = 'xml'\n\
                [templates.demo]\ntitel = 'x'\n";
    let error = resolve(file, &[], &[]).unwrap_err();
    let keys: Vec<_> = error.faults.iter().map(|fault| fault.key.as_str()).collect();
    let expected = ["idle.ap", "wake.budget", "log.format", "templates.demo.titel", "idle.floor"];
    assert_eq!(keys, expected, "{error}");
}

#[test]
fn a_wrong_variable_and_a_wrong_flag_name_themselves() {
    let message = resolve("", &[("WAKEFUL_WAKE_BUDGET", "soon")], &[]).unwrap_err().to_string();
    assert!(message.contains("WAKEFUL_WAKE_BUDGET: `wake.budget` is `soon`"), "{message}");
    let message = resolve("", &[], &[("wake.budgt", "1m")]).unwrap_err().to_string();
    assert!(message.contains("`wake.budgt` is no known key; did you mean `wake.budget`?"));
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let config = resolve("cores = 2\n", &[("WAKEFUL_CORES", "")], &[]).unwrap();
    assert_eq!(config.cores, 2);
}

#[test]
fn a_variable_that_means_nothing_is_a_warning_with_the_nearest_name() {
    let config = resolve("", &[("WAKEFUL_IDLE_AP", "1m"), ("WAKEFUL_BIN", "/x")], &[]).unwrap();
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    assert!(config.warnings[0].contains("did you mean `WAKEFUL_IDLE_APP`?"));
}

#[test]
fn the_public_address_brings_its_domain() {
    let url = "public_url = 'https://agents.example.org:8443'\n";
    let config = resolve(url, &[], &[]).unwrap();
    assert_eq!(config.domain, "agents.example.org");
    let hosts = config.hosts(7878);
    assert_eq!((hosts.scheme, hosts.port), (Scheme::Https, Some(8443)));
    let other = format!("{url}domain = 'other.example.org'\n");
    let message = resolve(&other, &[], &[]).unwrap_err().to_string();
    assert!(message.contains("they must be the same"), "{message}");
    let same = format!("{url}domain = 'agents.example.org'\n");
    assert!(resolve(&same, &[], &[]).is_ok());
    let config = resolve("", &[], &[]).unwrap();
    assert_eq!(config.hosts(80).main_origin(), "http://wakeful.localhost");
    assert_eq!(config.hosts(8080).main_origin(), "http://wakeful.localhost:8080");
}

#[test]
fn the_sample_of_the_manual_is_understood() {
    let file = r#"
default_template = "demo"
[idle]
agent = "30m"
app = "10m"
floor = "5m"
[proxy]
ws_keepalive_interval = "1m"
[wake]
budget = "60s"
[templates.demo]
title = "Demo"
home = "app"
[templates.demo.env]
GREETING = "hello"
[templates.demo.surfaces.app]
command = "python3 -m http.server $PORT"
ready = { http = "/" }
start = "eager"
"#;
    let config = resolve(file, &[], &[]).unwrap();
    let demo = &config.templates["demo"];
    assert_eq!(demo.env["GREETING"], "hello");
    assert_eq!(demo.surfaces["app"].command, "python3 -m http.server $PORT");
    assert!(demo.surfaces["app"].background.is_empty());
}

#[test]
fn what_sounds_like_a_secret_is_not_shown() {
    let file = "[templates.demo.env]\nAPI_KEY = 'hunter2'\nGREETING = 'hello'\n";
    let resolved = resolve_settings(&layers(file, &[], &[])).unwrap();
    let shown = show::json(&resolved).to_string();
    assert!(!shown.contains("hunter2") && shown.contains("API_KEY") && shown.contains("hello"));
    assert_eq!(resolved.config.templates["demo"].env["API_KEY"], "hunter2");
}
