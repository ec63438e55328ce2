//! What edge-syncer assumes of lists and watches, one case each.

use serde_json::{Value, json};

use crate::bench::{Bench, number, version};

pub(crate) async fn pages_show_the_state_at_one_version(bench: &Bench<'_>) {
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    let first = bench.get(&bench.path("?limit=2")).await.is(200);
    bench.delete("c", &Value::Null).await.is(200);
    bench.create("d").await;
    let token = first["metadata"]["continue"].as_str().expect("there is more");
    let second = bench
        .get(&bench.path(&format!("?limit=2&continue={token}")))
        .await
        .is(200);
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().expect("a list has items");
        items.iter().map(|item| item["metadata"]["name"].to_string()).collect()
    };
    assert_eq!(names(&first), ["\"a\"", "\"b\""]);
    assert_eq!(names(&second), ["\"c\""], "as it was");
    assert_eq!(version(&first), version(&second));
    assert_eq!(second["metadata"]["continue"].as_str().unwrap_or_default(), "");
}

pub(crate) async fn a_page_after_a_compaction_has_expired_or_is_as_it_was(bench: &Bench<'_>) {
    for name in ["a", "b"] {
        bench.create(name).await;
    }
    let first = bench.get(&bench.path("?limit=1")).await.is(200);
    bench.change("b", "2").await;
    (bench.compact)().await;
    let token = first["metadata"]["continue"].as_str().expect("there is more");
    let second = bench.get(&bench.path(&format!("?limit=1&continue={token}"))).await;
    // Newer servers keep snapshots in memory for some minutes.
    if second.code == 200 {
        let page = second.is(200);
        assert_eq!(version(&page), version(&first));
        assert_eq!(page["items"][0]["data"], json!({"value": "1"}));
    } else {
        second.fails(410, "Expired");
    }
}

pub(crate) async fn selectors_and_metadata_narrow_a_list(bench: &Bench<'_>) {
    bench.create("a").await;
    let mut object = bench.object("b", "1");
    object["metadata"]["labels"] = json!({"key": "value"});
    bench.create_object(&object).await;
    for query in ["labelSelector=key%3Dvalue", "fieldSelector=metadata.name%3Db"] {
        let list = bench.get(&bench.path(&format!("?{query}"))).await.is(200);
        let items = list["items"].as_array().expect("a list has items");
        assert_eq!(items.len(), 1, "{query}: {list}");
        assert_eq!(items[0]["metadata"]["name"], "b");
        assert!(items[0].get("kind").is_none(), "items have no kind of their own");
    }
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    let list = bench.get_as(accept, &bench.path("")).await.is(200);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][1]["metadata"]["labels"], json!({"key": "value"}));
    assert!(list["items"][1].get("data").is_none(), "{list}");
    let none = bench.path("?fieldSelector=metadata.name%3Dnobody");
    let list = bench.get_as(accept, &none).await.is(200);
    assert_eq!(list["items"], Value::Null, "an empty list of metadata is null");
    assert_eq!(bench.get(&none).await.is(200)["items"], json!([]));
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let one = bench.get_as(accept, &bench.path("b")).await.is(200);
    assert_eq!(one["kind"], "PartialObjectMetadata");
    assert!(one.get("data").is_none(), "{one}");
}

