//! `wakeful config show`: each value and where it came from.

use wakeful_wire::template::Template;

use super::{build::Resolved, kind::Setting, setting::SETTINGS};

/// One line of `wakeful config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The setting's key.
    pub key: &'static str,
    /// Its value.
    pub value: Setting,
    /// Where it came from.
    pub origin: String,
    /// What is in force, where that is not the value itself: the processors counted for
    /// `cores = 0`, the domain that follows from `public_url`, the absolute path of `data`.
    pub in_force: Option<String>,
}

/// Every setting, in the order of their declaration.
#[must_use]
pub fn lines(resolved: &Resolved) -> Vec<Line> {
    let config = &resolved.config;
    SETTINGS
        .iter()
        .filter_map(|declaration| {
            let key = declaration.key;
            let value = resolved.settings.get(key)?.clone();
            let in_force = match key {
                "cores" => Some(config.cores.to_string()),
                "domain" => Some(config.domain.clone()),
                "data" => Some(config.data.display().to_string()),
                _ => None,
            };
            let same = match &value {
                Setting::Text(text) => Some(text.clone()),
                Setting::Count(count) => Some(count.to_string()),
                Setting::Duration(_) | Setting::Flag(_) | Setting::List(_) => None,
            };
            let origin = config.origins.get(key).map(ToString::to_string).unwrap_or_default();
            Some(Line {
                key,
                value,
                origin,
                in_force: in_force.filter(|now| Some(now) != same.as_ref()),
            })
        })
        .collect()
}

/// Everything as JSON. The values of variables whose names sound like secrets are left out.
#[must_use]
pub fn json(resolved: &Resolved) -> serde_json::Value {
    let settings: serde_json::Map<_, _> = lines(resolved)
        .into_iter()
        .map(|line| {
            let mut entry = serde_json::json!({
                "value": line.value.to_json(),
                "origin": line.origin,
            });
            if let Some(in_force) = line.in_force {
                entry["in_force"] = in_force.into();
            }
            (line.key.to_owned(), entry)
        })
        .collect();
    let templates: serde_json::Map<_, _> = resolved
        .config
        .templates
        .iter()
        .map(|(name, template)| (name.to_string(), serde_json::json!(redacted(template))))
        .collect();
    serde_json::json!({
        "settings": settings,
        "templates": templates,
        "warnings": resolved.config.warnings,
    })
}

/// The template without the values of variables that sound like secrets.
#[must_use]
pub fn redacted(template: &Template) -> Template {
    let mut template = template.clone();
    for (name, value) in &mut template.env {
        if sounds_secret(name) {
            "(redacted)".clone_into(value);
        }
    }
    template
}

fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH", "COOKIE", "DSN", "CONTENT"]
        .iter()
        .any(|word| name.contains(word))
}
