//! The token of a service account, and what the server and its claims say about it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Uri;
use serde_json::{Value, json};

/// The request for a token that lasts so many seconds.
pub(super) fn request(seconds: u64) -> Value {
    json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    })
}

/// The token in the answer, and until when it is valid.
pub(super) fn granted(answer: &Value) -> Option<(&str, &str)> {
    let token = answer["status"]["token"].as_str().filter(|token| !token.is_empty())?;
    let end = answer["status"]["expirationTimestamp"].as_str().unwrap_or_default();
    Some((token, end))
}

/// True if kcp finds the workspace in the token, so that the URL needs no path.
pub(super) fn names_its_workspace(token: &str) -> bool {
    let claims = token
        .split('.')
        .nth(1)
        .and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let claims: Value = claims
        .and_then(|claims| serde_json::from_slice(&claims).ok())
        .unwrap_or_default();
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    is_text(&claims["kubernetes.io"]["clusterName"]) || is_text(&claims["kubernetes.io/serviceaccount/clusterName"])
}

/// The URL for the syncer: with a port, and with the path only where the token does not say the same.
pub(super) fn server_url(url: &Uri, has_workspace: bool) -> String {
    let scheme = url.scheme_str().unwrap_or("https");
    let port = url.port_u16().unwrap_or(if scheme == "http" { 80 } else { 443 });
    let path = url.path().trim_end_matches('/');
    let is_workspace = path.starts_with("/clusters/");
    let path = if has_workspace && is_workspace { "" } else { path };
    format!("{scheme}://{}:{port}{path}", url.host().unwrap_or_default())
}

/// True for a URL that only this machine can reach.
pub(super) fn is_of_this_machine(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let address: Result<std::net::IpAddr, _> = host.parse();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

/// The cluster entry of the syncer's kubeconfig.
pub(super) fn cluster(server: &str, authority: Option<&[u8]>, insecure: bool, server_name: Option<&str>) -> Value {
    let mut cluster = json!({"server": server});
    if insecure {
        cluster["insecure-skip-tls-verify"] = true.into();
    } else if let Some(pem) = authority {
        cluster["certificate-authority-data"] = STANDARD.encode(pem).into();
    }
    if let Some(name) = server_name {
        cluster["tls-server-name"] = name.into();
    }
    cluster
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_workspace_in_a_token() {
        let token = |claims: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        for (token, expected) in [
            (token(r#"{"kubernetes.io":{"clusterName":"abc"}}"#), true),
            (token(r#"{"kubernetes.io/serviceaccount/clusterName":"abc"}"#), true),
            (token(r#"{"kubernetes.io":{"clusterName":""}}"#), false),
            (token(r#"{"kubernetes.io":{"namespace":"default"}}"#), false),
            (token("no json"), false),
            ("opaque".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(names_its_workspace(&token), expected, "{token}");
        }
    }

    #[test]
    fn keeps_the_path_unless_the_token_says_the_same() {
        for (url, has_workspace, expected) in [
            (
                "https://kcp.example:6443/clusters/abc",
                true,
                "https://kcp.example:6443",
            ),
            ("https://kcp.example/clusters/abc/", true, "https://kcp.example:443"),
            (
                "https://kcp.example/clusters/abc",
                false,
                "https://kcp.example:443/clusters/abc",
            ),
            (
                "https://rancher.example/k8s/clusters/c-1",
                true,
                "https://rancher.example:443/k8s/clusters/c-1",
            ),
            ("https://hub.example:6443/", false, "https://hub.example:6443"),
            ("http://127.0.0.1", false, "http://127.0.0.1:80"),
            ("https://[::1]:6443", false, "https://[::1]:6443"),
        ] {
            assert_eq!(server_url(&url.parse().unwrap(), has_workspace), expected);
        }
    }

    #[test]
    fn an_insecure_hub_has_no_authority() {
        assert_eq!(
            cluster("u", Some(b"pem"), false, Some("n")),
            json!({"server": "u", "certificate-authority-data": "cGVt", "tls-server-name": "n"})
        );
        assert_eq!(
            cluster("u", Some(b"pem"), true, None),
            json!({"server": "u", "insecure-skip-tls-verify": true})
        );
        assert_eq!(cluster("u", None, false, None), json!({"server": "u"}));
    }

    #[test]
    fn an_answer_without_a_token_is_none() {
        let answer = json!({"status": {"token": "t", "expirationTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(granted(&answer), Some(("t", "2026-01-01T00:00:00Z")));
        assert_eq!(granted(&json!({"status": {"token": ""}})), None);
        assert_eq!(granted(&json!({"kind": "Status"})), None);
    }
}
