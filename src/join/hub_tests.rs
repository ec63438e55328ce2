use super::*;

fn identity() -> Identity {
    Identity {
        name: "site".into(),
        uid: "u-1".into(),
        namespace: "default".into(),
        at_edge: None,
        hub_url: None,
    }
}

fn owner() -> Value {
    json!({"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgeSyncConfig", "metadata": {"name": "site", "uid": "o-1"}})
}

fn rules() -> Rules {
    let events = json!([{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}]);
    Rules {
        everywhere: json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
        within: [("default".to_owned(), events)].into(),
    }
}

/// What belongs to a registration: account, role and binding in a namespace, cluster role and binding.
fn all_of(identity: &Identity) -> [Object; 5] {
    let all = owned(identity, &owner(), Rbac::Wide, &rules());
    all.try_into().ok().unwrap()
}

#[test]
fn what_is_given_in_a_namespace_is_bound_there_and_comes_before_what_is_given_everywhere() {
    let paths: Vec<String> = all_of(&identity()).iter().map(Object::path).collect();
    let id = identity().id();
    let of_rbac = "/apis/rbac.authorization.k8s.io/v1";
    let expected = [
        format!("/api/v1/namespaces/default/serviceaccounts/{id}"),
        format!("{of_rbac}/namespaces/default/roles/{id}"),
        format!("{of_rbac}/namespaces/default/rolebindings/{id}"),
        format!("{of_rbac}/clusterroles/{id}"),
        format!("{of_rbac}/clusterrolebindings/{id}"),
    ];
    assert_eq!(paths, expected);
}

#[test]
fn what_is_so_is_not_written() {
    let mut objects = Vec::from(all_of(&identity()));
    objects.push(config(&identity(), "edgesyncconfigs"));
    for object in objects {
        assert_eq!(step(None, &object.body, "site"), ObjectStep::Create);
        let mut found = object.body.clone();
        assert_eq!(
            step(Some(&found), &object.body, "site"),
            ObjectStep::Keep,
            "{}",
            object.label()
        );
        // What others have added, and what a server adds.
        found["metadata"]["labels"]["theirs"] = json!("1");
        found["metadata"]["resourceVersion"] = json!("5");
        found["secrets"] = json!([{"name": "x"}]);
        found["spec"] = json!({"more": 1});
        if let Some(owners) = found["metadata"]["ownerReferences"].as_array_mut() {
            owners.insert(0, json!({"kind": "Other", "name": "site", "uid": "o-9"}));
        }
        assert_eq!(
            step(Some(&found), &object.body, "site"),
            ObjectStep::Keep,
            "{}",
            object.label()
        );
    }
}

#[test]
fn what_is_not_so_is_changed_and_nothing_else() {
    let rules = rules().everywhere;
    let [account, _, _, role, binding] = all_of(&identity());
    let change = |object: &Object, pointer: &str, value: Value| {
        let mut found = object.body.clone();
        *found.pointer_mut(pointer).unwrap() = value;
        step(Some(&found), &object.body, "site")
    };
    assert_eq!(
        change(&role, "/rules", json!([])),
        ObjectStep::Patch(json!({"rules": rules}))
    );
    let subjects = binding.body["subjects"].clone();
    assert_eq!(
        change(&binding, "/subjects", json!(null)),
        ObjectStep::Patch(json!({"subjects": subjects}))
    );
    assert_eq!(change(&binding, "/roleRef/name", json!("x")), ObjectStep::Recreate);
    assert_eq!(
        change(&account, "/metadata/annotations", json!({"theirs": "1"})),
        ObjectStep::Patch(
            json!({"metadata": {"annotations": {"edge.kubestellar.io/rbac": "wide", "edge.kubestellar.io/sync-target-uid": "u-1"}}})
        )
    );
    let owners = account.body["metadata"]["ownerReferences"].clone();
    let other = json!({"kind": "Other", "name": "x", "uid": "o-9"});
    let former = json!({"kind": "EdgeSyncConfig", "name": "site", "uid": "o-0"});
    assert_eq!(
        change(&account, "/metadata/ownerReferences", json!([other, former])),
        ObjectStep::Patch(json!({"metadata": {"ownerReferences": [other, owners[0]]}}))
    );
}

#[test]
fn what_is_not_ours_is_refused() {
    let object = config(&identity(), "syncerconfigs");
    for labels in [
        json!(null),
        json!({}),
        json!({"edge.kubestellar.io/sync-target-name": "other"}),
    ] {
        let mut found = object.body.clone();
        found["metadata"]["labels"] = labels;
        assert!(
            matches!(step(Some(&found), &object.body, "site"), ObjectStep::Refuse(why) if why.contains("somebody else's"))
        );
    }
    let mut found = object.body.clone();
    found["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(
        matches!(step(Some(&found), &object.body, "site"), ObjectStep::Refuse(why) if why.contains("being deleted"))
    );
}

