use super::*;

#[test]
fn the_first_frame_waits_until_every_enabled_host_has_read_its_cached_list() {
    let mut steady = Steady::<Rows>::new(at(0.0));
    steady.handle_cache_read(at(0.0), host(9));
    assert!(!steady.first_paint(at(0.1)), "it is not known yet who is enabled");
    steady.handle_enabled(at(0.1), [host(1), host(2), host(3)]);
    steady.handle_host(at(0.2), host(1), cached("one"));
    steady.handle_cache_read(at(0.2), host(1));
    steady.handle_removed(at(0.2), host(3));
    assert_eq!(changes(&mut steady), [[1]]);
    assert_eq!(steady.poll_timeout(), Some(at(0.5)));
    steady.handle_host(at(0.3), host(2), cached("two"));
    steady.handle_cache_read(at(0.3), host(2));
    assert!(steady.first_paint(at(0.3)));
    assert_eq!(steady.poll_action(), Some(Action::Changed(BTreeSet::from([host(2)]))));
    assert_eq!(steady.poll_action(), Some(Action::Paint), "after the rows");
    steady.handle_timeout(at(0.5));
    assert_eq!(steady.poll_action(), None, "once");
}

#[test]
fn the_first_frame_is_painted_at_the_bound_even_if_a_cache_hangs() {
    for enabled in [Some([host(1)]), None] {
        let mut steady = Steady::<Rows>::new(at(0.0));
        if let Some(enabled) = enabled {
            steady.handle_enabled(at(0.0), enabled);
        }
        steady.handle_timeout(at(0.499));
        assert!(!steady.first_paint(at(0.499)));
        assert_eq!(steady.poll_action(), None);
        steady.handle_timeout(at(0.5));
        assert!(steady.first_paint(at(0.5)));
        assert_eq!(steady.poll_action(), Some(Action::Paint));
        assert_eq!(steady.poll_timeout(), None);
    }
}
