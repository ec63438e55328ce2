//! What real Go found and wrote: `tests/data/rules/paths.tsv`.

use serde_json::{Value, json};

use super::*;
use crate::json as go;

const TABLE: &str = include_str!("../../tests/data/rules/paths.tsv");

fn text(cell: &str) -> String {
    serde_json::from_str(cell).unwrap()
}

fn found(document: &Value, path: &str) -> (String, String) {
    match read(document, path) {
        Ok(Some(found)) => {
            let (raw, string) = (found.json().unwrap(), found.text().unwrap());
            let is_same = raw == string || raw == go::text(&Value::from(string.as_str()));
            (raw, if is_same { "=".to_owned() } else { string })
        }
        Ok(None) => ("-".to_owned(), "-".to_owned()),
        Err(error) => (error.to_string(), String::new()),
    }
}

fn written(document: &Value, result: Result<Value, PathError>) -> String {
    match result {
        Ok(after) if after == *document => "=".to_owned(),
        Ok(after) => go::text(&after),
        Err(error) => format!("!{error}"),
    }
}

/// What a row of the table should be, and what it is.
fn row(document: &Value, cells: &[&str]) -> Option<(String, String)> {
    match cells {
        ["get", path, raw, string] => {
            let raw = if *raw == "-" { "-".to_owned() } else { text(raw) };
            let string = if matches!(*string, "-" | "=") {
                (*string).to_owned()
            } else {
                text(string)
            };
            let (found_raw, found_string) = found(document, &text(path));
            Some((format!("{raw} {string}"), format!("{found_raw} {found_string}")))
        }
        [kind, path, value, expected] => {
            let mut after = document.clone();
            let path = text(path);
            let result = match *kind {
                "set" => set(&mut after, &path, serde_json::from_str(value).unwrap()),
                _ => delete(&mut after, &path),
            };
            // Go has cut the text at a wrong place: it is no JSON any more.
            if expected.starts_with('?') {
                return None;
            }
            let expected = match serde_json::from_str::<Value>(expected) {
                Ok(expected) => go::text(&expected),
                Err(_) => (*expected).to_owned(),
            };
            Some((expected, written(document, result.map(|()| after))))
        }
        _ => panic!("{cells:?}"),
    }
}

/// Where something else is right: values have no spaces and line breaks, a text that is no JSON is none, and an object that
/// has the key `#` is no list.
const OTHERWISE: [(&str, &str); 3] = [
    ("get", "groups.@pretty"),
    ("get", "spec.image|@fromstr"),
    ("delete", "-1"),
];

#[test]
fn all_paths_do_what_go_did() {
    let mut document = Value::Null;
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in TABLE.lines() {
        let cells: Vec<_> = line.split('\t').collect();
        if let ["document", json] = cells[..] {
            document = serde_json::from_str(json).unwrap();
            continue;
        }
        count += 1;
        let is_known = OTHERWISE.contains(&(cells[0], &text(cells[1])));
        if let Some((expected, found)) = row(&document, &cells)
            && expected != found
            && !is_known
        {
            wrong.push(format!(
                "{} {}\n  Go   {expected}\n  ours {found}\n  in   {document}",
                cells[0], cells[1]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} rows:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count > 1500, "{count} rows");
}

#[test]
fn a_list_inside_a_list_is_written_at_each_place() {
    let mut document = json!({"groups": [{"members": [{"name": "a"}, {"name": "b"}]}, {"members": [{"name": "c"}]}]});
    set(&mut document, "groups.#.members.#.name", json!("x")).unwrap();
    let expected = json!({"groups": [{"members": [{"name": "x"}, {"name": "x"}]}, {"members": [{"name": "x"}]}]});
    assert_eq!(document, expected);
}

#[test]
fn texts_of_a_list_are_those_of_its_elements() {
    let document = json!({"list": ["a", 7, null, true, {"b": 1}], "one": "x", "empty": [], "nil": null, "n": 7});
    let check = |path: &str| read(&document, path).unwrap().map(|found| found.texts().unwrap());
    assert_eq!(check("list").unwrap(), ["a", "7", "", "true", "{\"b\":1}"]);
    assert_eq!(check("one").unwrap(), ["x"]);
    assert_eq!(check("n").unwrap(), ["7"]);
    assert!(check("empty").unwrap().is_empty());
    assert!(check("nil").unwrap().is_empty());
    assert_eq!(check("missing"), None);
}

#[test]
fn a_path_that_makes_much_of_little_is_cut_off() {
    let list: Vec<_> = (0..1000).map(|index| json!({"a": vec![index; 20]})).collect();
    let document = json!({"list": list, "deep": {"a": {"a": {"a": {"a": 1}}}}});
    for path in [
        "[@this,@this]".to_owned() + &"|[@this,@this]".repeat(60),
        "@this".to_owned() + &"|@this".repeat(5000),
        "@dig:".repeat(50) + "list",
        "list.#(a.#(>1))#.".to_owned() + &"@dig:".repeat(8) + "a",
        "{".repeat(5000),
        "[".repeat(5000) + &"]".repeat(5000),
        "#(".repeat(5000),
        "*".repeat(5000),
        "@flatten:{\"deep\":true}|".repeat(200) + "list",
    ] {
        let found = read(&document, &path).and_then(|found| found.map(|found| found.value()).transpose());
        let short = path.get(..60).unwrap_or(&path);
        if let Ok(Some(value)) = found {
            assert!(value.to_string().len() < 8 << 20, "{short}");
        }
        let _ = set(&mut document.clone(), &path, json!("x"));
    }
}

#[test]
fn a_write_far_behind_the_end_is_refused() {
    for (path, error) in [
        (
            "list.20000",
            "element 20000 is more than 10000 behind the end of the list",
        ),
        (
            "new.a.20000",
            "element 20000 is more than 10000 behind the end of the list",
        ),
        (
            "list.99999999999999999999",
            "element 99999999999999999999 is more than 10000 behind the end of the list",
        ),
    ] {
        let mut document = json!({"list": [1]});
        let result = set(&mut document, path, json!("x"));
        assert_eq!(result.unwrap_err().to_string(), error);
        assert_eq!(document, json!({"list": [1]}));
    }
    let mut document = json!({"list": vec![0; 5000]});
    let large = json!("x".repeat(100_000));
    assert_eq!(set(&mut document, "list.#(==0)#", large), Err(PathError::TooMuch));
}
