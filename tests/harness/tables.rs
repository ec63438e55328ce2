//! Tables that kubectl prints.

use crate::support::tables::{cells, seconds, tables};

#[test]
fn cells_stand_below_their_heads_and_some_are_empty() {
    let text = "NAME   READY   MESSAGE\na      True    all is well\nbcd            \n\nNAME   AGE\ne      5s\n";
    let tables = tables(text);
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0][0], ["NAME", "READY", "MESSAGE"]);
    assert_eq!(
        cells(&tables[0], "a").expect("it is there"),
        ["a", "True", "all is well"]
    );
    assert_eq!(cells(&tables[0], "bcd").expect("it is there"), ["bcd", "", ""]);
    assert_eq!(cells(&tables[0], "e"), None);
    assert_eq!(tables[1][1], ["e", "5s"]);
}

#[test]
fn an_age_is_a_number_of_seconds() {
    for (age, expected) in [
        ("0s", Some(0)),
        ("90s", Some(90)),
        ("2m5s", Some(125)),
        ("3h", Some(10_800)),
        ("2d1h", Some(176_400)),
        ("", None),
        ("5", None),
        ("<unknown>", None),
        ("<invalid>", None),
    ] {
        assert_eq!(seconds(age), expected, "{age}");
    }
}
