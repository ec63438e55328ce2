//! The words are those of real servers (kube-apiserver 1.36, kcp), of rustls, hyper-util and the system's resolver.

use std::time::Duration;

use super::*;

const PLACE: &str = "certificate-authority-data of /etc/hub.kubeconfig";

fn at_place(error: &Error) -> String {
    let place = Place {
        side: "hub".into(),
        address: "https://hub.example:6443".into(),
        trust: PLACE.into(),
        login: "the token of /etc/hub.kubeconfig".into(),
    };
    advice(error, &place).into_owned()
}

fn refusal(code: u16, reason: &str, message: &str) -> Error {
    let body = serde_json::json!({"kind": "Status", "reason": reason, "message": message});
    Error::from_answer(code, Some(Duration::ZERO), body.to_string().as_bytes())
}

fn check(error: &Error, expected: &str) {
    let advice = at_place(error);
    assert!(advice.contains(expected), "{error}: {advice}");
    assert!(!advice.contains('\n') && !advice.ends_with('.'), "{advice}");
}

#[test]
fn a_namespace_that_is_missing_is_to_be_created_and_a_counter_is_no_permission() {
    let missing = r#"{"kind":"Status","code":404,"message":"namespaces \"nope\" not found","details":{"kind":"namespaces","name":"nope"}}"#;
    let missing = Error::from_answer(404, None, missing.as_bytes());
    check(&missing, "create the namespace nope at that side");
    let counter = "Deployment.apps \"w\" is invalid: status.collisionCount: Invalid value: 0: cannot be decremented";
    check(&refusal(422, "Invalid", counter), "correct the object");
    let fixed = "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set";
    check(&refusal(422, "Invalid", fixed), "edge.kubestellar.io/replace");
}

#[test]
fn credentials_that_are_not_accepted_are_named_with_where_they_are() {
    let refused = Error::Unauthorized(Box::default());
    check(
        &refused,
        "renew the token of /etc/hub.kubeconfig; edge-syncer gen NAME --rotate makes another token",
    );
    let unknown = advice(&refused, &Place::default());
    assert!(
        unknown.ends_with("renew the token or certificate in the kubeconfig"),
        "{unknown}"
    );
}

#[test]
fn annotations_that_leave_no_room_for_our_own_are_logged_with_the_limit() {
    let long = "ConfigMap \"a\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes";
    check(&refusal(422, "Invalid", long), "at most 256 KiB, with the syncer's own");
}

const LIST: &str = "resource \"configmaps\" in API group \"\" at the cluster scope";

#[test]
fn each_403_has_the_advice_that_fits_its_cause() {
    for (message, expected) in [
        (
            format!("configmaps is forbidden: User \"limited\" cannot list {LIST}"),
            "grant the syncer's user this permission: edge-syncer gen rbac prints",
        ),
        (
            format!("configmaps is forbidden: User \"system:anonymous\" cannot list {LIST}"),
            "no credentials have reached the server",
        ),
        (
            "configmaps \"second\" is forbidden: exceeded quota: small, requested: count/configmaps=1, used: \
             count/configmaps=2, limited: count/configmaps=2"
                .to_owned(),
            "raise the ResourceQuota",
        ),
        (
            "pods \"web\" is forbidden: failed quota: small: must specify limits.cpu for: web".to_owned(),
            "add it to the object",
        ),
        (
            "admission webhook \"deny.example.org\" denied the request: not on a Friday".to_owned(),
            "admission webhook",
        ),
        (
            "admission webhook \"deny.example.org\" denied the request: User \"x\" cannot exceeded quota".to_owned(),
            "admission webhook",
        ),
        (
            "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'no-maps' with binding 'no-maps' denied request: not \
             here"
                .to_owned(),
            "admission policy",
        ),
        (
            "pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false \
             (container \"web\" must set securityContext.allowPrivilegeEscalation=false)"
                .to_owned(),
            "pod-security.kubernetes.io/enforce",
        ),
        (
            "pods \"web\" is forbidden: maximum cpu usage per Container is 1, but limit is 2".to_owned(),
            "LimitRange",
        ),
        (
            "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"limited\" (groups=[\"system:authenticated\"]) is \
             attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], \
             Verbs:[\"get\"]}"
                .to_owned(),
            "escalate",
        ),
        (
            "pods \"web\" is forbidden: error looking up service account shop/web: serviceaccount \"web\" not found"
                .to_owned(),
            "service account",
        ),
        (
            "configmaps \"a\" is forbidden: unable to create new content in namespace shop because it is being terminated"
                .to_owned(),
            "by itself",
        ),
        ("something that nobody knows".to_owned(), "it is tried again"),
    ] {
        check(&refusal(403, "Forbidden", &message), expected);
    }
    check(
        &Error::from_answer(403, None, b"<html>Access denied by policy</html>"),
        "proxies and firewalls before the server",
    );
}

