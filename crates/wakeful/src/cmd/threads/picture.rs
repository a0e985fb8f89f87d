//! All that is watched, as one text.

use wakeful_link::{ConnectionPhase, platform::PlatformState};
use wakeful_wire::Timestamp;

use super::{
    super::hosts::{Countdown, HostView, View, data_words, platform_words, words},
    table,
};
use crate::output::printable;

/// The whole text: what keeps environments from being listed, then each host with what its
/// connection does, and its threads.
pub(super) fn picture(view: &View, countdown: Countdown, now: Timestamp) -> String {
    let platforms = view.platforms.iter().filter_map(|platform| {
        let alone = view.hosts.is_empty();
        let well = matches!(
            platform.state,
            PlatformState::Following | PlatformState::Opening { last_failure: None }
        );
        (alone || !well).then(|| {
            let words = platform_words(&platform.state, view.now, countdown);
            format!("{}: {words}\n", platform.address)
        })
    });
    let hosts = view.hosts.iter().map(|one| host(one, view, countdown, now));
    let parts: Vec<_> = platforms.chain(hosts).collect();
    if parts.is_empty() {
        return "no environments and no paired hosts\n".to_owned();
    }
    parts.join("\n")
}

fn host(host: &HostView, view: &View, countdown: Countdown, now: Timestamp) -> String {
    let words = words(host, view.now, countdown);
    let mut text = format!("{}: {words}\n", printable(&host.name));
    let Some(list) = &host.list else { return text };
    let live = host.is_live() && host.connection.phase == ConnectionPhase::Connected;
    if !live {
        text.push_str(&format!("  its threads, {}:\n", data_words(host, now)));
    }
    let rows: Vec<_> = list.rows().cloned().collect();
    let table = table::table(&rows, host.settled, now);
    text.extend(table.lines().map(|line| format!("  {line}\n")));
    text
}

#[cfg(test)]
mod tests {
    use wakeful_link::{DataStatus, Failure, FailureReason, Instant, route::Address};

    use super::{
        super::{
            super::hosts::{
                PlatformView,
                testing::{host, paired},
            },
            tests::NOW,
        },
        *,
    };

    fn view(hosts: Vec<HostView>, state: PlatformState) -> View {
        let address = Address::new("http://wakeful.localhost:7878").unwrap();
        View { now: Instant(0), hosts, platforms: vec![PlatformView { address, state }] }
    }

    #[test]
    fn each_host_says_what_its_connection_does_and_how_old_its_rows_are() {
        let mut cold = paired("lab");
        cold.status = DataStatus::Synchronizing;
        cold.connection.phase = ConnectionPhase::Connecting;
        let text = picture(
            &view(vec![host("Site/dev"), cold], PlatformState::Following),
            Countdown::Shown,
            NOW,
        );
        let expected = "Site/dev: connected\n  no threads\n\nhost:lab: connecting\n  \
                        its threads, being brought up to date:\n  no threads\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_platform_that_does_not_answer_is_not_hidden_behind_what_is_known_of_it() {
        let blocked =
            PlatformState::Blocked(Failure::new(FailureReason::Authentication, "Unknown token."));
        let text = picture(&view(vec![host("Site/dev")], blocked), Countdown::Shown, NOW);
        let first =
            "http://wakeful.localhost:7878: sign-in needed (`wakeful login`): Unknown token";
        assert_eq!(text.lines().next(), Some(first));
        let opening = PlatformState::Opening { last_failure: None };
        let text = picture(&view(Vec::new(), opening), Countdown::Shown, NOW);
        assert_eq!(text, "http://wakeful.localhost:7878: connecting\n");
        let nothing = View { now: Instant(0), hosts: Vec::new(), platforms: Vec::new() };
        assert!(picture(&nothing, Countdown::Shown, NOW).starts_with("no environments"));
    }

    #[test]
    fn text_for_a_pipe_stays_as_it_is_while_only_time_passes() {
        let mut lost = host("Site/dev");
        lost.connection.phase = ConnectionPhase::Backoff;
        lost.connection.retry_at = Some(Instant(9_000));
        let mut view = view(vec![lost], PlatformState::Following);
        let before = picture(&view, Countdown::Hidden, NOW);
        view.now = Instant(4_000);
        assert_eq!(picture(&view, Countdown::Hidden, NOW), before);
        assert!(picture(&view, Countdown::Shown, NOW).contains("next try in 5s"));
    }
}
