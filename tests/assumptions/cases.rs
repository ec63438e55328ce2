//! What edge-syncer assumes of every API server, one case each. They run through the border of the crate, so that a real
//! server and a simulated one can be held against the same table.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::{APPLY, Bench, JSON, JSON_PATCH, number, version};
use crate::reading::{
    a_label_that_goes_is_a_delete_to_a_watch_that_selects_it, a_page_after_a_compaction_has_expired_or_is_as_it_was,
    a_streaming_list_ends_with_a_marked_bookmark, a_watch_from_a_version_to_come_waits,
    a_watch_from_too_long_ago_is_a_410_in_the_stream, a_watch_resumes_after_the_version_it_is_given,
    a_watch_tells_every_change_in_order, pages_show_the_state_at_one_version, selectors_and_metadata_narrow_a_list,
};
use crate::types::{
    a_namespace_that_is_going_refuses_what_is_new_and_takes_changes,
    a_type_comes_with_its_crd_and_goes_with_it_and_with_all_of_its_objects,
    where_status_is_a_subresource_each_patch_leaves_the_other_part_alone,
    where_status_is_no_subresource_it_is_a_field_and_its_path_a_404,
};

/// A case, to be given an empty namespace.
pub(crate) type Case = for<'a> fn(&'a Bench<'_>) -> LocalBoxFuture<'a, ()>;

/// Makes the table of functions, each under its own name.
macro_rules! table {
    ($($name:ident),+ $(,)?) => {
        /// All cases, by name.
        pub(crate) const CASES: &[(&str, Case)] = &[$((stringify!($name), |bench| $name(bench).boxed_local())),+];
    };
}

table!(
    // Answers that say no.
    a_missing_object_is_a_404_with_its_name,
    a_missing_type_is_a_404_without_a_name,
    a_missing_namespace_is_a_404_that_names_the_namespace,
    an_object_that_exists_cannot_be_created,
    what_exists_is_refused_as_such_only_if_a_new_object_would_be_taken,
    an_invalid_object_is_refused,
    an_immutable_object_stays_as_it_is_and_can_be_recreated,
    // Versions.
    every_change_has_a_greater_version_than_all_before,
    what_changes_nothing_keeps_the_version,
    an_update_with_an_old_version_is_a_conflict,
    a_merge_patch_with_an_old_version_is_a_conflict_and_one_with_another_uid_is_invalid,
    a_json_patch_whose_test_fails_is_refused,
    // Server-side apply.
    apply_creates_once_and_is_idempotent,
    apply_takes_contested_fields_only_by_force,
    apply_removes_what_its_manager_no_longer_applies,
    apply_keeps_what_others_have_added,
    a_manager_that_changes_a_value_or_adds_a_field_has_another_time_and_no_other_has,
    apply_with_an_old_version_is_a_conflict_and_with_another_uid_never_succeeds,
    what_names_the_version_of_an_object_that_is_gone_only_creates_it_when_applied,
    // Deletes.
    a_delete_with_preconditions_needs_them_to_hold,
    a_delete_that_says_what_becomes_of_what_belongs_to_it_is_one_like_others,
    a_finalizer_delays_the_delete,
    an_object_that_comes_again_has_another_uid,
    a_dry_run_changes_nothing,
    // Lists.
    pages_show_the_state_at_one_version,
    a_page_after_a_compaction_has_expired_or_is_as_it_was,
    selectors_and_metadata_narrow_a_list,
    // Watches.
    a_watch_tells_every_change_in_order,
    a_watch_resumes_after_the_version_it_is_given,
    a_watch_from_too_long_ago_is_a_410_in_the_stream,
    a_watch_from_a_version_to_come_waits,
    a_streaming_list_ends_with_a_marked_bookmark,
    a_label_that_goes_is_a_delete_to_a_watch_that_selects_it,
    // Status, namespaces and types.
    where_status_is_a_subresource_each_patch_leaves_the_other_part_alone,
    where_status_is_no_subresource_it_is_a_field_and_its_path_a_404,
    a_namespace_that_is_going_refuses_what_is_new_and_takes_changes,
    a_type_comes_with_its_crd_and_goes_with_it_and_with_all_of_its_objects,
);

