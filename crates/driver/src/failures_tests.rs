use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Side {
    Hub,
    Edge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    Side(Side),
    Thing(Side, String),
    OfTenant(u32, u32),
}

impl Subject {
    fn object(side: Side, name: String) -> Self {
        Self::Thing(side, name)
    }
}

impl Failing for Subject {
    fn is_thing(&self) -> bool {
        !matches!(self, Self::Side(_))
    }

    fn side(&self) -> impl Hash {
        match self {
            Self::Side(side) | Self::Thing(side, _) => *side,
            Self::OfTenant(..) => Side::Hub,
        }
    }

    fn tenant(&self) -> Option<u32> {
        match self {
            Self::OfTenant(tenant, _) => Some(*tenant),
            _ => None,
        }
    }
}

type Failures = super::Failures<Subject>;

fn now() -> Instant {
    Instant::now()
}

fn thing(index: u32) -> Subject {
    Subject::object(Side::Edge, format!("ConfigMap/a/{index}"))
}

fn fails(failures: &mut Failures, index: u32, reason: Option<&str>) -> bool {
    failures.fails(&thing(index), index + 1, reason, now()).is_some()
}

fn ends(failures: &mut Failures, index: u32) -> bool {
    failures.ends(&thing(index), now()).unwrap().is_logged
}

const REASON: Option<&str> = Some("no permission");

