use serde_json::json;

use super::*;

const TABLE: &str = include_str!("../../tests/data/rules/regex.tsv");

fn rules(spec: Vec<ResourceMutation>) -> Result<Rules, Vec<RuleError>> {
    let status = Vec::new();
    Rules::new(&Mutation { spec, status }, "mutation")
}

fn changed(step: ResourceMutation, object: &Value, other: &Value) -> Result<Value, String> {
    let rules = rules(vec![step]).map_err(|errors| errors[0].to_string())?;
    let changed = rules.spec(object.clone(), other, SystemTime::UNIX_EPOCH);
    changed.map_err(|error| error.to_string())
}

fn regex(path: &str, pattern: &str, replacement: &str) -> ResourceMutation {
    let (path, pattern, replacement) = (path.to_owned(), pattern.to_owned(), replacement.to_owned());
    ResourceMutation::Regex {
        path,
        pattern,
        replacement,
    }
}

fn template(path: &str, template: &str) -> ResourceMutation {
    let (path, template) = (path.to_owned(), template.to_owned());
    ResourceMutation::Template { path, template }
}

fn cel(path: &str, expression: &str) -> ResourceMutation {
    let (path, expression) = (path.to_owned(), expression.to_owned());
    ResourceMutation::Cel { path, expression }
}

fn delete(path: &str) -> ResourceMutation {
    let path = path.to_owned();
    ResourceMutation::Delete { path }
}

