use super::*;

fn resource(qualified: &str, kind: &str, namespaced: bool) -> ResourceType {
    let (resource, group) = qualified.split_once('.').unwrap_or((qualified, ""));
    ResourceType {
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        kind: kind.into(),
        namespaced,
    }
}

/// A few types by their plural and group.
fn known(qualified: &str) -> ResourceType {
    let (kind, namespaced) = match qualified {
        "secrets" | "secrets.example.org" => ("Secret", true),
        "configmaps" => ("ConfigMap", true),
        "deployments.apps" => ("Deployment", true),
        "gauges.example.org" | "gauges.sub.example.org" => ("Gauge", false),
        "namespaces" => ("Namespace", false),
        "clusterroles.rbac.authorization.k8s.io" | "clusterroles.authorization.openshift.io" => ("ClusterRole", false),
        "roles.rbac.authorization.k8s.io" => ("Role", true),
        "rolebindings.authorization.openshift.io" => ("RoleBinding", true),
        "rolebindingrestrictions.authorization.openshift.io" => ("RoleBindingRestriction", true),
        "projects.project.openshift.io" => ("Project", false),
        other => panic!("not known: {other}"),
    };
    resource(qualified, kind, namespaced)
}

fn filter(text: &str) -> Filter {
    let mut filter = Filter::default();
    filter.add_file("file", &text.replace("; ", "\n")).unwrap();
    filter
}

/// Checks what rules, separated by `; `, say of an object, `[namespace/]name`; an empty reason means allowed.
fn check(rules: &str, qualified: &str, object: &str, reason: &str) {
    let (namespace, name) = object.split_once('/').unwrap_or(("", object));
    let found = filter(rules).refuses(Direction::Down, &known(qualified), &ObjectName::new(namespace, name));
    assert_eq!(found.unwrap_or_default(), reason, "{rules:?} of {qualified} {object}");
}

#[test]
fn allows_everything_by_default() {
    assert!(Filter::default().is_empty());
    assert!(filter("# nothing; ;   ").is_empty());
    assert!(!filter("deny secrets").is_empty());
    check("", "secrets", "kube-system/x", "");
    check("", "namespaces", "kube-system", "");
    check("", "clusterroles.rbac.authorization.k8s.io", "x", "");
}

#[test]
fn denies_a_type_in_every_namespace_and_no_other_type() {
    for (rules, qualified, object, reason) in [
        ("deny secrets", "secrets", "shop/x", "--deny secrets"),
        ("deny secrets", "secrets.example.org", "shop/x", ""),
        ("deny secrets", "configmaps", "shop/x", ""),
        (
            "deny deployments.apps",
            "deployments.apps",
            "a/x",
            "--deny deployments.apps",
        ),
        (
            "deny deployment.apps",
            "deployments.apps",
            "a/x",
            "--deny deployment.apps",
        ),
        ("deny deploy.apps", "deployments.apps", "a/x", ""),
        ("deny *.example.org", "gauges.example.org", "x", "--deny *.example.org"),
        (
            "deny *.example.org",
            "secrets.example.org",
            "a/x",
            "--deny *.example.org",
        ),
        ("deny *.example.org", "gauges.sub.example.org", "x", ""),
        ("deny *.example.org", "secrets", "a/x", ""),
        ("deny namespaces", "namespaces", "shop", "--deny namespaces"),
        ("deny namespaces", "configmaps", "shop/x", ""),
        ("deny secrets; deny *.apps", "deployments.apps", "a/x", "--deny *.apps"),
        (
            "deny secrets; allow-namespace shop",
            "secrets",
            "shop/x",
            "--deny secrets",
        ),
    ] {
        check(rules, qualified, object, reason);
    }
    assert_eq!(
        filter("deny secrets").refuses_type(&known("secrets")).as_deref(),
        Some("--deny secrets")
    );
    assert_eq!(filter("deny-namespace *").refuses_type(&known("secrets")), None);
}

