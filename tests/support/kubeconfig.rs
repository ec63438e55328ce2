//! Kubeconfig files in the many forms that users have them.

use serde_json::{Map, Value, json};

use super::certs::Identity;
use super::process::Folder;

/// The token of user `admin`, who may do everything.
pub const ADMIN_TOKEN: &str = "admin-token";
/// A second token of user `admin`, for tests that rotate tokens.
pub const NEXT_ADMIN_TOKEN: &str = "next-admin-token";
/// The token of user `limited`, who has no rights unless a test binds a role to that name.
pub const LIMITED_TOKEN: &str = "limited-token";

/// Whom a kubeconfig speaks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum User {
    /// User `admin` in group `system:masters`.
    #[default]
    Admin,
    /// User `limited`, who has no rights unless a test binds a role to that name.
    Limited,
}

impl User {
    /// The user's token.
    pub fn token(self) -> &'static str {
        match self {
            Self::Admin => ADMIN_TOKEN,
            Self::Limited => LIMITED_TOKEN,
        }
    }
}

/// How a kubeconfig proves who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Credential {
    /// `token`.
    #[default]
    Token,
    /// `tokenFile`: the file `<kubeconfig name>.token` in the same folder, which a test may rewrite.
    TokenFile,
    /// `client-certificate-data` and `client-key-data`.
    CertInline,
    /// `client-certificate` and `client-key`: the files `<kubeconfig name>.crt` and `.key` in the same folder.
    CertFiles,
    /// Nothing: user `system:anonymous`.
    Nothing,
}

/// How a kubeconfig knows the server's CA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ca {
    /// `certificate-authority-data`.
    #[default]
    Inline,
    /// `certificate-authority`: the file `<kubeconfig name>.ca` in the same folder.
    File,
    /// Not at all.
    Absent,
}

/// What to put into a kubeconfig; the default is what most have: an inline CA and a token of user `admin`.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigParts {
    /// Name of the context, the cluster and the user; `main` when empty.
    pub context: String,
    /// Replaces the server's own URL.
    pub server: Option<String>,
    /// How the CA is given.
    pub ca: Ca,
    /// `insecure-skip-tls-verify`.
    pub insecure_skip_tls_verify: bool,
    /// `tls-server-name`.
    pub tls_server_name: Option<String>,
    /// `proxy-url`.
    pub proxy_url: Option<String>,
    /// `namespace` of the context.
    pub namespace: Option<String>,
    /// Whom it speaks for.
    pub user: User,
    /// How it proves that.
    pub credential: Credential,
    /// Whether files are named relative to the kubeconfig's folder instead of by their full path.
    pub relative_paths: bool,
    /// Contexts to list before this one, from [`super::Server::kubeconfig_entry`].
    pub others: Vec<KubeconfigEntry>,
    /// Replaces `current-context`, which is this context otherwise; empty leaves it out.
    pub current_context: Option<String>,
}

impl KubeconfigParts {
    /// What most kubeconfigs have, but for what `change` makes of it.
    pub fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut parts = Self::default();
        change(&mut parts);
        parts
    }
}

/// One context with its cluster and user, to be put into a kubeconfig with others.
#[derive(Clone, Debug)]
pub struct KubeconfigEntry {
    name: String,
    cluster: Value,
    user: Value,
    namespace: Option<String>,
}

impl KubeconfigEntry {
    /// Name of the context.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What the entries of one server's kubeconfigs are made of.
pub(super) struct Material<'a> {
    pub(super) folder: &'a Folder,
    pub(super) url: &'a str,
    pub(super) ca: &'a str,
    pub(super) admin: &'a Identity,
    pub(super) limited: &'a Identity,
}