#[test]
fn patterns_rewrite_as_in_go() {
    let mut object = Value::Null;
    let mut wrong = Vec::new();
    for line in TABLE.lines() {
        let cells: Vec<_> = line.split('\t').collect();
        let ["regex", path, pattern, replacement, expected] = cells[..] else {
            object = serde_json::from_str(cells[1]).unwrap();
            continue;
        };
        let text = |cell: &str| serde_json::from_str::<String>(cell).unwrap();
        // Go counts no further than 1000.
        if text(pattern) == "n{1001}" {
            continue;
        }
        let found = changed(
            regex(&text(path), &text(pattern), &text(replacement)),
            &object,
            &json!({}),
        );
        let is_same = match (&found, expected) {
            (Ok(found), "=") => *found == object,
            (Ok(found), expected) => serde_json::from_str::<Value>(expected).is_ok_and(|expected| expected == *found),
            (Err(_), expected) => expected.starts_with('!'),
        };
        if !is_same {
            wrong.push(format!(
                "{path} {pattern} {replacement}\n  Go   {expected}\n  ours {found:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn groups_may_be_written_with_a_backslash() {
    let object = json!({"image": "nginx:1.25"});
    for (replacement, expected) in [
        (r"\2:\1", "1.25:nginx"),
        (r"\1x", "nginxx"),
        (r"$1", "nginx"),
        (r"$1x", ""),
        (r"a\b", r"a\b"),
        (r"\0", "nginx:1.25"),
        (r"\9", ""),
    ] {
        let found = changed(regex("image", "^([a-z]+):(.*)$", replacement), &object, &json!({}));
        assert_eq!(found, Ok(json!({"image": expected})), "{replacement}");
    }
}

#[test]
fn each_kind_of_rule_changes_an_object() {
    let object = json!({
        "metadata": {"name": "web", "labels": {"app": "a<b>&\"c\""}},
        "spec": {"n": 24, "big": 9_007_199_254_740_993_i64, "list": [1, 2, 3], "image": "ubuntu:latest"},
    });
    let other = json!({"metadata": {"name": "copy"}, "spec": {"image": "debian"}});
    for (step, pointer, expected) in [
        (
            delete("spec.n"),
            "/spec",
            json!({"big": 9_007_199_254_740_993_i64, "list": [1, 2, 3], "image": "ubuntu:latest"}),
        ),
        (delete("spec.list.1"), "/spec/list", json!([1, 3])),
        (delete("spec.list.-1"), "/spec/list", json!([1, 2])),
        (delete("spec.nothing.deeper"), "/spec/list", json!([1, 2, 3])),
        (
            template("spec.image", "{{ upper .Value.String }}"),
            "/spec/image",
            json!("UBUNTU:LATEST"),
        ),
        (
            template("spec.image", "  {{ .Value }}\n"),
            "/spec/image",
            json!("ubuntu:latest"),
        ),
        (template("spec.n", "{{ add .Value.Int 1 }}"), "/spec/n", json!("25")),
        (
            template("spec.x", "{{ .Value.Exists }}/{{ .Value.String }}/"),
            "/spec/x",
            json!("false//"),
        ),
        (
            template("spec.x", "{{ .LocalObject.metadata.labels.app }}"),
            "/spec/x",
            json!("a<b>&\"c\""),
        ),
        (
            template("spec.x", "{{ .RemoteObject.metadata.name }}"),
            "/spec/x",
            json!("copy"),
        ),
        (
            template("spec.x", "{{ .LocalObject.spec.big }}"),
            "/spec/x",
            json!("9007199254740993"),
        ),
        (
            template("spec.x", "{{ .LocalObject.metadata.name | sha3short }}"),
            "/spec/x",
            json!("6a31816d04deed5f5bcd"),
        ),
        (template("spec", ""), "/spec", json!("")),
        (cel("spec.image", "\"hei verden\""), "/spec/image", json!("hei verden")),
        (cel("spec.image", "42"), "/spec/image", json!(42)),
        (
            cel("spec.image", "value + \"foo\""),
            "/spec/image",
            json!("ubuntu:latestfoo"),
        ),
        (cel("spec.image", "other.spec.image"), "/spec/image", json!("debian")),
        (cel("spec.n", "value + 42"), "/spec/n", json!(66)),
        (cel("spec.n", "value + 42.0"), "/spec/n", json!(66)),
        (
            cel("spec.big", "value + 1"),
            "/spec/big",
            json!(9_007_199_254_740_994_i64),
        ),
        (
            cel("spec.new.list", "self.spec.list.map(x, {\"v\": x})"),
            "/spec/new/list",
            json!([{"v": 1}, {"v": 2}, {"v": 3}]),
        ),
        (cel("spec.n", "null"), "/spec/n", json!(null)),
        (cel("spec.missing", "value == null"), "/spec/missing", json!(true)),
        (regex("spec.n", "4", "5"), "/spec/n", json!("25")),
        (regex("spec", "", "new"), "/spec", json!("new")),
    ] {
        let found = changed(step, &object, &other).unwrap();
        assert_eq!(found.pointer(pointer), Some(&expected));
        let big = found.pointer("/spec/big");
        assert!(
            big.is_none_or(|big| big.as_i64() >= Some(9_007_199_254_740_993)),
            "{found}"
        );
    }
}

#[test]
fn rules_run_in_order_each_on_what_the_one_before_has_left() {
    let steps = vec![
        cel("spec.n", "1"),
        cel("spec.n", "value + 1"),
        template("spec.text", "{{ .LocalObject.spec.n }}"),
        regex("spec.text", "2", "two"),
        delete("spec.n"),
    ];
    let found = rules(steps)
        .unwrap()
        .spec(json!({"spec": {}}), &json!({}), SystemTime::UNIX_EPOCH);
    assert_eq!(found, Ok(json!({"spec": {"text": "two"}})));
}

#[test]
fn rules_for_statuses_change_nothing_else() {
    let status = vec![
        regex("status.phase", "^Run", "Jog"),
        cel("metadata.name", "\"x\""),
        cel("status.of", "other.n"),
    ];
    let spec = Vec::new();
    let rules = Rules::new(&Mutation { spec, status }, "mutation").unwrap();
    let copy = json!({"metadata": {"name": "copy"}, "status": {"phase": "Running"}});
    let found = rules.status(&copy, &json!({"n": 7}), SystemTime::UNIX_EPOCH);
    assert_eq!(found, Ok(Some(json!({"phase": "Jogning", "of": 7}))));
    assert_eq!(
        Rules::default().status(&copy, &json!({}), SystemTime::UNIX_EPOCH),
        Ok(Some(copy["status"].clone()))
    );
    assert_eq!(
        Rules::default().status(&json!({}), &json!({}), SystemTime::UNIX_EPOCH),
        Ok(None)
    );
}

#[test]
fn all_that_is_wrong_with_rules_is_said_with_its_place() {
    let steps = vec![
        regex("spec.a", "(", "x"),
        delete("spec.list.#.a"),
        cel("spec.b", "1 +"),
        delete("spec.fine"),
        template("spec.c", "{{ nope }}"),
        delete(""),
    ];
    let errors: Vec<_> = rules(steps).unwrap_err().iter().map(ToString::to_string).collect();
    let expected = [
        "mutation.spec[0].regex at \"spec.a\": regexp: cannot use \"(\": unclosed group",
        "mutation.spec[1].delete at \"spec.list.#.a\": cannot delete value from a complex path",
        "mutation.spec[2].cel at \"spec.b\": 1:4: mismatched input",
        "mutation.spec[4].template at \"spec.c\": template mutation, line 1, column 4: function \"nope\" not defined",
        "mutation.spec[5].delete at \"\": path cannot be empty",
    ];
    assert_eq!(errors, expected);
}

#[test]
fn what_goes_wrong_with_an_object_is_said_with_the_rule() {
    let object = json!({"spec": {"list": [1]}});
    for (step, expected) in [
        (
            cel("spec.x", "self.spec.missing"),
            "mutation.spec[0].cel at \"spec.x\": no such key: missing",
        ),
        (
            regex("spec.list.x", "", "y"),
            "mutation.spec[0].regex at \"spec.list.x\": cannot set array element for non-numeric key 'x'",
        ),
    ] {
        assert_eq!(changed(step, &object, &json!({})), Err(expected.to_owned()));
    }
}

// The values along such a path were more than the stack takes.
#[test]
fn a_path_of_too_many_segments_is_refused_in_each_kind_of_rule() {
    for kind in [
        delete,
        |path: &str| regex(path, "", "x"),
        |path: &str| template(path, "x"),
        |path: &str| cel(path, "1"),
    ] {
        for (segments, expected) in [
            (100, None),
            (101, Some("path has 101 segments, and may have 100")),
            (50_000, Some("path has 50000 segments, and may have 100")),
        ] {
            let path = vec!["a"; segments].join(".");
            let error = rules(vec![kind(&path)]).err().map(|errors| errors[0].to_string());
            let is_it = match (&error, expected) {
                (None, None) => true,
                (Some(error), Some(expected)) => error.ends_with(expected) && error.len() < 400,
                _ => false,
            };
            assert!(is_it, "{segments}: {error:?}");
        }
    }
    let piped = vec!["@this"; 101].join("|");
    assert!(rules(vec![regex(&piped, "", "x")]).is_err());
    // A dot may be part of a name.
    assert!(rules(vec![delete(&"a\\.".repeat(200))]).is_ok());
}

#[test]
fn rules_nest_nothing_deeper_than_an_object_can_be() {
    let deeper = |times: usize| {
        let mut all = vec![regex("spec.a", "", "x")];
        all.extend((0..times).map(|_| cel("spec", "{'a': value}")));
        rules(all).unwrap().spec(json!({}), &json!({}), SystemTime::UNIX_EPOCH)
    };
    let deepest = deeper(125).unwrap();
    assert!(serde_json::from_str::<Value>(&deepest.to_string()).is_ok());
    for times in [126, 20_000] {
        let error = deeper(times).unwrap_err();
        assert_eq!(error.why, "the object becomes nested deeper than 127 levels");
    }
}

#[test]
fn rules_leave_no_object_that_is_too_large() {
    let text = "x".repeat(1 << 20);
    let object = json!({"spec": {"text": text, "list": vec![0; 1000]}});
    for (step, expected) in [
        (
            regex("spec.copy", "^$", &"y".repeat(2 << 20)),
            "the object becomes larger than 3 MiB",
        ),
        (regex("spec.text", "x", "0123456789"), "makes a text of more than 3 MiB"),
        (
            regex("spec.list.#(==0)#", "^", &"z".repeat(100_000)),
            "the path visits or makes too much",
        ),
        (
            cel("spec.copy", "[self, self, self, self]"),
            "the result has more than 3 MiB",
        ),
    ] {
        let error = changed(step, &object, &json!({})).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
}
