//! `upload` and `download`.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Method, header};
use serde::Serialize;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use wakeful_wire::Code;

use super::{
    args::{DownloadArgs, UploadArgs},
    select,
};
use crate::{
    client::{Client, ClientError},
    output::{Output, printable},
};

/// The most files of one upload.
const FILES_MAX: usize = 100_000;
/// How much is read of a file at once.
const PORTION: usize = 64 * 1024;
/// How deep directories are followed.
const DEPTH_MAX: usize = 64;

/// A file to upload.
#[derive(Debug)]
struct Part {
    /// Its path in the workspace.
    name: String,
    /// Where it is here.
    file: PathBuf,
    /// How long it was when it was found.
    size: u64,
}

/// What became of an upload.
#[derive(Debug, Default, Serialize)]
struct Report {
    uploaded: usize,
    bytes: u64,
    failed: Vec<NotStored>,
}

/// A file that the server did not take.
#[derive(Debug, Serialize)]
struct NotStored {
    path: String,
    error: String,
}

/// `wakeful upload`. Files are stored one by one, each whole or not at all; one that is refused
/// does not stop the others.
pub(super) async fn upload(
    client: &Client,
    options: UploadArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let project = select::find_project(client, &options.project).await?.id.to_string();
    let mut parts = Vec::new();
    for path in &options.paths {
        let into = options.to.as_deref().unwrap_or("").trim_matches('/');
        for skipped in gather(path, into, &mut parts)? {
            output.note(&format!("left out {}: not a plain file", skipped.display()));
        }
    }
    anyhow::ensure!(!parts.is_empty(), "there is nothing to upload");
    let files = parts.len();
    let bar = progress(output, Some(parts.iter().map(|part| part.size).sum()));
    let mut report = Report::default();
    for part in parts {
        bar.set_message(printable(&part.name));
        match store(client, &project, &part, &bar).await {
            Ok(()) => {
                report.uploaded += 1;
                report.bytes += part.size;
            }
            Err(error @ ClientError::Problem(_)) if goes_on(&error) => {
                let error = error.to_string();
                bar.suspend(|| output.note(&format!("{}: {error}", printable(&part.name))));
                report.failed.push(NotStored { path: part.name, error });
            }
            Err(error) => {
                bar.finish_and_clear();
                return Err(anyhow::Error::from(error).context(printable(&part.name)));
            }
        }
    }
    bar.finish_and_clear();
    output.print(&report, |report| {
        let plural = if report.uploaded == 1 { "" } else { "s" };
        format!("Uploaded {} file{plural}, {} bytes.", report.uploaded, report.bytes)
    })?;
    let failed = report.failed.len();
    anyhow::ensure!(failed == 0, "{failed} of {files} files were not stored");
    Ok(ExitCode::SUCCESS)
}

/// Whether a refusal is about one file, so that the next may fare better.
fn goes_on(error: &ClientError) -> bool {
    matches!(
        error.problem().map(|problem| problem.code),
        Some(
            Code::BadRequest
                | Code::BadTarget
                | Code::Invalid
                | Code::Forbidden
                | Code::Conflict
                | Code::TooLarge
        )
    )
}

/// Sends one file as it is read.
async fn store(
    client: &Client,
    project: &str,
    part: &Part,
    bar: &ProgressBar,
) -> Result<(), ClientError> {
    let file = tokio::fs::File::open(&part.file).await.map_err(|error| {
        ClientError::Unreadable { path: part.file.display().to_string(), source: error }
    })?;
    // No more than was promised is sent; a file that has shrunk breaks the request off, so that the
    // server never takes a half for the whole.
    let file = file.take(part.size);
    let bar = bar.clone();
    let body = stream::try_unfold((file, bar), |(mut file, bar)| async move {
        let mut portion = Vec::with_capacity(PORTION);
        (&mut file).take(PORTION as u64).read_to_end(&mut portion).await?;
        bar.inc(portion.len() as u64);
        let next = (!portion.is_empty()).then(|| (Bytes::from(portion), (file, bar)));
        Ok::<_, std::io::Error>(next)
    });
    let segments = ["api", "projects", project, "files"];
    let request = client
        .request(Method::PUT, segments.into_iter().chain(part.name.split('/')))
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header(header::CONTENT_LENGTH, part.size)
        .body(reqwest::Body::wrap_stream(body));
    client.send(request).await.map(|_| ())
}

fn progress(output: Output, total: Option<u64>) -> ProgressBar {
    if !output.shows_progress() {
        return ProgressBar::hidden();
    }
    match total {
        Some(total) => {
            let style = ProgressStyle::with_template(
                "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {wide_msg}",
            );
            let bar = ProgressBar::new(total);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        }
        None => ProgressBar::new_spinner(),
    }
}

