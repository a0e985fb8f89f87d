//! Where rows come from, and what may be built on them.
//!
//! Rows are a base for changes only if the host that sends the changes would have sent the same
//! rows: the same release made them, with the same rows left out. That is known of a session's own
//! rows and of what an earlier session stored. Of an answer that was read before the session's hello
//! it is a guess, which the hello confirms or not: by the release that it names, and by being of the
//! very start of the host that answered. What is no base is shown until it is replaced.

use wakeful_wire::{
    host::{Capabilities, capability},
    rpc::{Epoch, Omissions},
};

use super::ShellList;

/// Which of the wanted rows may be left out by a host that can do this.
pub(super) fn allowed(wanted: Omissions, capabilities: &Capabilities) -> Omissions {
    both(
        wanted,
        Omissions {
            families: capabilities.has(capability::SHELL_THREAD_FAMILIES),
            older_settled: capabilities.has(capability::SHELL_OLDER_SETTLED),
        },
    )
}

/// What is left out under both.
pub(super) const fn both(one: Omissions, other: Omissions) -> Omissions {
    Omissions {
        families: one.families && other.families,
        older_settled: one.older_settled && other.older_settled,
    }
}

/// What a session says of its host, and so what rows must be like to be a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// The host's release.
    pub(super) release: String,
    /// Which rows this session lets the host leave out.
    pub(super) omit: Omissions,
    /// The host's present start.
    pub(super) epoch: Epoch,
}

/// What a session is expected to say, before it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guess {
    /// The host's release, where anything is known of it.
    pub(super) build: Option<String>,
    /// Which rows it will let the host leave out.
    pub(super) omit: Omissions,
}

/// How rows came here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// No session has vouched for them. They are shown, and no base.
    #[default]
    Unconfirmed,
    /// An earlier run stored them; a session of it had confirmed them.
    Cached,
    /// Read over HTTP by the present attempt, whose session has not said hello.
    Early,
    /// A session of this run sent or confirmed them.
    Confirmed,
}

/// What is known of the rows that are held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Provenance {
    /// How they came here.
    pub(super) origin: Origin,
    /// The release that made them, as far as that is known.
    pub(super) build: Option<String>,
    /// The tag that stands for exactly these rows.
    pub(super) etag: Option<String>,
    /// Whether the store holds them.
    pub(super) stored: bool,
    /// Whether a replay was interrupted in them. See [`Self::is_base`].
    pub(super) partial: bool,
}

/// A read that is worth making before the session's hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EarlyRead {
    /// The tag to send with it.
    pub(super) etag: Option<String>,
}

impl Provenance {
    /// Whether a session may go on from these rows.
    ///
    /// A replay brings each row as it is by then, so in the middle of one a row may be missing whose
    /// newest change is still to come. If the host then starts from an older copy of its log that
    /// lacks that change, nothing would bring the row. So such rows are a base only for the start of
    /// the host that sent them.
    pub(super) fn is_base(&self, list: &ShellList, terms: &Terms) -> bool {
        match self.origin {
            Origin::Cached | Origin::Confirmed => {
                list.omitted() == terms.omit
                    && self.build.as_ref() == Some(&terms.release)
                    && (!self.partial || list.cursor().epoch == terms.epoch)
            }
            Origin::Early | Origin::Unconfirmed => false,
        }
    }

    /// Whether a session confirms what its attempt read: the very start of the host that it talks to
    /// made the rows, as it was guessed to be.
    pub(super) fn is_confirmed_by(&self, list: &ShellList, terms: &Terms) -> bool {
        match self.origin {
            Origin::Cached | Origin::Confirmed => self.is_base(list, terms),
            Origin::Early => {
                list.cursor().epoch == terms.epoch
                    && list.omitted() == terms.omit
                    && self.build.as_ref().is_none_or(|build| *build == terms.release)
            }
            Origin::Unconfirmed => false,
        }
    }