#[test]
fn other_answers_have_theirs() {
    let policy = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
    for (code, reason, message, expected) in [
        (422, "Invalid", policy, "admission policy"),
        (
            400,
            "BadRequest",
            "admission webhook \"x\" denied the request: no",
            "admission webhook",
        ),
        (
            422,
            "Invalid",
            "Deployment.apps \"a\" is invalid: spec: Required value",
            "correct the object",
        ),
        (
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook \"deny.example.org\": failed to call webhook: Post \
             \"https://127.0.0.1:1/?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused",
            "webhook of that side does not answer",
        ),
        (500, "", "etcdserver: request timed out", "etcd"),
        (404, "NotFound", "namespaces \"shop\" not found", "by itself"),
        (409, "Conflict", "the object has been modified", "newer state"),
        (
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3145728",
            "too large",
        ),
        (429, "TooManyRequests", "", "busy"),
        (
            500,
            "InternalError",
            "request to convert CR to an invalid group/version: t.io/v0",
            "if its CRD is just being changed",
        ),
        (
            429,
            "TooManyRequests",
            "storage is (re)initializing: failed to list t.io/v2: conversion webhook for t.io/v1 failed: refused",
            "webhook that converts",
        ),
        (
            429,
            "TooManyRequests",
            "storage is (re)initializing: request to convert CR from an invalid group/version: t.io/v1",
            "if its CRD is just being changed",
        ),
        (
            504,
            "Timeout",
            "Timeout: Too large resource version: 67054, current: 67035",
            "webhook that converts",
        ),
        (
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
            "backend of this API",
        ),
        (
            405,
            "MethodNotAllowed",
            "create not allowed while custom resource definition is terminating",
            "being deleted",
        ),
    ] {
        check(&refusal(code, reason, message), expected);
    }
}

#[test]
fn a_write_that_was_held_back_needs_nobody() {
    check(&Error::Unanswered("a webhook".into()), "webhook");
    let held = Error::Unanswered("not sent, since the kubeconfig leads to another server now".into());
    check(&held, "nothing has to be done");
}

#[test]
fn a_link_that_fails_has_the_advice_that_fits_what_it_says() {
    for (words, expected) in [
        (
            "tcp connect error: Connection refused (os error 111)",
            "nothing listens",
        ),
        (
            "tcp connect error: No route to host (os error 113)",
            "no way to that address",
        ),
        (
            "tcp connect error: Network is unreachable (os error 101)",
            "no way to that address",
        ),
        ("no TCP connection within 20 s", "firewalls"),
        ("connected, but no TLS handshake within 28 s", "sends nothing"),
        (
            "dns error: failed to lookup address information: Name or service not known",
            "how it is spelt",
        ),
        (
            "dns error: failed to lookup address information: Temporary failure in name resolution",
            "do not answer",
        ),
        ("dns error: no name server has answered within 10 s", "do not answer"),
        ("invalid peer certificate: UnknownIssuer", PLACE),
        (
            "invalid peer certificate: BadSignature",
            "not signed by the CA of the kubeconfig",
        ),
        ("invalid peer certificate: BadSignature", PLACE),
        (
            "invalid peer certificate: certificate expired: it was valid until 2024-02-29T00:00:00Z, and",
            "renew",
        ),
        (
            "invalid peer certificate: certificate not valid yet: it will be from 2027-01-01T00:00:00Z",
            "set the clock",
        ),
        (
            "invalid peer certificate: certificate not valid for name \"a\"; it is for b",
            "tls-server-name",
        ),
        ("received corrupt message of type InvalidContentType", "speaks no TLS"),
        ("received fatal alert: CertificateRequired", "add client-certificate"),
        (
            "received fatal alert: UnknownCA",
            "client certificate of the user entry",
        ),
        ("tunnel error: proxy authorization required", "407"),
        ("tunnel error: unsuccessful", "CONNECT"),
        ("no connection through the proxy within 20 s", "proxy-url"),
        ("connection reset by peer", "check the address"),
        ("HTTP 502", "the shard of the workspace"),
        ("upstream connect error (HTTP 503)", "see whether it runs"),
    ] {
        check(&Error::Unreachable(words.to_owned()), expected);
    }
}