async fn a_missing_object_is_a_404_with_its_name(bench: &Bench<'_>) {
    let expected = json!({"name": "nobody", "kind": "configmaps"});
    for answer in [
        bench.get(&bench.path("nobody")).await,
        bench.delete("nobody", &Value::Null).await,
        bench.merge("nobody", &json!({"data": {}})).await,
        bench.delete_if("nobody", &json!({"uid": "x"})).await,
    ] {
        assert_eq!(answer.fails(404, "NotFound")["details"], expected);
    }
}

async fn a_missing_type_is_a_404_without_a_name(bench: &Bench<'_>) {
    let namespace = &bench.namespace;
    for path in [
        format!("/api/v1/namespaces/{namespace}/nothings"),
        format!("/api/v1/namespaces/{namespace}/nothings/it"),
        "/apis/nothing.example.org/v1/things".to_owned(),
        "/apis/nothing.example.org/v1".to_owned(),
        "/apis/apps/v9".to_owned(),
    ] {
        let body = bench.get(&path).await.is(404);
        // Some are a Status, some plain text.
        let name = body["details"]["name"].as_str().unwrap_or_default();
        assert_eq!(name, "", "{path}: {body}");
    }
}

async fn a_missing_namespace_is_a_404_that_names_the_namespace(bench: &Bench<'_>) {
    let mut object = bench.object("it", "1");
    object["metadata"]["namespace"] = json!("nowhere");
    let collection = "/api/v1/namespaces/nowhere/configmaps";
    let created = bench.send(Method::POST, collection, JSON, &object).await;
    let path = format!("{collection}/it?fieldManager=test&force=true");
    let applied = bench.send(Method::PATCH, &path, APPLY, &object).await;
    for answer in [created, applied] {
        let details = answer.fails(404, "NotFound")["details"].clone();
        assert_eq!(details, json!({"name": "nowhere", "kind": "namespaces"}));
    }
    // To read there is no error.
    let list = bench.get(collection).await.is(200);
    assert_eq!(list["items"], json!([]));
}

async fn an_object_that_exists_cannot_be_created(bench: &Bench<'_>) {
    bench.create("it").await;
    let again = bench.object("it", "2");
    for query in ["", "?dryRun=All"] {
        let answer = bench.send(Method::POST, &bench.path(query), JSON, &again).await;
        let status = answer.fails(409, "AlreadyExists");
        assert_eq!(status["details"], json!({"name": "it", "kind": "configmaps"}));
    }
}

async fn an_invalid_object_is_refused(bench: &Bench<'_>) {
    let mut object = bench.object("it", "1");
    object["data"] = json!({"no slashes / here": "x"});
    let created = bench.send(Method::POST, &bench.path(""), JSON, &object).await;
    created.fails(422, "Invalid");
    bench.apply("test", true, &object).await.fails(422, "Invalid");
    bench.get(&bench.path("it")).await.is(404);
    object["data"] = json!("no object");
    let created = bench.send(Method::POST, &bench.path(""), JSON, &object).await;
    created.fails(400, "BadRequest");
}

/// So a dry run of a create says whether an object could be replaced.
async fn what_exists_is_refused_as_such_only_if_a_new_object_would_be_taken(bench: &Bench<'_>) {
    let mut object = bench.object("it", "1");
    object["immutable"] = json!(true);
    let created = bench.create_object(&object).await;
    object["data"]["value"] = json!("2");
    for query in ["?dryRun=All", ""] {
        let path = bench.path(query);
        let again = bench.send(Method::POST, &path, JSON, &object).await;
        again.fails(409, "AlreadyExists");
        let mut invalid = object.clone();
        invalid["data"] = json!({"not/a/key": "2"});
        bench
            .send(Method::POST, &path, JSON, &invalid)
            .await
            .fails(422, "Invalid");
    }
    assert_eq!(bench.get(&bench.path("it")).await.is(200), created);
}

