//! A hub as an administrator's tools know it: the kubeconfig files that kubectl would read, and the flags that override
//! them.
//!
//! Promises: what is found is what kubectl finds: of two entries of one name the first counts, paths are relative to
//! the file that they are in, and flags override files. An exec plugin is run. No message holds a token.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::error::{AccessError, AccessPlace, BadField, Entry};
use super::exec;
use super::kubeconfig::{self, Parts, Wanted, items};
use super::{Access, Renewed, at, from_parts};
use crate::files;

/// What is to be named in messages.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct AdminFlags {
    /// The flag that names a context.
    pub context: &'static str,
    /// The flag that names a user.
    pub user: &'static str,
    /// What to do where there is neither file nor server.
    pub without: &'static str,
}

/// The files and flags.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Admin {
    /// Kubeconfig files, the one that counts most first.
    pub files: Vec<PathBuf>,
    /// What named them, for messages: a flag, a variable, or a folder.
    pub named_by: &'static str,
    /// What names the others, for messages.
    pub flags: AdminFlags,
    /// Whether a missing file is an error. In lists, missing files are skipped.
    pub must_exist: bool,
    /// The context that counts, in the place of the current one.
    pub context: Option<String>,
    /// The user, in the place of the context's.
    pub user: Option<String>,
    /// The server's URL, in the place of the cluster's.
    pub server: Option<String>,
    /// The token, in the place of all that the user has.
    pub token: Option<String>,
    /// The file with the CA of the server's certificate.
    pub certificate_authority: Option<String>,
    /// Whether the server's certificate is not verified.
    pub insecure: bool,
    /// The name that the server's certificate has to be for.
    pub tls_server_name: Option<String>,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.named_by)?;
        for (at, file) in self.files.iter().enumerate() {
            let before = if at == 0 { "=" } else { ":" };
            write!(f, "{before}{}", file.display())?;
        }
        Ok(())
    }
}

/// The lists of named entries, with what an entry holds and which of its fields are paths.
const LISTS: [(&str, &str, &[&str]); 3] = [
    ("clusters", "cluster", &["certificate-authority"]),
    ("contexts", "context", &[]),
    ("users", "user", &["client-certificate", "client-key", "tokenFile"]),
];

/// Loads the access data, as [`super::load`] does for a syncer.
pub fn load(side: &str, admin: &Admin) -> Result<Access, AccessError> {
    let mut place = AccessPlace::new(side, admin.to_string());
    let parts = admin
        .merged()
        .and_then(|root| Parts::of(&root, Path::new(""), admin.wanted(None), &mut place, exec::resolve));
    let loaded = match parts {
        Ok(parts) => from_parts(parts, &admin.to_string(), &Renewed::default(), admin.flags.context),
        Err(fault) => Err(fault),
    };
    at(place, loaded)
}

impl Admin {
    /// What the files and flags say together, as one kubeconfig whose current context is the one that counts.
    fn merged(&self) -> Result<Map<String, Value>, BadField> {
        let mut root = self.files_merged()?;
        if self.overrides_nothing() {
            return Ok(root);
        }
        let (mut context, mut cluster, mut user) = (Map::new(), Map::new(), Map::new());
        if self.context.is_some() || root.contains_key("current-context") {
            let name = kubeconfig::pick_context(&root, self.wanted(self.context.as_deref()))?;
            context = kubeconfig::entry(&root, "contexts", "context", &name)?.unwrap_or_default();
            let of = |field: &str| context.get(field).and_then(Value::as_str).unwrap_or_default();
            cluster = kubeconfig::entry(&root, "clusters", "cluster", of("cluster"))?.unwrap_or_default();
            user = kubeconfig::entry(&root, "users", "user", of("user"))?.unwrap_or_default();
        } else if self.server.is_none() {
            kubeconfig::pick_context(&root, self.wanted(None))?;
        }
        if let Some(name) = &self.user {
            let known = || kubeconfig::listed("user", &kubeconfig::names(&root, "users").collect::<Vec<_>>());
            let missing = || {
                BadField::of(
                    Entry::None,
                    self.flags.user,
                    format!("{name:?} is not in the file, which has {}", known()),
                )
            };
            user = kubeconfig::entry(&root, "users", "user", name)?.ok_or_else(missing)?;
        }
        self.override_cluster(&mut cluster)?;
        if let Some(token) = &self.token {
            user = Map::from_iter([("token".to_owned(), token.clone().into())]);
        }
        // Under their own names, so that messages show these.
        let name_of = |field: &str| {
            context
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or("of flags")
                .to_owned()
        };
        let (cluster_name, user_name) = (name_of("cluster"), self.user.clone().unwrap_or_else(|| name_of("user")));
        context.insert("cluster".into(), cluster_name.clone().into());
        context.insert("user".into(), user_name.clone().into());
        let name = self.context.clone();
        let name = name.or_else(|| root.get("current-context")?.as_str().map(str::to_owned));
        let name = name.unwrap_or_else(|| "of flags".to_owned());
        root.insert("current-context".into(), name.clone().into());
        root.insert("contexts".into(), json!([{"name": name, "context": context}]));
        root.insert("clusters".into(), json!([{"name": cluster_name, "cluster": cluster}]));
        root.insert("users".into(), json!([{"name": user_name, "user": user}]));
        Ok(root)
    }

