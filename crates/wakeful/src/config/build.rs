//! From layers to [`Config`].

use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf, time::Duration};

use wakeful_wire::{TemplateName, hosts::PathOrigin, sandbox::Limits};

use super::{
    Config, ConfigError, Idle, Isolation, IsolationMode, Log, LogFormat, Proxy, Retention, Start,
    Wake, check,
    document::Document,
    duration,
    fault::Faults,
    kind::Setting,
    layers::{Layers, Origin},
    nearest::suggestion,
    node::Node,
    setting::{Declaration, SETTINGS, declaration},
    template,
};

/// A configuration with the value of each setting, for `wakeful config show`.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The plain configuration.
    pub config: Config,
    /// Each setting's value, by key.
    pub settings: BTreeMap<&'static str, Setting>,
}

/// Resolves the layers into plain values.
///
/// # Errors
/// Every fault that was found.
pub fn resolve(layers: &Layers) -> Result<Config, ConfigError> {
    resolve_settings(layers).map(|resolved| resolved.config)
}

/// Resolves the layers and keeps the settings as they were read.
///
/// # Errors
/// Every fault that was found.
pub fn resolve_settings(layers: &Layers) -> Result<Resolved, ConfigError> {
    let mut faults = Faults::default();
    let Document { name: file, written, templates } = Document::read(layers, &mut faults);
    refuse_unknown_flags(layers, &mut faults);

    let mut settings = BTreeMap::new();
    let mut origins = BTreeMap::new();
    for declaration in SETTINGS {
        let (value, origin) = read(declaration, layers, &file, &written, &mut faults);
        settings.insert(declaration.key, value);
        origins.insert(declaration.key, origin);
    }
    let mut template_faults = Faults::default();
    let templates = template::resolve(&templates, &file, &mut template_faults);
    // Which templates there are is known only where each of them is sound.
    let templates = template_faults.is_empty().then_some(templates);
    faults.append(template_faults);

    let config = assemble(&Values(&settings), origins, layers, templates, faults)?;
    Ok(Resolved { config, settings })
}

fn refuse_unknown_flags(layers: &Layers, faults: &mut Faults) {
    for flag in &layers.flags {
        if declaration(&flag.key).is_none() {
            let hint = suggestion(&flag.key, SETTINGS.iter().map(|setting| setting.key));
            faults.add(&flag.flag, &flag.key, format!("is no known key{hint}"));
        }
    }
}

/// One setting's value from the highest layer that has it.
fn read(
    declaration: &Declaration,
    layers: &Layers,
    file: &str,
    written: &BTreeMap<String, Node>,
    faults: &mut Faults,
) -> (Setting, Origin) {
    let variable = declaration.variable();
    let flag = layers.flags.iter().rev().find(|flag| flag.key == declaration.key);
    // A variable that is set to nothing counts as not set, as it does for most programs.
    let value = layers.variables.get(&variable).filter(|value| !value.is_empty());
    let (read, origin) = if let Some(flag) = flag {
        (declaration.kind.read_texts(&flag.values), Origin::Flag(flag.flag.clone()))
    } else if let Some(value) = value {
        (declaration.kind.read_text(value), Origin::Variable(variable))
    } else if let Some(node) = written.get(declaration.key) {
        let origin = Origin::File { path: file.to_owned(), line: node.line };
        (declaration.kind.read_node(node), origin)
    } else {
        (declaration.kind.read_text(declaration.default), Origin::Default)
    };
    match read {
        Ok(value) => (value, origin),
        Err(message) => {
            let example = match origin {
                Origin::File { .. } => format!(", for example: {}", declaration.example),
                Origin::Default | Origin::Variable(_) | Origin::Flag(_) => String::new(),
            };
            faults.add(origin.to_string(), declaration.key, format!("{message}{example}"));
            // The default stands in, so that what contradicts it is found in the same run.
            let default = declaration.kind.read_text(declaration.default);
            (default.expect("a test reads every default"), Origin::Default)
        }
    }
}

/// Typed access to settings that were read according to their declaration.
struct Values<'a>(&'a BTreeMap<&'static str, Setting>);

impl Values<'_> {
    fn duration(&self, key: &str) -> Duration {
        let Some(Setting::Duration(value)) = self.0.get(key) else { undeclared(key) };
        *value
    }

    fn count(&self, key: &str) -> u64 {
        let Some(Setting::Count(value)) = self.0.get(key) else { undeclared(key) };
        *value
    }

    fn size(&self, key: &str) -> usize {
        usize::try_from(self.count(key)).unwrap_or(usize::MAX)
    }

    fn flag(&self, key: &str) -> bool {
        let Some(Setting::Flag(value)) = self.0.get(key) else { undeclared(key) };
        *value
    }

    fn text(&self, key: &str) -> &str {
        let Some(Setting::Text(value)) = self.0.get(key) else { undeclared(key) };
        value
    }

    fn list(&self, key: &str) -> &[String] {
        let Some(Setting::List(value)) = self.0.get(key) else { undeclared(key) };
        value
    }
}

fn undeclared(key: &str) -> ! {
    unreachable!("`{key}` is not declared with this kind")
}

