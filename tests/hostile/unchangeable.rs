//! What no update can change, in whatever words an API server, a policy or a webhook says so: the copy of an origin that
//! was recreated, or that asks for it, is replaced if its side takes the new object, and otherwise stays.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::bench::{At, is_recreated, says, uid};
use crate::support::certs::Authority;
use crate::support::eventually;
use crate::support::kubeconfig::base64;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{MERGE_PATCH, Objects, code, namespace, path};
use crate::support::stage::{Stage, own_group, select, stage};
use crate::support::story::{SOON, arrives, becomes, crd, drop_crds, install_crd, upsync_all};
use crate::webhooks::tls;

in_both_modes!(
    what_no_update_can_change_is_new_in_its_copy_at_the_edge_whatever_the_words,
    what_no_update_can_change_is_new_in_its_copy_at_the_hub_whatever_the_words,
);

/// Objects whose only field no update changes, by what refuses it, and the code of that.
const REFUSED: [(&str, u16); 10] = [
    ("plain", 422),
    ("modified", 422),
    ("once", 422),
    ("policy", 422),
    ("policy-forbidden", 403),
    ("webhook-400", 400),
    ("webhook-403", 403),
    ("webhook-409", 409),
    ("webhook-422", 422),
    ("webhook-500", 500),
];
/// Those whose new value is not taken from a new object either.
const BOTH: [(&str, u16); 2] = [("both-policy", 422), ("both-webhook-403", 403)];

/// The CRD whose fields are fixed by rules without a message, and with messages that do not say so in the usual words.
fn strict(plain: &Value) -> Value {
    let fixed = |message: Option<&str>| {
        let mut rule = json!({"rule": "self == oldSelf"});
        if let Some(message) = message {
            rule["message"] = json!(message);
        }
        json!({"type": "string", "x-kubernetes-validations": [rule]})
    };
    let mut definition = plain.clone();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {
            "plain": fixed(None), "modified": fixed(Some("the region of a zone cannot be modified")),
            "once": fixed(Some("can only be set once")), "free": {"type": "string"}}}}});
    definition
}

