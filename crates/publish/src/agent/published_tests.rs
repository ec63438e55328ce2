//! What becomes of PublishedResources.

use kube_lite::ResourceType;
use serde_json::{Value, json};

use super::*;

fn object(uid: &str, spec: &Value) -> Vec<u8> {
    let mut spec = spec.clone();
    spec["resource"] = json!({"apiGroup": "demo.example.org", "kind": "Shop"});
    json!({"metadata": {"name": "shops", "uid": uid}, "spec": spec})
        .to_string()
        .into_bytes()
}

fn served(schema: &str) -> Served {
    let shops = ResourceType::new(["demo.example.org", "v1", "shops", "Shop"], true);
    Served {
        schema: schema.into(),
        remote: shops.clone(),
        local: shops,
        other_versions: Rc::default(),
        has_status: [true, true],
    }
}

#[test]
fn an_edit_ends_one_route_and_begins_another() {
    let mut published = Published::default();
    let publish = Change::Publish("shops".into());
    assert_eq!(published.is_there(&object("1", &json!({}))).ok(), Some(publish));
    let first = published.get("shops").unwrap();
    let becomes = |is_news, ends, begins| {
        Some(Outcome {
            is_news,
            ends,
            begins,
            leaves: ends.is_some() && begins.is_none(),
            wrong: None,
        })
    };
    let is_served =
        |published: &mut Published, it: &PublishedResource| published.is_served("shops", it, served("a"), true);
    assert_eq!(is_served(&mut published, &first), becomes(true, None, Some(0)));
    // The same once more, as after a restart of a watch.
    assert_eq!(is_served(&mut published, &first), becomes(false, None, None));
    let edited = object("1", &json!({"naming": {"name": "x"}}));
    assert!(matches!(published.is_there(&edited), Ok(Change::Publish(_))));
    // The answer is about what it was before.
    assert_eq!(is_served(&mut published, &first), None);
    let second = published.get("shops").unwrap();
    assert_eq!(is_served(&mut published, &second), becomes(false, Some(0), Some(1)));
    assert_eq!(published.routes().map(|(number, _)| number).collect::<Vec<_>>(), [1]);
    let off = object("1", &json!({"synchronization": {"enabled": false}}));
    assert!(matches!(published.is_there(&off), Ok(Change::Publish(_))));
    let third = published.get("shops").unwrap();
    assert_eq!(is_served(&mut published, &third), becomes(false, Some(1), None));
}

fn name_of(published: &Published) -> Option<String> {
    published.get("shops").unwrap().schema_name.clone()
}

// Found by an audit: the export was to name a schema that nobody had made.
#[test]
fn a_schema_that_another_agent_makes_has_the_name_that_the_status_says() {
    let mut published = Published::default();
    let with = |schema: &str| {
        let mut object: Value = serde_json::from_slice(&object("1", &json!({}))).unwrap();
        object["status"] = json!({"resourceSchemaName": schema});
        object.to_string().into_bytes()
    };
    assert!(published.is_there(&with("theirs")).is_ok());
    let first = published.get("shops").unwrap();
    // They make another one meanwhile.
    assert_eq!(published.is_there(&with("newer")).ok(), Some(Change::Nothing));
    published.is_served("shops", &first, served("planned"), false).unwrap();
    assert_eq!(name_of(&published).as_deref(), Some("newer"));
    assert_eq!(published.is_there(&with("newer")).ok(), Some(Change::Nothing));
    let publish = Change::Publish("shops".into());
    assert_eq!(published.is_there(&with("newest")).ok(), Some(publish));
    published.is_served("shops", &first, served("planned"), true).unwrap();
    assert_eq!(name_of(&published).as_deref(), Some("planned"));
}

// Found by an audit: the rules of before an edit went on until a restart.
#[test]
fn an_edit_to_something_wrong_ends_the_rules_of_before_and_not_the_ends_of_objects() {
    let wrong = [
        json!({"mutation": {"spec": [{"regex": {"path": "a", "pattern": "(", "replacement": ""}}]}}),
        json!({"mutation": {"status": [{"cel": {"path": "a", "expression": "value +"}}]}}),
        json!({"naming": {"name": "{{ .Object"}}),
    ];
    for spec in wrong {
        let mut published = Published::default();
        assert!(published.is_there(&object("1", &json!({}))).is_ok());
        let first = published.get("shops").unwrap();
        published.is_served("shops", &first, served("a"), true).unwrap();
        assert!(published.is_there(&object("1", &spec)).is_ok());
        let edited = published.get("shops").unwrap();
        assert!(edited.schema_name.is_none());
        let with_status = Rc::new(PublishedResource {
            schema_name: Some("a".to_owned()),
            ..(*edited).clone()
        });
        published.all.get_mut("shops").unwrap().resource = with_status;
        let found = published.is_served("shops", &edited, served("b"), true).unwrap();
        assert!(found.wrong.is_some(), "{spec}");
        assert_eq!((found.ends, found.begins), (Some(0), Some(1)), "{spec}");
        let route = published.route(1).unwrap();
        // The schema of what is wrong is not made.
        assert!(route.is_broken && *route.served.schema == *"a", "{spec}");
        let object = || json!({"spec": {}});
        assert!(
            route
                .rules
                .spec(object(), &object(), std::time::SystemTime::UNIX_EPOCH)
                .is_err()
        );
        // Tried again, and corrected.
        let again = published.breaks("shops", &edited, None, "no");
        assert_eq!((again.ends, again.begins), (None, None), "{spec}");
        assert!(published.is_there(&object_of(&json!({}))).is_ok());
        let right = published.get("shops").unwrap();
        let found = published.is_served("shops", &right, served("a"), true).unwrap();
        assert_eq!(
            (found.ends, found.begins, found.wrong),
            (Some(1), Some(2), None),
            "{spec}"
        );
    }
}