fn assemble(
    values: &Values<'_>,
    origins: BTreeMap<&'static str, Origin>,
    layers: &Layers,
    templates: Option<BTreeMap<TemplateName, wakeful_wire::template::Template>>,
    mut faults: Faults,
) -> Result<Config, ConfigError> {
    let mut warnings = unknown_variables(&layers.variables);

    let listen: Vec<_> =
        values.list("listen").iter().filter_map(|address| address.parse().ok()).collect();
    if listen.is_empty() {
        faults.add(place(&origins, "listen"), "listen", "must name at least one address");
    }

    let idle = Idle {
        agent: values.duration("idle.agent"),
        app: values.duration("idle.app"),
        floor: values.duration("idle.floor"),
        turn_limit: values.duration("idle.turn_limit"),
    };
    let keepalive = values.duration("proxy.ws_keepalive_interval");
    if idle.floor < keepalive * 5 {
        faults.add(
            place(&origins, "idle.floor"),
            "idle.floor",
            format!(
                "is {}, but must be at least five times `proxy.ws_keepalive_interval`, which is {} \
                 ({}), so at least {}: what is open must touch its clock several times before it \
                 runs out",
                duration::text(idle.floor),
                duration::text(keepalive),
                place(&origins, "proxy.ws_keepalive_interval"),
                duration::text(keepalive * 5),
            ),
        );
    }
    for (key, value) in [("idle.agent", idle.agent), ("idle.app", idle.app)] {
        if value < idle.floor {
            faults.add(
                place(&origins, key),
                key,
                format!(
                    "is {}, but must be at least `idle.floor`, which is {} ({})",
                    duration::text(value),
                    duration::text(idle.floor),
                    place(&origins, "idle.floor"),
                ),
            );
        }
    }

    let proxy = Proxy {
        ws_keepalive_interval: keepalive,
        held_per_environment: values.size("proxy.held_per_environment"),
        held_total: values.size("proxy.held_total"),
    };
    if proxy.held_total < proxy.held_per_environment {
        faults.add(
            place(&origins, "proxy.held_total"),
            "proxy.held_total",
            format!(
                "is {}, but must be at least `proxy.held_per_environment`, which is {}",
                proxy.held_total, proxy.held_per_environment
            ),
        );
    }

    let default_template = values.text("default_template");
    let sound = templates.is_some();
    let templates = templates.unwrap_or_default();
    let template = templates.keys().find(|name| name.as_str() == default_template).cloned();
    if sound && template.is_none() {
        let hint = suggestion(default_template, templates.keys().map(TemplateName::as_str));
        faults.add(
            place(&origins, "default_template"),
            "default_template",
            format!("is `{default_template}`, which is no template{hint}"),
        );
    }

    let public_url = match values.text("public_url") {
        "" => None,
        text => check::public_url(text).ok(),
    };
    let domain = domain(values, &origins, public_url.as_ref(), &mut faults, &mut warnings);
    faults.finish()?;

    Ok(Config {
        listen,
        data: layers.directory.join(values.text("data")),
        domain,
        public_url,
        cookie_suffix: values.text("cookie_suffix").to_owned(),
        path_origin: match values.text("path_origin") {
            "shared" => PathOrigin::Shared,
            _ => PathOrigin::Separate,
        },
        cores: NonZeroUsize::new(values.size("cores"))
            .map_or_else(|| layers.machine_cores.max(1), NonZeroUsize::get),
        keep_sandboxes: values.flag("keep_sandboxes"),
        default_template: template.expect("its absence is a fault"),
        idle,
        proxy,
        wake: Wake { budget: values.duration("wake.budget") },
        start: Start {
            attempts: u32::try_from(values.count("start.attempts")).unwrap_or(u32::MAX),
            timeout: values.duration("start.timeout"),
        },
        retention: Retention { workspace: values.duration("retention.workspace") },
        isolation: Isolation {
            mode: match values.text("isolation.mode") {
                "none" => IsolationMode::None,
                "landlock" => IsolationMode::Landlock,
                _ => IsolationMode::Auto,
            },
            readable: values.list("isolation.readable").iter().map(PathBuf::from).collect(),
            limits: Limits {
                files: values.count("isolation.limits.files"),
                core: values.count("isolation.limits.core"),
            },
        },
        log: Log {
            format: match values.text("log.format") {
                "json" => LogFormat::Json,
                _ => LogFormat::Text,
            },
            level: values.text("log.level").to_owned(),
        },
        templates,
        origins,
        warnings,
    })
}

/// The domain: as it was set, else the public address's host, else the default.
fn domain(
    values: &Values<'_>,
    origins: &BTreeMap<&'static str, Origin>,
    public_url: Option<&super::PublicUrl>,
    faults: &mut Faults,
    warnings: &mut Vec<String>,
) -> String {
    let domain = values.text("domain");
    let Some(url) = public_url else { return domain.to_owned() };
    let host = url.host();
    if check::domain(host).is_err() && values.text("path_origin") == "own" {
        warnings.push(format!(
            "public_url is an address, so surfaces have no hosts below it; \
             set path_origin = \"shared\", or a public_url with a name ({})",
            place(origins, "public_url")
        ));
    }
    if origins.get("domain") == Some(&Origin::Default) {
        return host.to_owned();
    }
    if host != domain {
        faults.add(
            place(origins, "public_url"),
            "public_url",
            format!(
                "has the host `{host}`, but `domain` is `{domain}` ({}); they must be the same",
                place(origins, "domain")
            ),
        );
    }
    domain.to_owned()
}

fn place(origins: &BTreeMap<&'static str, Origin>, key: &str) -> String {
    origins.get(key).map_or_else(String::new, ToString::to_string)
}

/// Variables with our prefix that mean nothing. They are no error: Kubernetes makes such variables
/// for a service that is named `wakeful`.
fn unknown_variables(variables: &BTreeMap<String, String>) -> Vec<String> {
    let known = crate::env::names();
    variables
        .keys()
        .filter(|name| name.starts_with("WAKEFUL_") && !known.contains(name.as_str()))
        .map(|name| {
            let hint = suggestion(name, known.iter().map(String::as_str));
            format!("the variable {name} means nothing to Wakeful{hint}")
        })
        .collect()
}