#[test]
fn bounds_namespaces_and_what_is_in_them() {
    const OUTSIDE: &str = "not in --allow-namespace";
    for (rules, qualified, object, reason) in [
        ("allow-namespace shop", "secrets", "shop/x", ""),
        ("allow-namespace shop", "secrets", "shop-a/x", OUTSIDE),
        ("allow-namespace shop", "namespaces", "shop", ""),
        ("allow-namespace shop", "namespaces", "default", OUTSIDE),
        ("allow-namespace shop", "gauges.example.org", "x", ""),
        ("allow-namespace shop-*", "secrets", "shop-a/x", ""),
        ("allow-namespace shop-*", "secrets", "shop/x", OUTSIDE),
        ("allow-namespace a; allow-namespace b*", "secrets", "bc/x", ""),
        ("allow-namespace a; allow-namespace b*", "secrets", "c/x", OUTSIDE),
        (
            "deny-namespace kube-*",
            "secrets",
            "kube-system/x",
            "--deny-namespace kube-*",
        ),
        (
            "deny-namespace kube-*",
            "namespaces",
            "kube-system",
            "--deny-namespace kube-*",
        ),
        ("deny-namespace kube-*", "secrets", "kube/x", ""),
        ("deny-namespace kube-*", "gauges.example.org", "kube-x", ""),
        ("deny-namespace *", "secrets", "a/x", "--deny-namespace *"),
    ] {
        check(rules, qualified, object, reason);
    }
}

#[test]
fn what_refuses_wins_in_any_order() {
    for rules in [
        "allow-namespace shop-*; deny-namespace shop-x",
        "deny-namespace shop-x; allow-namespace shop-*",
        "deny-namespace shop-x; allow-namespace shop-x; allow-namespace *",
    ] {
        check(rules, "secrets", "shop-x/x", "--deny-namespace shop-x");
        check(rules, "namespaces", "shop-x", "--deny-namespace shop-x");
        check(rules, "secrets", "shop-y/x", "");
    }
}

#[test]
fn an_object_of_unclear_scope_is_refused() {
    let bounded = filter("allow-namespace shop");
    let without = bounded.refuses(Direction::Down, &known("secrets"), &ObjectName::new("", "x"));
    assert!(without.is_some());
    let within = bounded.refuses(
        Direction::Down,
        &known("gauges.example.org"),
        &ObjectName::new("other", "x"),
    );
    assert!(within.is_some());
}

#[test]
fn reads_a_rule_back_as_it_was_written() {
    for rule in [
        "deny secrets",
        "deny deployments.apps",
        "deny *.example.org",
        "allow-namespace shop-*",
        "allow-namespace *",
        "deny-namespace kube-system",
    ] {
        assert_eq!(Filter::parse_rule(rule).unwrap().to_string(), rule);
    }
    let spaced = Filter::parse_rule("  deny \t secrets ").unwrap();
    assert_eq!(spaced.to_string(), "deny secrets");
}