#[test]
fn a_registration_is_found_again() {
    let with_uid = |uid: &str| json!({"metadata": {"namespace": "ns", "name": "id", "annotations": {"edge.kubestellar.io/sync-target-uid": uid, "edge.kubestellar.io/syncer-namespace": "own"}}, "kind": "ServiceAccount"});
    let (config, account) = (with_uid("u-1"), with_uid("u-1"));
    let wanted = Wanted {
        name: "site",
        ..Wanted::default()
    };
    let found = |config: Option<&Value>, accounts: &[Value], wanted: &Wanted| {
        let known = identify(config, accounts, wanted)?;
        Ok::<_, String>(format!("{:?} {} {:?}", known.uid, known.namespace, known.at_edge))
    };
    let expected = |uid: &str, rest: &str| Ok(format!("{uid} {rest}"));
    assert_eq!(found(None, &[], &wanted), expected("None", "default None"));
    assert_eq!(
        found(Some(&config), &[], &wanted),
        expected("Some(\"u-1\")", "default None")
    );
    assert_eq!(
        found(Some(&json!({})), std::slice::from_ref(&account), &wanted),
        expected("Some(\"u-1\")", "ns Some(\"own\")")
    );
    let chosen = Wanted {
        uid: Some("u-1"),
        namespace: Some("ns"),
        at_edge: Some("other"),
        ..wanted.clone()
    };
    assert_eq!(
        found(None, &[], &chosen),
        expected("Some(\"u-1\")", "ns Some(\"other\")")
    );
    assert_eq!(
        found(Some(&config), std::slice::from_ref(&account), &chosen),
        expected("Some(\"u-1\")", "ns Some(\"other\")")
    );
    for (wanted, accounts, words) in [
        (
            Wanted {
                uid: Some("u-2"),
                ..wanted.clone()
            },
            vec![],
            "with the UID u-1, not u-2",
        ),
        (
            Wanted {
                namespace: Some("x"),
                ..wanted.clone()
            },
            vec![account.clone()],
            "in namespace ns, not x",
        ),
        (
            wanted,
            vec![account.clone(), account],
            "more than once (ServiceAccount/ns/id, ServiceAccount/ns/id)",
        ),
    ] {
        let error = found(Some(&config), &accounts, &wanted).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_url_of_the_hub_is_kept_until_another_is_given() {
    let first: Uri = "https://hub.example.org:6443/clusters/abc".parse().unwrap();
    let registered = Identity {
        hub_url: Some(first.clone()),
        ..identity()
    };
    let [account, ..] = all_of(&registered);
    let accounts = [account.body];
    let wanted = Wanted {
        name: "site",
        ..Wanted::default()
    };
    assert_eq!(identify(None, &accounts, &wanted).unwrap().hub_url, Some(first));
    let second: Uri = "https://other.example.org".parse().unwrap();
    let chosen = Wanted {
        hub_url: Some(&second),
        ..wanted.clone()
    };
    assert_eq!(
        identify(None, &accounts, &chosen).unwrap().hub_url.as_ref(),
        Some(&second)
    );
    let mut odd = accounts;
    odd[0]["metadata"]["annotations"][api::HUB_URL] = "hub".into();
    let error = identify(None, &odd, &wanted).unwrap_err();
    assert!(error.contains("hub-url") && error.contains("--hub-url"), "{error}");
    assert!(identify(None, &odd, &chosen).is_ok());
}

// Issue 46: the registration of an edge was removed by somebody who gave the UID of another one.
#[test]
fn what_is_registered_with_another_uid_is_not_removed() {
    let [account, ..] = all_of(&identity());
    for (uid, found, refuses) in [
        (Some("u-2"), vec![&account.body], true),
        (Some("u-1"), vec![&account.body], false),
        (None, vec![&account.body], false),
        // Only configs may still speak of it.
        (Some("u-2"), vec![], false),
    ] {
        let wanted = Wanted {
            name: "site",
            uid,
            ..Wanted::default()
        };
        let why = is_another(found.into_iter(), &wanted);
        assert_eq!(why.is_some(), refuses, "{uid:?}");
        assert!(why.is_none_or(|why| why.starts_with("site is registered with the UID u-1, not u-2")));
    }
}

// Issue 46: a second name got the UID of an edge that is registered.
#[test]
fn the_uid_of_another_edge_is_not_used() {
    let [account, ..] = all_of(&identity());
    let accounts = [account.body];
    assert_eq!(is_taken(&accounts, "u-2"), None);
    assert_eq!(is_taken(&[], "u-1"), None);
    let why = is_taken(&accounts, "u-1").expect("it is taken");
    assert!(why.starts_with("the UID u-1 is that of site, "), "{why}");
}
