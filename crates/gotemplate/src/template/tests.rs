//! What real Go printed for expressions, and rules that no row of the tables shows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::sprig::LIBRARY;

const TABLES: [(&str, &str); 2] = [
    ("sprig_table.tsv", include_str!("../../tests/data/sprig_table.tsv")),
    (
        "more_sprig_table.tsv",
        include_str!("../../tests/data/more_sprig_table.tsv"),
    ),
];

fn data() -> Data {
    Data::new("the template's data")
        .with("ClusterName", "2abc")
        .with("ClusterPath", "root:org:team")
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000)
}

fn rendered(text: &str) -> Result<Vec<u8>, TemplateError> {
    Template::parse("t", text, &LIBRARY)?.render_bytes(&data(), now())
}

/// A row has an expression, or a whole template as text in quotes.
fn template_of(row: &str) -> String {
    match row.strip_prefix("template:") {
        Some(quoted) => String::from_utf8(literal::text(&format!("\"{quoted}\"")).unwrap()).unwrap(),
        None => format!("{{{{ {row} }}}}"),
    }
}

/// What Go says is wrong, without where.
fn cause(message: &str) -> &str {
    let message = message.trim_start_matches("!template: t:1:");
    message.split_once(": ").map_or(message, |(_, cause)| cause).trim()
}

#[test]
fn expressions_give_what_go_gives() {
    let mut failed = Vec::new();
    for (table, rows) in TABLES {
        for (number, row) in rows.lines().enumerate().filter(|(_, row)| !row.starts_with('#')) {
            let [_, expression, expected] = row.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{table}, line {}: has not three columns", number + 1);
            };
            let found = rendered(&template_of(expression));
            let matches = match (&found, expected.starts_with('!')) {
                (Ok(found), false) => STANDARD.decode(expected).is_ok_and(|expected| expected == *found),
                (Err(_), true) => true,
                _ => false,
            };
            if !matches {
                let found = found.map(|found| String::from_utf8_lossy(&found).into_owned());
                let expected = match expected.strip_prefix('!') {
                    Some(_) => cause(expected).to_owned(),
                    None => format!(
                        "{:?}",
                        String::from_utf8_lossy(&STANDARD.decode(expected).unwrap_or_default())
                    ),
                };
                let found = found.map_err(|error| error.to_string());
                failed.push(format!(
                    "{table}, line {}: {expression}\n  {found:?}\n  expected {expected}",
                    number + 1
                ));
            }
        }
    }
    assert!(failed.is_empty(), "{} rows:\n{}", failed.len(), failed.join("\n"));
}
