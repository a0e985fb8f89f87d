//! The demo's pages.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::files::{Entry, Kind, Listing, encode};

/// The style of every page.
pub(super) const STYLE: &str = include_str!("style.css");

/// The icon of every page.
pub(super) const ICON: &str = include_str!("icon.svg");

/// Shows whether the event stream is open; without it the page is complete.
pub(super) const SCRIPT: &str = include_str!("live.js");

/// `up` leads from the page to the root, such as `../../`; empty on the root itself.
fn frame(title: &str, up: &str, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="icon" type="image/svg+xml" href=(format!("{up}icon.svg"));
                link rel="stylesheet" href=(format!("{up}style.css"));
                script defer src=(format!("{up}live.js")) data-events=(format!("{up}events")) {}
            }
            body {
                main { (main) }
                footer { p id="live" hidden { span class="dot" {} " " span id="live-text" {} } }
            }
        }
    }
}

/// The first page.
pub(super) fn welcome(
    greeting: Option<&str>,
    dashboard_url: Option<&str>,
    listing: Option<&Listing>,
) -> Markup {
    frame(
        "Your environment",
        "",
        &html! {
            header {
                p class="mark" aria-hidden="true" { "◐" }
                h1 { "It is awake." }
                @if let Some(greeting) = greeting { p class="greeting" { (greeting) } }
                p {
                    "This page comes from a program that runs in your own environment. When nobody \
                     needs it, the environment sleeps; the next visit wakes it, with every file still \
                     in its place."
                }
                @if let Some(url) = dashboard_url {
                    p { a class="button" href=(url) { "Open the dashboard" } }
                }
            }
            section {
                h2 { "Files of the workspace" }
                @match listing {
                    Some(listing) if !listing.entries.is_empty() => (table(listing, "files/")),
                    Some(_) => p class="quiet" {
                        "Nothing here yet. Upload something from the dashboard, and it appears."
                    },
                    None => p class="quiet" { "They cannot be read just now." },
                }
            }
        },
    )
}

/// A directory below the workspace.
pub(super) fn directory(path: &[u8], listing: &Listing) -> Markup {
    let segments: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty()).collect();
    let depth = segments.len();
    let title = String::from_utf8_lossy(path).into_owned();
    frame(
        if title.is_empty() { "Files" } else { &title },
        &"../".repeat(depth + 1),
        &html! {
            nav aria-label="Path" {
                a href=("../".repeat(depth + 1)) { "Home" }
                @for (index, segment) in std::iter::once(&b"Files"[..]).chain(segments).enumerate() {
                    (PreEscaped(" / "))
                    @if index == depth { strong { (String::from_utf8_lossy(segment)) } }
                    @else { a href=("../".repeat(depth - index)) { (String::from_utf8_lossy(segment)) } }
                }
            }
            section {
                @if listing.entries.is_empty() { p class="quiet" { "An empty directory." } }
                @else { (table(listing, "./")) }
            }
        },
    )
}

/// Nothing here. `depth` is how many slashes stand between the page and the root.
pub(super) fn not_found(depth: usize) -> Markup {
    let up = "../".repeat(depth);
    frame(
        "Not found",
        &up,
        &html! {
            header {
                h1 { "Nothing here" }
                p { "There is no such file, or it lies behind a link, which this page does not follow." }
                p { a class="button" href=(if up.is_empty() { "./" } else { &up }) { "Back to the start" } }
            }
        },
    )
}

fn table(listing: &Listing, prefix: &str) -> Markup {
    html! {
        table {
            thead { tr { th scope="col" { "Name" } th scope="col" class="size" { "Size" } th {} } }
            tbody { @for entry in &listing.entries { (row(entry, prefix)) } }
        }
        @if listing.cut { p class="quiet" { "There are more; only the first are shown." } }
    }
}

fn row(entry: &Entry, prefix: &str) -> Markup {
    let name = String::from_utf8_lossy(&entry.name);
    let href = format!("{prefix}{}", encode(&entry.name));
    html! {
        tr {
            @match entry.kind {
                Kind::Directory => { td { a href=(format!("{href}/")) { (name) "/" } } td {} td {} }
                Kind::File { size: bytes } => {
                    td { a href=(href) { (name) } }
                    td class="size" { (size(bytes)) }
                    td { a href=(format!("{href}?download")) { "Download" } }
                }
                Kind::Other => { td class="quiet" { (name) } td class="size quiet" { "link or device" } td {} }
            }
        }
    }
}

/// A size for people, in powers of 1024 with one decimal.
fn size(bytes: u64) -> String {
    let mut unit = 1_u64;
    for (index, name) in ["B", "KiB", "MiB", "GiB"].into_iter().enumerate() {
        if bytes / unit < 1024 || name == "GiB" {
            return if index == 0 {
                format!("{bytes} B")
            } else {
                format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
            };
        }
        unit *= 1024;
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let entry = |name: &str, kind| Entry { name: name.as_bytes().to_vec(), kind };
        let entries = vec![
            entry("a b", Kind::Directory),
            entry("<x>&\"", Kind::File { size: 5 }),
            entry("l", Kind::Other),
        ];
        Listing { entries, cut: false }
    }

    /// The values of `href` and `src` on a page.
    fn urls(page: &str) -> Vec<&str> {
        ["href=\"", "src=\"", "data-events=\""]
            .into_iter()
            .flat_map(|attribute| page.split(attribute).skip(1))
            .map(|rest| rest.split('"').next().unwrap_or(rest))
            .collect()
    }

    #[test]
    fn every_url_is_relative_and_names_are_escaped() {
        for page in [
            welcome(Some("<hi>"), None, Some(&listing())).into_string(),
            directory(b"a/b", &listing()).into_string(),
            directory(b"", &listing()).into_string(),
            not_found(0).into_string(),
        ] {
            assert!(!page.contains("<hi>") && !page.contains("<x>"), "{page}");
            for url in urls(&page) {
                assert!(!url.starts_with('/') && !url.contains(':'), "{url}");
            }
        }
    }

    #[test]
    fn links_of_a_nested_directory_lead_to_its_parents() {
        let page = directory(b"a/b", &listing()).into_string();
        let urls = urls(&page);
        for expected in [
            "../../../style.css",
            "../../../",
            "../../",
            "../",
            "./a%20b/",
            "./%3Cx%3E%26%22?download",
        ] {
            assert!(urls.contains(&expected), "{expected} in {urls:?}");
        }
    }

    #[test]
    fn sizes_are_short() {
        let table = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (5 * 1024 * 1024, "5.0 MiB"),
            (3000 * 1024 * 1024 * 1024, "3000.0 GiB"),
        ];
        for (bytes, text) in table {
            assert_eq!(size(bytes), text);
        }
    }
}
