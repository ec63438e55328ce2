use std::fs;

use super::*;
use crate::files::tests::make_pipe;

/// A kubeconfig with one context, cluster and user; `{}` lines of the two bodies are given by the case.
fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         contexts:\n- name: here\n  context: {{cluster: c, user: u}}\n\
         - name: there\n  context: {{cluster: other, user: u}}\n\
         - name: userless\n  context: {{cluster: c}}\n\
         - name: lost\n  context: {{cluster: gone, user: u}}\n\
         - name: nobody\n  context: {{cluster: c, user: gone}}\n\
         clusters:\n- name: c\n  cluster: {{{cluster}}}\n\
         - name: other\n  cluster: {{server: 'https://other.example'}}\n\
         users:\n- name: u\n  user: {{{user}}}\n"
    )
}

const HUB: Flags = Flags {
    kubeconfig: "--from-kubeconfig",
    context: "--from-context",
};
const EDGE: Flags = Flags {
    kubeconfig: "--to-kubeconfig",
    context: "--to-context",
};

/// What gives a kubeconfig that can be used in the place of one with a plugin.
const GEN: &str = "edge-syncer gen makes a kubeconfig with a token for a hub";

const SERVER: &str = "server: 'https://hub.example:6443'";

/// Loads `text` from a folder that also holds `token`, `cert`, `key` and `ca`; FOLDER in the answer stands for it.
fn check(text: &str, context: Option<&str>) -> Result<Config, String> {
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
    let loaded = load(
        "hub",
        &AccessSource::Kubeconfig {
            path,
            context,
            flags: HUB,
        },
        &Renewed::default(),
    );
    let loaded = loaded.map(|access| access.config);
    loaded.map_err(|error| {
        error
            .to_string()
            .replace(&folder.path().display().to_string(), "FOLDER")
    })
}

/// Checks that it is refused because of one field: `expected` is what comes after side and file.
fn check_fails(cluster: &str, user: &str, expected: &str) {
    match check(&kubeconfig(cluster, user), None) {
        Ok(_) => panic!("accepts {cluster} {user}"),
        Err(words) => assert_eq!(words, format!("hub (--from-kubeconfig=FOLDER/config{expected}")),
    }
}

#[test]
fn reads_what_a_kubeconfig_can_say() {
    let cluster = "server: 'https://hub.example/clusters/x/', certificate-authority: ca, \
                   tls-server-name: other.example, proxy-url: 'socks5://proxy:1080'";
    let user = "tokenFile: token, client-certificate: cert, client-key: key";
    let config = check(&kubeconfig(cluster, user), None).unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://hub.example/clusters/x/");
    assert_eq!(config.root_cert.unwrap().len(), 1);
    assert_eq!(config.tls_server_name.as_deref(), Some("other.example"));
    assert_eq!(config.proxy_url.unwrap().to_string(), "socks5://proxy:1080/");
    assert!(config.auth_info.token_file.unwrap().ends_with("/token"));
    assert!(config.auth_info.client_certificate.unwrap().ends_with("/cert"));

    let user = "token: x, as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {scopes: [view, edit], none: []}";
    let user = check(&kubeconfig(SERVER, user), None).unwrap().auth_info;
    assert_eq!(user.impersonate.as_deref(), Some("jane"));
    assert_eq!(user.impersonate_uid.as_deref(), Some("7"));
    assert_eq!(user.impersonate_groups.unwrap(), ["a", "b"]);
    let extra = user.impersonate_user_extra.unwrap();
    assert_eq!(extra["scopes"], ["view", "edit"]);
    assert_eq!(extra["none"], [""; 0]);

    let insecure = format!("{SERVER}, insecure-skip-tls-verify: true");
    let config = check(&kubeconfig(&insecure, "token: ' inline '"), None).unwrap();
    assert!(config.accept_invalid_certs);
    assert_eq!(config.auth_info.token.unwrap().expose_secret(), "inline");
}

