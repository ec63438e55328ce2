use std::error::Error;
use std::fs;

use super::*;
use crate::cluster::files::tests::make_pipe;

/// A kubeconfig with one context, cluster and user; `{}` lines of the two bodies are given by the case.
fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         contexts:\n- name: here\n  context: {{cluster: c, user: u}}\n\
         - name: there\n  context: {{cluster: c}}\n\
         - name: lost\n  context: {{cluster: gone, user: u}}\n\
         - name: nobody\n  context: {{cluster: c, user: gone}}\n\
         clusters:\n- name: c\n  cluster: {{{cluster}}}\n\
         users:\n- name: u\n  user: {{{user}}}\n"
    )
}

const SERVER: &str = "server: 'https://hub.example:6443'";

/// The message chain as `main` prints it.
fn words(error: &AccessError) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

/// Loads `text` from a folder that also holds `token`, `cert`, `key` and `ca`; FOLDER in the answer stands for it.
async fn check(text: &str, context: Option<&str>) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, text).unwrap();
    fs::write(folder.path().join("token"), "secret\n").unwrap();
    fs::write(folder.path().join("empty"), "\n").unwrap();
    let made = rcgen::generate_simple_self_signed(["hub.example".to_owned()]).unwrap();
    fs::write(folder.path().join("cert"), made.cert.pem()).unwrap();
    fs::write(folder.path().join("ca"), made.cert.pem()).unwrap();
    fs::write(folder.path().join("key"), made.signing_key.serialize_pem()).unwrap();
    let context = context.map(str::to_owned);
    let loaded = load(&AccessSource::Kubeconfig { path, context }).await;
    let loaded = loaded.map(|access| access.config);
    loaded.map_err(|error| words(&error).replace(&folder.path().display().to_string(), "FOLDER"))
}

async fn check_fails(cluster: &str, user: &str, expected: &str) {
    match check(&kubeconfig(cluster, user), None).await {
        Ok(_) => panic!("accepts {cluster} {user}"),
        Err(words) => assert_eq!(words, expected),
    }
}

#[tokio::test]
async fn reads_what_a_kubeconfig_can_say() {
    let cluster = "server: 'https://hub.example/clusters/x/', certificate-authority: ca, \
                   tls-server-name: other.example, proxy-url: 'socks5://proxy:1080'";
    let user = "tokenFile: token, client-certificate: cert, client-key: key";
    let config = check(&kubeconfig(cluster, user), None).await.unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://hub.example/clusters/x/");
    assert_eq!(config.root_cert.unwrap().len(), 1);
    assert_eq!(config.tls_server_name.as_deref(), Some("other.example"));
    assert_eq!(config.proxy_url.unwrap().to_string(), "socks5://proxy:1080/");
    assert!(config.auth_info.token_file.unwrap().ends_with("/token"));
    assert!(config.auth_info.client_certificate.unwrap().ends_with("/cert"));

    let insecure = format!("{SERVER}, insecure-skip-tls-verify: true");
    let config = check(&kubeconfig(&insecure, "token: ' inline '"), None).await.unwrap();
    assert!(config.accept_invalid_certs);
    assert_eq!(config.auth_info.token.unwrap().expose_secret(), "inline");
}

#[tokio::test]
async fn treats_empty_values_as_absent() {
    let cluster = format!("{SERVER}, certificate-authority-data: '', tls-server-name: '', proxy-url: ''");
    let user = "token: '', tokenFile: '', client-certificate-data: '', client-key-data: '', client-key: ''";
    let config = check(&kubeconfig(&cluster, user), None).await.unwrap();
    assert!(config.root_cert.is_none());
    assert!(config.tls_server_name.is_none());
    assert!(config.proxy_url.is_none());
    assert!(config.auth_info.token.is_none());
    assert!(config.auth_info.client_key_data.is_none());
}