    fn overrides_nothing(&self) -> bool {
        let texts = [
            &self.context,
            &self.user,
            &self.server,
            &self.token,
            &self.certificate_authority,
            &self.tls_server_name,
        ];
        texts.into_iter().all(Option::is_none) && !self.insecure
    }

    fn override_cluster(&self, cluster: &mut Map<String, Value>) -> Result<(), BadField> {
        if let Some(server) = &self.server {
            cluster.insert("server".into(), server.clone().into());
        }
        if let Some(name) = &self.tls_server_name {
            cluster.insert("tls-server-name".into(), name.clone().into());
        }
        if let Some(path) = &self.certificate_authority {
            let absolute =
                std::path::absolute(path).map_err(|error| BadField::new("certificate-authority", error.to_string()))?;
            cluster.remove("certificate-authority-data");
            cluster.remove("insecure-skip-tls-verify");
            cluster.insert("certificate-authority".into(), absolute.to_string_lossy().into());
        }
        if self.insecure {
            cluster.remove("certificate-authority-data");
            cluster.remove("certificate-authority");
            cluster.insert("insecure-skip-tls-verify".into(), true.into());
        }
        Ok(())
    }

    fn files_merged(&self) -> Result<Map<String, Value>, BadField> {
        let mut merged = Map::new();
        let mut found = false;
        for file in &self.files {
            if !self.must_exist && !file.exists() {
                continue;
            }
            found = true;
            let text = files::read_text(file)
                .map_err(|error| BadField::new("", format!("{} cannot be read: {error}", file.display())))?;
            let root = kubeconfig::parse_any(&text)
                .map_err(|why| BadField::new("", format!("{} is not a kubeconfig: {why}", file.display())))?;
            merge(&mut merged, root, file);
        }
        if !found && self.server.is_none() {
            return Err(BadField::new(
                "",
                format!("there is no kubeconfig: {}", self.flags.without),
            ));
        }
        Ok(merged)
    }

    fn wanted<'a>(&self, context: Option<&'a str>) -> Wanted<'a> {
        let flag = self.flags.context;
        Wanted { context, flag }
    }
}

/// Adds what is not there yet.
fn merge(merged: &mut Map<String, Value>, mut root: Map<String, Value>, file: &Path) {
    let folder = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let folder = folder.parent().unwrap_or(Path::new("/"));
    for (list, kind, paths) in LISTS {
        let known: Vec<String> = kubeconfig::names(merged, list).map(str::to_owned).collect();
        let new = items(&root, list).filter(|item| {
            let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
            !known.iter().any(|known| known == name)
        });
        let mut new: Vec<Value> = new.cloned().map(Value::Object).collect();
        for item in &mut new {
            for field in paths {
                make_absolute(&mut item[kind], field, folder);
            }
            if item[kind]["exec"].is_object() {
                exec::make_absolute(&mut item[kind]["exec"], folder);
            }
        }
        let into = merged.entry(list).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(into) = into {
            into.append(&mut new);
        }
    }
    let current = root.remove("current-context");
    if let Some(current) = current.filter(|name| name.as_str().is_some_and(|name| !name.is_empty())) {
        merged.entry("current-context").or_insert(current);
    }
}

/// Makes the path in a field absolute. What is no path stays as it is, and is refused later.
fn make_absolute(entry: &mut Value, field: &str, folder: &Path) {
    let Some(Value::String(path)) = entry.get_mut(field) else {
        return;
    };
    if !path.is_empty() && !path.starts_with("~/") {
        *path = folder.join(&*path).to_string_lossy().into_owned();
    }
}

#[cfg(test)]
#[path = "admin_tests.rs"]
mod tests;
