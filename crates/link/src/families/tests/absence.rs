use super::*;

#[test]
fn who_misses_a_thread_is_told_by_the_host_and_not_by_the_list() {
    let shell = list([row(1, 1)]);
    let table = [
        (rows(9, [settled(5, 2, 1)]), Absence::Known),
        (rows(9, [row(4, 1)]), Absence::Archived),
        (rows(9, []), Absence::Archived),
        (ReadAnswer::Gone, Absence::Gone),
    ];
    for (said, expected) in table {
        let mut families = opened();
        assert_eq!(families.absence(START, &shell, thread(1)), Absence::Known, "the list has it");
        assert_eq!(families.absence(START, &shell, thread(5)), Absence::Unknown);
        assert_eq!(families.absence(START, &shell, thread(5)), Absence::Unknown, "asked once");
        let read = one_read(&mut families);
        assert_eq!(read.what, family_read(5));
        answer(&mut families, &read, said);
        assert_eq!(answered(&mut families), [(5, expected)]);
        assert_eq!(families.absence(START, &shell, thread(5)), expected);
        assert_eq!(reads(&mut families), [], "the answer is remembered");
    }
}

#[test]
fn an_answer_about_absence_lasts_until_the_thread_or_the_list_changes() {
    let shell = ShellRows::new();
    let ask = |families: &mut Families, said: ReadAnswer| {
        assert_eq!(families.absence(START, &shell, thread(5)), Absence::Unknown);
        let read = one_read(families);
        answer(families, &read, said);
        drain(families);
    };
    let mut families = opened();
    ask(&mut families, rows(9, []));
    // In the archive, and now deleted: the list names it once more.
    families.handle_changes(changes(9, 10, &[], &[thread(5)]));
    ask(&mut families, ReadAnswer::Gone);
    // Made anew.
    families.handle_changes(changes(10, 11, &[Arc::new(row(5, 11))], &[]));
    ask(&mut families, rows(11, [row(5, 11)]));
    families.handle_generation(START, 2, Basis::Snapshot);
    drain(&mut families);
    ask(&mut families, ReadAnswer::Gone);
    families.handle_generation(START, 3, Basis::Resumed);
    assert_eq!(families.absence(START, &shell, thread(5)), Absence::Gone);
}

#[test]
fn a_failure_or_a_removal_meanwhile_is_no_evidence_of_absence() {
    let mut families = opened();
    let shell = ShellRows::new();
    for reason in FailureReason::ALL {
        assert_eq!(families.absence(START, &shell, thread(5)), Absence::Unknown);
        let read = one_read(&mut families);
        fail(&mut families, START, &read, *reason);
        assert_eq!(answered(&mut families), [(5, Absence::Unknown)], "{reason}");
    }
    families.absence(START, &shell, thread(5));
    let read = one_read(&mut families);
    families.handle_changes(changes(3, 9, &[], &[thread(5)]));
    // The answer is from before: "in the archive" may by now be "deleted".
    answer(&mut families, &read, rows(8, [row(5, 1)]));
    let read = one_read(&mut families);
    answer(&mut families, &read, ReadAnswer::Gone);
    assert_eq!(answered(&mut families), [(5, Absence::Gone)]);
}

#[test]
fn a_mounted_family_that_is_gone_says_so() {
    let mut families = opened();
    let shell = ShellRows::new();
    families.mount(START, &shell, thread(5)).unwrap();
    let read = one_read(&mut families);
    answer(&mut families, &read, ReadAnswer::Gone);
    assert_eq!(answered(&mut families), [(5, Absence::Gone)]);
    assert_eq!(families.absence(START, &shell, thread(5)), Absence::Gone);
    assert_eq!(families.family(&shell, thread(5)).rows, []);
}

#[test]
fn as_many_as_fit_are_asked_about_and_remembered() {
    let mut families = Families::new();
    let shell = ShellRows::new();
    let many = u64::try_from(ABSENCES_MAX).unwrap();
    for number in 0..many + 10 {
        families.absence(START, &shell, thread(number));
    }
    families.handle_generation(START, 1, Basis::Snapshot);
    let mut asked = 0;
    loop {
        let reads = reads(&mut families);
        assert!(reads.len() <= READS_MAX);
        if reads.is_empty() {
            break;
        }
        asked += reads.len();
        for read in reads {
            answer(&mut families, &read, ReadAnswer::Gone);
        }
    }
    assert_eq!(asked, ABSENCES_MAX);
    families.absence(START, &shell, thread(many + 1));
    let read = one_read(&mut families);
    answer(&mut families, &read, ReadAnswer::Gone);
    assert_eq!(
        families.absence(START, &shell, thread(0)),
        Absence::Unknown,
        "the oldest is forgotten"
    );
    assert_eq!(families.absence(START, &shell, thread(1)), Absence::Gone);
}