#[test]
fn treats_empty_values_as_absent_beside_credentials() {
    let cluster = format!("{SERVER}, certificate-authority-data: '', tls-server-name: '', proxy-url: ''");
    let user =
        "token: '', tokenFile: token, username: '', client-certificate-data: '', client-key-data: '', client-key: ''";
    let config = check(&kubeconfig(&cluster, user), None).unwrap();
    assert!(config.root_cert.is_none());
    assert!(config.tls_server_name.is_none());
    assert!(config.proxy_url.is_none());
    assert!(config.auth_info.token.is_none());
    assert!(config.auth_info.client_key_data.is_none());
}

#[test]
fn uses_the_context_that_is_asked_for() {
    let text = kubeconfig(SERVER, "token: x");
    let url = |config: Config| config.cluster_url.to_string();
    assert_eq!(url(check(&text, None).unwrap()), "https://hub.example:6443/");
    assert_eq!(url(check(&text, Some("there")).unwrap()), "https://other.example/");
    for (context, expected) in [
        (
            "nowhere",
            "): --from-context: \"nowhere\" is not in the file, which has contexts \"here\", \"there\", \"userless\", \"lost\", \
             \"nobody\"",
        ),
        (
            "lost",
            ", context \"lost\"): cluster: \"gone\" is not in the file, which has clusters \"c\", \"other\"",
        ),
        (
            "nobody",
            ", context \"nobody\"): user: \"gone\" is not in the file, which has user \"u\"",
        ),
    ] {
        let expected = format!("hub (--from-kubeconfig=FOLDER/config{expected}");
        assert_eq!(check(&text, Some(context)).err(), Some(expected));
    }
}

/// Without credentials, the syncer is `system:anonymous` for an API server.
#[test]
fn nobody_is_anonymous() {
    const NEEDS: &str = "a token, a tokenFile or a client-certificate with its client-key";
    let nobody = format!("and system:anonymous is not allowed: it needs {NEEDS}");
    let others = format!("and the user entry has no other credentials, which are {NEEDS}");
    for (user, expected) in [
        ("token: ''", format!("token: it is empty, {others}")),
        ("token: ' '", format!("token: it is empty, {others}")),
        ("token: null", format!("token: it is empty, {others}")),
        ("tokenFile: ''", format!("tokenFile: it is empty, {others}")),
        ("", format!("the entry is empty, {nobody}")),
        ("as: admin", format!("the entry has no credentials, only as, {nobody}")),
        (
            "bearer: eyJ",
            format!("the entry has no credentials, only bearer, {nobody}"),
        ),
        ("username: me", "username: there is no password beside it".to_owned()),
        ("password: me", "password: there is no username beside it".to_owned()),
        (
            "exec: {command: aws}",
            format!("exec: it is not supported: use {NEEDS}; {GEN}"),
        ),
        ("exec: aws", format!("exec: it is not supported: use {NEEDS}; {GEN}")),
        (
            "auth-provider: {name: gcp}",
            format!("auth-provider: it is not supported: use {NEEDS}; {GEN}"),
        ),
    ] {
        for server in [SERVER, "server: 'http://127.0.0.1:8001'"] {
            check_fails(server, user, &format!(", user \"u\"): {expected}"));
        }
    }
    let text = kubeconfig(SERVER, "token: x");
    let words = check(&text, Some("userless")).err().unwrap();
    let expected = format!(
        "hub (--from-kubeconfig=FOLDER/config, context \"userless\"): user: it is missing, and system:anonymous \
         is not allowed: name one that has {NEEDS}"
    );
    assert_eq!(words, expected);
    // `kubectl proxy`, which logs in itself.
    let text = kubeconfig("server: 'http://127.0.0.1:8001'", "token: x");
    assert!(check(&text, Some("userless")).is_ok());
    // What others need, and extensions of other tools, are no mistake.
    let user = "token: x, region: eu-1, extensions: [{name: a, extension: {}}]";
    assert!(check(&kubeconfig(SERVER, user), None).is_ok());
}