pub(crate) async fn a_watch_tells_every_change_in_order(bench: &Bench<'_>) {
    let list = bench.get(&bench.path("")).await.is(200);
    let mut watch = bench.watch(&format!("resourceVersion={}", version(&list))).await;
    let mut expected = vec![bench.create("a").await, bench.create("b").await];
    for value in ["2", "3", "4"] {
        expected.push(bench.change("a", value).await);
    }
    bench.delete("a", &Value::Null).await.is(200);
    expected.push(bench.create("a").await);
    for (kind, at) in [
        ("ADDED", 0),
        ("ADDED", 1),
        ("MODIFIED", 2),
        ("MODIFIED", 3),
        ("MODIFIED", 4),
        ("DELETED", 4),
        ("ADDED", 5),
    ] {
        let (found, object) = watch.next().await;
        let wanted = &expected[at];
        assert_eq!(found, kind, "{object}");
        assert_eq!(object["metadata"]["uid"], wanted["metadata"]["uid"]);
        assert_eq!(object["data"], wanted["data"]);
        if kind == "DELETED" {
            assert!(number(&object) > number(wanted), "a delete has a version of its own");
        } else {
            assert_eq!(version(&object), version(wanted));
            assert_eq!(object["kind"], "ConfigMap");
        }
    }
}

pub(crate) async fn a_watch_resumes_after_the_version_it_is_given(bench: &Bench<'_>) {
    bench.create("a").await;
    let b = bench.create("b").await;
    let c = bench.create("c").await;
    let mut watch = bench.watch(&format!("resourceVersion={}", version(&b))).await;
    assert_eq!(watch.expect("ADDED", "c").await, c);
    watch.is_quiet().await;
}

pub(crate) async fn a_watch_from_too_long_ago_is_a_410_in_the_stream(bench: &Bench<'_>) {
    let old = bench.create("a").await;
    bench.change("a", "2").await;
    bench.change("a", "3").await;
    (bench.compact)().await;
    // Of most types, servers remember more than their storage does. Events are not among them.
    let path = format!("/api/v1/namespaces/{}/events", bench.namespace);
    let mut watch = bench
        .watch_at(&path, &format!("resourceVersion={}", version(&old)))
        .await;
    let (kind, status) = watch.next().await;
    assert_eq!(kind, "ERROR");
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["code"], 410);
    assert_eq!(status["reason"], "Expired");
}

pub(crate) async fn a_watch_from_a_version_to_come_waits(bench: &Bench<'_>) {
    let it = bench.create("a").await;
    let mut watch = bench
        .watch(&format!("resourceVersion={}", number(&it) + 1_000_000))
        .await;
    bench.change("a", "2").await;
    watch.is_quiet().await;
}

pub(crate) async fn a_streaming_list_ends_with_a_marked_bookmark(bench: &Bench<'_>) {
    let a = bench.create("a").await;
    bench.create("b").await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = bench.watch(query).await;
    assert_eq!(watch.expect("ADDED", "a").await, a);
    let b = watch.expect("ADDED", "b").await;
    let (kind, bookmark) = watch.next().await;
    assert_eq!(kind, "BOOKMARK");
    assert!(number(&bookmark) >= number(&b));
    bench.change("a", "2").await;
    let reported = watch.expect("MODIFIED", "a").await;
    assert!(number(&reported) > number(&bookmark));
}

pub(crate) async fn a_label_that_goes_is_a_delete_to_a_watch_that_selects_it(bench: &Bench<'_>) {
    let it = bench.create("it").await;
    let query = format!("resourceVersion={}&labelSelector=key%3Dvalue", version(&it));
    let mut watch = bench.watch(&query).await;
    let label = |value: Value| json!({"metadata": {"labels": {"key": value}}});
    let labelled = bench.merge("it", &label(json!("value"))).await.is(200);
    assert_eq!(watch.expect("ADDED", "it").await, labelled);
    let without = bench.merge("it", &label(json!("other"))).await.is(200);
    let reported = watch.expect("DELETED", "it").await;
    assert_eq!(
        version(&reported),
        version(&without),
        "as of the change that took it away"
    );
    assert_eq!(
        reported["metadata"]["labels"]["key"], "value",
        "as it was when it was last selected"
    );
    // What happens without the label is not reported.
    bench.change("it", "2").await;
    bench.merge("it", &label(json!("value"))).await.is(200);
    watch.expect("ADDED", "it").await;
    bench.delete("it", &Value::Null).await.is(200);
    watch.expect("DELETED", "it").await;
}
