//! As whom `gen` asks the hub, and where the token goes that it gets.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::bench::{IMAGE, command, finish, generate, kubeconfig_in, manifest, new_name, token_in};
use crate::support::kubeconfig::{ADMIN_TOKEN, base64};
use crate::support::manifests::documents;
use crate::support::process::Folder;
use crate::support::{Ca, Credential, KubeconfigParts, shared_pair};

#[tokio::test]
async fn finds_the_hub_as_kubectl_does() {
    let pair = shared_pair().await;
    let hub = &pair.hub;
    let url = hub.url().to_owned();
    let folder = Folder::create("home");
    fs::create_dir(folder.path().join(".kube")).expect("the folder can be written");
    fs::copy(hub.kubeconfig(), folder.path().join(".kube/config")).expect("the folder can be written");
    let ca = folder.write("ca.crt", hub.ca_pem());
    let (ca, home) = (ca.display().to_string(), folder.path().display().to_string());
    let with_file = |parts| hub.write_kubeconfig("of-gen", &parts).display().to_string();
    let by_files = with_file(KubeconfigParts::with(|parts| {
        (parts.ca, parts.credential, parts.relative_paths) = (Ca::File, Credential::CertFiles, true);
    }));
    let list = format!("/nonexistent/config:{by_files}");
    let other = KubeconfigParts::with(|parts| {
        (parts.context, parts.server) = ("other".into(), Some("https://127.0.0.1:1".into()));
    });
    let two = KubeconfigParts::with(|parts| {
        parts.others = vec![hub.kubeconfig_entry(&other)];
        parts.current_context = Some("other".into());
    });
    let two = hub.write_kubeconfig("two", &two).display().to_string();
    for (env, flags) in [
        (("HOME", home.as_str()), vec![]),
        (("KUBECONFIG", &list), vec![]),
        (("KUBECONFIG", &two), vec!["--context=main"]),
        (("KUBECONFIG", &two), vec!["--server", &url]),
        (
            ("X", ""),
            vec!["-s", &url, "--token", ADMIN_TOKEN, "--certificate-authority", &ca],
        ),
        (
            ("X", ""),
            vec!["-s", &url, "--token", ADMIN_TOKEN, "--insecure-skip-tls-verify"],
        ),
    ] {
        let name = new_name();
        let args = [&[name.as_str(), IMAGE, "-o", "-"], flags.as_slice()].concat();
        let finished = finish(command(&args).env(env.0, env.1)).await.done();
        let cluster = kubeconfig_in(&documents(&finished.stdout))["clusters"][0]["cluster"].clone();
        let expected = if flags.contains(&"--insecure-skip-tls-verify") {
            json!({"server": url, "insecure-skip-tls-verify": true})
        } else {
            json!({"server": url, "certificate-authority-data": base64(hub.ca_pem())})
        };
        assert_eq!(cluster, expected, "{env:?} {flags:?}");
    }
}

#[tokio::test]
async fn runs_the_plugin_that_a_kubeconfig_names() {
    let pair = shared_pair().await;
    let folder = Folder::create("plugin");
    let answer = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": ADMIN_TOKEN}});
    let plugin = folder.write(
        "plugin",
        format!("#!/bin/sh\necho \"asked for by $1\" >&2\necho '{answer}'\n"),
    );
    fs::set_permissions(&plugin, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let kubeconfig = json!({
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": pair.hub.url(), "certificate-authority-data": base64(pair.hub.ca_pem())}}],
        "users": [{"name": "a", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "args": ["gen"],
            "interactiveMode": "Never",
        }}}],
    });
    let kubeconfig = folder.write("kubeconfig", kubeconfig.to_string());
    let finished = generate(&kubeconfig, &[&new_name(), IMAGE, "-o", "-"]).await.done();
    assert!(finished.stderr.contains("asked for by gen\n"), "{}", finished.stderr);
    assert_ne!(token_in(&kubeconfig_in(&documents(&finished.stdout))), ADMIN_TOKEN);

    // It is not for syncers: these run where there is no plugin.
    let mut run = tokio::process::Command::new(crate::support::Syncer::program());
    let flag = format!("--from-kubeconfig={}", kubeconfig.display());
    let refused = finish(run.args(["run", &flag, &flag.replace("from", "to"), "--sync-target-uid=u"])).await;
    refused.refused(2, "exec: it is not supported");
    assert!(
        refused
            .stderr
            .contains("edge-syncer gen makes a kubeconfig with a token"),
        "{}",
        refused.stderr
    );
    fs::write(&plugin, "#!/bin/sh\nexit 3\n").expect("it is ours");
    let failed = generate(&kubeconfig, &[&new_name(), IMAGE, "-o", "-"]).await;
    failed.refused(2, "plugin failed: exit status: 3");
}