#[test]
fn refuses_a_rule_that_would_never_match() {
    const TYPE: &str = "must be a lowercase plural with its group, such as secrets, deployments.apps or *.example.org";
    const CORE: &str = "is no plural of the core group; write the group too, such as deployments.apps";
    const NAMESPACE: &str = "must be the name of a namespace, with a * at its end for all names that begin so";
    const WORD: &str = "must begin with deny, allow-namespace or deny-namespace";
    for (rule, expected) in [
        ("deny", format!("deny \"\": {TYPE}")),
        ("deny *", format!("deny \"*\": {TYPE}")),
        ("deny *.", format!("deny \"*.\": {TYPE}")),
        ("deny sec*", format!("deny \"sec*\": {TYPE}")),
        (
            "deny Secrets",
            format!("deny \"Secrets\": {TYPE}, did you mean secrets?"),
        ),
        ("deny deployments.", format!("deny \"deployments.\": {TYPE}")),
        ("deny .apps", format!("deny \".apps\": {TYPE}")),
        ("deny x.*.org", format!("deny \"x.*.org\": {TYPE}")),
        ("deny pods/exec", format!("deny \"pods/exec\": {TYPE}")),
        ("deny secrets pods", format!("deny \"secrets pods\": {TYPE}")),
        (
            "deny secret",
            "deny \"secret\": is no plural of the core group, did you mean secrets?".to_owned(),
        ),
        (
            "deny cm",
            "deny \"cm\": is no plural of the core group, did you mean configmaps?".to_owned(),
        ),
        (
            "deny secrets.core",
            "deny \"secrets.core\": the core group has no name: write secrets".to_owned(),
        ),
        (
            "deny secrets.v1",
            "deny \"secrets.v1\": the core group has no name: write secrets".to_owned(),
        ),
        (
            "deny deployments.apps.v1",
            "deny \"deployments.apps.v1\": v1 is a version: write deployments.apps".to_owned(),
        ),
        ("deny roles", format!("deny \"roles\": {CORE}")),
        ("deny deployments", format!("deny \"deployments\": {CORE}")),
        ("allow-namespace", format!("allow-namespace \"\": {NAMESPACE}")),
        ("allow-namespace a*b", format!("allow-namespace \"a*b\": {NAMESPACE}")),
        ("deny-namespace **", format!("deny-namespace \"**\": {NAMESPACE}")),
        ("deny-namespace *-x", format!("deny-namespace \"*-x\": {NAMESPACE}")),
        ("deny-namespace Shop", format!("deny-namespace \"Shop\": {NAMESPACE}")),
        ("deny-namespace a,b", format!("deny-namespace \"a,b\": {NAMESPACE}")),
        ("allow secrets", format!("\"allow secrets\": {WORD}")),
        ("--deny secrets", format!("\"--deny secrets\": {WORD}")),
    ] {
        assert_eq!(Filter::parse_rule(rule).unwrap_err().to_string(), expected);
    }
}

#[test]
fn names_file_and_line_of_a_wrong_rule() {
    let text = "# bounds\r\n\r\ndeny secrets # all of them\r\n  allow-namespace shop-*\r\nallow secrets\n";
    let found = Filter::default().add_file("/etc/filter", text);
    assert_eq!(
        found.unwrap_err().to_string(),
        "/etc/filter line 5: \"allow secrets\": must begin with deny, allow-namespace or deny-namespace"
    );
    let good: Vec<_> = text.lines().take(4).collect();
    assert_eq!(
        filter(&good.join("\n"))
            .rules
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["deny secrets", "allow-namespace shop-*"]
    );
}

#[test]
fn what_is_served_a_second_time_is_denied_alike() {
    for (rules, qualified, reason) in [
        (
            "deny clusterroles.rbac.authorization.k8s.io",
            "clusterroles.authorization.openshift.io",
            "--deny clusterroles.rbac.authorization.k8s.io",
        ),
        (
            "deny *.rbac.authorization.k8s.io",
            "rolebindings.authorization.openshift.io",
            "--deny *.rbac.authorization.k8s.io",
        ),
        (
            "deny *.rbac.authorization.k8s.io",
            "rolebindingrestrictions.authorization.openshift.io",
            "",
        ),
        (
            "deny roles.authorization.openshift.io",
            "roles.rbac.authorization.k8s.io",
            "--deny roles.authorization.openshift.io",
        ),
        ("deny namespaces", "projects.project.openshift.io", "--deny namespaces"),
        (
            "deny projects.project.openshift.io",
            "namespaces",
            "--deny projects.project.openshift.io",
        ),
        ("deny secrets", "projects.project.openshift.io", ""),
        (
            "deny-namespace shop",
            "projects.project.openshift.io",
            "--deny-namespace shop",
        ),
        (
            "allow-namespace field",
            "projects.project.openshift.io",
            "not in --allow-namespace",
        ),
    ] {
        check(rules, qualified, "shop", reason);
    }
}
