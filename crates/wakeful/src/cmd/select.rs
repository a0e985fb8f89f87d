//! Which project or environment a person means: an id, the beginning of one, a project's title, or
//! `PROJECT/SLUG`.

use wakeful_wire::{
    EnvId,
    api::{Environment, Project},
};

use crate::{
    client::{Client, ClientError},
    output::printable,
};

/// The fewest characters of an id's beginning that are taken for one.
const PREFIX_MIN: usize = 4;

/// Why a text names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SelectError {
    /// Nothing fits.
    #[error("there is no {kind} `{text}`; `wakeful {list}` lists what there is")]
    None {
        /// What was asked for.
        kind: &'static str,
        /// By what.
        text: String,
        /// The command that lists them.
        list: &'static str,
    },
    /// More than one fits.
    #[error("`{text}` fits more than one {kind}: {}", .fitting.join(", "))]
    Several {
        /// What was asked for.
        kind: &'static str,
        /// By what.
        text: String,
        /// What fits.
        fitting: Vec<String>,
    },
}

/// The project that `text` names. An exact id or title beats the beginning of an id; a title that
/// differs in case fits where none is exact.
pub(super) fn project<'a>(projects: &'a [Project], text: &str) -> Result<&'a Project, SelectError> {
    let kind = "project";
    let label = |project: &&Project| format!("{} ({})", printable(&project.title), project.id);
    let rules: [&dyn Fn(&Project) -> bool; 4] = [
        &|project| project.id.to_string() == text,
        &|project| project.title == text,
        &|project| project.title.to_lowercase() == text.to_lowercase(),
        &|project| text.len() >= PREFIX_MIN && project.id.to_string().starts_with(text),
    ];
    for rule in rules {
        let fitting: Vec<_> = projects.iter().filter(|project| rule(project)).collect();
        match fitting.as_slice() {
            [] => {}
            [one] => return Ok(one),
            several => {
                let fitting = several.iter().map(label).collect();
                return Err(SelectError::Several { kind, text: text.to_owned(), fitting });
            }
        }
    }
    Err(SelectError::None { kind, text: text.to_owned(), list: "projects" })
}

/// The environment that `text` names. A project's title alone names its Development environment.
pub(super) fn environment<'a>(
    projects: &'a [Project],
    text: &str,
) -> Result<&'a Environment, SelectError> {
    let kind = "environment";
    let all = || projects.iter().flat_map(|project| &project.environments);
    let exact = text.parse::<EnvId>().ok();
    if let Some(environment) = all().find(|environment| Some(environment.id) == exact) {
        return Ok(environment);
    }
    match project(projects, text) {
        Ok(project) => {
            let development = EnvId::from(project.id);
            let environment = project.environments.iter();
            let found = environment.clone().find(|environment| environment.id == development);
            if let Some(found) = found.or_else(|| environment.clone().next()) {
                return Ok(found);
            }
        }
        Err(error @ SelectError::Several { .. }) => return Err(error),
        Err(SelectError::None { .. }) => {}
    }
    // A title may hold a slash, so the last one parts.
    if let Some((name, slug)) = text.rsplit_once('/')
        && let Ok(project) = project(projects, name)
        && let Some(found) = project.environments.iter().find(|env| env.slug.as_str() == slug)
    {
        return Ok(found);
    }
    let fits =
        |env: &&Environment| text.len() >= PREFIX_MIN && env.id.to_string().starts_with(text);
    match all().filter(fits).collect::<Vec<_>>().as_slice() {
        [] => Err(SelectError::None { kind, text: text.to_owned(), list: "envs" }),
        [one] => Ok(one),
        several => Err(SelectError::Several {
            kind,
            text: text.to_owned(),
            fitting: several.iter().map(|env| format!("{} ({})", env.slug, env.id)).collect(),
        }),
    }
}

/// Asks the server for the projects and picks one.
pub(super) async fn find_project(client: &Client, text: &str) -> anyhow::Result<Project> {
    let projects = projects(client).await?;
    Ok(project(&projects, text)?.clone())
}

/// Asks the server for the environments and picks one.
pub(super) async fn find_environment(client: &Client, text: &str) -> anyhow::Result<Environment> {
    let projects = projects(client).await?;
    Ok(environment(&projects, text)?.clone())
}

/// Every project of the signed-in user.
pub(super) async fn projects(client: &Client) -> Result<Vec<Project>, ClientError> {
    client.get(&["api", "projects"]).await
}

#[cfg(test)]
mod tests {
    use wakeful_wire::{
        Generation, Phase, Slug, TemplateName, Timestamp,
        api::{ClockView, ClocksView},
    };

    use super::*;

    const A: &str = "0199f0a0-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
    const A2: &str = "0199f0a0-7b5c-7c3e-9d2f-000000000002";
    const B: &str = "0199f0b1-7b5c-7c3e-9d2f-6a1b2c3d4e5f";
    const C: &str = "0299f0b1-7b5c-7c3e-9d2f-6a1b2c3d4e5f";

    fn env(project: &str, id: &str, slug: &str) -> Environment {
        let clock = ClockView { expires_in_ms: 0 };
        Environment {
            home: None,
            woken: None,
            id: id.parse().unwrap(),
            project: project.parse().unwrap(),
            slug: Slug::new(slug).unwrap(),
            phase: Phase::Suspended,
            generation: Generation(1),
            sandbox: None,
            since: Timestamp(0),
            surfaces: Vec::new(),
            clocks: ClocksView { agent: clock, app: clock },
            leases: Vec::new(),
            failure: None,
            isolation: None,
        }
    }

    fn world() -> Vec<Project> {
        let project = |id: &str, title: &str, environments| Project {
            id: id.parse().unwrap(),
            title: title.to_owned(),
            template: TemplateName::new("demo").unwrap(),
            environments,
        };
        vec![
            project(A, "Site", vec![env(A, A2, "prod"), env(A, A, "dev")]),
            project(B, "site/old", vec![env(B, B, "dev")]),
            project(C, "Twin", vec![env(C, C, "dev")]),
            project("0399f0b1-7b5c-7c3e-9d2f-6a1b2c3d4e5f", "Twin", Vec::new()),
        ]
    }

    #[test]
    fn an_environment_is_named_by_id_beginning_title_or_slug() {
        let world = world();
        let table = [
            (A, Some(A)),
            (A2, Some(A2)),
            ("Site", Some(A)),
            ("site", Some(A)),
            ("Site/prod", Some(A2)),
            ("site/dev", Some(A)),
            ("site/old", Some(B)),
            ("site/old/dev", Some(B)),
            ("0199f0b", Some(B)),
            ("0299", Some(C)),
            ("0199f0a0-7b5c-7c3e-9d2f-0", Some(A2)),
            ("0199f0b1-7b5c-7c3e-9d2f-6a1b2c3d4e5f/dev", Some(B)),
            ("029", None),
            ("Site/test", None),
            ("", None),
            ("/", None),
        ];
        for (text, expected) in table {
            let found = environment(&world, text).ok().map(|env| env.id.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn what_fits_twice_is_not_guessed() {
        let world = world();
        for text in ["Twin", "0199"] {
            assert!(matches!(project(&world, text), Err(SelectError::Several { .. })), "{text}");
            let found = environment(&world, text);
            assert!(matches!(found, Err(SelectError::Several { .. })), "{text}");
        }
    }
}