#[tokio::test]
async fn a_token_is_in_the_file_and_nowhere_else() {
    let pair = shared_pair().await;
    let folder = Folder::create("canary");
    let file = folder.path().join("out.yaml");
    let path = file.display().to_string();
    let name = new_name();
    let flags = [name.as_str(), IMAGE, "-o", &path, "--v=9"];
    let finished = generate(&pair.hub.kubeconfig(), &flags).await.done();
    let text = fs::read_to_string(&file).expect("it was written");
    let token = token_in(&kubeconfig_in(&documents(&text)));
    assert_eq!(
        file.metadata().expect("it is there").permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(text.matches(&token).count(), 1);
    let (head, tail) = (&token[..30], &token[token.len() - 30..]);
    for printed in [&finished.stdout, &finished.stderr] {
        for part in [head, tail, ADMIN_TOKEN] {
            assert!(!printed.contains(part), "{printed}");
        }
    }
    assert_eq!(finished.stdout, "");
    let hub = pair.hub.objects();
    for kind in ["secrets", "configmaps"] {
        for object in hub.list("v1", kind, "", "").await {
            assert!(!object.to_string().contains(tail), "{object}");
        }
    }
    // Nor in what is said about a hub that refuses the admin's own.
    let admin = "canary-in-a-coal-mine";
    let wrong = generate(
        &pair.hub.kubeconfig(),
        &[&name, IMAGE, "-o", &path, "--token", admin, "--v=9"],
    )
    .await;
    wrong.refused(1, "Unauthorized");
    assert!(!wrong.stderr.contains(admin), "{}", wrong.stderr);
    assert_eq!(fs::read_to_string(&file).expect("it is still there"), text);
}

#[tokio::test]
async fn the_edge_may_reach_the_hub_by_another_url() {
    let pair = shared_pair().await;
    let kubeconfig = pair.hub.kubeconfig();
    let name = new_name();
    for (flags, expected) in [
        (
            &["--hub-url=https://hub.example.org/clusters/abc"][..],
            "https://hub.example.org:443/clusters/abc",
        ),
        // It is kept with the registration: the administrator's own URL may lead the edge nowhere.
        (&[], "https://hub.example.org:443/clusters/abc"),
        (&["--rotate"], "https://hub.example.org:443/clusters/abc"),
        (
            &["--hub-url=https://other.example.org:6443"],
            "https://other.example.org:6443",
        ),
        (&["--rotate"], "https://other.example.org:6443"),
    ] {
        let documents = manifest(&kubeconfig, &name, flags).await;
        let cluster = &kubeconfig_in(&documents)["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], expected, "{flags:?}");
    }
    for (url, note) in [
        (
            "--hub-url=http://127.0.0.1:8001",
            "note: http://127.0.0.1:8001/ is on the machine of the syncer",
        ),
        ("--hub-url=https://hub.example.org", ""),
    ] {
        let folder = Folder::create("noted");
        let path = folder.path().join("etc").display().to_string();
        let args = [&new_name(), "--format=systemd", "-o", &path, url];
        let said = generate(&kubeconfig, &args).await.done().stderr;
        let notes: Vec<&str> = said.lines().filter(|line| line.contains("unencrypted")).collect();
        assert_eq!(notes.len(), usize::from(!note.is_empty()), "{said}");
        assert!(said.contains(note), "{said}");
    }
    let noted = generate(&kubeconfig, &[&new_name(), IMAGE, "-o", "-"]).await.done();
    assert!(noted.stderr.contains("--hub-url"), "{}", noted.stderr);
}
