//! Tokens of service accounts that the tests sign themselves, with the key of a server: a server gives none that ends within
//! ten minutes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{KeyPair, SigningKey};
use serde_json::{Value, json};

use super::objects::Objects;
use super::server::Server;

/// The time, in seconds since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "a server compares the times of tokens with the wall clock"
)]
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).expect("it is not that late")
}

/// A service account at a server, with all permissions that a test gives it.
pub struct Account {
    pub namespace: String,
    pub name: String,
    uid: String,
    issuer: String,
    key: KeyPair,
}

impl Account {
    /// Creates it, with a `ClusterRole` of these rules.
    pub async fn create(server: &Server, namespace: &str, name: &str, rules: Value) -> Self {
        let at = server.objects();
        let metadata = json!({"namespace": namespace, "name": name});
        let account = at
            .create(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
            .await;
        let key = std::fs::read_to_string(server.folder().join("service-accounts.key")).expect("the server has a key");
        let account = Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: account["metadata"]["uid"].as_str().expect("it has a UID").to_owned(),
            issuer: server.url().to_owned(),
            key: KeyPair::from_pem(&key).expect("the harness has made it"),
        };
        account.may(&at, namespace, rules).await;
        account
    }

    /// Gives it the permissions of these rules, by a role and a binding of that name.
    pub async fn may(&self, at: &Objects, role: &str, rules: Value) {
        const RBAC: &str = "rbac.authorization.k8s.io/v1";
        at.create(&json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": role}, "rules": rules}))
            .await;
        at.create(&json!({
            "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": self.namespace, "name": self.name}],
        }))
        .await;
    }

    /// A token that was issued and ends so many seconds from now.
    pub fn token(&self, issued: i64, ends: i64) -> String {
        let now = now();
        let claims = json!({
            "iss": self.issuer, "aud": [self.issuer], "sub": format!("system:serviceaccount:{}:{}", self.namespace, self.name),
            "iat": now + issued, "nbf": now + issued, "exp": now + ends,
            "kubernetes.io": {"namespace": self.namespace, "serviceaccount": {"name": self.name, "uid": self.uid}},
        });
        let signed = format!(
            "{}.{}",
            url(json!({"alg": "ES256"}).to_string()),
            url(claims.to_string())
        );
        let signature = self.key.sign(signed.as_bytes()).expect("the key signs");
        format!("{signed}.{}", url(plain(&signature)))
    }
}

/// Base64 as tokens have it.
fn url(bytes: impl AsRef<[u8]>) -> String {
    let text = super::kubeconfig::base64(bytes);
    text.trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// The two numbers of a signature, each of 32 bytes, from their form in DER.
fn plain(signature: &[u8]) -> Vec<u8> {
    let mut rest = &signature[2..];
    let mut plain = Vec::new();
    for _ in 0..2 {
        let (number, after) = rest[2..].split_at(usize::from(rest[1]));
        let number = &number[number.len().saturating_sub(32)..];
        plain.extend(vec![0; 32 - number.len()]);
        plain.extend(number);
        rest = after;
    }
    plain
}
