use super::*;

fn raw() -> RunArgs {
    RunArgs {
        from_kubeconfig: Some("hub".to_owned()),
        sync_target_uid: Some("u".to_owned()),
        ..RunArgs::default()
    }
}

/// Sets one flag beside the required ones and returns the message, if there is one.
fn check(change: impl FnOnce(&mut RunArgs)) -> Result<Settings, String> {
    let mut raw = raw();
    change(&mut raw);
    let checked = Settings::check(raw, Klog::default());
    checked.map_err(|error| error.to_string().replace(" (see edge-syncer run --help)", ""))
}

#[test]
fn has_the_defaults_of_the_go_syncer() {
    let found = check(|_| {}).unwrap();
    let hub = AccessSource::Kubeconfig {
        path: "hub".into(),
        context: None,
        flags: HUB,
    };
    assert_eq!(found.hub, hub);
    let in_cluster = AccessSource::InCluster {
        flag: "--to-kubeconfig",
    };
    assert_eq!(found.edge, in_cluster);
    assert_eq!(found.rate, Some(Rate { qps: 30.0, burst: 20 }));
    assert!(found.is_default_rate);
    assert_eq!(found.verbosity, LevelFilter::Info);
    assert_eq!(found.listen_address, None);
    assert_eq!((found.hub_mode, found.edge_mode), (Mode::Watch, Mode::Watch));
    assert!(!found.delete_adopted && found.filter.is_empty());
    assert_eq!(found.revert_changes_from, ["kubectl", "kubectl-*"]);
}

#[test]
fn limits_the_rate_as_client_go_does() {
    for (qps, burst, expected) in [
        ("5", "7", Some(Rate { qps: 5.0, burst: 7 })),
        ("0.5", "1", Some(Rate { qps: 0.5, burst: 1 })),
        ("0", "1", Some(Rate { qps: 30.0, burst: 1 })),
        ("-1", "0", None),
    ] {
        let set = |raw: &mut RunArgs| {
            raw.qps = Some(qps.to_owned());
            raw.burst = Some(burst.to_owned());
        };
        let found = check(set).unwrap();
        assert_eq!(found.rate, expected, "{qps} {burst}");
        assert_eq!(found.is_default_rate, qps == "0", "{qps}");
    }
}

#[test]
fn paces_each_side_by_its_own_mode() {
    let poll = |seconds| Mode::Poll(Duration::from_secs(seconds));
    for (hub, edge, interval, expected) in [
        ("watch", "watch", "30s", (Mode::Watch, Mode::Watch)),
        ("poll", "watch", "", (poll(15), Mode::Watch)),
        ("watch", "poll", "1m30s", (Mode::Watch, poll(90))),
        ("poll", "poll", "1s", (poll(1), poll(1))),
    ] {
        let set = |raw: &mut RunArgs| {
            raw.mode = Some(hub.to_owned());
            raw.edge_mode = Some(edge.to_owned());
            raw.poll_interval = not_empty(Some(interval.to_owned()));
        };
        let found = check(set).unwrap();
        assert_eq!((found.hub_mode, found.edge_mode), expected, "{hub} {edge} {interval}");
    }
}

#[test]
fn holds_a_lease_only_where_it_is_asked_for() {
    for (elect, duration, expected) in [
        (false, None, None),
        (false, Some("10s"), None),
        (true, None, Some(15)),
        (true, Some("3s"), Some(3)),
        (true, Some("1h"), Some(3600)),
    ] {
        let set = |raw: &mut RunArgs| {
            raw.leader_elect = elect;
            raw.lease_duration = duration.map(str::to_owned);
        };
        let found = check(set).unwrap().lease_duration;
        assert_eq!(found, expected.map(Duration::from_secs), "{elect} {duration:?}");
    }
    for text in ["", "15", "2999ms", "61m"] {
        let message = check(|raw| raw.lease_duration = Some(text.to_owned())).unwrap_err();
        let hint = if text == "15" { "; did you mean 15s?" } else { "" };
        let expected = format!("--lease-duration {text:?}: must be a duration from 3s to 1h, such as 15s{hint}");
        assert_eq!(message, expected);
    }
}