/// Policies for the objects of a group by their names, each with its binding.
fn policies(group: &str) -> Vec<Value> {
    let old = "object.spec.free == oldObject.spec.free";
    [
        (
            "policy",
            &["UPDATE"][..],
            "Invalid",
            old,
            "object.metadata.name.matches('^policy(-r)?$')",
        ),
        (
            "forbidden",
            &["UPDATE"],
            "Forbidden",
            old,
            "object.metadata.name.startsWith('policy-forbidden')",
        ),
        (
            "both",
            &["CREATE", "UPDATE"],
            "Invalid",
            "object.spec.free != 'b'",
            "object.metadata.name.startsWith('both-policy')",
        ),
    ]
    .into_iter()
    .flat_map(|(name, operations, reason, expression, condition)| {
        let name = format!("{name}.{group}");
        let rules =
            json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": ["zones"]});
        let policy = json!({"apiVersion": POLICIES, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": [rules]}, "failurePolicy": "Fail",
                "matchConditions": [{"name": "name", "expression": condition}],
                "validations": [{"expression": expression, "message": "not here", "reason": reason}]}});
        let binding = json!({"apiVersion": POLICIES, "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
        [policy, binding]
    })
    .collect()
}

const POLICIES: &str = "admissionregistration.k8s.io/v1";

/// A webhook that lets the objects called `webhook-<code>` keep their content, with that code, and refuses the value `b` to
/// those called `both-webhook-<code>`.
fn webhook(group: &str, port: u16, ca: &Authority) -> Value {
    json!({
        "apiVersion": POLICIES, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": group},
        "webhooks": [{
            "name": "zones.example.org",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}"), "caBundle": base64(&ca.certificate)},
            "rules": [{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["zones"]}],
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

/// Serves it, and gives its port.
async fn serve(ca: &Authority) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let acceptor = TlsAcceptor::from(Arc::new(tls(ca)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await?;
                let review = body(&mut stream).await?;
                let answer = judge(&review).to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
                let answer = format!("{head}content-length: {}\r\n\r\n{answer}", answer.len());
                stream.write_all(answer.as_bytes()).await?;
                stream.shutdown().await
            });
        }
    });
    port
}

/// The body of one request.
async fn body(stream: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<Value> {
    let mut read = Vec::new();
    loop {
        if stream.read_buf(&mut read).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        // It is whole once it can be read.
        let end = read.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(review) = end.and_then(|end| serde_json::from_slice(&read[end + 4..]).ok()) {
            return Ok(review);
        }
    }
}

fn judge(review: &Value) -> Value {
    let request = &review["request"];
    let name = request["object"]["metadata"]["name"].as_str().unwrap_or_default();
    let (new, old) = (
        &request["object"]["spec"]["free"],
        &request["oldObject"]["spec"]["free"],
    );
    let is_denied = match name {
        _ if name.starts_with("webhook") => request["operation"] == "UPDATE" && new != old,
        _ if name.starts_with("both-webhook") => new == "b",
        _ => false,
    };
    let code = name.split('-').find_map(|part| part.parse::<u16>().ok()).unwrap_or(400);
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": request["uid"], "allowed": !is_denied, "status": {"code": code, "message": "not here"}}})
}

/// An object of this name with this value in the field that is fixed.
fn zone(group: &str, shop: &str, name: &str, value: &str) -> Value {
    let field = ["plain", "modified", "once"]
        .into_iter()
        .find(|field| name.starts_with(field));
    json!({"apiVersion": format!("{group}/v1"), "kind": "Zone", "metadata": {"namespace": shop, "name": name},
        "spec": {field.unwrap_or("free"): value}})
}

fn has(object: &Value, value: &str) -> bool {
    object["spec"]
        .as_object()
        .is_some_and(|spec| spec.values().any(|found| found == value))
}

/// Waits until an update of the copy is refused with this code. Policies need a moment.
async fn is_fixed(at: &Objects, of: At<'_>, patch: &Value, expected: u16) {
    let [api_version, plural, namespace, name] = of;
    let target = format!("{}?dryRun=All", path(api_version, plural, namespace, name));
    eventually(&format!("{name} cannot be changed"), SOON, async || {
        match at.send(Method::PATCH, &target, MERGE_PATCH, Some(patch)).await {
            Err(error) if code(&error) == expected => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => Err("it can".to_owned()),
        }
    })
    .await;
}

async fn what_no_update_can_change_is_new_in_its_copy_at_the_edge_whatever_the_words(flags: Mode) {
    is_new_in_its_copy(false, flags).await;
}

async fn what_no_update_can_change_is_new_in_its_copy_at_the_hub_whatever_the_words(flags: Mode) {
    is_new_in_its_copy(true, flags).await;
}

async fn is_new_in_its_copy(goes_up: bool, flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (from, to) = if goes_up { (&edge, &hub) } else { (&hub, &edge) };
    let (group, version) = own_group(&shop);
    let plain = crd(&group, "zones", true);
    install_crd(&[from], &plain).await;
    install_crd(&[to], &strict(&plain)).await;
    let ca = Authority::new("webhook");
    let mut rules = policies(&group);
    rules.push(webhook(&group, serve(&ca).await, &ca));
    for rule in &rules {
        to.create(rule).await;
    }
    // Each once as an object that is recreated, and once as one that says that its copy may be.
    let names = |known: &[(&'static str, u16)]| -> Vec<(String, u16)> {
        let both = known
            .iter()
            .flat_map(|&(name, code)| [(name.to_owned(), code), (format!("{name}-r"), code)]);
        both.collect()
    };
    let (refused, both) = (names(&REFUSED), names(&BOTH));
    from.create(&namespace(&shop)).await;
    for (name, _) in refused.iter().chain(&both) {
        let mut object = zone(&group, &shop, name, "a");
        if name.ends_with("-r") {
            object["metadata"]["annotations"] = json!({"edge.kubestellar.io/replace": "true"});
        }
        from.create(&object).await;
    }
    let all = json!([{"group": group, "resource": "zones", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": shop, "names": ["*"]}]}]);
    let spec = if goes_up {
        json!({"upsync": [upsync_all(&group, &["zones"], &shop)]})
    } else {
        json!({"namespacedObjects": all})
    };
    select(&hub, &spec).await;
    let mut syncer = pair.syncer(flags);
    let mut copies = Vec::new();
    for (name, expected) in refused.iter().chain(&both) {
        copies.push(uid(&arrives(to, &version, "zones", &shop, name).await));
        let patch = json!({"spec": zone(&group, &shop, name, "b")["spec"]});
        is_fixed(to, [&version, "zones", &shop, name], &patch, *expected).await;
    }
    // One whose former copy goes only when somebody else allows it.
    let finalizers = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    to.merge_patch(
        &version,
        "zones",
        &shop,
        "plain",
        &finalizers(json!(["example.org/wait"])),
    )
    .await;
    // While it is down, so that it meets another object of the same name and not the end of the former one.
    syncer.terminate().await;
    for (name, _) in refused.iter().chain(&both) {
        let object = zone(&group, &shop, name, "b");
        if name.ends_with("-r") {
            let patch = json!({"spec": object["spec"]});
            from.merge_patch(&version, "zones", &shop, name, &patch).await;
        } else {
            from.delete(&version, "zones", &shop, name).await;
            from.create(&object).await;
        }
    }
    let mut syncer = pair.syncer(flags);
    let at = |name| [version.as_str(), "zones", &*shop, name];
    becomes(to, at("plain"), "is being deleted", |copy| {
        !copy["metadata"]["deletionTimestamp"].is_null()
    })
    .await;
    to.merge_patch(&version, "zones", &shop, "plain", &finalizers(Value::Null))
        .await;
    for ((name, _), former) in refused.iter().zip(&copies) {
        let copy = is_recreated(to, at(name), former).await;
        assert!(has(&copy, "b"), "{copy}");
    }
    for ((name, _), copy) in both.iter().zip(&copies[refused.len()..]) {
        says(&mut syncer, &["WARN", &format!("Zone/{shop}/{name}"), "not here"]).await;
        let stays = becomes(to, at(name), "is there", |copy| has(copy, "a")).await;
        assert_eq!(uid(&stays), *copy);
    }
    for rule in &rules {
        let [kind, name] = [&rule["kind"], &rule["metadata"]["name"]].map(|text| text.as_str().expect("it has one"));
        to.delete(POLICIES, kind, "", name).await;
    }
    let name = plain["metadata"]["name"].as_str().expect("it has a name");
    drop_crds(&[&hub, &edge], &[name]).await;
}
