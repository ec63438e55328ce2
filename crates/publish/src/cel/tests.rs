//! What cel-go computed: `tests/data/rules/cel.tsv`.

use serde_json::{Value, json};

use super::*;

const TABLE: &str = include_str!("../../tests/data/rules/cel.tsv");

fn evaluated(expression: &str, this: &Value, other: &Value, value: &Value) -> Result<Value, CelError> {
    Program::parse(expression)?.run(Variables { this, other, value })
}

/// Where types meet that Go's checker keeps apart, if it knows both; with what a document has, they meet there too.
const MORE_THAN_GO: [&str; 20] = [
    "1 + 1.0",
    "1 + 1u",
    "1 == 1.0",
    "1 == 1u",
    "1u == 1.0",
    "1 == \"1\"",
    "{\"a\": 1} == {\"a\": 1.0}",
    "null == false",
    "1 < 1.5",
    "2u > 1",
    "2u > 1.5",
    "false && 1",
    "1 && false",
    "1 || true",
    "1.0 in [1, 2]",
    "1 in {\"a\": 1}",
    "[1, 2][1.0]",
    "[1, 2][1u]",
    "{1: \"x\"}[1.0]",
    "-duration(\"1h\")",
];

/// Keys that no JSON has.
const LESS_THAN_GO: [&str; 2] = ["{1.5: 1}", "{null: 1}"];

#[test]
fn expressions_give_what_cel_go_gave() {
    let (mut this, mut other) = (Value::Null, Value::Null);
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in TABLE.lines() {
        let (expression, expected) = match line.split('\t').collect::<Vec<_>>()[..] {
            ["self", json] => {
                this = serde_json::from_str(json).unwrap();
                continue;
            }
            ["other", json] => {
                other = serde_json::from_str(json).unwrap();
                continue;
            }
            ["cel", expression, expected] => (serde_json::from_str::<String>(expression).unwrap(), expected),
            _ => panic!("{line}"),
        };
        count += 1;
        let found = evaluated(&expression, &this, &other, &this["spec"]["words"]);
        let is_same = match &found {
            Ok(found) => serde_json::from_str::<Value>(expected).is_ok_and(|expected| go_equal(&expected, found)),
            Err(_) => expected.starts_with('!'),
        };
        let is_known = match &found {
            Ok(_) => MORE_THAN_GO.contains(&expression.as_str()) && expected.starts_with("!!"),
            Err(_) => LESS_THAN_GO.contains(&expression.as_str()),
        };
        if !is_same && !is_known {
            wrong.push(format!("{expression}\n  Go   {expected}\n  ours {found:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} rows:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 350, "{count} rows");
}

/// Numbers as they are written: 2.0 is 2.
fn go_equal(expected: &Value, found: &Value) -> bool {
    crate::json::text(expected) == crate::json::text(found)
}

#[test]
fn numbers_of_different_types_are_taken_together() {
    let this = json!({"n": 24, "f": 1.5, "big": 9_007_199_254_740_993_i64, "huge": u64::MAX});
    for (expression, value, expected) in [
        ("value + 42", json!(24), json!(66)),
        ("value + 42.0", json!(24), json!(66)),
        ("value / 2", json!(7), json!(3)),
        ("value / 2.0", json!(7), json!(3.5)),
        ("value * 2", json!(1.5), json!(3)),
        ("value - 1u", json!(1), json!(0)),
        ("self.big + 1", json!(null), json!(9_007_199_254_740_994_i64)),
        ("self.huge", json!(null), json!(u64::MAX)),
        ("self.huge > self.big", json!(null), json!(true)),
        ("value == 24.0", json!(24), json!(true)),
        ("-value", json!(-3), json!(3)),
    ] {
        let found = evaluated(expression, &this, &json!(null), &value);
        assert_eq!(found, Ok(expected), "{expression}");
    }
}

#[test]
fn a_broken_rule_is_known_before_any_object() {
    for (expression, error) in [
        ("1 +", "1:4: mismatched input"),
        (
            "self.a.\nfoo()",
            "2:6: undeclared reference to 'foo', or wrong number of arguments",
        ),
        ("nope", "1:5: undeclared reference to 'nope'"),
        ("\"a\" + 1", "no such overload"),
        ("self.x ? \"a\" < 1 : 2", "no such overload"),
        (
            "size()",
            "1:7: undeclared reference to 'size', or wrong number of arguments",
        ),
        ("\"abc", "1:1: a text without an end"),
    ] {
        assert_eq!(
            Program::parse(expression).unwrap_err().to_string(),
            error,
            "{expression}"
        );
    }
}

#[test]
fn an_evaluation_ends_soon_and_makes_little() {
    let this = json!({"list": (0..2000).collect::<Vec<_>>(), "text": "x".repeat(1 << 20)});
    for (expression, error) in [
        (
            "self.list.map(a, self.list.map(b, self.list.map(c, a + b + c)))",
            "steps",
        ),
        ("self.list.all(a, self.list.all(b, self.list == self.list))", "steps"),
        (
            "self.list.exists(a, self.list.all(b, self.list.all(c, a + b + c < 0 || true)))",
            "steps",
        ),
        ("self.list.map(a, self.text + self.text)", "16 MiB"),
        ("self.list.map(a, self.text)", "3 MiB"),
        ("self.text.matches(\"(((x{100}){100}){100}){100}\")", "524288 bytes."),
    ] {
        let found = evaluated(expression, &this, &json!(null), &json!(null));
        let found = found.unwrap_err().to_string();
        assert!(found.ends_with(error), "{expression}: {found}");
    }
    for deep in [
        "(".repeat(5000),
        "[".repeat(5000),
        "-".repeat(5000),
        "!".repeat(5001) + "true",
        "1".to_owned() + &"+1".repeat(5000),
    ] {
        let _ = evaluated(&deep, &this, &json!(null), &json!(null));
    }
    let wide = "true".to_owned() + &" && true".repeat(5000);
    assert_eq!(evaluated(&wide, &this, &json!(null), &json!(null)), Ok(json!(true)));
}