async fn an_immutable_object_stays_as_it_is_and_can_be_recreated(bench: &Bench<'_>) {
    let mut object = bench.object("it", "1");
    object["immutable"] = json!(true);
    let created = bench.create_object(&object).await;
    object["data"]["value"] = json!("2");
    for (answer, field) in [
        (bench.apply("test", true, &object).await, "data"),
        (bench.merge("it", &json!({"data": {"value": "2"}})).await, "data"),
        (bench.merge("it", &json!({"immutable": null})).await, "immutable"),
    ] {
        let status = answer.fails(422, "Invalid");
        let message = status["message"].as_str().unwrap_or_default();
        let words = format!("{field}: Forbidden: field is immutable when `immutable` is set");
        assert!(message.contains(&words), "{message}");
        let causes = status["details"]["causes"].as_array().expect("it says why");
        assert_eq!(causes.len(), 1, "{status}");
        assert_eq!(causes[0]["reason"], "FieldValueForbidden");
        assert_eq!(causes[0]["field"], field);
    }
    assert_eq!(bench.get(&bench.path("it")).await.is(200), created);
    // Its metadata can be changed.
    let labelled = bench
        .merge("it", &json!({"metadata": {"labels": {"key": "value"}}}))
        .await
        .is(200);
    assert_eq!(labelled["metadata"]["uid"], created["metadata"]["uid"]);
    // What is to hold something else is another object.
    bench.delete("it", &Value::Null).await.is(200);
    let again = bench.apply("test", true, &object).await.is(201);
    assert_eq!(again["data"]["value"], "2");
    assert_ne!(again["metadata"]["uid"], created["metadata"]["uid"]);
}

async fn every_change_has_a_greater_version_than_all_before(bench: &Bench<'_>) {
    let one = bench.create("one").await;
    let two = bench.create("two").await;
    let list = bench.get(&bench.path("")).await.is(200);
    let changed = bench.change("one", "2").await;
    assert!(number(&one) < number(&two));
    assert!(number(&two) <= number(&list));
    assert!(number(&list) < number(&changed));
    let after = bench.get(&bench.path("")).await.is(200);
    assert!(number(&changed) <= number(&after));
    assert_eq!(
        version(&after["items"][1]),
        version(&two),
        "only what changed has another"
    );
    bench.delete("two", &Value::Null).await.is(200);
    let after_delete = bench.get(&bench.path("")).await.is(200);
    assert!(number(&after) < number(&after_delete), "a delete is a change too");
}

async fn what_changes_nothing_keeps_the_version(bench: &Bench<'_>) {
    let it = bench.create("it").await;
    let merged = bench.merge("it", &json!({"data": {"value": "1"}})).await.is(200);
    assert_eq!(version(&merged), version(&it));
    let put = bench.put(&it).await.is(200);
    assert_eq!(version(&put), version(&it));
    let applied = bench.apply("test", true, &bench.object("it", "1")).await.is(200);
    assert_ne!(
        version(&applied),
        version(&it),
        "the first apply makes its manager an owner"
    );
    let again = bench.apply("test", true, &bench.object("it", "1")).await.is(200);
    assert_eq!(again, applied);
}

async fn an_update_with_an_old_version_is_a_conflict(bench: &Bench<'_>) {
    let old = bench.create("it").await;
    bench.change("it", "2").await;
    let status = bench.put(&old).await.fails(409, "Conflict");
    assert_eq!(status["details"]["name"], "it");
    let mut without = bench.object("it", "3");
    assert_eq!(bench.put(&without).await.is(200)["data"]["value"], "3");
    without["metadata"]["name"] = json!("nobody");
    bench.put(&without).await.fails(404, "NotFound");
}

