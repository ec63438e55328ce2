use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use secrecy::ExposeSecret as _;

const FIRST: &str = "clusters: [{name: c, cluster: {server: 'https://first.example', certificate-authority: ca}}]\n\
    contexts: [{name: a, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: first}}]\n";
const SECOND: &str = "current-context: b\n\
    clusters: [{name: c, cluster: {server: 'https://second.example'}}, {name: d, cluster: {server: 'https://d.example'}}]\n\
    contexts: [{name: b, context: {cluster: c, user: v}}, {name: e, context: {cluster: d, user: u}}]\n\
    users: [{name: u, user: {token: second}}, {name: v, user: {tokenFile: token}}]\n";

/// Loads both files, with changes; FOLDER in the answer stands for theirs.
fn check(change: impl FnOnce(&mut Admin)) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("one")).unwrap();
    fs::create_dir(path("two")).unwrap();
    fs::write(path("one/config"), FIRST).unwrap();
    fs::write(path("two/config"), SECOND).unwrap();
    fs::write(path("two/token"), "of-file").unwrap();
    let made = rcgen::generate_simple_self_signed(["hub.example".to_owned()]).unwrap();
    fs::write(path("one/ca"), made.cert.pem()).unwrap();
    let mut admin = Admin {
        files: vec![path("none"), path("one/config"), path("two/config")],
        named_by: "KUBECONFIG",
        flags: AdminFlags {
            context: "--context",
            user: "--user",
            without: "name one with --kubeconfig",
        },
        ..Admin::default()
    };
    change(&mut admin);
    let loaded = load("hub", &admin);
    let folder = folder.path().display().to_string();
    let access = loaded.map_err(|error| error.to_string().replace(&folder, "FOLDER"))?;
    let user = &access.config.auth_info;
    let token = user.token.as_ref().map(|token| token.expose_secret().to_owned());
    let token = token.or_else(|| Some(user.token_file.as_ref()?.replace(&folder, "FOLDER")));
    let ca = if access.authority.is_some() { " with a CA" } else { "" };
    Ok(format!(
        "{} {}{ca}",
        access.config.cluster_url,
        token.unwrap_or_default()
    ))
}

#[test]
fn the_first_of_each_name_counts_and_paths_are_relative_to_their_file() {
    let found = check(|_| ());
    assert_eq!(
        found.as_deref(),
        Ok("https://first.example/ FOLDER/two/token with a CA")
    );
    let found = check(|admin| admin.context = Some("a".into()));
    assert_eq!(found.as_deref(), Ok("https://first.example/ first with a CA"));
    let found = check(|admin| admin.context = Some("e".into()));
    assert_eq!(found.as_deref(), Ok("https://d.example/ first"));
}

#[test]
fn flags_overrule_files() {
    let found = check(|admin| admin.user = Some("u".into()));
    assert_eq!(found.as_deref(), Ok("https://first.example/ first with a CA"));
    let found = check(|admin| {
        admin.token = Some("flag".into());
        admin.server = Some("https://flag.example:1/x".into());
        admin.insecure = true;
    });
    assert_eq!(found.as_deref(), Ok("https://flag.example:1/x flag"));
    let found = check(|admin| {
        admin.files.clear();
        admin.token = Some("flag".into());
        admin.server = Some("https://flag.example:1".into());
    });
    assert_eq!(found.as_deref(), Ok("https://flag.example:1/ flag"));
}

#[test]
fn says_what_is_wrong_without_a_token() {
    for (change, expected) in [
        (
            Box::new(|admin: &mut Admin| admin.context = Some("x".into())) as Box<dyn FnOnce(&mut Admin)>,
            "--context: \"x\" is not in the file, which has contexts \"a\", \"b\", \"e\"",
        ),
        (
            Box::new(|admin: &mut Admin| admin.user = Some("x".into())),
            "--user: \"x\" is not in the file, which has users \"u\", \"v\"",
        ),
        (
            Box::new(|admin: &mut Admin| admin.files.truncate(1)),
            "there is no kubeconfig: name one with --kubeconfig",
        ),
        (
            Box::new(|admin: &mut Admin| admin.must_exist = true),
            "FOLDER/none cannot be read: No such file or directory (os error 2)",
        ),
        (
            Box::new(|admin: &mut Admin| admin.token = Some("a\nb".into())),
            "token: it holds characters that no token has",
        ),
    ] {
        let found = check(change).unwrap_err();
        assert!(found.starts_with("hub (KUBECONFIG=FOLDER/none"), "{found}");
        assert!(found.ends_with(expected), "{found}");
    }
}

#[test]
fn a_plugin_is_run() {
    let answer = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "of-plugin"}});
    let found = check(|admin| {
        let plugin = admin.files[1].with_file_name("plugin");
        fs::write(
            &plugin,
            format!("#!/bin/sh\ntest -n \"$KUBERNETES_EXEC_INFO\" -a \"$1$A\" = xz && echo '{answer}'\n"),
        )
        .unwrap();
        fs::set_permissions(&plugin, PermissionsExt::from_mode(0o755)).unwrap();
        let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, args: [x], env: [{name: A, value: z}], interactiveMode: Never}}";
        fs::write(&admin.files[1], FIRST.replace("{token: first}", user)).unwrap();
        admin.context = Some("a".into());
    });
    assert_eq!(found.as_deref(), Ok("https://first.example/ of-plugin with a CA"));
}