/// What a message proposes is taken, and its own bounds are what it names.
#[test]
fn each_duration_is_reported_with_its_own_bounds() {
    type Set = fn(&mut RunArgs, String);
    let flags: [(&Span, Set, &str); 5] = [
        (&POLL_INTERVAL, |raw, text| raw.poll_interval = Some(text), "500ms"),
        (&STATUS_INTERVAL, |raw, text| raw.status_interval = Some(text), "-1s"),
        (
            &HEARTBEAT_INTERVAL,
            |raw, text| raw.heartbeat_interval = Some(text),
            "500ms",
        ),
        (&HOLD_DELETES_FOR, |raw, text| raw.hold_deletes_for = Some(text), "1d"),
        (&LEASE_DURATION, |raw, text| raw.lease_duration = Some(text), "2h"),
    ];
    for (span, set, wrong) in flags {
        let message = check(|raw| set(raw, wrong.to_owned())).unwrap_err();
        assert_eq!(message, format!("{} {wrong:?}: must be {}", span.flag, span.allowed));
        let message = check(|raw| set(raw, "10".to_owned())).unwrap_err();
        assert!(message.ends_with("; did you mean 10s?"), "{message}");
        let proposed = message
            .split([' ', ',', ';', '?'])
            .filter(|word| duration::parse(word).is_some());
        for proposal in proposed {
            assert!(
                check(|raw| set(raw, proposal.to_owned())).is_ok(),
                "{message}: {proposal}"
            );
        }
        assert_eq!(
            check(|raw| set(raw, "0s".to_owned())).is_ok(),
            span.or_zero,
            "{}",
            span.flag
        );
    }
}

#[test]
fn reports_all_that_is_missing_at_once() {
    let expected = "--from-kubeconfig and --sync-target-uid are missing: they must be the kubeconfig file of the hub and the \
                    UID of the sync target: any name that stays the same will do, such as site-7";
    for empty in [None, Some(String::new())] {
        let found = check(|raw| (raw.from_kubeconfig, raw.sync_target_uid) = (empty.clone(), empty.clone()));
        assert_eq!(found.err().as_deref(), Some(expected));
    }
}

#[test]
fn a_home_that_no_shell_has_filled_in_is_reported() {
    type Set = fn(&mut RunArgs, String);
    let flags: [(&str, Set); 3] = [
        ("--from-kubeconfig", |raw, path| raw.from_kubeconfig = Some(path)),
        ("--to-kubeconfig", |raw, path| raw.to_kubeconfig = Some(path)),
        ("--filter-file", |raw, path| raw.filter_file = Some(path)),
    ];
    for (flag, set) in flags {
        let message = check(|raw| set(raw, "~/hub".to_owned())).unwrap_err();
        let expected = format!("{flag} \"~/hub\": ~ was not expanded");
        assert!(message.starts_with(&expected), "{message}");
        assert!(check(|raw| set(raw, "./~/hub".to_owned())).is_ok());
    }
}