async fn a_merge_patch_with_an_old_version_is_a_conflict_and_one_with_another_uid_is_invalid(bench: &Bench<'_>) {
    let old = bench.create("it").await;
    let new = bench.change("it", "2").await;
    let another = "00000000-0000-0000-0000-000000000000";
    for (metadata, code, reason) in [
        (json!({"resourceVersion": version(&old)}), 409, "Conflict"),
        (
            json!({"resourceVersion": version(&old), "uid": another}),
            409,
            "Conflict",
        ),
        (
            json!({"resourceVersion": version(&new), "uid": another}),
            422,
            "Invalid",
        ),
        (json!({"uid": another}), 422, "Invalid"),
    ] {
        let patch = json!({"metadata": metadata, "data": {"value": "3"}});
        bench.merge("it", &patch).await.fails(code, reason);
    }
    let metadata = json!({"resourceVersion": version(&new), "uid": new["metadata"]["uid"]});
    let patch = json!({"metadata": metadata, "data": {"value": "3"}});
    assert_eq!(bench.merge("it", &patch).await.is(200)["data"]["value"], "3");
}

async fn a_json_patch_whose_test_fails_is_refused(bench: &Bench<'_>) {
    let it = bench.create("it").await;
    let steps = |value: &str| {
        json!([
            {"op": "test", "path": "/data/value", "value": value},
            {"op": "replace", "path": "/data/value", "value": "2"},
        ])
    };
    let path = bench.path("it");
    let refused = bench.send(Method::PATCH, &path, JSON_PATCH, &steps("9")).await;
    refused.fails(422, "Invalid");
    assert_eq!(bench.get(&path).await.is(200), it);
    let taken = bench.send(Method::PATCH, &path, JSON_PATCH, &steps("1")).await.is(200);
    assert_eq!(taken["data"]["value"], "2");

    // Of an annotation that is not there, with annotations and without any.
    let mark = |value: &str| {
        json!([
            {"op": "test", "path": "/metadata/annotations/example.org~1mark", "value": value},
            {"op": "replace", "path": "/data/value", "value": "3"},
        ])
    };
    for annotations in [json!({}), json!({"other": "a"}), json!({"example.org/mark": "b"})] {
        bench
            .merge("it", &json!({"metadata": {"annotations": annotations}}))
            .await
            .is(200);
        let refused = bench.send(Method::PATCH, &path, JSON_PATCH, &mark("a")).await;
        refused.fails(422, "Invalid");
    }
    let taken = bench.send(Method::PATCH, &path, JSON_PATCH, &mark("b")).await.is(200);
    assert_eq!(taken["data"]["value"], "3");
}

async fn apply_creates_once_and_is_idempotent(bench: &Bench<'_>) {
    let object = bench.object("it", "1");
    let created = bench.apply("test", true, &object).await.is(201);
    let again = bench.apply("test", true, &object).await.is(200);
    assert_eq!(again, created);
    let managers = created["metadata"]["managedFields"].as_array().expect("it is applied");
    assert_eq!(managers.len(), 1);
    assert_eq!(managers[0]["manager"], "test");
    assert_eq!(managers[0]["operation"], "Apply");
}

async fn apply_takes_contested_fields_only_by_force(bench: &Bench<'_>) {
    bench.apply("one", true, &bench.object("it", "1")).await.is(201);
    let status = bench.apply("two", false, &bench.object("it", "2")).await;
    let status = status.fails(409, "Conflict");
    let causes = status["details"]["causes"].as_array().expect("it says why");
    assert_eq!(causes[0]["reason"], "FieldManagerConflict");
    assert_eq!(causes[0]["field"], ".data.value");
    // What is the same is shared and no conflict.
    bench.apply("two", false, &bench.object("it", "1")).await.is(200);
    let taken = bench.apply("three", true, &bench.object("it", "3")).await.is(200);
    assert_eq!(taken["data"]["value"], "3");
}

