//! `projects`, `rm`, `restore` and `templates`.

use std::{process::ExitCode, time::Duration};

use reqwest::Method;
use serde_json::Value;
use wakeful_wire::api::{CreateProject, DeletedProject, Project, TemplateView};

use super::{
    args::{ProjectsArgs, ProjectsWhat},
    select,
};
use crate::{
    client::Client,
    config::duration,
    output::{self, Output, printable},
};

/// `wakeful projects`.
pub(super) async fn projects(
    client: &Client,
    options: ProjectsArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    match options.what.unwrap_or(ProjectsWhat::List { deleted: false }) {
        ProjectsWhat::List { deleted: false } => {
            let projects = select::projects(client).await?;
            output.print(&projects, |projects| table(projects))?;
        }
        ProjectsWhat::List { deleted: true } => {
            let projects = deleted(client).await?;
            let now = wakeful_client::clock::now();
            output.print(&projects, |projects| {
                let rows: Vec<_> = projects
                    .iter()
                    .map(|project| {
                        // Whole hours are enough for what is kept for days.
                        let left = now.until(project.keep_until).as_secs().div_ceil(3_600);
                        let left = duration::text(Duration::from_secs(left * 3_600));
                        [project.id.to_string(), project.title.clone(), left]
                    })
                    .collect();
                output::table(["ID", "TITLE", "KEPT FOR"], &rows)
            })?;
        }
        ProjectsWhat::Create { title, template } => {
            let template = template.map(|name| name.parse()).transpose();
            let template = template.map_err(|why| anyhow::anyhow!("--template: {why}"))?;
            let body = CreateProject { title, template };
            let project: Project = client.post(&["api", "projects"], &body).await?;
            output.print(&project, |project| table(std::slice::from_ref(project)))?;
        }
        ProjectsWhat::Rm { project } => return remove(client, &project, output).await,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(projects: &[Project]) -> String {
    let rows: Vec<_> = projects
        .iter()
        .map(|project| {
            let environments: Vec<_> = project
                .environments
                .iter()
                .map(|env| format!("{} {}", env.slug, env.phase))
                .collect();
            [
                project.id.to_string(),
                project.title.clone(),
                project.template.to_string(),
                environments.join(", "),
            ]
        })
        .collect();
    output::table(["ID", "TITLE", "TEMPLATE", "ENVIRONMENTS"], &rows)
}

/// Projects that can be restored.
async fn deleted(client: &Client) -> anyhow::Result<Vec<DeletedProject>> {
    let query = [("deleted", "true".to_owned())];
    let request = client.request_with(Method::GET, ["api", "projects"], &query);
    Ok(client.json(request).await?)
}

/// `wakeful rm`.
pub(super) async fn remove(
    client: &Client,
    project: &str,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let project = select::find_project(client, project).await?;
    let id = project.id.to_string();
    client.json::<Value>(client.request(Method::DELETE, ["api", "projects", &id])).await?;
    output.print(&serde_json::json!({ "id": id, "title": project.title }), |_| {
        let title = printable(&project.title);
        format!("Deleted {title}. `wakeful restore {id}` brings it back.")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// `wakeful restore`.
pub(super) async fn restore(
    client: &Client,
    wanted: &str,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let deleted = deleted(client).await?;
    let id = pick_deleted(&deleted, wanted)?;
    let request = client.request(Method::POST, ["api", "projects", &id, "restore"]);
    let project: Project = client.json(request).await?;
    output.print(&project, |project| format!("Restored {}.", printable(&project.title)))?;
    Ok(ExitCode::SUCCESS)
}

/// The deleted project that is meant: by id, title, or beginning of an id.
fn pick_deleted(deleted: &[DeletedProject], wanted: &str) -> anyhow::Result<String> {
    let rules: [&dyn Fn(&DeletedProject) -> bool; 3] = [
        &|project| project.id.to_string() == wanted,
        &|project| project.title == wanted,
        &|project| wanted.len() >= 4 && project.id.to_string().starts_with(wanted),
    ];
    for rule in rules {
        let fitting: Vec<_> = deleted.iter().filter(|project| rule(project)).collect();
        match fitting.as_slice() {
            [] => {}
            [one] => return Ok(one.id.to_string()),
            _ => anyhow::bail!("`{wanted}` fits more than one deleted project; name its id"),
        }
    }
    anyhow::bail!(
        "there is no deleted project `{wanted}`; `wakeful projects list --deleted` lists them"
    )
}

/// `wakeful templates`.
pub(super) async fn templates(client: &Client, output: Output) -> anyhow::Result<ExitCode> {
    let templates: Vec<TemplateView> = client.get(&["api", "templates"]).await?;
    output.print(&templates, |templates| {
        let rows: Vec<_> = templates
            .iter()
            .map(|template| {
                let surfaces: Vec<_> = template.surfaces.iter().map(ToString::to_string).collect();
                let about = template.missing.clone().or_else(|| template.description.clone());
                [
                    template.name.to_string(),
                    template.title.clone(),
                    surfaces.join(" "),
                    about.unwrap_or_default(),
                ]
            })
            .collect();
        output::table(["NAME", "TITLE", "SURFACES", ""], &rows)
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use wakeful_wire::Timestamp;

    use super::*;

    const A: &str = "0199f0a0-7b5c-7c3e-9d2f-000000000001";
    const B: &str = "0199f0a0-7b5c-7c3e-9d2f-000000000002";
    const C: &str = "0299f0a0-7b5c-7c3e-9d2f-000000000003";

    #[test]
    fn a_deleted_project_is_picked_by_id_title_or_beginning() {
        let project = |id: &str, title: &str| DeletedProject {
            id: id.parse().unwrap(),
            title: title.to_owned(),
            deleted_at: Timestamp(0),
            keep_until: Timestamp(1),
        };
        let deleted = [project(A, "Site"), project(B, "Twin"), project(C, "Twin")];
        let table = [
            (A, Some(A)),
            ("Site", Some(A)),
            ("0299", Some(C)),
            ("0199", None),
            ("Twin", None),
            ("029", None),
        ];
        for (wanted, expected) in table {
            assert_eq!(pick_deleted(&deleted, wanted).ok().as_deref(), expected, "{wanted}");
        }
    }
}