#[test]
fn a_field_that_is_misspelt_or_of_another_form_is_reported() {
    const TEXT: &str = "it must be text; if it is, put it in quotes";
    for (cluster, user, expected) in [
        (
            "",
            "tokn: eyJ",
            ", user \"u\"): tokn: there is no such field, did you mean token?",
        ),
        (
            "",
            "token: x, tokenfile: y",
            ", user \"u\"): tokenfile: there is no such field, did you mean tokenFile?",
        ),
        (
            ", certificate-authorty-data: QUJD",
            "token: x",
            ", cluster \"c\"): certificate-authorty-data: there is no such field, did you mean certificate-authority-data?",
        ),
        ("", "token: 12345", &format!(", user \"u\"): token: {TEXT}")),
        ("", "token: [eyJ]", &format!(", user \"u\"): token: {TEXT}")),
        (
            ", insecure-skip-tls-verify: 'true'",
            "token: x",
            ", cluster \"c\"): insecure-skip-tls-verify: it must be true or false, without quotes",
        ),
        (
            ", extensions: {a: b}",
            "token: x",
            ", cluster \"c\"): extensions: it must be a list",
        ),
        (
            "",
            "token: x, as-groups: admins",
            ", user \"u\"): as-groups: it must be a list of text",
        ),
        (
            "",
            "token: x, as-groups: [admins, 7]",
            ", user \"u\"): as-groups: it must be a list of text",
        ),
        (
            "",
            "token: x, as-user-extra: {scopes: view}",
            ", user \"u\"): as-user-extra: it must hold lists of text under names",
        ),
        (
            "",
            "tokenFile: ~/token",
            ", user \"u\"): tokenFile: it begins with ~, which only shells know: write the whole path",
        ),
    ] {
        check_fails(&format!("{SERVER}{cluster}"), user, expected);
    }
}

#[test]
fn waits_for_no_pipe_and_reads_no_endless_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    for (path, why) in [
        (pipe.to_str().unwrap(), "it is not a regular file"),
        ("/dev/zero", "it is not a regular file"),
    ] {
        let (cluster, user) = (format!("{SERVER}, certificate-authority: '{path}'"), "token: x");
        let expected = format!(", cluster \"c\"): certificate-authority: cannot read {path}: {why}");
        check_fails(&cluster, user, &expected);
        for field in ["tokenFile", "client-certificate", "client-key"] {
            let others = match field {
                "client-key" => ", client-certificate: cert",
                _ => "",
            };
            let expected = format!(", user \"u\"): {field}: cannot read {path}: {why}");
            check_fails(SERVER, &format!("{field}: '{path}'{others}"), &expected);
        }
        let context = None;
        let source = AccessSource::Kubeconfig {
            path: path.into(),
            context,
            flags: EDGE,
        };
        let error = load("edge", &source, &Renewed::default())
            .err()
            .map(|error| error.to_string());
        assert_eq!(
            error,
            Some(format!("edge (--to-kubeconfig={path}): it cannot be read: {why}"))
        );
    }
    let long = format!("token: {}", "x".repeat(TOKEN_LIMIT + 1));
    check_fails(SERVER, &long, ", user \"u\"): token: it is longer than any token");
}