async fn apply_removes_what_its_manager_no_longer_applies(bench: &Bench<'_>) {
    let mut object = bench.object("it", "1");
    object["data"]["dropped"] = json!("x");
    bench.apply("test", true, &object).await.is(201);
    let after = bench.apply("test", true, &bench.object("it", "1")).await.is(200);
    assert_eq!(after["data"], json!({"value": "1"}));
}

async fn apply_keeps_what_others_have_added(bench: &Bench<'_>) {
    bench.apply("test", true, &bench.object("it", "1")).await.is(201);
    let added = json!({"data": {"added": "x"}, "metadata": {"labels": {"added": "x"}}});
    bench.merge("it", &added).await.is(200);
    let after = bench.apply("test", true, &bench.object("it", "2")).await.is(200);
    assert_eq!(after["data"], json!({"value": "2", "added": "x"}));
    assert_eq!(after["metadata"]["labels"], json!({"added": "x"}));
}

/// The time of a manager's entry. It counts in seconds.
fn time_of(object: &Value, manager: &str) -> String {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut entries = entries.filter(|entry| entry["manager"] == manager);
    let entry = entries.next().expect("it has written something");
    entry["time"].as_str().expect("an entry has a time").to_owned()
}

async fn a_manager_that_changes_a_value_or_adds_a_field_has_another_time_and_no_other_has(bench: &Bench<'_>) {
    let apply = async |manager: &str, object: &Value| bench.apply(manager, true, object).await.is(200);
    let mut object = bench.object("it", "0");
    bench.apply("test", true, &object).await.is(201);
    let mut other = bench.object("it", "0");
    other["data"] = json!({"other": "x"});
    let first = apply("other", &other).await;
    // A value that its manager changes itself is reported by the time alone: the fields are the same ones.
    let since = time_of(&first, "test");
    let mut count = 0;
    let changed = loop {
        count += 1;
        object["data"]["value"] = json!(count.to_string());
        let changed = apply("test", &object).await;
        if time_of(&changed, "test") != since {
            break changed;
        }
        sleep(Duration::from_millis(50)).await;
    };
    let find = |object: &Value| {
        let entries = object["metadata"]["managedFields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let entry = entries.into_iter().find(|entry| entry["manager"] == "test");
        entry.expect("it has written something")["fieldsV1"].clone()
    };
    assert_eq!(find(&changed), find(&first));
    assert_eq!(time_of(&changed, "other"), time_of(&first, "other"));
    // What changes nothing leaves the time as it is.
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(apply("test", &object).await, changed);
    // A field more.
    object["data"]["more"] = json!("x");
    let grown = apply("test", &object).await;
    assert_ne!(time_of(&grown, "test"), time_of(&changed, "test"));
    // What another takes away or adds is not its doing.
    sleep(Duration::from_millis(1100)).await;
    other["data"]["more"] = json!("y");
    let taken = apply("other", &other).await;
    assert_eq!(time_of(&taken, "test"), time_of(&grown, "test"));
    assert_ne!(time_of(&taken, "other"), time_of(&grown, "other"));
}

async fn apply_with_an_old_version_is_a_conflict_and_with_another_uid_never_succeeds(bench: &Bench<'_>) {
    let old = bench.create("it").await;
    let new = bench.change("it", "2").await;
    let mut object = bench.object("it", "3");
    object["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    bench.apply("test", true, &object).await.fails(422, "Invalid");
    object["metadata"]["uid"] = new["metadata"]["uid"].clone();
    object["metadata"]["resourceVersion"] = json!(version(&old));
    bench.apply("test", true, &object).await.fails(409, "Conflict");
    object["metadata"]["resourceVersion"] = json!(version(&new));
    bench.apply("test", true, &object).await.is(200);
    // An apply that names a UID never creates.
    let mut object = bench.object("nobody", "1");
    object["metadata"]["uid"] = new["metadata"]["uid"].clone();
    bench.apply("test", true, &object).await.fails(409, "Conflict");
}

async fn what_names_the_version_of_an_object_that_is_gone_only_creates_it_when_applied(bench: &Bench<'_>) {
    let gone = bench.create("it").await;
    bench.delete("it", &Value::Null).await.is(200);
    let patch = json!({"metadata": {"resourceVersion": version(&gone)}});
    bench.merge("it", &patch).await.fails(404, "NotFound");
    bench.put(&gone).await.fails(404, "NotFound");
    let mut object = bench.object("it", "2");
    object["metadata"]["resourceVersion"] = json!(version(&gone));
    bench.apply("test", true, &object).await.is(201);
}

async fn a_delete_with_preconditions_needs_them_to_hold(bench: &Bench<'_>) {
    let old = bench.create("it").await;
    let new = bench.change("it", "2").await;
    let (uid, other) = (&new["metadata"]["uid"], "00000000-0000-0000-0000-000000000000");
    for preconditions in [
        json!({"uid": other}),
        json!({"uid": other, "resourceVersion": version(&new)}),
        json!({"uid": uid, "resourceVersion": version(&old)}),
    ] {
        bench.delete_if("it", &preconditions).await.fails(409, "Conflict");
    }
    assert_eq!(bench.get(&bench.path("it")).await.is(200), new);
    let preconditions = json!({"uid": uid, "resourceVersion": version(&new)});
    let status = bench.delete_if("it", &preconditions).await.is(200);
    assert_eq!(status["status"], "Success");
    bench.get(&bench.path("it")).await.fails(404, "NotFound");
}

async fn a_delete_that_says_what_becomes_of_what_belongs_to_it_is_one_like_others(bench: &Bench<'_>) {
    let it = bench.create("it").await;
    let (uid, version) = (&it["metadata"]["uid"], version(&it));
    let delete = async |policy: &str, preconditions: Value| {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy,
            "preconditions": preconditions});
        bench.delete("it", &options).await
    };
    delete("Sideways", json!({"uid": uid})).await.fails(422, "Invalid");
    let other = json!({"uid": "00000000-0000-0000-0000-000000000000"});
    delete("Background", other).await.fails(409, "Conflict");
    let gone = delete("Background", json!({"uid": uid, "resourceVersion": version})).await;
    assert_eq!(gone.is(200)["status"], "Success");
    bench.get(&bench.path("it")).await.fails(404, "NotFound");
}

