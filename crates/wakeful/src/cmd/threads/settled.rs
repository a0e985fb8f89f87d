//! `threads --settled` and `threads --search`: threads that lists leave out.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use wakeful_client::{clock, runtime::Client};
use wakeful_link::{
    ConnectionPhase, Instant, Link,
    families::SearchState,
    settled::{PageState, frontier::Shelf},
};
use wakeful_wire::{HostId, Timestamp, rpc::ShellRow};

use super::{
    super::{
        hosts::{self, HostView, Rows, until},
        short,
    },
    ago, table,
};
use crate::output::{self, Output, printable, to_stderr};

/// How long pages and searches are waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A thread with its host.
struct Listed<'a> {
    host: &'a HostView,
    row: Arc<ShellRow>,
}

/// Lists the settled threads of all hosts as one, newest first, as far as that is right: until
/// `limit`, or until what is older than the last one cannot be told.
pub(super) async fn shelf(
    client: &Client,
    only: Option<&[HostId]>,
    limit: usize,
    output: Output,
) -> anyhow::Result<()> {
    let in_time = until(client, PATIENCE, |link, now| loaded(link, now, only, limit)).await;
    if in_time.is_none() {
        to_stderr("warning: not all of the older threads came in time");
    }
    let view = hosts::view(client, only, Rows::Live);
    let Shelf { rows, line, .. } = client.with(|link, _| link.shelf());
    let rows: Vec<_> = rows
        .into_iter()
        .filter_map(|(host, row)| {
            let host = view.hosts.iter().find(|known| known.host == host)?;
            Some(Listed { host, row })
        })
        .collect();
    let more = rows.len() > limit || line.is_some();
    let total: u64 = view.hosts.iter().map(|host| host.settled).sum();
    let rows = &rows[..rows.len().min(limit)];
    let value = json!({
        "settled": rows.iter().map(Listed::json).collect::<Vec<_>>(), "total": total, "more": more,
    });
    output.print(&value, |_| shelf_text(rows, total, more, clock::now()))
}

/// Asks for pages until enough is listed, or nothing more can be.
fn loaded(link: &mut Link, now: Instant, only: Option<&[HostId]>, limit: usize) -> Option<()> {
    let shelf = link.shelf();
    let concerns = |host: &HostId| only.is_none_or(|only| only.contains(host));
    let listed = shelf.rows.iter().filter(|(host, _)| concerns(host)).count();
    let can = |host: &HostId| {
        matches!(
            link.settled_pages(*host),
            Some(PageState::More | PageState::Loading | PageState::Failed(_))
        )
    };
    if listed >= limit || !shelf.next.iter().any(can) {
        return Some(());
    }
    // Once more, where a page is on its way, changes nothing.
    link.load_older_settled(now);
    None
}

impl Listed<'_> {
    fn json(&self) -> Value {
        let mut value = json!({ "id": self.host.host, "name": self.host.name, "row": self.row });
        if let Some(env) = self.host.env {
            value["environment"] = json!(env);
        }
        value
    }
}

fn shelf_text(rows: &[Listed<'_>], total: u64, more: bool, now: Timestamp) -> String {
    let length = short::length(rows.iter().map(|listed| listed.row.id));
    let cells: Vec<[String; 4]> = rows
        .iter()
        .map(|Listed { host, row }| {
            [
                short::id(row.id, length),
                table::title(row),
                host.name.clone(),
                row.settled.map_or_else(String::new, |settled| ago(settled.at, now)),
            ]
        })
        .collect();
    let mut text = output::table(["THREAD", "TITLE", "HOST", "SETTLED"], &cells);
    if rows.is_empty() {
        text.push_str("no settled threads\n");
    }
    if more {
        text.push_str(&format!("{} of {total} settled threads (--limit shows more)\n", rows.len()));
    }
    text
}

/// A thread that was found, and where in it the words are.
struct Found<'a> {
    listed: Listed<'a>,
    excerpt: Option<String>,
}

