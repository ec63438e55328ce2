//! The parts of a kubeconfig file that one context leads to.
//!
//! Promises: of these parts each field is known and has a value of its kind, or an error names it; a field with nearly
//! the name of a known one is an error, since it was meant to have an effect. What other contexts use is not read. No
//! message holds a value other than a name, path or URL.

use std::path::Path;

use kube::config::{AuthInfo, AuthProviderConfig, Cluster, ExecConfig};
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::error::{AccessPlace, BadField, Entry};
use super::fields::{CLUSTER_FIELDS, CONTEXT_FIELDS, Fields, Form, USER_FIELDS};
use crate::files;
use crate::spelling;

/// One context with its cluster and, if it names one, its user.
pub(super) struct Parts {
    pub(super) cluster: Cluster,
    pub(super) user: Option<User>,
}

/// A user entry, and the names of all its fields.
pub(super) struct User {
    pub(super) info: AuthInfo,
    /// The names of all its fields, known or not.
    pub(super) fields: Vec<String>,
}

/// Which context of a kubeconfig is wanted, the current one if none is named, and the flag that names one.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The name of the context.
    pub context: Option<&'a str>,
    /// The flag, for messages.
    pub flag: &'a str,
}

impl Parts {
    /// Reads the file and follows the context, the current one if none is wanted. Adds the names that it finds to
    /// `place`.
    pub(super) fn read(path: &Path, wanted: Wanted<'_>, place: &mut AccessPlace) -> Result<Self, BadField> {
        let root = parse(path)?;
        Self::of(&root, path, wanted, place, |user, _| Ok(user))
    }

    /// The same from the content of the file. `resolve` gets the user entry and that of the cluster, and returns what
    /// replaces the first.
    pub(super) fn of(
        root: &Map<String, Value>,
        path: &Path,
        wanted: Wanted<'_>,
        place: &mut AccessPlace,
        resolve: impl Fn(Map<String, Value>, &Map<String, Value>) -> Result<Map<String, Value>, BadField>,
    ) -> Result<Self, BadField> {
        let name = pick_context(root, wanted)?;
        place.context = Some(name.clone());
        let mut context = entry(root, "contexts", "context", &name)?.unwrap_or_default();
        tidy(&mut context, CONTEXT_FIELDS, Entry::Context, path)?;
        let text = |field: &str| context.get(field).and_then(Value::as_str).map(str::to_owned);
        let find = |list, kind, name: &str| {
            let known = || listed(kind, &names(root, list).collect::<Vec<_>>());
            let missing = || {
                BadField::of(
                    Entry::Context,
                    kind,
                    format!("{name:?} is not in the file, which has {}", known()),
                )
            };
            entry(root, list, kind, name)?.ok_or_else(missing)
        };
        let name = text("cluster").ok_or_else(|| BadField::of(Entry::Context, "cluster", "it is missing"))?;
        let mut cluster = find("clusters", "cluster", &name)?;
        place.cluster = Some(name);
        tidy(&mut cluster, CLUSTER_FIELDS, Entry::Cluster, path)?;
        let user = match text("user") {
            None => None,
            Some(name) => {
                let user = find("users", "user", &name)?;
                place.user = Some(name);
                let mut user = resolve(user, &cluster)?;
                let fields = user.keys().cloned().collect();
                tidy(&mut user, USER_FIELDS, Entry::User, path)?;
                let info = user_of(&user);
                Some(User { info, fields })
            }
        };
        Ok(Self {
            cluster: cluster_of(&cluster),
            user,
        })
    }
}

/// Through a JSON value, because the YAML parser is then a third of the size that it has in kube: it is compiled for
/// one type instead of for each.
fn parse(path: &Path) -> Result<Map<String, Value>, BadField> {
    let text = files::read_text(path).map_err(|error| BadField::new("", format!("it cannot be read: {error}")))?;
    parse_text(&text).map_err(|why| BadField::new("", why))
}

fn parse_text(text: &str) -> Result<Map<String, Value>, String> {
    let root = parse_any(text).and_then(|root| {
        if root.contains_key("contexts") || root.contains_key("clusters") {
            Ok(root)
        } else {
            Err(NO_PARTS.to_owned())
        }
    });
    root.map_err(|why| format!("it is not a kubeconfig: {why}"))
}