/// Adds the plain files at and below `path` to `parts`, named as they are to be below `into`.
/// Returns what was left out: links and special files inside directories.
fn gather(path: &Path, into: &str, parts: &mut Vec<Part>) -> anyhow::Result<Vec<PathBuf>> {
    let cannot_read = || format!("{} cannot be read", path.display());
    let meta = std::fs::metadata(path).with_context(cannot_read)?;
    let contents_alone = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let name = path.file_name().filter(|_| !(meta.is_dir() && contents_alone));
    let name = match name {
        Some(name) => join(into, name.to_str().with_context(|| not_utf8(path))?),
        None => into.to_owned(),
    };
    let mut skipped = Vec::new();
    if meta.is_file() {
        add(parts, name, path.to_owned(), meta.len())?;
        return Ok(skipped);
    }
    anyhow::ensure!(meta.is_dir(), "{} is neither a file nor a directory", path.display());
    let mut directories = vec![(path.to_owned(), name, 0)];
    while let Some((directory, name, depth)) = directories.pop() {
        anyhow::ensure!(depth < DEPTH_MAX, "{} is too deep", directory.display());
        let entries = std::fs::read_dir(&directory)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .with_context(|| format!("{} cannot be read", directory.display()))?;
        for entry in entries {
            let path = entry.path();
            let file_name = entry.file_name();
            let name = join(&name, file_name.to_str().with_context(|| not_utf8(&path))?);
            // The entry's own metadata: a link inside a directory could lead anywhere.
            let meta = entry.metadata().with_context(cannot_read)?;
            if meta.is_dir() {
                directories.push((path, name, depth + 1));
            } else if meta.is_file() {
                add(parts, name, path, meta.len())?;
            } else {
                skipped.push(path);
            }
        }
    }
    parts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(skipped)
}

fn add(parts: &mut Vec<Part>, name: String, file: PathBuf, size: u64) -> anyhow::Result<()> {
    anyhow::ensure!(parts.len() < FILES_MAX, "more than {FILES_MAX} files at once");
    parts.push(Part { name, file, size });
    Ok(())
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

fn not_utf8(path: &Path) -> String {
    format!("{} has a name that is no UTF-8", path.display())
}

/// `wakeful download`.
pub(super) async fn download(
    client: &Client,
    options: DownloadArgs,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let project = select::find_project(client, &options.project).await?;
    let id = project.id.to_string();
    let path = options.path.trim_matches('/');
    let to_stdout = options.output.as_deref() == Some(Path::new("-"));
    let name = path.rsplit('/').next().unwrap_or(path);
    anyhow::ensure!(!matches!(name, "" | "." | ".."), "`{}` names no file", options.path);
    let target = options.output.clone().unwrap_or_else(|| PathBuf::from(name));
    let target = if target.is_dir() { target.join(name) } else { target };
    if !to_stdout && !options.force && target.exists() {
        bail!("{} exists; --force writes over it", target.display());
    }
    let segments = ["api", "projects", &id, "files"].into_iter().chain(path.split('/'));
    let request = client.request(Method::GET, segments).header(header::ACCEPT, "*/*");
    let response = client.send(request).await?;
    let bar = progress(output, response.content_length());
    let mut chunks = response.bytes_stream();
    if to_stdout {
        while let Some(chunk) = chunks.next().await {
            output.raw(&chunk.context("the file broke off")?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    // Written beside the target and renamed, so that a broken download leaves no half file.
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .prefix(".wakeful-")
        .tempfile_in(directory.unwrap_or_else(|| Path::new(".")))
        .with_context(|| format!("{} cannot be written", target.display()))?;
    let mut bytes = 0_u64;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.context("the file broke off")?;
        file.write_all(&chunk)?;
        bytes += chunk.len() as u64;
        bar.inc(chunk.len() as u64);
    }
    bar.finish_and_clear();
    let wrong = || format!("{} cannot be written", target.display());
    file.as_file().sync_all().with_context(wrong)?;
    file.persist(&target).map_err(|error| error.error).with_context(wrong)?;
    let result =
        json!({ "path": options.path, "file": target.display().to_string(), "bytes": bytes });
    output.print(&result, |_| format!("{}: {bytes} bytes", target.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(path: &str, into: &str) -> Vec<String> {
        let mut parts = Vec::new();
        gather(Path::new(path), into, &mut parts).unwrap();
        parts.into_iter().map(|part| part.name).collect()
    }

    #[test]
    fn a_directory_keeps_its_name_unless_a_slash_stands_behind_it() {
        let directory = tempfile::tempdir().unwrap();
        let public = directory.path().join("public");
        fs::create_dir_all(public.join("css")).unwrap();
        fs::write(public.join("index.html"), "x").unwrap();
        fs::write(public.join("css/a.css"), "x").unwrap();
        let public = public.to_str().unwrap();
        assert_eq!(names(public, ""), ["public/css/a.css", "public/index.html"]);
        assert_eq!(names(&format!("{public}/"), "site"), ["site/css/a.css", "site/index.html"]);
        assert_eq!(names(&format!("{public}/index.html"), "a/b"), ["a/b/index.html"]);
    }

    #[test]
    fn links_inside_a_directory_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "x").unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        let mut parts = Vec::new();
        let path = format!("{}/", directory.path().display());
        let skipped = gather(Path::new(&path), "", &mut parts).unwrap();
        assert_eq!(skipped, [link]);
        assert_eq!(parts.len(), 1);
    }
}