fn object_of(spec: &Value) -> Vec<u8> {
    object("1", spec)
}

#[test]
fn what_cannot_be_published_for_now_leaves_the_rules_that_were_not_edited() {
    let mut published = Published::default();
    assert!(published.is_there(&object("1", &json!({}))).is_ok());
    let first = published.get("shops").unwrap();
    published.is_served("shops", &first, served("a"), true).unwrap();
    let found = published.breaks("shops", &first, None, "its CRD is gone");
    assert_eq!((found.ends, found.begins), (None, None));
    assert!(!published.route(0).unwrap().is_broken);
}

#[test]
fn one_that_cannot_be_understood_counts_among_those_that_match() {
    let mut published = Published::default();
    let misfit = object("1", &json!({"projection": {"scope": "Any"}}));
    assert!(published.is_there(&misfit).is_err());
    assert_eq!(published.len(), 1);
    assert!(published.is_there(&object("1", &json!({}))).is_ok());
    assert_eq!(published.len(), 1);
    assert!(published.is_there(&misfit).is_err());
    published.begin();
    assert_eq!(published.is_complete(), [Change::Left("shops".into(), None)]);
    assert_eq!(published.len(), 0);
}

#[test]
fn one_that_is_gone_leaves_with_its_route_and_one_that_is_wrong_ends_what_is_deleted() {
    let mut published = Published::default();
    let begin = |published: &mut Published| {
        assert!(published.is_there(&object("1", &json!({}))).is_ok());
        let resource = published.get("shops").unwrap();
        published
            .is_served("shops", &resource, served("a"), true)
            .unwrap()
            .begins
    };
    let route = begin(&mut published);
    assert_eq!(
        published.is_gone(&object("1", &json!({}))),
        Change::Left("shops".into(), route)
    );
    let route = begin(&mut published);
    let misfit = published
        .is_there(&object("1", &json!({"projection": {"scope": "Any"}})))
        .err()
        .unwrap();
    assert!(misfit.words.contains("spec.projection.scope"), "{}", misfit.words);
    let Outcome { ends, begins, .. } = misfit.outcome;
    assert_eq!(ends, route);
    assert!(published.route(begins.unwrap()).unwrap().is_broken);
    // Whatever becomes of its type meanwhile.
    let resource = published.get("shops").unwrap();
    let found = published.is_served("shops", &resource, served("b"), true).unwrap();
    assert!(found.wrong.is_some() && found.begins.is_none());
    // Nor does it begin again before it is as it was.
    let route = begin(&mut published);
    assert!(!published.route(route.unwrap()).unwrap().is_broken);
    // Of another one by that name, nothing is known.
    let misfit = published.is_there(&object("2", &json!({"projection": {"scope": "Any"}})));
    assert_eq!(misfit.err().unwrap().outcome.ends, route);
    assert!(published.get("shops").is_none());
    let route = begin(&mut published);
    published.begin();
    assert_eq!(published.is_complete(), [Change::Left("shops".into(), route)]);
    assert!(published.are_read());
}

// At the start, the names of both schemas are known before one of the two is published.
#[test]
fn the_export_gets_nothing_of_one_that_may_be_refused() {
    let mut published = Published::default();
    let of = |name: &str, created: &str| {
        let spec = json!({"resource": {"apiGroup": "demo.example.org", "kind": "Shop"}});
        let metadata = json!({"name": name, "uid": name, "creationTimestamp": created});
        let status = json!({"resourceSchemaName": format!("{name}.shops.demo.example.org")});
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        object.to_string().into_bytes()
    };
    for (name, created) in [("older", "2026-01-01T00:00:00Z"), ("younger", "2026-01-01T00:00:01Z")] {
        assert!(published.is_there(&of(name, created)).is_ok());
    }
    let free = |published: &Published| {
        let free = published.free();
        free.iter().map(|it| it.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(free(&published), ["older"]);
    let older = published.get("older").unwrap();
    published.is_served("older", &older, served("a"), true).unwrap();
    assert_eq!(free(&published), ["older"]);
    published.is_gone(&of("older", ""));
    assert_eq!(free(&published), ["younger"]);
}
