//! What is said of a picture, given what was said before.

use wakeful_link::Network;

use super::{super::Signal, picture::Picture};

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Told(Option<Picture>);

impl Told {
    /// The network looks like this now. Returns what that is to be called, if it is news.
    ///
    /// Coming online is one signal, whichever way it is: nothing begun on another way is left.
    pub(super) fn look(&mut self, picture: Picture) -> Option<Signal> {
        let before = self.0.replace(picture);
        let now = self.0.as_ref()?;
        match before {
            Some(before) if before.online == now.online => {
                (now.online && before != *now).then_some(Signal::PathChanged)
            }
            Some(_) | None if now.online => Some(Signal::Network(Network::Online)),
            Some(_) | None => Some(Signal::Network(Network::Offline)),
        }
    }

    /// The network can be looked at no more.
    pub(super) fn lose(&mut self) -> Option<Signal> {
        self.0.take().map(|_stale| Signal::Network(Network::Unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(online: bool, addresses: &[&str]) -> Picture {
        let addresses = addresses.iter().map(|address| (2, address.parse().unwrap())).collect();
        Picture { online, addresses, ..Picture::default() }
    }

    #[test]
    fn the_present_state_is_said_first_and_nothing_twice() {
        let online = Some(Signal::Network(Network::Online));
        let offline = Some(Signal::Network(Network::Offline));
        let steps = [
            (picture(false, &[]), offline),
            (picture(false, &[]), None),
            (picture(true, &["192.0.2.5"]), online),
            (picture(true, &["192.0.2.5"]), None),
            (picture(true, &["192.0.2.5", "2001:db8::5"]), Some(Signal::PathChanged)),
            (picture(true, &["192.0.2.6"]), Some(Signal::PathChanged)),
            // A tunnel is left, which leads nowhere by itself.
            (picture(false, &["100.64.0.1"]), offline),
            (picture(false, &[]), None),
            (picture(true, &["198.51.100.7"]), online),
        ];
        let mut told = Told::default();
        for (number, (picture, expected)) in steps.into_iter().enumerate() {
            assert_eq!(told.look(picture), expected, "step {number}");
        }
    }

    #[test]
    fn what_cannot_be_seen_any_more_is_unknown_and_said_anew_later() {
        let mut told = Told::default();
        assert_eq!(told.lose(), None);
        told.look(picture(true, &["192.0.2.5"]));
        assert_eq!(told.lose(), Some(Signal::Network(Network::Unknown)));
        assert_eq!(told.lose(), None);
        let again = told.look(picture(true, &["192.0.2.5"]));
        assert_eq!(again, Some(Signal::Network(Network::Online)));
    }
}
