//! What real Go makes of documents, and what it does not say.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

const TABLES: [(&str, &str); 2] = [
    (
        "yaml_table.tsv",
        include_str!("../../gotemplate/tests/data/yaml_table.tsv"),
    ),
    (
        "more_yaml_table.tsv",
        include_str!("../../gotemplate/tests/data/more_yaml_table.tsv"),
    ),
];

/// Documents of which more is read than by Go, and one of which Go drops a part silently.
const DIFFER: [(&str, Option<&str>); 5] = [
    (r#"{"a": "x\/y"}"#, Some(r#"{"a":"x/y"}"#)),
    (r#"a: "\ud83d\ude00""#, Some(r#"{"a":"😀"}"#)),
    ("\ta: 1", Some(r#"{"a":1}"#)),
    ("%YAML 1.2\n---\na: 1", Some(r#"{"a":1}"#)),
    (" a: 1\nb: 2", None),
];

/// A document of the second table, with its escapes resolved.
fn unescaped(row: &str) -> String {
    let mut text = String::new();
    let mut rest = row.chars();
    while let Some(next) = rest.next() {
        match (next, rest.clone().next()) {
            ('\\', Some(escaped @ ('\\' | 'n' | 't' | 'r'))) => {
                rest.next();
                text.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                });
            }
            _ => text.push(next),
        }
    }
    text
}

/// The rows of a table: where, the document, and the JSON of it, or nothing if Go cannot read it.
fn rows() -> Vec<(String, String, Option<Value>)> {
    let mut rows = Vec::new();
    for (table, text) in TABLES {
        for (number, row) in text.lines().enumerate() {
            let (document, expected) = row.split_once('\t').unwrap();
            let document = match table {
                "yaml_table.tsv" => document.replace("\\n", "\n"),
                _ => unescaped(document),
            };
            let differs = DIFFER.iter().find(|(differs, _)| *differs == document);
            let expected = match differs {
                Some((_, expected)) => expected.unwrap_or("!"),
                None => expected,
            };
            let expected = serde_json::from_str(expected)
                .ok()
                .filter(|_| !expected.starts_with('!'));
            rows.push((format!("{table}, line {}", number + 1), document, expected));
        }
    }
    rows
}

#[test]
fn documents_give_what_go_gives() {
    let mut failed = Vec::new();
    for (place, document, expected) in rows() {
        let found = documents(&document).map(|documents| documents.into_iter().next().map(|first| first.value));
        let matches = match (&found, &expected) {
            (Ok(None), Some(Value::Null)) | (Err(_), None) => true,
            (Ok(Some(found)), Some(expected)) => found == expected,
            _ => false,
        };
        if !matches {
            failed.push(format!("{place}: {document:?}\n  {found:?}\n  expected {expected:?}"));
        }
    }
    assert!(failed.is_empty(), "{} rows:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn separators_are_lines_of_three_dashes() {
    let rows: [(&str, &[(usize, usize)]); 11] = [
        ("a: 1", &[(1, 1)]),
        ("---\na: 1\n", &[(1, 2)]),
        ("# c\n---\na: 1\n---\nb: 2", &[(1, 3), (2, 5)]),
        ("a: 1\n--- # c\nb: 2\n---  \r\nc: 3", &[(1, 1), (2, 3), (3, 5)]),
        ("a: 1\n---\n---\n# c\n---\nb: 2", &[(1, 1), (4, 6)]),
        ("a: |\n  ---\n  x\nb: 1", &[(1, 1)]),
        ("a: 1\n--- {b: 2}\n", &[(1, 1), (2, 2)]),
        ("a: 1\n...\nb: 2\n", &[(1, 1), (2, 3)]),
        ("\u{feff}a: 1\r\nb: 2\r\n", &[(1, 1)]),
        ("", &[]),
        ("---\n---\n", &[]),
    ];
    for (text, expected) in rows {
        let found = documents(text).map(|all| all.iter().map(|one| (one.number, one.line)).collect::<Vec<_>>());
        assert_eq!(found, Ok(expected.to_vec()), "{text:?}");
    }
}

#[test]
fn errors_say_which_document_and_line() {
    let rows = [
        ("a: 1\n---\n\nb: [1\n", 2, 4),
        ("a: 1\n---\nb: 1\nc: @x\n", 2, 4),
        ("a: 1\nb: .inf\n", 1, 2),
        ("? [a]\n: 1\n", 1, 1),
        ("<<: 1\n", 1, 1),
        ("a: *x\n", 1, 1),
        ("a: &x [*x]\n", 1, 1),
    ];
    for (text, document, line) in rows {
        let error = documents(text).expect_err(text);
        assert_eq!((error.document, error.line), (document, line), "{text:?}: {error}");
    }
}

#[test]
fn what_aliases_multiply_is_bounded() {
    let mut text = "a: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..20 {
        let before = level - 1;
        let items = [&*format!("*a{before}"); 6].join(",");
        text = format!("{text}b{level}: &a{level} [{items}]\n");
    }
    let error = documents(&text).unwrap_err();
    assert!(error.message.starts_with("more than 200000 values"), "{error}");
    let levels = (1..200).map(|level| format!("b{level}: &a{level} [*a{}]\n", level - 1));
    let deep: Vec<String> = ["a: &a0 [x]\n".to_owned()].into_iter().chain(levels).collect();
    let deep = deep.concat();
    assert!(documents(&deep).is_err());
    assert!(documents(&("[".repeat(100_000))).is_err());
    assert!(documents(&("{a: ".repeat(100_000))).is_err());
    assert!(documents(&("- ".repeat(100_000))).is_err());
}

#[test]
fn a_hundred_thousand_empty_documents_are_nothing() {
    assert_eq!(documents(&"---\n".repeat(100_000)), Ok(Vec::new()));
}

#[test]
fn large_integers_are_kept() {
    let found = documents("a: 9007199254740993\nb: -9223372036854775808\nc: 18446744073709551615\n").unwrap();
    let expected = json!({"a": 9_007_199_254_740_993_i64, "b": i64::MIN, "c": u64::MAX});
    assert_eq!(found[0].value, expected);
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~\\n\\t]{0,12}",
        "\\PC{0,6}",
        any::<String>(),
        "(yes|no|on|off|y|n|null|~|true|0x1f|0755|1_000|1e3|2001-01-01|12:30:45|<<|=|-|---|[.]inf|a: b|a #b|[?] a|! a|&a|[*]a)",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        text.clone().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((text.clone(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back_as_the_same(value in value()) {
        let text = write(&value);
        let found = documents(&text).map(|documents| documents.into_iter().next().map(|first| first.value));
        // A float without a fraction is an integer after that.
        let as_read: Value = documents(&value.to_string()).unwrap().into_iter().next().map_or(Value::Null, |one| one.value);
        prop_assert_eq!(found.map(|found| found.unwrap_or(Value::Null)), Ok(as_read), "{}", text);
    }

    #[test]
    fn no_text_panics(text in "([ \\t]{0,3}([a-c&*!|>?%@`\"'{}\\[\\],#:.-]|---|: |- |<<: |\\PC)){0,12}(\n.{0,8}){0,4}") {
        let _ = documents(&text);
    }
}
