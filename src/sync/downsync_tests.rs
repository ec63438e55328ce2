use super::*;

const OURS: Copy = Copy {
    state: CopyState::Ours,
    hands_off: false,
    adopted: false,
    terminating: false,
};
const FOREIGN: Copy = Copy {
    state: CopyState::Foreign,
    ..OURS
};
const ABSENT: Copy = Copy {
    state: CopyState::Absent,
    ..OURS
};
/// Whole, and whether it is created once.
const WHOLE: (bool, bool) = (true, false);
const ONCE: (bool, bool) = (true, true);
const IMPLIED: (bool, bool) = (false, false);

fn hands_off(copy: Copy) -> Copy {
    Copy {
        hands_off: true,
        ..copy
    }
}

#[test]
fn decides_as_the_spec_says() {
    let apply = Action::Apply { adopted: false };
    let adopt = Action::Apply { adopted: true };
    let adopted = Copy { adopted: true, ..OURS };
    let terminating = Copy {
        terminating: true,
        ..OURS
    };
    for (row, (whole, once), copy, expected) in [
        ("3.4 create", WHOLE, ABSENT, apply),
        ("3.4 update", WHOLE, OURS, apply),
        ("3.4 foreign is overwritten and marked", WHOLE, FOREIGN, adopt),
        ("adopted stays adopted", WHOLE, adopted, adopt),
        ("3.2 implied namespace is created", IMPLIED, ABSENT, apply),
        ("3.2 implied namespace of ours", IMPLIED, OURS, apply),
        (
            "3.2 implied namespace that was there is not adopted",
            IMPLIED,
            FOREIGN,
            Action::Leave(Why::NotOurs),
        ),
        ("3.6 absent downstream: in full", ONCE, ABSENT, apply),
        (
            "3.6 false on both sides: no write",
            ONCE,
            hands_off(OURS),
            Action::Leave(Why::HandsOff),
        ),
        (
            "3.6 false upstream, else downstream: only the mark",
            ONCE,
            OURS,
            Action::MarkHandsOff,
        ),
        (
            "3.6 false upstream, foreign: only the mark",
            ONCE,
            FOREIGN,
            Action::MarkHandsOff,
        ),
        (
            "3.6 false upstream, foreign and marked",
            ONCE,
            hands_off(FOREIGN),
            Action::Leave(Why::HandsOff),
        ),
        ("3.6 back to true: overwrite again", WHOLE, hands_off(OURS), apply),
        (
            "terminating is waited for",
            WHOLE,
            terminating,
            Action::Leave(Why::Terminating),
        ),
    ] {
        assert_eq!(decide(whole, once, copy), expected, "{row}");
    }
}