impl Material<'_> {
    /// Makes the entry that `parts` describes, writing the files it refers to under names that start with `file_name`.
    pub(super) fn entry(&self, file_name: &str, parts: &KubeconfigParts) -> KubeconfigEntry {
        let file = |suffix: &str, content: &str| {
            let name = format!("{file_name}.{suffix}");
            let path = self.folder.write(&name, content);
            if parts.relative_paths {
                name
            } else {
                path.display().to_string()
            }
        };
        let mut cluster = Map::new();
        cluster.insert(
            "server".into(),
            parts.server.clone().unwrap_or_else(|| self.url.to_owned()).into(),
        );
        match parts.ca {
            Ca::Inline => cluster.insert("certificate-authority-data".into(), base64(self.ca).into()),
            Ca::File => cluster.insert("certificate-authority".into(), file("ca", self.ca).into()),
            Ca::Absent => None,
        };
        if parts.insecure_skip_tls_verify {
            cluster.insert("insecure-skip-tls-verify".into(), true.into());
        }
        for (key, value) in [
            ("tls-server-name", &parts.tls_server_name),
            ("proxy-url", &parts.proxy_url),
        ] {
            if let Some(value) = value {
                cluster.insert(key.into(), value.clone().into());
            }
        }
        let token = parts.user.token();
        let identity = match parts.user {
            User::Admin => self.admin,
            User::Limited => self.limited,
        };
        let user = match parts.credential {
            Credential::Token => json!({"token": token}),
            Credential::TokenFile => json!({"tokenFile": file("token", token)}),
            Credential::CertInline => json!({
                "client-certificate-data": base64(&identity.certificate),
                "client-key-data": base64(&identity.key),
            }),
            Credential::CertFiles => json!({
                "client-certificate": file("crt", &identity.certificate),
                "client-key": file("key", &identity.key),
            }),
            Credential::Nothing => json!({}),
        };
        let name = if parts.context.is_empty() {
            "main".to_owned()
        } else {
            parts.context.clone()
        };
        KubeconfigEntry {
            name,
            cluster: cluster.into(),
            user,
            namespace: parts.namespace.clone(),
        }
    }
}

/// The text of a kubeconfig with all of `entries`.
pub(super) fn render(entries: &[KubeconfigEntry], current_context: &str) -> String {
    let named = |section: &str, value: &dyn Fn(&KubeconfigEntry) -> Value| -> Vec<Value> {
        entries
            .iter()
            .map(|entry| json!({"name": entry.name, section: value(entry)}))
            .collect()
    };
    let context = |entry: &KubeconfigEntry| {
        let mut context = json!({"cluster": entry.name, "user": entry.name});
        if let Some(namespace) = &entry.namespace {
            context["namespace"] = namespace.clone().into();
        }
        context
    };
    let mut config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": named("cluster", &|entry| entry.cluster.clone()),
        "users": named("user", &|entry| entry.user.clone()),
        "contexts": named("context", &context),
    });
    if !current_context.is_empty() {
        config["current-context"] = current_context.into();
    }
    let mut text = String::new();
    write_yaml(&config, 0, &mut text);
    text
}

/// Writes `value` in YAML's block style, as `kubectl` does. Scalars are JSON's, which YAML includes.
fn write_yaml(value: &Value, indent: usize, text: &mut String) {
    let pad = "  ".repeat(indent);
    let pad = pad.as_str();
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                text.extend([pad, key.as_str(), ":"]);
                write_nested(value, indent, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                text.extend([pad, "-"]);
                write_nested(item, indent, text);
            }
        }
        scalar => text.extend([pad, scalar.to_string().as_str(), "\n"]),
    }
}

/// Writes what comes after `key:` or `-`.
fn write_nested(value: &Value, indent: usize, text: &mut String) {
    let nested = matches!(value, Value::Object(map) if !map.is_empty())
        || matches!(value, Value::Array(items) if !items.is_empty());
    if nested {
        text.push('\n');
        write_yaml(value, indent + 1, text);
    } else {
        text.extend([" ", value.to_string().as_str(), "\n"]);
    }
}

/// Standard base64 with padding.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.as_ref().chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            // One byte gives two digits, two bytes three, three bytes four; the rest is padding.
            if digit <= chunk.len() {
                text.push(char::from(DIGITS[(group >> (18 - 6 * digit) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