/// The token in the user entry that a context of a kubeconfig leads to, the current one if none is wanted; or what is wrong.
pub fn token_in(text: &str, wanted: Wanted<'_>) -> Result<SecretString, String> {
    let root = parse_text(text)?;
    let found = || {
        let context = pick_context(&root, wanted)?;
        let context = entry(&root, "contexts", "context", &context)?.unwrap_or_default();
        let user = context.get("user").and_then(Value::as_str).unwrap_or_default();
        entry(&root, "users", "user", user)
    };
    let user = found().map_err(|error: BadField| error.to_string())?;
    let user = user.unwrap_or_default();
    let token = user.get("token").and_then(Value::as_str).map(str::trim);
    let token = token.filter(|token| !token.is_empty());
    token
        .map(SecretString::from)
        .ok_or_else(|| "its user entry has no token".to_owned())
}

const NO_PARTS: &str = "it has neither contexts nor clusters";

/// A kubeconfig, or one of several that together are one.
pub(super) fn parse_any(text: &str) -> Result<Map<String, Value>, String> {
    let documents = goyaml::documents(text.trim_start_matches('\u{feff}'));
    let mut documents =
        documents.map_err(|error| without_values(&format!("line {}: {}", error.line, error.message)))?;
    match documents.pop().map(|document| document.value) {
        Some(_) if !documents.is_empty() => Err("it has more than one document".to_owned()),
        Some(Value::Object(root)) => Ok(root),
        _ => Err(NO_PARTS.to_owned()),
    }
}

pub(super) fn pick_context(root: &Map<String, Value>, wanted: Wanted<'_>) -> Result<String, BadField> {
    let Wanted { context: wanted, flag } = wanted;
    let known: Vec<&str> = names(root, "contexts").collect();
    let current = match root.get("current-context") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.as_str()).filter(|name| !name.is_empty()),
        Some(_) => return Err(BadField::new("current-context", NO_TEXT)),
    };
    let field = wanted.map_or("current-context", |_| flag);
    let Some(name) = wanted.or(current) else {
        let why = format!(
            "it is missing, as is {flag}; the file has {}",
            listed("context", &known)
        );
        return Err(BadField::new(field, why));
    };
    if !known.contains(&name) {
        let why = format!("{name:?} is not in the file, which has {}", listed("context", &known));
        return Err(BadField::new(field, why));
    }
    Ok(name.to_owned())
}

/// The items of a list of named entries.
pub(super) fn items<'a>(root: &'a Map<String, Value>, list: &str) -> impl Iterator<Item = &'a Map<String, Value>> {
    let items = root.get(list).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_object)
}

pub(super) fn names<'a>(root: &'a Map<String, Value>, list: &str) -> impl Iterator<Item = &'a str> {
    items(root, list).filter_map(|item| item.get("name")?.as_str())
}

/// What a named entry holds under the name of its kind: `None` if there is no such entry.
pub(super) fn entry(
    root: &Map<String, Value>,
    list: &'static str,
    kind: &'static str,
    name: &str,
) -> Result<Option<Map<String, Value>>, BadField> {
    if !matches!(root.get(list), None | Some(Value::Null | Value::Array(_))) {
        return Err(BadField::new(list, "it must be a list"));
    }
    let Some(item) = items(root, list).find(|item| item.get("name").and_then(Value::as_str) == Some(name)) else {
        return Ok(None);
    };
    match item.get(kind) {
        None | Some(Value::Null) => Ok(Some(Map::new())),
        Some(Value::Object(body)) => Ok(Some(body.clone())),
        Some(_) => Err(BadField::new(
            list,
            format!("{kind} of {name:?} must hold fields, such as \"name: value\""),
        )),
    }
}

const NO_TEXT: &str = "it must be text; if it is, put it in quotes";