#[tokio::test]
async fn uses_the_context_that_is_asked_for() {
    let text = kubeconfig(SERVER, "token: x");
    assert!(check(&text, None).await.unwrap().auth_info.token.is_some());
    assert!(check(&text, Some("there")).await.unwrap().auth_info.token.is_none());
    for (context, expected) in [
        (
            "nowhere",
            "no context \"nowhere\" in FOLDER/config, which has contexts \"here\", \"there\", \"lost\", \"nobody\"",
        ),
        (
            "lost",
            "context \"lost\" names cluster \"gone\", which FOLDER/config does not have",
        ),
        (
            "nobody",
            "context \"nobody\" names user \"gone\", which FOLDER/config does not have",
        ),
    ] {
        assert_eq!(check(&text, Some(context)).await.err().as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn waits_for_no_pipe_and_reads_no_endless_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    for (path, why) in [
        (pipe.to_str().unwrap(), "it is not a regular file"),
        ("/dev/zero", "it is not a regular file"),
    ] {
        let (cluster, user) = (format!("{SERVER}, certificate-authority: '{path}'"), "token: x");
        let expected = format!("cannot read certificate-authority file {path}: {why}");
        check_fails(&cluster, user, &expected).await;
        for field in ["tokenFile", "client-certificate", "client-key"] {
            let others = match field {
                "client-key" => ", client-certificate: cert",
                _ => "",
            };
            let expected = format!("cannot read {field} file {path}: {why}");
            check_fails(SERVER, &format!("{field}: '{path}'{others}"), &expected).await;
        }
        let context = None;
        let source = AccessSource::Kubeconfig {
            path: path.into(),
            context,
        };
        let error = load(&source).await.err().map(|error| words(&error));
        assert_eq!(error, Some(format!("cannot read kubeconfig {path}: {why}")));
    }
    let long = format!("token: {}", "x".repeat(TOKEN_LIMIT + 1));
    check_fails(SERVER, &long, "bad token: it is longer than any token").await;
}

#[test]
fn the_files_of_a_pod_are_looked_at_before_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    assert!(check_pod_files(folder.path()).is_ok(), "kube tells of what is missing");
    for name in ["ca.crt", "namespace", "token"] {
        let path = folder.path().join(name);
        make_pipe(&path);
        let error = check_pod_files(folder.path()).err().map(|error| words(&error));
        let expected = format!("cannot read {name} file {}: it is not a regular file", path.display());
        assert_eq!(error, Some(expected));
        fs::remove_file(path).unwrap();
    }
}

#[tokio::test]
async fn says_what_is_wrong_with_a_file() {
    for (text, expected) in [
        (
            "",
            "FOLDER/config is not a kubeconfig: it has neither contexts nor clusters",
        ),
        (
            "a: b",
            "FOLDER/config is not a kubeconfig: it has neither contexts nor clusters",
        ),
        (
            "contexts: [{name: a, context: {cluster: c}}]",
            "no context is chosen and FOLDER/config has no current-context, only context \"a\"",
        ),
        (
            "current-context: ''\nclusters: [{name: c}]",
            "no context is chosen and FOLDER/config has no current-context, only no contexts",
        ),
    ] {
        assert_eq!(check(text, None).await.err().as_deref(), Some(expected), "{text}");
    }
}

#[tokio::test]
async fn quotes_the_parser_but_no_value() {
    for text in [
        "eyJsecret",
        "users: eyJsecret",
        "users: [{name: u, user: {token: [eyJsecret]}}]",
        "{ eyJsecret: \"",
        "\teyJsecret",
    ] {
        let words = check(text, None).await.err().unwrap();
        assert!(words.starts_with("FOLDER/config is not a kubeconfig: "), "{words}");
        assert!(!words.contains("eyJ") && !words.contains('\n'), "{words}");
    }
}

#[tokio::test]
async fn says_which_file_is_missing() {
    let path = PathBuf::from("/nonexistent/kubeconfig");
    let error = load(&AccessSource::Kubeconfig { path, context: None })
        .await
        .unwrap_err();
    assert_eq!(
        words(&error),
        "cannot read kubeconfig /nonexistent/kubeconfig: No such file or directory (os error 2)"
    );
}

#[tokio::test]
async fn says_which_named_file_is_missing() {
    const GONE: &str = "FOLDER/gone: No such file or directory (os error 2)";
    let ca = format!("{SERVER}, certificate-authority: gone");
    check_fails(&ca, "", &format!("cannot read certificate-authority file {GONE}")).await;
    for (field, other) in [
        ("tokenFile", ""),
        ("client-certificate", ", client-key: key"),
        ("client-key", ", client-certificate: cert"),
    ] {
        let expected = format!("cannot read {field} file {GONE}");
        check_fails(SERVER, &format!("{field}: gone{other}"), &expected).await;
    }
}

#[tokio::test]
async fn says_which_value_is_bad() {
    const START: &str = "it must start with https:// or http://";
    for (cluster, user, expected) in [
        ("", "", "bad server: it is missing".to_owned()),
        ("server: ''", "", "bad server: it is missing".to_owned()),
        (
            "server: 'hub.example:6443'",
            "",
            format!("bad server: \"hub.example:6443\": {START}"),
        ),
        (
            "server: 'ftp://hub.example'",
            "",
            format!("bad server: \"ftp://hub.example\": {START}"),
        ),
        (
            "server: 'https://a b'",
            "",
            "bad server: \"https://a b\": invalid uri character".to_owned(),
        ),
        (
            "server: 'https://me:secret@hub.example'",
            "",
            "bad server: \"https://hub.example\": it must not hold a user name or password".to_owned(),
        ),
        (
            "server: 'https://hub.example/?a=b'",
            "",
            "bad server: \"https://hub.example/?a=b\": it must not have a query".to_owned(),
        ),
        (
            "server: 'https://h', certificate-authority-data: '%%'",
            "",
            "bad certificate-authority-data: it is not base64".to_owned(),
        ),
        (
            "server: 'https://h', proxy-url: 'http://me:secret @proxy'",
            "",
            "bad proxy-url: invalid uri character".to_owned(),
        ),
        (
            SERVER,
            "token: \"a\\nb\"",
            "bad token: it holds characters that no token has".to_owned(),
        ),
        (SERVER, "tokenFile: empty", "bad tokenFile: it is empty".to_owned()),
        (
            SERVER,
            "tokenFile: key",
            "bad tokenFile: it holds characters that no token has".to_owned(),
        ),
        (
            SERVER,
            "client-certificate: cert",
            "bad client-certificate: there is no client-key beside it".to_owned(),
        ),
        (
            SERVER,
            "client-key: key",
            "bad client-key: there is no client-certificate beside it".to_owned(),
        ),
        (
            SERVER,
            "client-key-data: '%'",
            "bad client-key-data: it is not base64".to_owned(),
        ),
    ] {
        check_fails(cluster, user, &expected).await;
    }
}

#[test]
fn says_that_this_is_no_pod() {
    let missing = std::env::VarError::NotPresent;
    let error = in_cluster_error(InClusterError::ReadEnvironmentVariable(missing));
    let text = error.to_string();
    assert!(
        text.starts_with("--to-kubeconfig is not given and this is not a pod: KUBERNETES_SERVICE_"),
        "{text}"
    );
}

#[test]
fn shows_the_server_without_user_information() {
    for (url, expected) in [
        ("https://hub.example", "https://hub.example"),
        (
            "https://me:secret@hub.example:6443/clusters/x/",
            "https://hub.example:6443/clusters/x",
        ),
        ("https://[::1]:6443/", "https://[::1]:6443"),
    ] {
        assert_eq!(server_for_people(&Config::new(url.parse().unwrap())), expected);
    }
}

#[test]
fn hides_user_information_in_any_text() {
    for (url, expected) in [
        ("https://a@b/c@d", "https://b/c@d"),
        ("https://a:b@c@d", "https://d"),
        ("a@b", "b"),
        ("", ""),
    ] {
        assert_eq!(hide_userinfo(url), expected);
    }
}

#[tokio::test]
async fn tells_where_credentials_travel_in_the_clear() {
    for (server, user, expected) in [
        ("http://hub.example", "token: t", true),
        ("http://hub.example", "tokenFile: token", true),
        ("http://hub.example", "username: a, password: b", true),
        ("http://10.0.0.1:8080", "token: t", true),
        ("http://hub.example", "", false),
        ("http://hub.example", "client-certificate: cert, client-key: key", false),
        ("https://hub.example", "token: t", false),
        ("http://localhost:8080", "token: t", false),
        ("http://127.0.0.1:8080", "token: t", false),
        ("http://[::1]:8080", "token: t", false),
    ] {
        let text = kubeconfig(&format!("server: '{server}'"), user);
        let config = check(&text, None).await.unwrap();
        assert_eq!(shows_credentials(&config), expected, "{server} {user}");
    }
}

#[test]
fn fuzz_kubeconfig() {
    let text = kubeconfig(
        &format!("{SERVER}, proxy-url: 'socks5://a:b@proxy:1080', certificate-authority-data: QUJD"),
        "token: abc, exec: {command: x, args: [a], env: [{name: a, value: b}]}, client-key-data: QUJD",
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    crate::fuzz::fuzz("kubeconfig", &[text.as_bytes()], |text, _| {
        fs::write(&path, text).unwrap();
        let source = AccessSource::Kubeconfig {
            path: path.clone(),
            context: None,
        };
        match runtime.block_on(load(&source)) {
            Ok(access) => drop(server_for_people(&access.config)),
            Err(error) => drop(words(&error)),
        }
    });
}