#[test]
fn the_files_of_a_pod_are_checked_before_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    assert!(check_pod_files(folder.path()).is_ok(), "kube reports what is missing");
    for name in ["ca.crt", "namespace", "token"] {
        let path = folder.path().join(name);
        make_pipe(&path);
        let error = check_pod_files(folder.path()).err().map(|error| error.to_string());
        let expected = format!("{name}: cannot read {}: it is not a regular file", path.display());
        assert_eq!(error, Some(expected));
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn says_what_is_wrong_with_a_file() {
    const NONE: &str = "it is not a kubeconfig: it has neither contexts nor clusters";
    const UNCHOSEN: &str = "current-context: it is missing, as is --from-context; the file has";
    for (text, expected) in [
        ("", NONE.to_owned()),
        ("a: b", NONE.to_owned()),
        ("text", NONE.to_owned()),
        (
            "contexts: []\n---\nclusters: []",
            "it is not a kubeconfig: it has more than one document".to_owned(),
        ),
        (
            "contexts: [\n  }",
            "it is not a kubeconfig: line 1: mismatched bracket '[' closed by '}'".to_owned(),
        ),
        (
            "contexts: [{name: a, context: {cluster: c}}]",
            format!("{UNCHOSEN} context \"a\""),
        ),
        (
            "current-context: ''\nclusters: [{name: c}]",
            format!("{UNCHOSEN} no context"),
        ),
        (
            "current-context: 7\nclusters: [{name: c}]",
            "current-context: it must be text; if it is, put it in quotes".to_owned(),
        ),
    ] {
        let expected = format!("hub (--from-kubeconfig=FOLDER/config): {expected}");
        assert_eq!(check(text, None).err(), Some(expected), "{text}");
    }
    for (rest, expected) in [
        ("clusters: 7", "): clusters: it must be a list"),
        (
            "clusters: [{name: c, cluster: text}]",
            "): clusters: cluster of \"c\" must hold fields, such as \"name: value\"",
        ),
        ("clusters: [{name: c}]", ", cluster \"c\"): server: it is missing"),
    ] {
        let text = format!("current-context: a\ncontexts: [{{name: a, context: {{cluster: c}}}}]\n{rest}");
        let expected = format!("hub (--from-kubeconfig=FOLDER/config{expected}");
        assert_eq!(check(&text, None).err(), Some(expected), "{text}");
    }
}

#[test]
fn quotes_the_parser_but_no_value() {
    for text in ["eyJsecret", "eyJsecret: [", "{ eyJsecret: \"", "\teyJsecret"] {
        let words = check(text, None).err().unwrap();
        assert!(
            words.starts_with("hub (--from-kubeconfig=FOLDER/config): it is not a kubeconfig: "),
            "{words}"
        );
        assert!(!words.contains("eyJ") && !words.contains('\n'), "{words}");
    }
}

#[test]
fn says_which_file_is_missing() {
    let path = PathBuf::from("/nonexistent/kubeconfig");
    let source = AccessSource::Kubeconfig {
        path,
        context: None,
        flags: HUB,
    };
    assert_eq!(
        load("hub", &source, &Renewed::default()).unwrap_err().to_string(),
        "hub (--from-kubeconfig=/nonexistent/kubeconfig): it cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn says_which_named_file_is_missing() {
    const GONE: &str = "FOLDER/gone: No such file or directory (os error 2)";
    let ca = format!("{SERVER}, certificate-authority: gone");
    check_fails(
        &ca,
        "token: x",
        &format!(", cluster \"c\"): certificate-authority: cannot read {GONE}"),
    );
    for (field, other) in [
        ("tokenFile", ""),
        ("client-certificate", ", client-key: key"),
        ("client-key", ", client-certificate: cert"),
    ] {
        let expected = format!(", user \"u\"): {field}: cannot read {GONE}");
        check_fails(SERVER, &format!("{field}: gone{other}"), &expected);
    }
}

/// PEM whose content is none.
const BROKEN: &str = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";

#[test]
fn says_which_value_is_bad() {
    let server = |text: &str, why: &str| (format!("server: '{text}'"), format!("server: \"{text}\": {why}"));
    for (cluster, expected) in [
        (String::new(), "server: it is missing".to_owned()),
        ("server: ''".to_owned(), "server: it is missing".to_owned()),
        server("hub.example:6443", "it must start with https:// or http://"),
        server("https://host:99999", "port \"99999\" is no number from 1 to 65535"),
        server("https://a b", "\"a b\" is no host name and no address"),
        (
            "server: 'https://me:secret@hub.example'".to_owned(),
            "server: \"https://hub.example\": it must not hold a user name or password: put them into the user entry"
                .to_owned(),
        ),
        (
            "server: 'https://h', certificate-authority-data: '%%'".to_owned(),
            "certificate-authority-data: it is not base64".to_owned(),
        ),
        (
            "server: 'https://h', certificate-authority-data: QUJD".to_owned(),
            "certificate-authority-data: it holds no certificate".to_owned(),
        ),
        (
            "server: 'https://h', certificate-authority: token".to_owned(),
            "certificate-authority: it holds no certificate".to_owned(),
        ),
        (
            "server: 'https://h', certificate-authority: key".to_owned(),
            "certificate-authority: it holds no certificate".to_owned(),
        ),
        (
            format!(
                "server: 'https://h', certificate-authority-data: {}",
                STANDARD.encode(BROKEN)
            ),
            "certificate-authority-data: it holds no PEM of certificates".to_owned(),
        ),
        (
            "server: 'https://h', proxy-url: 'http://me:secret@proxy:99999'".to_owned(),
            "proxy-url: its host or port cannot be used".to_owned(),
        ),
    ] {
        check_fails(&cluster, "token: x", &format!(", cluster \"c\"): {expected}"));
    }
    for (user, expected) in [
        ("token: \"a\\nb\"", "token: it holds characters that no token has"),
        ("tokenFile: empty", "tokenFile: it is empty"),
        ("tokenFile: key", "tokenFile: it holds characters that no token has"),
        (
            "client-certificate: cert",
            "client-certificate: there is no client-key beside it",
        ),
        (
            "client-key: key",
            "client-key: there is no client-certificate beside it",
        ),
        ("client-key-data: '%'", "client-key-data: it is not base64"),
    ] {
        check_fails(SERVER, user, &format!(", user \"u\"): {expected}"));
    }
}

#[test]
fn the_proxy_of_the_environment_must_be_a_url() {
    for (set, expected) in [
        (&[][..], None),
        (&[("HTTPS_PROXY", ""), ("https_proxy", "")], None),
        (&[("HTTPS_PROXY", "http://me:pass@proxy:3128")], None),
        (
            &[("HTTPS_PROXY", "http://a b")],
            Some("HTTPS_PROXY: invalid uri character"),
        ),
        (
            &[("HTTPS_PROXY", ""), ("https_proxy", "http://a b")],
            Some("HTTPS_PROXY: invalid uri character"),
        ),
        (&[("HTTPS_PROXY", "http://proxy"), ("https_proxy", "http://a b")], None),
    ] {
        let variable = |name: &str| Some(set.iter().find(|(set, _)| *set == name)?.1.to_owned());
        let found = check_environment(variable).err().map(|error| error.to_string());
        assert_eq!(found.as_deref(), expected, "{set:?}");
    }
}

#[test]
fn says_that_this_is_no_pod() {
    let missing = std::env::VarError::NotPresent;
    let flag = EDGE.kubeconfig;
    let error = in_cluster_error(&InClusterError::ReadEnvironmentVariable(missing), flag);
    let text = AccessPlace::new("edge", AccessSource::InCluster { flag }.to_string())
        .error(error)
        .to_string();
    let (start, end) = (
        "edge (without --to-kubeconfig, as a pod): KUBERNETES_SERVICE_",
        ": it is not set, so this is no pod: give --to-kubeconfig",
    );
    assert!(text.starts_with(start) && text.ends_with(end), "{text}");
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
fn reports_where_credentials_go_in_the_clear() {
    for (server, user, expected) in [
        ("http://hub.example", "token: t", true),
        ("http://hub.example", "tokenFile: token", true),
        ("http://hub.example", "username: a, password: b", true),
        ("http://10.0.0.1:8080", "token: t", true),
        ("http://hub.example", "client-certificate: cert, client-key: key", false),
        ("https://hub.example", "token: t", false),
        ("http://localhost:8080", "token: t", false),
        ("http://127.0.0.1:8080", "token: t", false),
        ("http://[::1]:8080", "token: t", false),
    ] {
        let text = kubeconfig(&format!("server: '{server}'"), user);
        let config = check(&text, None).unwrap();
        assert_eq!(shows_credentials(&config), expected, "{server} {user}");
    }
}

#[test]
fn fuzz_kubeconfig() {
    let text = kubeconfig(
        &format!("{SERVER}, proxy-url: 'socks5://a:b@proxy:1080', certificate-authority-data: QUJD"),
        "token: abc, exec: {command: x, args: [a], env: [{name: a, value: b}]}, client-key-data: QUJD",
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    crate::fuzz::fuzz("kubeconfig", &[text.as_bytes()], |text, _| {
        fs::write(&path, text).unwrap();
        let source = AccessSource::Kubeconfig {
            path: path.clone(),
            context: None,
            flags: HUB,
        };
        match load("hub", &source, &Renewed::default()) {
            Ok(access) => drop(server_for_people(&access.config)),
            Err(error) => drop(error.to_string()),
        }
    });
}
