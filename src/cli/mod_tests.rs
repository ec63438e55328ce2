use kube_lite::{ObjectName, ResourceType};

use super::*;
use crate::plan::Direction;

fn check(line: &str) -> Result<Invocation, String> {
    parse(line.split(' ').map(OsString::from)).map_err(|error| error.to_string())
}

#[test]
fn runs_when_called_by_its_go_name() {
    let flags = "--from-kubeconfig=a --sync-target-uid=b --v=3 --qps=-1";
    let expected = check(&format!("edge-syncer run {flags}")).unwrap();
    assert!(matches!(expected, Invocation::Run(_)));
    assert_eq!(check(&format!("/ko-app/syncer {flags}")).unwrap(), expected);
    assert_eq!(check(&format!("/ko-app/syncer run {flags}")).unwrap(), expected);
}

#[cfg(feature = "publish")]
#[test]
fn publishes_when_called_by_the_name_of_kcps_agent() {
    for flags in ["", " --namespace=a --kcp-kubeconfig=b"] {
        let called = check(&format!("/usr/local/bin/api-syncagent{flags}")).unwrap();
        assert_eq!(called, check(&format!("edge-syncer publish{flags}")).unwrap());
        assert!(matches!(called, Invocation::Refuse(_)), "{flags}");
    }
    assert!(check("/usr/local/bin/api-syncagent publish").is_err());
    let called = check("api-syncagent render a").unwrap();
    assert_eq!(called, check("edge-syncer publish render a").unwrap());
    assert!(matches!(called, Invocation::PublishRender(_)));
}

#[test]
fn prints_help_and_version() {
    let version = format!("edge-syncer {}\n", env!("CARGO_PKG_VERSION"));
    for line in ["edge-syncer --version", "edge-syncer -V", "/ko-app/syncer --version"] {
        assert_eq!(check(line).unwrap(), Invocation::Print(version.clone()));
    }
    for line in ["edge-syncer version", "/ko-app/syncer version"] {
        let Invocation::Print(text) = check(line).unwrap() else {
            panic!("{line}");
        };
        let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(text.starts_with(&version), "{text}");
        assert_eq!(names, ["edge-syncer", "commit:", "target:", "date:"]);
    }
    for line in [
        "edge-syncer --help",
        "edge-syncer help",
        "edge-syncer -h",
        "edge-syncer help --help",
        "edge-syncer completion --help",
        "edge-syncer man -h",
        "edge-syncer help man",
    ] {
        assert!(
            matches!(check(line).unwrap(), Invocation::Print(text) if text.contains("run")),
            "{line}"
        );
    }
    for line in [
        "edge-syncer run --help",
        "syncer --help",
        "syncer -h",
        "edge-syncer run help",
    ] {
        assert!(
            matches!(check(line).unwrap(), Invocation::Print(text) if text.contains("--qps")),
            "{line}"
        );
    }
    assert!(matches!(check("edge-syncer").unwrap(), Invocation::Help(_)));
}

#[test]
fn the_system_is_out_of_bounds_unless_a_flag_says_otherwise() {
    for (program, flag, bounded) in [
        ("edge-syncer run", "", true),
        ("/ko-app/syncer", "", true),
        ("edge-syncer run", " --allow-system=false", true),
        ("edge-syncer run", " --allow-system", false),
        ("/ko-app/syncer", " --allow_system=true", false),
    ] {
        let line = format!("{program} --from-kubeconfig=a --sync-target-uid=b{flag}");
        let Invocation::Run(settings) = check(&line).unwrap() else {
            panic!("{line}");
        };
        let name = ObjectName::new("kube-system", "x");
        let refusal = settings
            .filter
            .refuses(Direction::Down, &ResourceType::config_maps(), &name);
        assert_eq!(refusal.is_some(), bounded, "{line}");
    }
}

#[test]
fn a_file_of_credentials_needs_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("file"), "").unwrap();
    for (place, why) in [
        (path("file"), None),
        (path("new"), None),
        ("new".into(), None),
        (folder.path().to_owned(), Some("it is a folder")),
        (path("none/new"), Some("its folder is not there")),
        (path("file/new"), Some("its folder is not there")),
    ] {
        let found = check_place(&place).map_err(|error| error.to_string());
        let expected = why.map(|why| {
            format!(
                "--credentials-file \"{}\": {why} (see edge-syncer run --help)",
                place.display()
            )
        });
        assert_eq!(found.err(), expected);
    }
}

#[test]
fn names_the_help_of_what_was_called() {
    for (line, expected) in [
        (
            "edge-syncer run --nonsense",
            "unknown flag --nonsense (see edge-syncer run --help)",
        ),
        (
            "edge-syncer nonsense",
            "unknown command \"nonsense\" (see edge-syncer --help)",
        ),
        (
            "edge-syncer completion",
            "completion: name the shell: bash, zsh or fish (see edge-syncer --help)",
        ),
        (
            "edge-syncer completion fsih",
            "completion \"fsih\": must be bash, zsh or fish, did you mean fish? (see edge-syncer --help)",
        ),
        (
            "edge-syncer completion bash zsh",
            "unexpected argument \"zsh\" (see edge-syncer --help)",
        ),
        (
            "edge-syncer man run",
            "unexpected argument \"run\" (see edge-syncer --help)",
        ),
        (
            "/ko-app/syncer --nonsense",
            "unknown flag --nonsense (see syncer --help)",
        ),
        (
            "/ko-app/syncer nonsense",
            "unexpected argument \"nonsense\" (see syncer --help)",
        ),
        (
            "/ko-app/syncer",
            "--from-kubeconfig and --sync-target-uid are missing: they must be the kubeconfig file of the hub and the \
                 UID of the sync target: any name that stays the same will do, such as site-7 (see syncer --help)",
        ),
    ] {
        assert_eq!(check(line).unwrap_err(), expected);
    }
}