#[test]
fn what_is_no_kubernetes_api_has_no_advice_about_types() {
    for (words, expected) in [
        (
            "Client sent an HTTP request to an HTTPS server. (HTTP 400)",
            "write https://",
        ),
        ("<a href=\"/login\">Found</a>. (HTTP 302)", "login page"),
        (
            "not an answer of a Kubernetes API: a web page: <title>Sign in</title>",
            "login page",
        ),
        ("404 page not found (HTTP 404)", "another service or a proxy"),
    ] {
        let found = about_no_api(words, &Place::default());
        assert!(found.contains(expected), "{words}: {found}");
    }
    check(
        &Error::from_answer(400, None, b"Client sent an HTTP request to an HTTPS server.\n"),
        "write https:// instead of http://",
    );
}

#[test]
fn a_path_that_the_server_does_not_know_is_probably_wrong() {
    let is_named = |address: &str, error: &Error, stranger: bool| {
        let place = Place {
            address: address.into(),
            ..Place::default()
        };
        let found = if stranger {
            about_no_api(&error.to_string(), &place)
        } else {
            advice(error, &place)
        };
        found.contains("the path /nonsense in the kubeconfig's server is probably wrong")
    };
    let cannot_get = |path: &str| {
        let words = format!("forbidden: User \"limited\" cannot get path \"{path}\"");
        refusal(403, "Forbidden", &words)
    };
    let bare = Error::from_answer(404, None, b"404 page not found");
    for (address, error, stranger, expected) in [
        ("https://hub:6443/nonsense", &bare, true, true),
        (
            "https://hub:6443/nonsense through the proxy http://p:1",
            &bare,
            true,
            true,
        ),
        ("https://hub:6443", &bare, true, false),
        ("https://hub:6443 through the proxy http://p:1/x", &bare, true, false),
        ("https://hub/nonsense", &cannot_get("/nonsense/version"), false, true),
        // A workspace of kcp: the server has taken the path from the URL.
        ("https://hub/nonsense", &cannot_get("/version"), false, false),
        ("https://hub", &cannot_get("/nonsense/version"), false, false),
    ] {
        assert_eq!(is_named(address, error, stranger), expected, "{address} {error}");
    }
}

#[test]
fn a_missing_permission_is_shared_by_verb_and_type_and_nothing_else_is() {
    let shared = |message: &str| shared_reason(&refusal(403, "Forbidden", message)).map(str::to_owned);
    let cannot = |object: &str, verb: &str, place: &str| {
        let words =
            format!("configmaps{object} is forbidden: User \"x\" cannot {verb} resource \"configmaps\" {place}");
        shared(&words).expect("it is shared")
    };
    let one = cannot(" \"a\"", "patch", "in the namespace \"shop\"");
    assert_eq!(cannot(" \"b\"", "patch", "in the namespace \"shop\""), one);
    assert_ne!(cannot(" \"b\"", "create", "in the namespace \"shop\""), one);
    assert_eq!(cannot(" \"b\"", "patch", "in the namespace \"field\""), one);
    assert_eq!(cannot("", "patch", "at the cluster scope"), one);
    let gone = ": RBAC: [clusterrole.rbac.authorization.k8s.io \"a\" not found, role \"b\" not found]";
    assert_eq!(cannot("", "patch", &format!("in the namespace \"shop\"{gone}")), one);
    let namespace = |name: &str, verb: &str| {
        let place = format!("in API group \"\" in the namespace \"{name}\"");
        let words =
            format!("namespaces \"{name}\" is forbidden: User \"x\" cannot {verb} resource \"namespaces\" {place}");
        shared(&words).expect("it is shared")
    };
    assert_eq!(namespace("shop", "get"), namespace("field", "get"));
    assert_ne!(namespace("shop", "get"), namespace("shop", "patch"));
    assert_eq!(shared("configmaps \"a\" is forbidden: exceeded quota: small"), None);
    assert_eq!(
        shared("admission webhook \"x\" denied the request: User \"x\" cannot do this"),
        None
    );
    assert_eq!(shared_reason(&refusal(422, "Invalid", "User \"x\" cannot patch")), None);
}
