//! The files of an environment.

use axum::{
    Router,
    extract::{Path, Request, State},
    response::{Redirect, Response},
    routing,
};
use maud::{Markup, html};
use serde::Deserialize;
use wakeful_wire::{Code, Timestamp, api::Environment};

use super::{
    layout::{Page, Place},
    times::ago,
};
use crate::{
    api::{AppState, Asked, Caller, Form, Refusal, Target, encode, store_form},
    files::{Entry, EntryKind, FileError, Found, Listing, RelativePath},
};

/// How many entries the environment's own page shows.
const CARD_ENTRIES: usize = 6;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/environments/{id}/files", routing::get(show).post(store))
        .route("/environments/{id}/files/remove", routing::post(remove))
}

/// The query: which directory.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    #[serde(default)]
    path: String,
}

fn parse(path: &str) -> Result<RelativePath, Refusal> {
    Ok(RelativePath::parse_or_root(path).map_err(FileError::Path)?)
}

fn page_of(environment: &Environment, directory: &str) -> String {
    let at = format!("/environments/{}/files", environment.id);
    if directory.is_empty() { at } else { format!("{at}?path={}", encode(directory)) }
}

/// Where a file is downloaded.
fn download_of(environment: &Environment, path: &str) -> String {
    let segments: Vec<_> = path.split('/').map(encode).collect();
    format!(
        "/api/projects/{}/files/{}?environmentId={}",
        environment.project,
        segments.join("/"),
        environment.id
    )
}

async fn listing(target: &Target, directory: &RelativePath) -> Result<Listing, Refusal> {
    match target.files.read(directory.clone()).await? {
        Found::Directory(listing) => Ok(listing),
        Found::File(_) => Err(Refusal::because(Code::NotFound, "There is no such directory.")),
    }
}

async fn show(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(query): Asked<Query>,
) -> Result<Response, Refusal> {
    let environment = caller.environment(&state, &id).await?;
    let project = caller.project(&state, &environment.project.to_string()).await?;
    let directory = parse(&query.path)?;
    let target = Target::of(&state, environment.id).await?;
    let listing = listing(&target, &directory).await?;
    let now = state.engine.now();
    let title = format!("Files of {}", project.title);
    Ok(Page::of(&caller.user, Place::Projects, &title).answer(&html! {
        nav .crumbs aria-label="Breadcrumb" {
            a href={ "/environments/" (environment.id) } { (project.title) }
        }
        div .head {
            div {
                h1 { "Files" }
                (trail(&environment, &directory))
            }
        }
        section .card {
            @if listing.entries.is_empty() {
                p .empty { "Nothing stands here yet." }
            } @else {
                (table(&environment, &directory, &listing, now))
            }
            @if listing.truncated {
                p .muted { "There are more than are shown." }
            }
            form method="post" action=(page_of(&environment, directory.as_str()))
                enctype="multipart/form-data" .row {
                div .field.grow {
                    label for="file" { "Put files here" }
                    input #file type="file" name="file" multiple required;
                }
                button type="submit" { "Upload" }
            }
        }
    }))
}

/// The way down to a directory, each step a link.
fn trail(environment: &Environment, directory: &RelativePath) -> Markup {
    let mut steps = Vec::new();
    let mut at = String::new();
    for segment in directory.as_str().split('/').filter(|segment| !segment.is_empty()) {
        if !at.is_empty() {
            at.push('/');
        }
        at.push_str(segment);
        steps.push((segment, at.clone()));
    }
    html! {
        p .muted {
            a href=(page_of(environment, "")) { "workspace" }
            @for (name, path) in &steps {
                " / " a href=(page_of(environment, path)) { (name) }
            }
        }
    }
}

fn table(
    environment: &Environment,
    directory: &RelativePath,
    listing: &Listing,
    now: Timestamp,
) -> Markup {
    html! {
        div .scroll {
            table {
                thead {
                    tr {
                        th scope="col" { "Name" }
                        th scope="col" { "Size" }
                        th .minor scope="col" { "Changed" }
                        th scope="col" { span .visually-hidden { "Actions" } }
                    }
                }
                tbody {
                    @for entry in &listing.entries {
                        tr {
                            th scope="row" { (link(environment, directory.as_str(), entry)) }
                            td { @if entry.kind == EntryKind::File { (size(entry.size)) } }
                            td .minor { (ago(Timestamp(entry.modified_ms), now)) }
                            td .end {
                                form method="post" action={
                                    "/environments/" (environment.id) "/files/remove"
                                } .inline {
                                    input type="hidden" name="path"
                                        value=(below(directory.as_str(), &entry.name));
                                    button .small type="submit"
                                        aria-label={ "Remove " (entry.name) } { "Remove" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn below(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

fn link(environment: &Environment, directory: &str, entry: &Entry) -> Markup {
    let path = below(directory, &entry.name);
    html! {
        span .file data-kind=(entry.kind.as_str()) {
            @match entry.kind {
                EntryKind::Directory => a href=(page_of(environment, &path)) { (entry.name) },
                EntryKind::File | EntryKind::Link => {
                    a href=(download_of(environment, &path)) download { (entry.name) }
                }
                EntryKind::Other => (entry.name),
            }
        }
    }
}

/// A size in the unit that fits.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes.saturating_mul(10) / 1_024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1_024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

async fn store(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(query): Asked<Query>,
    request: Request,
) -> Result<Redirect, Refusal> {
    let environment = caller.environment(&state, &id).await?;
    let directory = parse(&query.path)?;
    let target = Target::of(&state, environment.id).await?;
    store_form(&state, target, &directory, request).await?;
    Ok(Redirect::to(&page_of(&environment, directory.as_str())))
}

async fn remove(
    State(state): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
    Form(form): Form<Query>,
) -> Result<Redirect, Refusal> {
    let environment = caller.environment(&state, &id).await?;
    let path = RelativePath::parse(&form.path).map_err(FileError::Path)?;
    let directory = path.as_str().rsplit_once('/').map_or("", |(directory, _)| directory);
    let back = page_of(&environment, directory);
    Target::of(&state, environment.id).await?.files.remove(path).await?;
    Ok(Redirect::to(&back))
}

/// The first entries of the workspace, for the environment's own page.
pub(super) async fn card(state: &AppState, environment: &Environment) -> Result<Markup, Refusal> {
    let target = Target::of(state, environment.id).await?;
    let listing = listing(&target, &RelativePath::root()).await?;
    let more = listing.entries.len().saturating_sub(CARD_ENTRIES);
    Ok(html! {
        section .card aria-labelledby="files" {
            div .spread {
                h2 #files { "Files" }
                a .button.small href=(page_of(environment, "")) { "Browse and upload" }
            }
            div #files-now data-live {
                @if listing.entries.is_empty() {
                    p .empty { "Nothing stands there yet." }
                } @else {
                    ul .names {
                        @for entry in listing.entries.iter().take(CARD_ENTRIES) {
                            li { (link(environment, "", entry)) }
                        }
                    }
                    @if more > 0 { p .muted { "and " (more) " more" } }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_that_fits() {
        let table = [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_536, "1.5 KiB"),
            (1 << 20, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
        ];
        for (bytes, text) in table {
            assert_eq!(size(bytes), text);
        }
    }
}
