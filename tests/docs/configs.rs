//! The fields of configs: the page, the CRDs and the examples.

use serde_json::Value;

use crate::bench::documents;
use crate::pages::{Names, Page, Row, files, plain, read, same, spans};

const PAGE: &str = "docs/reference/config.md";

/// Fields that the page describes as a whole, with what is in them.
const WHOLE: [&str; 3] = [
    "spec.conversions[].upstream",
    "spec.conversions[].downstream",
    "status.conditions[]",
];

/// The CRDs, each with the kind that it is for.
fn crds() -> Vec<(String, Value)> {
    let crds = files("manifests/crds", ".yaml")
        .into_iter()
        .flat_map(|path| documents(&path));
    let with_kind = |crd: Value| {
        let kind = crd["spec"]["names"]["kind"].as_str().expect("a CRD has a kind");
        (kind.to_owned(), crd)
    };
    // What an edge says of itself is no config.
    crds.map(with_kind).filter(|(kind, _)| kind != "Edge").collect()
}

/// The schema of a CRD.
fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Adds what has no fields of its own below a schema, or is described as a whole.
fn leaves(schema: &Value, path: &str, found: &mut Names) {
    let (fields, path) = match (&schema["properties"], &schema["items"]["properties"]) {
        (Value::Object(fields), _) => (fields, path.to_owned()),
        (_, Value::Object(fields)) => (fields, format!("{path}[]")),
        _ => {
            found.insert(path.to_owned());
            return;
        }
    };
    if WHOLE.contains(&path.as_str()) {
        found.insert(path);
        return;
    }
    for (name, field) in fields {
        leaves(field, &format!("{path}.{name}"), found);
    }
}

/// The fields of a part of a config, such as `spec`, by its CRD.
fn fields(crd: &Value, part: &str) -> Names {
    let mut found = Names::new();
    leaves(&schema(crd)["properties"][part], part, &mut found);
    found
}

/// The fields below a heading of the page.
fn fields_of_page(rows: &[Row], heading: &str) -> Names {
    let rows = rows.iter().filter(|row| row.heading == heading);
    rows.map(|row| plain(&row.cells[0])).collect()
}

#[test]
fn the_fields_of_configs_are_those_of_the_crds() {
    let rows = Page::open(PAGE).rows("field");
    let crds = crds();
    assert_eq!(crds.len(), 2);
    for (kind, crd) in &crds {
        same(kind, &fields_of_page(&rows, kind), &fields(crd, "spec"));
        let status = fields_of_page(&rows, "Status, of both kinds");
        same(&format!("the status of {kind}"), &status, &fields(crd, "status"));
    }
    let headings: Names = rows.iter().map(|row| row.heading.clone()).collect();
    assert_eq!(headings.len(), 3, "{headings:?}");
}

#[test]
fn both_names_of_a_conversion_have_the_fields_that_the_page_names() {
    let page = Page::open(PAGE);
    let without_meaning = page.paragraph("A conversion may also have");
    let (_, crd) = crds()
        .into_iter()
        .find(|(kind, _)| kind == "EdgeSyncConfig")
        .expect("it has a CRD");
    let conversion = &schema(&crd)["properties"]["spec"]["properties"]["conversions"]["items"]["properties"];
    for side in ["upstream", "downstream"] {
        let rows = page.rows("field");
        let row = rows
            .iter()
            .find(|row| plain(&row.cells[0]).ends_with(&format!("].{side}")));
        let row = row.expect("the page has it");
        let named = spans(&row.cells[1]).into_iter().chain(spans(&without_meaning));
        let named = named.filter(|name| !name.contains('*')).map(str::to_owned).collect();
        let fields = conversion[side]["properties"].as_object().expect("it has fields");
        same(side, &named, &fields.keys().cloned().collect());
    }
}

#[test]
fn the_kinds_have_the_names_of_the_crds() {
    let rows = Page::open(PAGE).rows("kind");
    let of_row = |row: &Row| {
        row.cells[..3]
            .iter()
            .map(|cell| plain(cell))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let of_crd = |(kind, crd): &(String, Value)| {
        let names = &crd["spec"]["names"];
        assert_eq!(names["shortNames"].as_array().map(Vec::len), Some(1));
        let [plural, short] = [&names["plural"], &names["shortNames"][0]].map(|name| name.as_str().unwrap_or_default());
        format!("{kind} {plural} {short}")
    };
    let in_page = rows.iter().map(of_row).collect();
    same("kinds", &in_page, &crds().iter().map(of_crd).collect());
}

#[test]
fn the_sizes_of_lists_are_those_of_the_crds() {
    let sizes = Page::open(PAGE).paragraph("Configs of more than 2 MiB");
    for (kind, crd) in crds() {
        let spec = schema(&crd)["properties"]["spec"]["properties"].as_object();
        for (name, field) in spec.expect("a spec has fields") {
            let expected = match (name.as_str(), field["maxItems"].as_u64()) {
                ("conversions", Some(4000)) => "4,000 conversions",
                (_, Some(20_000)) => "20,000 entries in a list",
                // Its lists are within it.
                ("namespaceScope", None) => continue,
                other => panic!("{kind}: the page has no size for {other:?}"),
            };
            assert!(sizes.contains(expected), "{expected} is not in {sizes:?}");
        }
    }
}

/// Adds the fields that an object has.
fn fields_in(value: &Value, path: &str, found: &mut Names) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                fields_in(field, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for item in items {
                fields_in(item, &format!("{path}[]"), found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[test]
fn the_example_of_every_field_has_every_field() {
    let mut in_example = Names::new();
    fields_in(
        &documents("examples/every-field.yaml")[0]["spec"],
        "spec",
        &mut in_example,
    );
    let (_, crd) = crds()
        .into_iter()
        .find(|(kind, _)| kind == "SyncerConfig")
        .expect("it has a CRD");
    same("every-field.yaml", &in_example, &fields(&crd, "spec"));
}

#[test]
fn the_pages_show_the_examples_as_they_are() {
    let pages = ["docs/configure.md", PAGE].map(Page::open);
    let blocks: Vec<(String, String)> = pages
        .iter()
        .flat_map(|page| page.blocks().into_iter().map(|block| (page.path.clone(), block)))
        .filter(|(_, block)| block.language == "yaml")
        .map(|(path, block)| {
            let text = block.lines.join("\n") + "\n";
            (format!("{path}:{}", block.first_line), text)
        })
        .collect();
    let examples: Vec<(String, String)> = files("examples", ".yaml")
        .into_iter()
        .filter(|path| path.matches('/').count() == 1)
        .map(|path| (path.clone(), read(&path)))
        .collect();
    for (path, text) in &examples {
        assert!(
            blocks.iter().any(|(_, block)| block == text),
            "no page shows {path} as it is"
        );
    }
    for (place, block) in &blocks {
        let is_example = examples.iter().any(|(_, text)| text == block);
        assert!(is_example, "{place}: what it shows is no file of examples/");
    }
}