/// Removes empty fields, as client-go does, since generated files are full of them; makes paths absolute; refuses
/// values of another form, and names that are nearly those of known fields.
fn tidy(body: &mut Map<String, Value>, fields: &Fields, entry: Entry, file: &Path) -> Result<(), BadField> {
    body.retain(|_, value| !(value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())));
    for (name, value) in body.iter_mut() {
        let bad = |why: String| Err(BadField::of(entry, name, why));
        let Some((_, form)) = fields.iter().find(|(known, _)| known == name) else {
            match spelling::nearest(name, fields.iter().map(|(known, _)| *known)) {
                Some(known) => return bad(format!("there is no such field, did you mean {known}?")),
                None => continue,
            }
        };
        match (form, &*value) {
            (Form::Any, _)
            | (Form::Text, Value::String(_))
            | (Form::Switch, Value::Bool(_))
            | (Form::List, Value::Array(_)) => {}
            (Form::Texts, list) if are_texts(list) => {}
            (Form::TextsByName, Value::Object(lists)) if lists.values().all(are_texts) => {}
            (Form::Switch, _) => return bad("it must be true or false, without quotes".to_owned()),
            (Form::List, _) => return bad("it must be a list".to_owned()),
            (Form::Texts, _) => return bad("it must be a list of text".to_owned()),
            (Form::TextsByName, _) => return bad("it must hold lists of text under names".to_owned()),
            (Form::File, Value::String(path)) if path.starts_with("~/") => {
                return bad("it begins with ~, which only shells know: write the whole path".to_owned());
            }
            (Form::File, Value::String(path)) => {
                let folder = file.parent().unwrap_or(Path::new(""));
                *value = folder.join(path).to_string_lossy().into();
            }
            (Form::Text | Form::File, _) => return bad(NO_TEXT.to_owned()),
        }
    }
    Ok(())
}

fn are_texts(list: &Value) -> bool {
    list.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

/// A cluster entry whose fields have the form that they must have.
fn cluster_of(entry: &Map<String, Value>) -> Cluster {
    let text = |field| text_in(entry, field);
    Cluster {
        server: text("server"),
        insecure_skip_tls_verify: entry.get("insecure-skip-tls-verify").and_then(Value::as_bool),
        certificate_authority: text("certificate-authority"),
        certificate_authority_data: text("certificate-authority-data"),
        proxy_url: text("proxy-url"),
        tls_server_name: text("tls-server-name"),
        ..Cluster::default()
    }
}

/// The same of a user entry.
fn user_of(entry: &Map<String, Value>) -> AuthInfo {
    let text = |field| text_in(entry, field);
    let secret = |field| text_in(entry, field).map(SecretString::from);
    let extra = entry.get("as-user-extra").and_then(Value::as_object);
    AuthInfo {
        username: text("username"),
        password: secret("password"),
        token: secret("token"),
        token_file: text("tokenFile"),
        client_certificate: text("client-certificate"),
        client_certificate_data: text("client-certificate-data"),
        client_key: text("client-key"),
        client_key_data: secret("client-key-data"),
        impersonate: text("as"),
        impersonate_uid: text("as-uid"),
        impersonate_groups: entry.get("as-groups").map(texts),
        impersonate_user_extra: extra.map(|extra| extra.iter().map(|(key, list)| (key.clone(), texts(list))).collect()),
        exec: entry.contains_key("exec").then(ExecConfig::default),
        auth_provider: entry.contains_key("auth-provider").then(AuthProviderConfig::default),
        ..AuthInfo::default()
    }
}

fn text_in(entry: &Map<String, Value>, field: &str) -> Option<String> {
    entry.get(field).and_then(Value::as_str).map(str::to_owned)
}

/// What a list holds.
fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Names for a message: `contexts "a", "b"` or `no context`.
pub(super) fn listed(kind: &str, names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match names {
        [] => format!("no {kind}"),
        [_] => format!("{kind} {}", quoted[0]),
        _ => format!("{kind}s {}", quoted.join(", ")),
    }
}

/// One line of a parser's message, with the contents of quotes, which are values from the file, left out.
fn without_values(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    let mut chars = words.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' | '`' => {
                while let Some(inner) = chars.next() {
                    match inner {
                        '\\' => drop(chars.next()),
                        end if end == c => break,
                        _ => {}
                    }
                }
                out.push_str("\"...\"");
            }
            '\n' | '\r' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
