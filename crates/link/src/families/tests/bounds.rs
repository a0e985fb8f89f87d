use super::*;

#[test]
fn a_failed_family_is_tried_again_after_growing_pauses_while_somebody_needs_it() {
    let mut families = opened();
    let shell = ShellRows::new();
    let mount = families.mount(START, &shell, thread(1)).unwrap();
    let mut now = START;
    for seconds in [2, 4, 8] {
        let read = one_read(&mut families);
        fail(&mut families, now, &read, FailureReason::Timeout);
        assert_eq!(
            families.family(&shell, thread(1)).failure.unwrap().reason,
            FailureReason::Timeout
        );
        let due = now.after(Duration::from_secs(seconds));
        assert_eq!(families.poll_timeout(), Some(due));
        families.handle_timeout(Instant(due.0 - 1));
        assert_eq!(reads(&mut families), []);
        families.handle_timeout(due);
        now = due;
    }
    let read = one_read(&mut families);
    fail(&mut families, now, &read, FailureReason::Permission);
    assert_eq!(families.poll_timeout(), None, "what is refused is not tried again");
    drain(&mut families);
    families.retry(now, &shell, thread(1));
    let read = one_read(&mut families);
    fail(&mut families, now, &read, FailureReason::Timeout);
    families.unmount(mount);
    assert_eq!(families.poll_timeout(), None, "nobody needs it");
    families.handle_timeout(now.after(RETRY_MAX));
    assert_eq!(reads(&mut families), []);
}

#[test]
fn at_the_bound_the_family_goes_that_was_longest_without_use() {
    let mut families = opened();
    let shell = ShellRows::new();
    let many = u64::try_from(FAMILIES_MAX).unwrap();
    let mut mounts = Vec::new();
    for number in 1..=many {
        mounts.push(families.mount(START, &shell, thread(number)).unwrap());
        for read in reads(&mut families) {
            answer(&mut families, &read, rows(5, [row(number, 1)]));
        }
    }
    let refused = families.mount(START, &shell, thread(999)).unwrap_err();
    assert_eq!(refused.reason, FailureReason::Overloaded);
    families.unmount(mounts[7]);
    families.unmount(mounts[3]);
    families.mount(START, &shell, thread(999)).unwrap();
    assert_eq!(families.row(&shell, thread(8)), None);
    assert!(families.row(&shell, thread(4)).is_some());
}

#[test]
fn few_reads_are_under_way_at_once_and_the_others_follow() {
    let mut families = opened();
    let shell = ShellRows::new();
    for number in 1..=10 {
        families.mount(START, &shell, thread(number)).unwrap();
    }
    let mut under_way = reads(&mut families);
    assert_eq!(under_way.len(), READS_MAX);
    families.search(START, "soup", 5);
    assert_eq!(reads(&mut families).len(), 1, "a search does not wait for them");
    let mut read = 0;
    while let Some(next) = under_way.pop() {
        read += 1;
        answer(&mut families, &next, rows(5, []));
        under_way.extend(reads(&mut families));
    }
    assert_eq!(read, 10);
}

#[test]
fn more_removals_than_are_remembered_make_an_older_answer_unusable() {
    let mut families = opened();
    let shell = ShellRows::new();
    families.mount(START, &shell, thread(1)).unwrap();
    let read = one_read(&mut families);
    let removed: Vec<_> = (100..101 + u64::try_from(REMOVALS_MAX).unwrap()).map(thread).collect();
    families.handle_changes(changes(3, 9, &[], &removed));
    answer(&mut families, &read, rows(8, [row(1, 1), child(100, 1, 1)]));
    assert_eq!(families.row(&shell, thread(100)), None);
    let read = one_read(&mut families);
    answer(&mut families, &read, rows(9, [row(1, 1)]));
    assert_eq!(numbers(&families.family(&shell, thread(1)).rows), [1]);
}

#[test]
fn of_a_huge_family_the_newest_rows_are_kept_and_it_is_not_called_whole() {
    let mut families = opened();
    let shell = ShellRows::new();
    families.mount(START, &shell, thread(1)).unwrap();
    let read = one_read(&mut families);
    let many = u64::try_from(FAMILY_ROWS_MAX).unwrap();
    answer(&mut families, &read, rows(8, (1..=many + 1).rev().map(|number| child(number, 1, 1))));
    let view = families.family(&shell, thread(1));
    assert_eq!(view.rows.len(), FAMILY_ROWS_MAX);
    assert_eq!(view.status, DataStatus::Cached);
    assert_eq!(families.row(&shell, thread(1)), None);
}

#[test]
fn an_answer_of_another_kind_is_a_failure_of_the_host() {
    let mut families = opened();
    let shell = ShellRows::new();
    families.mount(START, &shell, thread(1)).unwrap();
    let read = one_read(&mut families);
    answer(&mut families, &read, ReadAnswer::Found(SearchAnswer::default()));
    let failure = families.family(&shell, thread(1)).failure.unwrap();
    assert_eq!(failure.reason, FailureReason::Remote);
}