/// Searches the threads of all hosts that can be asked, those that lists leave out among them.
pub(super) async fn search(
    client: &Client,
    only: Option<&[HostId]>,
    words: &str,
    limit: usize,
    output: Output,
) -> anyhow::Result<()> {
    let view = hosts::view(client, only, Rows::Live);
    let (asked, missing): (Vec<&HostView>, Vec<&HostView>) =
        view.hosts.iter().partition(|host| host.connection.phase == ConnectionPhase::Connected);
    client.with(|link, now| {
        for host in &asked {
            link.search(now, host.host, words, limit);
        }
    });
    let waits = |link: &Link, host: HostId| {
        link.searched(host).is_some_and(|search| *search.state() == SearchState::Searching)
    };
    let all = |link: &Link| asked.iter().all(|host| !waits(link, host.host));
    let _in_time = until(client, PATIENCE, |link, _| all(link).then_some(())).await;
    let mut found = Vec::new();
    let mut unsearched: Vec<_> = missing.iter().map(|host| host.name.as_str()).collect();
    client.with(|link, _| {
        for host in &asked {
            let host: &HostView = host;
            match link.searched(host.host) {
                Some(search) if *search.state() == SearchState::Done => {
                    for thread in search.threads() {
                        let Some(row) = search.row(*thread).cloned() else { continue };
                        let excerpt = search.found().iter().find(|text| text.thread == *thread);
                        let excerpt = excerpt.map(|text| text.excerpt.clone());
                        found.push(Found { listed: Listed { host, row }, excerpt });
                    }
                }
                Some(_) | None => unsearched.push(&host.name),
            }
        }
    });
    found.truncate(limit);
    let value = json!({
        "found": found.iter().map(Found::json).collect::<Vec<_>>(), "unsearched": unsearched,
    });
    output.print(&value, |_| found_text(&found, clock::now()))?;
    if !unsearched.is_empty() {
        output.note(&format!("not searched: {}", printable(&unsearched.join(", "))));
    }
    Ok(())
}

impl Found<'_> {
    fn json(&self) -> Value {
        let mut value = self.listed.json();
        if let Some(excerpt) = &self.excerpt {
            value["excerpt"] = excerpt.as_str().into();
        }
        value
    }
}

fn found_text(found: &[Found<'_>], now: Timestamp) -> String {
    if found.is_empty() {
        return "nothing was found\n".to_owned();
    }
    let length = short::length(found.iter().map(|found| found.listed.row.id));
    let one = |found: &Found<'_>| {
        let Listed { host, row } = &found.listed;
        let id = short::id(row.id, length);
        let (title, name) = (printable(&table::title(row)), printable(&host.name));
        let excerpt = found.excerpt.as_deref().map_or_else(String::new, |excerpt| {
            let words: Vec<_> = excerpt.split_whitespace().collect();
            format!("    {}\n", printable(&words.join(" ")))
        });
        format!("{id}  {title}  {name}, {}\n{excerpt}", ago(row.active_at, now))
    };
    found.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use wakeful_wire::rpc::Settled;

    use super::{
        super::{
            super::hosts::testing::host,
            tests::{NOW, row},
        },
        *,
    };

    fn listed(host: &HostView, number: u8) -> Listed<'_> {
        let mut row = row(number);
        row.title = Some(format!("Title {number}\u{1b}"));
        row.settled = Some(Settled { at: Timestamp(NOW.0 - 60_000), by: Default::default() });
        Listed { host, row: Arc::new(row) }
    }

    #[test]
    fn a_shelf_says_where_each_thread_is_and_how_many_there_are() {
        let (one, other) = (host("Site/dev"), host("Other/dev"));
        let rows = [listed(&one, 1), listed(&other, 2)];
        let text = shelf_text(&rows, 31, true, NOW);
        assert!(text.contains("Title 1\u{fffd}") && text.contains("Other/dev  1m ago"), "{text}");
        assert!(text.ends_with("2 of 31 settled threads (--limit shows more)\n"), "{text}");
        assert!(!shelf_text(&rows, 2, false, NOW).contains("of 2"));
        assert_eq!(shelf_text(&[], 0, false, NOW), "no settled threads\n");
    }

    #[test]
    fn what_was_found_shows_the_words_where_they_are() {
        let host = host("Site/dev");
        let excerpt = Some("a  contact\n\u{1b}page".to_owned());
        let found = [Found { listed: listed(&host, 1), excerpt }];
        let text = found_text(&found, NOW);
        assert!(text.ends_with("\n    a contact \u{fffd}page\n"), "{text}");
        assert_eq!(found[0].json()["excerpt"], "a  contact\n\u{1b}page");
        assert_eq!(found_text(&[], NOW), "nothing was found\n");
    }
}