async fn a_finalizer_delays_the_delete(bench: &Bench<'_>) {
    let mut object = bench.object("it", "1");
    object["metadata"]["finalizers"] = json!(["example.org/wait"]);
    let created = bench.create_object(&object).await;
    let mut watch = bench.watch(&format!("resourceVersion={}", version(&created))).await;
    let deleting = bench.delete("it", &Value::Null).await.is(200);
    assert!(deleting["metadata"]["deletionTimestamp"].is_string(), "{deleting}");
    let reported = watch.expect("MODIFIED", "it").await;
    assert!(reported["metadata"]["deletionTimestamp"].is_string(), "{reported}");
    // It is still there, can be changed, and cannot be created.
    bench.change("it", "2").await;
    watch.expect("MODIFIED", "it").await;
    let again = bench.send(Method::POST, &bench.path(""), JSON, &object).await;
    again.fails(409, "AlreadyExists");
    let freed = json!({"metadata": {"finalizers": null}});
    bench.merge("it", &freed).await.is(200);
    watch.expect("DELETED", "it").await;
    bench.get(&bench.path("it")).await.fails(404, "NotFound");
}

async fn an_object_that_comes_again_has_another_uid(bench: &Bench<'_>) {
    let first = bench.create("it").await;
    bench.delete("it", &Value::Null).await.is(200);
    let second = bench.create("it").await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert!(number(&first) < number(&second));
}

async fn a_dry_run_changes_nothing(bench: &Bench<'_>) {
    let path = bench.path("?dryRun=All");
    let object = bench.object("it", "1");
    bench.send(Method::POST, &path, JSON, &object).await.is(201);
    bench.get(&bench.path("it")).await.fails(404, "NotFound");
}