    /// What to read before the hello: nothing if the session can be expected to go on from the rows,
    /// unless a few bytes tell at once that they are right.
    pub(super) fn early_read(&self, list: &ShellList, guess: &Guess) -> Option<EarlyRead> {
        let fits = list.omitted() == guess.omit && self.build == guess.build;
        let etag = self.etag.clone().filter(|_| fits);
        let known = self.build.is_some();
        match self.origin {
            Origin::Confirmed if fits => None,
            Origin::Cached if fits && known => etag.map(|etag| EarlyRead { etag: Some(etag) }),
            Origin::Early => None,
            Origin::Cached | Origin::Confirmed | Origin::Unconfirmed => Some(EarlyRead { etag }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::bench, *};

    const NONE: Omissions = Omissions { families: false, older_settled: false };
    const FAMILIES: Omissions = Omissions { families: true, older_settled: false };
    const BOTH: Omissions = Omissions { families: true, older_settled: true };

    fn list(omitted: Omissions) -> ShellList {
        let snapshot = bench::snapshot(1, 5, &[(1, 5)]);
        ShellList::of(wakeful_wire::rpc::ShellSnapshot { omitted, ..snapshot })
    }

    fn of(origin: Origin, build: Option<&str>, etag: Option<&str>) -> Provenance {
        let owned = |text: &str| text.to_owned();
        Provenance {
            origin,
            build: build.map(owned),
            etag: etag.map(owned),
            stored: true,
            partial: false,
        }
    }

    fn terms(release: &str, omit: Omissions, epoch: u64) -> Terms {
        Terms { release: release.to_owned(), omit, epoch: Epoch(epoch) }
    }

    #[test]
    fn only_what_is_wanted_and_can_be_done_is_left_out() {
        let families = Capabilities([capability::SHELL_THREAD_FAMILIES.to_owned()].into());
        assert_eq!(allowed(BOTH, &families), FAMILIES);
        assert_eq!(allowed(NONE, &families), NONE);
        assert_eq!(allowed(BOTH, &Capabilities::default()), NONE);
        assert_eq!(allowed(BOTH, &Capabilities::and(&[])), BOTH);
    }

    #[test]
    fn rows_are_a_base_only_for_the_same_release_with_the_same_rows_left_out() {
        use Origin::{Cached, Confirmed, Early, Unconfirmed};
        let table = [
            (Cached, Some("1"), NONE, true),
            (Confirmed, Some("1"), NONE, true),
            (Early, Some("1"), NONE, false),
            (Unconfirmed, Some("1"), NONE, false),
            (Cached, Some("2"), NONE, false),
            (Cached, None, NONE, false),
            (Cached, Some("1"), FAMILIES, false),
            (Confirmed, Some("1"), BOTH, false),
        ];
        for (origin, build, omitted, expected) in table {
            let is = of(origin, build, None).is_base(&list(omitted), &terms("1", NONE, 1));
            assert_eq!(is, expected, "{origin:?} {build:?} {omitted:?}");
        }
    }

    #[test]
    fn rows_of_an_interrupted_replay_are_a_base_only_for_the_same_start_of_the_host() {
        for (partial, epoch, expected) in
            [(false, 1, true), (false, 2, true), (true, 1, true), (true, 2, false)]
        {
            let rows = Provenance { partial, ..of(Origin::Confirmed, Some("1"), None) };
            let is = rows.is_base(&list(NONE), &terms("1", NONE, epoch));
            assert_eq!(is, expected, "{partial} {epoch}");
        }
    }

    #[test]
    fn a_hello_confirms_the_guess_that_rows_were_read_for() {
        use Origin::{Cached, Early, Unconfirmed};
        let table = [
            (Early, Some("1"), NONE, 1, true),
            (Early, Some("1"), NONE, 2, false),
            (Early, Some("0"), NONE, 1, false),
            (Early, Some("1"), FAMILIES, 1, false),
            (Early, None, NONE, 1, true),
            (Early, None, NONE, 2, false),
            (Early, None, BOTH, 1, false),
            (Unconfirmed, Some("1"), NONE, 1, false),
            (Cached, Some("1"), NONE, 2, true),
            (Cached, Some("0"), NONE, 1, false),
        ];
        for (origin, build, omitted, epoch, expected) in table {
            let provenance = of(origin, build, None);
            let is = provenance.is_confirmed_by(&list(omitted), &terms("1", NONE, epoch));
            assert_eq!(is, expected, "{origin:?} {build:?} {omitted:?} {epoch}");
        }
    }

    #[test]
    fn an_early_read_is_made_where_it_can_bring_something() {
        use Origin::{Cached, Confirmed, Early, Unconfirmed};
        let plain = Some(EarlyRead { etag: None });
        let tagged = Some(EarlyRead { etag: Some("t".to_owned()) });
        let table = [
            (Confirmed, Some("1"), Some("t"), NONE, None),
            (Cached, Some("1"), None, NONE, None),
            (Cached, Some("1"), Some("t"), NONE, tagged.clone()),
            (Cached, None, Some("t"), NONE, plain.clone()),
            (Cached, Some("0"), Some("t"), NONE, plain.clone()),
            (Cached, Some("1"), Some("t"), BOTH, plain.clone()),
            (Confirmed, Some("0"), None, NONE, plain.clone()),
            (Unconfirmed, Some("1"), Some("t"), NONE, tagged),
            (Unconfirmed, Some("0"), Some("t"), NONE, plain.clone()),
            (Unconfirmed, Some("1"), None, NONE, plain),
            (Early, Some("1"), Some("t"), NONE, None),
        ];
        let guess = Guess { build: Some("1".to_owned()), omit: NONE };
        for (origin, build, etag, omitted, expected) in table {
            let read = of(origin, build, etag).early_read(&list(omitted), &guess);
            assert_eq!(read, expected, "{origin:?} {build:?} {etag:?} {omitted:?}");
        }
    }
}