fn texts(given: &[&str]) -> Vec<String> {
    given.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn reverts_changes_of_the_given_managers_alone() {
    for (given, expected) in [
        (&[""][..], &[][..]),
        (&["", "a"], &["a"]),
        (&["a,b-*", "c d , *"], &["a", "b-*", "c d", "*"]),
    ] {
        let found = check(|raw| raw.revert_changes_from = texts(given)).unwrap();
        assert_eq!(found.revert_changes_from, expected, "{given:?}");
    }
}

#[test]
fn takes_the_flags_of_the_filter_for_rules() {
    let set = |raw: &mut RunArgs| {
        raw.deny = texts(&["secrets, *.apps", "pods"]);
        raw.allow_namespace = texts(&["shop-*"]);
        raw.deny_namespace = texts(&["a,b"]);
    };
    let mut expected = Filter::default();
    let text = "deny secrets\ndeny *.apps\ndeny pods\nallow-namespace shop-*\ndeny-namespace a\ndeny-namespace b";
    expected.add_file("", text).unwrap();
    assert_eq!(check(set).unwrap().filter, expected);
}

#[test]
fn says_what_is_allowed_of_paces_and_patterns() {
    let some = |text: &str| Some(text.to_owned());
    for (found, expected) in [
        (
            check(|raw| raw.edge_mode = some("")),
            "--edge-mode \"\": must be watch or poll",
        ),
        (
            check(|raw| raw.poll_interval = some("15")),
            "--poll-interval \"15\": must be a duration of at least 1s, such as 15s or 1m30s; did you mean 15s?",
        ),
        (
            check(|raw| raw.poll_interval = some("999ms")),
            "--poll-interval \"999ms\": must be a duration of at least 1s, such as 15s or 1m30s",
        ),
        (
            check(|raw| raw.revert_changes_from = texts(&["a,k*l"])),
            "--revert-changes-from \"k*l\": must be the name of a field manager, with a * at its end for all names that \
             begin so",
        ),
        (
            check(|raw| raw.deny = texts(&["deployments"])),
            "--deny \"deployments\": is no plural of the core group; write the group too, such as deployments.apps",
        ),
    ] {
        assert_eq!(found.err().as_deref(), Some(expected));
    }
}

#[test]
fn refuses_an_empty_bound() {
    for (flag, found) in [
        ("--deny", check(|raw| raw.deny = texts(&[""]))),
        ("--deny", check(|raw| raw.deny = texts(&["secrets,"]))),
        ("--allow-namespace", check(|raw| raw.allow_namespace = texts(&[""]))),
        ("--deny-namespace", check(|raw| raw.deny_namespace = texts(&["a", ""]))),
    ] {
        let message = found.unwrap_err();
        assert!(message.starts_with(&format!("{flag} \"\": must be ")), "{message}");
    }
}

#[test]
fn takes_an_empty_value_for_none() {
    let found = check(|raw| {
        raw.to_kubeconfig = Some(String::new());
        raw.to_context = Some(String::new());
    });
    assert_eq!(
        found.unwrap().edge,
        AccessSource::InCluster {
            flag: "--to-kubeconfig"
        }
    );
}

#[test]
fn says_which_flag_is_wrong_and_what_is_allowed() {
    let some = |text: &str| Some(text.to_owned());
    let qps = |text: &str| {
        let text = some(text);
        check(move |raw| raw.qps = text)
    };
    let burst = |text: &str| {
        let text = some(text);
        check(move |raw| raw.burst = text)
    };
    let mode = |text: &str| {
        let text = some(text);
        check(move |raw| raw.mode = text)
    };
    for (found, expected) in [
        (
            check(|raw| raw.from_kubeconfig = None),
            "--from-kubeconfig is missing: it must be the kubeconfig file of the hub",
        ),
        (
            check(|raw| raw.sync_target_uid = some("")),
            "--sync-target-uid is missing: it must be the UID of the sync target: any name that stays the same will do, such as \
             site-7",
        ),
        (
            check(|raw| raw.to_context = some("x")),
            "--to-context \"x\": must come with --to-kubeconfig",
        ),
        (qps("x"), "--qps \"x\": must be a number"),
        (qps("NaN"), "--qps \"NaN\": must be a number"),
        (qps("inf"), "--qps \"inf\": must be a number"),
        (
            qps("1e-300"),
            "--qps \"1e-300\": must be at least 0.001, or 0 for the default, or less for no limit",
        ),
        (burst("0"), "--burst \"0\": must be an integer greater than 0"),
        (burst("-1"), "--burst \"-1\": must be an integer greater than 0"),
        (burst("1.5"), "--burst \"1.5\": must be an integer greater than 0"),
        (
            burst("99999999999"),
            "--burst \"99999999999\": must be an integer greater than 0",
        ),
        (mode("x"), "--mode \"x\": must be watch or poll"),
        (
            check(|raw| raw.log_format = some("Json")),
            "--log-format \"Json\": must be text or json, did you mean json?",
        ),
        (
            check(|raw| raw.listen_address = some("8080")),
            "--listen-address \"8080\": must be a port after an address, such as :8080 for every address, localhost:8080, \
             10.0.0.1:8080 or [::1]:8080",
        ),
    ] {
        assert_eq!(found.err().as_deref(), Some(expected));
    }
}

#[test]
fn keeps_renewed_tokens_where_one_flag_says() {
    let set = |secret: Option<&str>, file: Option<&str>| {
        check(|raw| {
            raw.credentials_secret = secret.map(str::to_owned);
            raw.credentials_file = file.map(str::to_owned);
        })
        .map(|settings| settings.keep)
    };
    assert_eq!(set(None, None), Ok(None));
    let secret = Keep::Secret(ObjectName::new("edge-syncer", "site-7.hub"));
    assert_eq!(set(Some("edge-syncer/site-7.hub"), None), Ok(Some(secret)));
    assert_eq!(set(None, Some("a/b")), Ok(Some(Keep::File("a/b".into()))));
    for wrong in ["", "site-7", "a/b/c", "/b", "a/", "A/b", "a.b/c", "a/b..c", "a/B"] {
        let expected = "must be namespace and name of a Secret, such as edge-syncer/site-7";
        let expected = format!("--credentials-secret {wrong:?}: {expected}");
        assert_eq!(set(Some(wrong), None), Err(expected));
    }
    let both = "--credentials-secret and --credentials-file: must not be given both";
    assert_eq!(set(Some("a/b"), Some("c")), Err(both.to_owned()));
    assert!(
        set(None, Some(""))
            .unwrap_err()
            .starts_with("--credentials-file \"\": must be")
    );
    assert!(
        set(None, Some("~/x"))
            .unwrap_err()
            .starts_with("--credentials-file \"~/x\": ~")
    );
}
