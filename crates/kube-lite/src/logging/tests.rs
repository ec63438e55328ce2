use super::*;

fn body(format: LogFormat, message: &str, fields: &[(&str, &str)]) -> String {
    let mut body = Body::begin(format, LogReason::ObjectRejected, message);
    for (key, value) in fields {
        body.field(key, value);
    }
    body.text
}

#[test]
fn values_are_in_quotes_where_they_need_it_and_sentences_always() {
    for (key, value, expected) in [
        ("object", "ConfigMap/shop/prices", "object=ConfigMap/shop/prices"),
        ("object", "ConfigMap//grün:x.y[0]", "object=ConfigMap//grün:x.y[0]"),
        ("error", "no", "error=\"no\""),
        ("advice", "wait", "advice=\"wait\""),
        ("because", "two words", "because=\"two words\""),
        ("flags", "a=b", "flags=\"a=b\""),
        ("name", "a\"b\\c", r#"name="a\"b\\c""#),
        ("name", "a\nb\r\t\u{1b}[1m\u{85}", r#"name="a\nb\r\t\u001b[1m\u0085""#),
    ] {
        let found = body(LogFormat::Text, "no", &[(key, value)]);
        assert_eq!(found, format!("reason=ObjectRejected msg=\"no\" {expected}"));
    }
    assert_eq!(
        body(LogFormat::Text, "no", &[("a", ""), ("b", "1")]),
        "reason=ObjectRejected msg=\"no\" b=1"
    );
}

#[test]
fn json_holds_the_same_whatever_the_values_are() {
    let ugly = "a\nb \"c\" \\ \u{1b}\u{0}\u{7f}\u{9f} é =";
    let found = body(LogFormat::Json, "no", &[("object", "x"), ("a", ""), ("error", ugly)]);
    let found: serde_json::Value = serde_json::from_str(&format!("{{{found}}}")).unwrap();
    assert_eq!(
        found,
        serde_json::json!({"reason": "ObjectRejected", "msg": "no", "object": "x", "error": ugly})
    );
}

#[test]
fn long_words_and_endless_lines_are_cut_and_still_end() {
    let long = "é".repeat(66_000);
    let text = body(LogFormat::Text, "a\nb", &[("name", &long), ("error", "no")]);
    assert!(
        text.contains("msg=\"a\\nb\" name=éé") && text.ends_with("… error=\"no\""),
        "{text:.200}"
    );
    assert!(text.chars().count() < LONGEST_WORD + 100);
    for format in [LogFormat::Text, LogFormat::Json] {
        let text = body(format, "no", &[("error", &"word\n ".repeat(10_000)), ("advice", "no")]);
        assert!(text.chars().count() <= 2 * LONGEST_LINE, "{format:?}");
        assert!(text.ends_with('"'), "{format:?}");
        if format == LogFormat::Json {
            assert!(serde_json::from_str::<serde_json::Value>(&format!("{{{text}}}")).is_ok());
        }
    }
}

/// All source files but the tests in files of their own, with their text.
fn sources() -> Vec<(String, String)> {
    fn walk(folder: &std::path::Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["src", "crates"] {
        walk(&root.join(folder), &mut found);
    }
    found
}

#[test]
fn no_line_is_without_a_reason() {
    for (path, text) in sources() {
        for level in ["error", "warn", "info", "debug", "trace", "log"] {
            assert!(!text.contains(&format!("log::{level}!")), "{path}: use log_line!");
        }
    }
}

#[test]
fn the_docs_have_each_reason_and_its_level_and_no_other() {
    let sources = sources();
    let docs = concat!(
        include_str!("../../../../docs/reference/log-reasons.md"),
        include_str!("../../../../docs/reference/log-reasons-own.md"),
        include_str!("../../../../docs/reference/log-reasons-debug.md"),
        include_str!("../../../../docs/reference/log-reasons-init.md"),
        include_str!("../../../../docs/reference/log-reasons-publish.md")
    );
    let rows = docs.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let (name, second) = (cells.next()?.strip_suffix('`')?, cells.next()?);
        name.starts_with(char::is_uppercase).then_some((name, second))
    });
    let rows: Vec<(&str, &str)> = rows.collect();
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    let known: Vec<&str> = LogReason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(names, known);
    for (name, documented) in rows {
        let is_used = sources.iter().any(|(path, text)| {
            let is_list = path.ends_with("logging/reasons.rs") || path.ends_with("logging/tests.rs");
            !is_list && (text.contains(&format!("LogReason::{name}")) || text.contains(&format!(" {name},")))
        });
        assert!(is_used, "no line has the reason {name}");
        for (_, text) in &sources {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for level in ["Error", "Warn", "Info", "Debug", "Trace"] {
                let is_logged = [
                    format!("log_line!({level}, {name},"),
                    format!("log_line!( {level}, {name},"),
                ]
                .iter()
                .any(|call| text.contains(call));
                let word = level.to_lowercase();
                assert!(
                    !is_logged || documented == word || level == "Debug",
                    "{name} is logged at {word}, and the docs say {documented}"
                );
            }
        }
    }
}

/// Text up to the parenthesis that closes the one before it, without what stands in strings.
fn call(text: &str) -> String {
    let (mut depth, mut in_string, mut before) = (1, false, ' ');
    let mut call = String::new();
    for letter in text.chars() {
        match letter {
            '"' if before != '\\' => in_string = !in_string,
            '(' | '[' | '{' if !in_string => depth += 1,
            ')' | ']' | '}' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        // What is deeper is no key of the line.
        if depth == 1 && !in_string {
            call.push(letter);
        }
        before = letter;
    }
    call
}

/// The keys that lines have, by the source.
fn keys() -> std::collections::BTreeSet<String> {
    let is_key = |text: &&str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !text.is_empty();
    let mut found = std::collections::BTreeSet::from(["target".to_owned()]);
    for (path, text) in sources() {
        if path.ends_with("src/logging.rs") || path.ends_with("logging/tests.rs") {
            continue;
        }
        for rest in text.split("log_line!(").skip(1) {
            let call = call(rest);
            let pairs = call.split(',').filter_map(|part| part.split_once(" = "));
            found.extend(pairs.map(|(key, _)| key.trim()).filter(is_key).map(str::to_owned));
        }
        // Lines whose keys depend on what they are about.
        if path.contains("/report/") && !path.ends_with("_tests.rs") {
            let (text, _) = text.split_once("#[cfg(test)]\nmod").unwrap_or((&text, ""));
            let pairs = text.split("(\"").skip(1).filter_map(|rest| rest.split_once("\", &"));
            found.extend(pairs.map(|(key, _)| key).filter(is_key).map(str::to_owned));
        }
        if path.ends_with("report/subject.rs") {
            let (_, topics) = text.split_once("fn key(self)").unwrap();
            let (topics, _) = topics.split_once("fn ").unwrap();
            found.extend(topics.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

#[test]
fn the_docs_have_each_key_and_no_other() {
    let docs = include_str!("../../../../docs/reference/log-keys.md");
    let rows = docs
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('|'));
    let documented: Vec<String> = rows
        .flat_map(|(names, _)| names.split(',').map(|name| name.replace('`', "").trim().to_owned()))
        .collect();
    let keys = keys();
    let times = |key: &String| documented.iter().filter(|name| *name == key).count();
    let missing: Vec<&String> = keys.iter().filter(|key| times(key) != 1).collect();
    assert!(missing.is_empty(), "to stand there once: {missing:?}");
    let unknown: Vec<&String> = documented.iter().filter(|name| !keys.contains(*name)).collect();
    assert!(unknown.is_empty(), "no line has {unknown:?}");
}