#[tokio::test(start_paused = true)]
async fn what_fails_for_one_reason_has_one_line_until_all_of_it_works() {
    let mut failures = Failures::default();
    let logged: Vec<u32> = (0..500).filter(|&index| fails(&mut failures, index, REASON)).collect();
    assert_eq!(logged, [0]);
    assert_eq!(failures.count(), 500);
    assert!(fails(&mut failures, 600, Some("another permission")));
    let elsewhere = Subject::object(Side::Hub, "x".into());
    assert!(
        failures.fails(&elsewhere, 1, REASON, now()).is_some(),
        "at the other side"
    );
    assert!(!ends(&mut failures, 1), "it had no line");
    assert!(ends(&mut failures, 0));
    let logged: Vec<u32> = (2..500).filter(|&index| fails(&mut failures, index, REASON)).collect();
    assert_eq!(logged, [2], "those that still fail are logged by one of them");
    for index in 2..500 {
        assert_eq!(ends(&mut failures, index), index == 2);
    }
    assert_eq!(failures.shared.len(), 2);
    assert!(ends(&mut failures, 600) && failures.ends(&elsewhere, now()).is_some());
    assert!(failures.shared.is_empty() && failures.count() == 0);
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_lasts_has_a_line_for_another_error() {
    let mut failures = Failures::default();
    let (side, begin) = (Subject::Side(Side::Edge), now());
    for (seconds, kind, is_logged) in [
        (0, 1, true),
        (5, 2, false),
        (31, 2, true),
        (40, 3, false),
        (62, 3, true),
        (100, 1, false),
        (200, 4, false),
        (4000, 4, true),
    ] {
        let line = failures.fails(&side, kind, None, begin + Duration::from_secs(seconds));
        assert_eq!(line.is_some(), is_logged, "{kind} after {seconds} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_thing_that_comes_to_fail_as_others_do_has_no_line_for_that() {
    let mut failures = Failures::default();
    assert!(fails(&mut failures, 0, REASON));
    assert!(failures.fails(&thing(1), 9, None, now()).is_some());
    assert!(!fails(&mut failures, 1, REASON));
    assert!(ends(&mut failures, 1));
    assert!(
        failures.fails(&thing(0), 9, None, now()).is_some(),
        "for a reason of its own"
    );
    assert!(fails(&mut failures, 2, REASON), "nobody else has it");
}

#[tokio::test(start_paused = true)]
async fn a_thing_that_lacks_two_permissions_in_turn_has_one_line_for_each() {
    let mut failures = Failures::default();
    let mut lines = 0;
    for round in 0..1000 {
        let (kind, reason) = if round % 2 == 0 {
            (7, "cannot list")
        } else {
            (8, "cannot watch")
        };
        lines += usize::from(failures.fails(&thing(0), kind, Some(reason), now()).is_some());
    }
    assert_eq!(lines, 2);
    assert!(
        fails(&mut failures, 1, Some("cannot list")),
        "another thing has not said so, and the first one fails in another way"
    );
    assert!(ends(&mut failures, 0));
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_comes_and_goes_has_few_lines() {
    let mut failures = Failures::default();
    let (mut lines, mut ends) = (0, 0);
    for _ in 0..100 {
        lines += usize::from(fails(&mut failures, 0, REASON));
        ends += usize::from(
            super::Failures::ends(&mut failures, &thing(0), now())
                .unwrap()
                .is_logged,
        );
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!((lines, ends), (2, 1));
}

// Issue 45: objects of one tenant that failed in many ways left no line to the others.
#[tokio::test(start_paused = true)]
async fn no_tenant_has_all_lines() {
    let mut failures = Failures::default();
    let logged = |failures: &mut Failures, tenant| {
        let things = (0..100).map(|index| Subject::OfTenant(tenant, index));
        let fails = things
            .zip(0..)
            .filter(|(thing, kind)| failures.fails(thing, *kind, None, now()).is_some());
        fails.count()
    };
    let counts = [1, 2, 1, 3, 4].map(|tenant| logged(&mut failures, tenant));
    assert_eq!(counts, [10, 5, 0, 3, 1]);
    assert_eq!((0..9).filter(|&index| fails(&mut failures, index, None)).count(), 1);
    tokio::time::advance(BURST).await;
    assert_eq!(logged(&mut failures, 5), 10);
}

#[tokio::test(start_paused = true)]
async fn a_burst_has_few_lines_and_a_sum_and_only_what_had_a_line_has_one_at_its_end() {
    let mut failures = Failures::default();
    let logged = (0..1000).filter(|&index| fails(&mut failures, index, None)).count();
    assert_eq!(logged, LINES as usize);
    assert!(!failures.are_to_be_summed_up(now()));
    tokio::time::advance(BURST).await;
    assert!(failures.are_to_be_summed_up(now()));
    assert_eq!(failures.due(), None);
    assert!(fails(&mut failures, 2000, None), "another burst");
    let ended = (0..1000).filter(|&index| ends(&mut failures, index)).count();
    assert_eq!(ended, LINES as usize);
    assert!(failures.fails(&Subject::Side(Side::Edge), 1, None, now()).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_comes_and_goes_says_so_and_then_nothing_until_it_has_worked_for_a_while() {
    let second = Duration::from_secs(1);
    for (subject, most) in [(thing(1), RETURNS), (Subject::Side(Side::Hub), RETURNS_OF_SIDE)] {
        let mut failures = Failures::default();
        let (mut lines, mut ends) = (Vec::new(), 0);
        for _ in 0..3600 {
            lines.extend(failures.fails(&subject, 1, None, now()));
            assert_eq!(failures.count(), 1);
            tokio::time::advance(second).await;
            ends += usize::from(failures.ends(&subject, now()).unwrap().is_logged);
            assert!(failures.count() == 0 && failures.ends(&subject, now()).is_none());
            assert!(failures.steady(now()).is_empty());
            tokio::time::advance(second).await;
        }
        assert_eq!((lines.len(), ends), (usize::from(most) + 1, usize::from(most)));
        assert_eq!(lines.last(), Some(&Line::Last));
        assert!(failures.due().is_some());
        tokio::time::advance(STEADY).await;
        assert_eq!(failures.steady(now()), [(subject.clone(), 7199 * second)]);
        assert!(failures.streaks.is_empty() && failures.due().is_none());
        assert_eq!(
            failures.fails(&subject, 1, None, now()),
            Some(Line::News),
            "it is another streak"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_works_for_a_while_and_fails_again_is_another_streak() {
    let mut failures = Failures::default();
    for _ in 0..3 {
        assert_eq!(failures.fails(&thing(1), 1, None, now()), Some(Line::News));
        assert!(ends(&mut failures, 1));
        tokio::time::advance(STEADY).await;
    }
    assert!(failures.steady(now()).is_empty(), "its end was logged");
}

#[tokio::test(start_paused = true)]
async fn what_may_soon_pass_has_a_line_once_it_lasts_and_only_then_one_at_its_end() {
    let second = Duration::from_secs(1);
    for has_failed_before in [false, true] {
        let mut failures = Failures::default();
        if has_failed_before {
            assert!(fails(&mut failures, 1, None));
            assert!(ends(&mut failures, 1));
            tokio::time::advance(60 * second).await;
        }
        for _ in 0..5 {
            failures.fails_for_now(&thing(1), now());
            assert_eq!(
                (failures.count(), failures.lasts(&thing(1), now())),
                (1, Some(Duration::ZERO))
            );
            assert!(!ends(&mut failures, 1));
            tokio::time::advance(second).await;
        }
        failures.fails_for_now(&thing(1), now());
        tokio::time::advance(second).await;
        assert_eq!(failures.lasts(&thing(1), now()), Some(second));
        assert!(fails(&mut failures, 1, None), "it lasts");
        assert!(!fails(&mut failures, 1, None));
        let ended = failures.ends(&thing(1), now()).unwrap();
        assert_eq!(ended.is_logged, !has_failed_before, "it has come and gone");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_has_returned_has_one_line_whatever_its_error_becomes() {
    let mut failures = Failures::default();
    let side = Subject::Side(Side::Edge);
    let mut lines = Vec::new();
    for _ in 0..3 {
        for kind in [1, 2, 1] {
            lines.push(failures.fails(&side, kind, None, now()).is_some());
        }
        tokio::time::advance(LASTING).await;
        assert!(failures.ends(&side, now()).unwrap().is_logged);
    }
    assert_eq!(lines, [true, false, false].repeat(3));
}

#[test]
fn what_fails_costs_little_more_than_its_name() {
    assert!(size_of::<Streak>() <= 120, "{}", size_of::<Streak>());
}

#[test]
fn a_note_says_what_was_done_and_how_often_until_it_works() {
    let mut failures = Failures::default();
    for (doing, words, reason, expected) in [
        (
            "applying",
            "no port 1",
            LogReason::ObjectRejected,
            ("applying", "no port 1", 1),
        ),
        // The same in other words.
        (
            "applying",
            "no port 2",
            LogReason::ObjectRejected,
            ("applying", "no port 1", 2),
        ),
        (
            "reading",
            "not now",
            LogReason::RequestFailed,
            ("reading", "not now", 3),
        ),
    ] {
        fails(&mut failures, 0, None);
        failures.note(&thing(0), reason, (doing, words), || "now".to_owned());
        let note = failures.note_of(&thing(0)).unwrap();
        assert_eq!((&*note.doing, &*note.message, note.tries), expected);
    }
    ends(&mut failures, 0);
    fails(&mut failures, 0, None);
    failures.note(&thing(0), LogReason::ObjectRejected, ("applying", "no"), || {
        "later".to_owned()
    });
    let note = failures.note_of(&thing(0)).unwrap();
    assert_eq!((note.tries, &*note.since), (1, "later"));
}
