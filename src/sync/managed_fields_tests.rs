//! What is drift and what is not, and whose fields a copy has.

use serde_json::json;

use super::*;

pub(in crate::sync) fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
    json!({"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
}

pub(in crate::sync) fn ours() -> Value {
    entry("edge-syncer", "Apply", &json!({"f:data": {"f:a": {}}}))
}

/// Those of an object with these metadata.
fn marks(metadata: &str, direction: Direction, revert_from: RevertFrom) -> Result<u64, Error> {
    let object = Object::parse(format!(r#"{{"metadata":{metadata}}}"#).into())?;
    super::marks(&object, direction, revert_from)
}

#[test]
fn drift_is_a_change_of_the_fields_that_are_ours_and_nothing_else() {
    let patterns = ["kubectl".to_owned(), "kubectl-*".to_owned()];
    let marks_of = |object: &Value| {
        let metadata = object["metadata"].to_string();
        marks(&metadata, Direction::Down, Some(&patterns)).unwrap()
    };
    let copy = |entries: &[Value]| json!({"metadata": {"name": "a", "managedFields": entries}, "data": {"x": "y"}});
    let base = marks_of(&copy(&[ours()]));
    let controller = entry("hpa", "Update", &json!({"f:spec": {"f:replicas": {}}}));
    let mut later = ours();
    later["time"] = json!("2027-01-01T00:00:00Z");
    let mut status = entry("kubectl", "Update", &json!({"f:status": {}}));
    status["subresource"] = json!("status");
    for same in [vec![ours(), controller], vec![ours(), status]] {
        assert_eq!(marks_of(&copy(&same)), base, "{same:?}");
    }
    let mut deleted = copy(&[ours()]);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let taken = entry("edge-syncer", "Apply", &json!({"f:data": {}}));
    let people = entry("kubectl-edit", "Update", &json!({"f:data": {"f:b": {}}}));
    // Other values of the same fields, applied under our own name by a syncer that is no longer the leader.
    for other in [
        deleted,
        copy(&[taken]),
        copy(&[]),
        copy(&[ours(), people]),
        copy(&[later]),
    ] {
        assert_ne!(marks_of(&other), base, "{other}");
    }
}

/// Somebody at the edge applies what we have applied, under a name whose fields are reverted. (Of other values, ours lose the
/// field.)
#[test]
fn an_equal_apply_is_no_drift() {
    let patterns = ["kubectl".to_owned()];
    let marks_of = |entries: &[Value]| {
        let metadata = json!({"name": "a", "managedFields": entries}).to_string();
        marks(&metadata, Direction::Down, Some(&patterns)).unwrap()
    };
    let applied = |manager: &str, spec: Value| entry(manager, "Apply", &json!({"f:spec": spec}));
    let item = |more: &str| json!({".": {}, "f:name": {}, more: {}});
    let containers = |more: &str| json!({"f:containers": {"k:{\"name\":\"a\"}": item(more)}});
    let whole = applied("edge-syncer", containers("f:image"));
    let base = marks_of(std::slice::from_ref(&whole));
    let mut later = applied("kubectl", containers("f:image"));
    assert_eq!(marks_of(&[whole.clone(), later.clone()]), base);
    later["time"] = json!("2027-01-01T00:00:00Z");
    assert_eq!(marks_of(&[whole.clone(), later]), base, "applied once more");
    let part = applied(
        "kubectl",
        json!({"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}),
    );
    assert_eq!(marks_of(&[part, whole.clone()]), base);
    let more = applied("kubectl", containers("f:tty"));
    assert_ne!(marks_of(&[whole.clone(), more]), base, "and a field more");
    let robbed = applied(
        "edge-syncer",
        json!({"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}),
    );
    let theirs = applied("kubectl", containers("f:image"));
    assert_ne!(marks_of(&[robbed, theirs]), base, "of other values");
}

#[test]
fn where_nothing_is_reverted_what_others_add_is_no_drift() {
    let copy = |entries: &[Value]| json!({"name": "a", "resourceVersion": "7", "managedFields": entries}).to_string();
    let marks_of = |metadata: &str| marks(metadata, Direction::Down, None).unwrap();
    let base = marks_of(&copy(&[ours()]));
    for manager in ["kubectl-edit", "syncer", "before-first-apply"] {
        let theirs = entry(manager, "Update", &json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
        let metadata = copy(&[ours(), theirs]);
        assert_eq!(marks_of(&metadata), base, "{manager}");
    }
    let robbed = entry("edge-syncer", "Apply", &json!({"f:data": {}}));
    assert_ne!(marks_of(&copy(&[robbed])), base);
}

/// The managed fields of a spec in which this restarts pods, and of nothing else.
fn restart(key: &str) -> Value {
    match key {
        "f:restartAt" => json!({key: {}}),
        _ => json!({"f:template": {"f:metadata": {"f:annotations": {".": {}, key: {}}}}}),
    }
}

fn restarted(manager: &str, key: &str, more: &Value) -> Value {
    let mut fields = more.clone();
    fields["f:spec"] = restart(key);
    entry(manager, "Update", &fields)
}

// Found from outside: `kubectl rollout restart` at the edge was undone within a second.
#[test]
fn a_restart_of_pods_is_no_drift() {
    let patterns = ["kubectl-*".to_owned()];
    let marks_of = |entries: &[Value]| {
        let metadata = json!({"name": "a", "managedFields": entries}).to_string();
        marks(&metadata, Direction::Down, Some(&patterns)).unwrap()
    };
    let applied = |spec: Value| entry("edge-syncer", "Apply", &json!({"f:spec": spec}));
    let base = marks_of(&[ours()]);
    for key in RESTART_KEYS {
        assert_eq!(marks_of(&[ours(), restarted("kubectl-rollout", key, &json!({}))]), base);
        let more = json!({"f:data": {"f:b": {}}});
        assert_ne!(marks_of(&[ours(), restarted("kubectl-edit", key, &more)]), base);
        // Also where the hub has asked for one before.
        let (mut before, after) = (restart(key), json!({"f:replicas": {}}));
        before["f:replicas"] = json!({});
        assert_eq!(
            marks_of(&[applied(after)]),
            marks_of(&[applied(before.clone())]),
            "{key}"
        );
        before["f:paused"] = json!({});
        assert_ne!(
            marks_of(&[applied(before)]),
            marks_of(&[applied(restart(key))]),
            "{key}"
        );
    }
}

#[test]
fn a_restart_that_stays_is_not_named_for_what_is_corrected() {
    let edited = entry("kubectl-edit", "Update", &json!({"f:data": {"f:b": {}}}));
    let late = |mut entry: Value| {
        entry["time"] = json!("2026-01-02T00:00:00Z");
        entry
    };
    let named = |entries: &[Value]| {
        let object = json!({"metadata": {"name": "a", "managedFields": entries}}).to_string();
        last_writer(object.as_bytes())
    };
    for key in RESTART_KEYS {
        let restart = late(restarted("kubectl-rollout", key, &json!({})));
        let both = late(restarted("kubectl-rollout", key, &json!({"f:data": {"f:c": {}}})));
        let by = |manager: &str, fields: &str| Some((manager.to_owned(), fields.to_owned()));
        assert_eq!(
            named(&[ours(), edited.clone(), restart.clone()]),
            by("kubectl-edit", "data.b")
        );
        assert_eq!(named(&[ours(), edited.clone(), both]), by("kubectl-rollout", "data.c"));
        assert_eq!(named(&[ours(), restart]), None);
    }
}

// Found from outside: as the docs of Kubernetes give it, `[{}]` empties the list. The server then names all fields for
// `before-first-apply`, those of controllers too.
#[test]
fn what_the_server_makes_up_for_a_copy_of_ours_is_not_the_go_syncers() {
    let made_up = |annotation: &str| {
        let fields = json!({"f:metadata": {"f:annotations": {annotation: {}}}, "f:data": {"f:b": {}}});
        entry("before-first-apply", "Update", &fields)
    };
    for (annotation, is_taken) in [
        ("f:edge.kubestellar.io/downsynced", true),
        ("f:edge.kubestellar.io/owner", false),
    ] {
        let made_up = made_up(annotation).to_string();
        let owner: Owner = serde_json::from_str(&made_up).unwrap();
        for direction in [Direction::Down, Direction::Up] {
            assert_eq!(owner.is_taken(direction, Some(&[])), is_taken, "{annotation}");
        }
    }
}

#[test]
fn a_field_is_shared_with_whoever_else_has_it_unless_that_is_a_controller() {
    assert_eq!(OUR_MARK[2], format!("f:{}", crate::api::OWNER));
    let fields = json!({"f:data": {"f:a": {}}});
    let shared = |other: Value| {
        let object = json!([ours(), other]).to_string();
        let owners: Vec<Owner<'_>> = serde_json::from_str(&object).unwrap();
        Managers::of(&owners).shared
    };
    for (manager, operation, expected) in [
        ("helm", "Update", true),
        ("argocd", "Apply", true),
        ("before-first-apply", "Update", true),
        ("kube-controller-manager", "Update", false),
        ("edge-syncer", "Update", false),
    ] {
        assert_eq!(shared(entry(manager, operation, &fields)), expected, "{manager}");
        assert!(!shared(entry(
            manager,
            operation,
            &json!({"f:data": {".": {}, "f:b": {}}})
        )));
    }
    let mut scaled = entry("kubectl", "Update", &fields);
    scaled["subresource"] = json!("scale");
    assert!(!shared(scaled));
}

// Found by seed 282: an annotation that a create had written stayed when the origin dropped it.
#[test]
fn what_we_have_made_is_more_than_what_we_only_ever_patch() {
    let annotation = |key: &str| json!({"f:metadata": {"f:annotations": {key: {}}}});
    for (manager, operation, fields, expected) in [
        ("edge-syncer", "Update", json!({"f:data": {"f:a": {}}}), true),
        ("edge-syncer", "Update", annotation("f:note"), true),
        (
            "edge-syncer",
            "Update",
            annotation("f:edge.kubestellar.io/pull-secrets"),
            false,
        ),
        (
            "edge-syncer",
            "Update",
            json!({"f:imagePullSecrets": {}, "f:status": {}}),
            false,
        ),
        ("edge-syncer", "Apply", json!({"f:data": {"f:a": {}}}), false),
        ("helm", "Update", json!({"f:data": {"f:a": {}}}), false),
    ] {
        let entries = json!([entry(manager, operation, &fields)]).to_string();
        let owners: Vec<Owner<'_>> = serde_json::from_str(&entries).unwrap();
        assert_eq!(Managers::of(&owners).made, expected, "{manager} {operation} {fields}");
    }
}

#[test]
fn names_who_changed_a_copy_last_and_what() {
    let fields = json!({"f:spec": {".": {}, "f:replicas": {}, "f:template": {"f:x": {}}}, "f:status": {"f:phase": {}}});
    for (subresource, expected) in [
        ("", ("hpa", "spec.replicas,spec.template.x")),
        ("scale", ("hpa", "spec.replicas,spec.template.x")),
        ("status", ("old", "data.a")),
    ] {
        let mut later = entry("hpa", "Update", &fields);
        (later["time"], later["subresource"]) = (json!("2026-01-02T00:00:00Z"), json!(subresource));
        let old = entry("old", "Update", &json!({"f:data": {"f:a": {}}}));
        let object = json!({"metadata": {"managedFields": [old, later, ours()]}}).to_string();
        let (manager, fields) = last_writer(object.as_bytes()).unwrap();
        assert_eq!((&*manager, &*fields), expected);
    }
}
