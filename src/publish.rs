//! The role `publish`: what it prints of files, without a server.

use std::error::Error;
use std::fmt;
use std::time::SystemTime;

use edge_syncer_publish::copy::{self, Marks, SUBRESOURCES, Terms};
use edge_syncer_publish::keys::ObjectKey;
use edge_syncer_publish::kinds::{self, PublishedResource};
use edge_syncer_publish::mutation::Rules;
use edge_syncer_publish::naming::{Namer, Workspace};
use edge_syncer_publish::schema::{self, Crd};
pub use edge_syncer_publish::{check, run};
use gotemplate::objects::{Object, of_text, printed};
use gotemplate::yaml::DocumentError;
use kube_lite::files;
use kube_lite::logging::LogFormat;
use log::LevelFilter;
use serde_json::Value;

/// What `publish` is to run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// What the role runs with.
    pub settings: edge_syncer_publish::Settings,
    /// The level of our own log lines.
    pub verbosity: LevelFilter,
    /// What log lines look like.
    pub format: LogFormat,
}

/// What `publish render` is to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Render {
    /// The files, where `-` is stdin.
    pub files: Vec<String>,
    /// Which PublishedResource, if there are several.
    pub name: Option<String>,
    /// The object whose copy is printed too.
    pub copied: Option<Copied>,
    /// The name of the agent.
    pub agent: String,
    /// Whether kcp knows fields by which objects are selected.
    pub has_selectable_fields: bool,
    /// Whether JSON is printed, as one list, in the place of YAML documents.
    pub json: bool,
}

/// An object of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The file with it, where `-` is stdin.
    pub file: String,
    /// The cluster id of its workspace.
    pub cluster: String,
    /// The path of that; empty if nobody asks for it.
    pub path: String,
}

/// Why nothing is printed.
#[derive(Debug)]
pub enum RenderError {
    /// The command line has to be corrected.
    Unusable(String),
    /// A file is no YAML, or a document of it no object.
    File {
        /// The file.
        file: String,
        /// What is wrong.
        error: DocumentError,
    },
    /// An object of a file cannot be used.
    Object {
        /// The file.
        file: String,
        /// Its kind and name.
        object: String,
        /// What is wrong.
        why: String,
    },
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => f.write_str(why),
            Self::File { file, error } => write!(f, "{file}: {error}"),
            Self::Object { file, object, why } => write!(f, "{file}: {object}: {why}"),
        }
    }
}

impl Error for RenderError {}

/// An object of a file.
struct Found {
    file: String,
    object: Object,
}

impl Found {
    fn name(&self) -> &str {
        let metadata = self.object.fields.get("metadata");
        let name = metadata.and_then(|metadata| metadata.get("name"));
        name.and_then(Value::as_str).unwrap_or_default()
    }

    fn value(&self) -> Value {
        Value::Object(self.object.fields.clone())
    }

    fn is(&self, group: &str, kind: &str) -> bool {
        self.object.group() == group && self.object.kind() == kind
    }

    fn error(&self, why: impl fmt::Display) -> RenderError {
        let name = match self.name() {
            "" => "without a name",
            name => name,
        };
        RenderError::Object {
            file: self.file.clone(),
            object: format!("{} {name}", self.object.kind()),
            why: why.to_string(),
        }
    }
}

/// The schema that a PublishedResource gives, and the copy of an object.
pub fn render(settings: &Render, now: SystemTime) -> Result<String, RenderError> {
    let mut found = Vec::new();
    for file in &settings.files {
        found.extend(objects("--file", file, &read("--file", file)?)?);
    }
    let objects = match &settings.copied {
        None => Vec::new(),
        Some(copied) => objects("--object", &copied.file, &read("--object", &copied.file)?)?,
    };
    made(settings, &found, &objects, now)
}

fn read(flag: &str, file: &str) -> Result<String, RenderError> {
    let text = files::read_text_or_stdin(file);
    text.map_err(|error| RenderError::Unusable(format!("{flag} {file:?}: cannot be read: {error}")))
}

fn objects(flag: &str, file: &str, text: &str) -> Result<Vec<Found>, RenderError> {
    let found = of_text(text).map_err(|error| RenderError::File {
        file: file.to_owned(),
        error,
    })?;
    if found.is_empty() {
        return Err(RenderError::Unusable(format!(
            "{flag} {file:?}: there is no object in it"
        )));
    }
    let with_file = |object| Found {
        file: file.to_owned(),
        object,
    };
    Ok(found.into_iter().map(with_file).collect())
}

/// What is printed.
fn made(settings: &Render, found: &[Found], objects: &[Found], now: SystemTime) -> Result<String, RenderError> {
    let (published, chosen) = chosen(found, settings.name.as_deref())?;
    let crd = type_of(&published, found)?;
    let projected = schema::project(&crd, &published).map_err(|error| chosen.error(error))?;
    // What fails at a server fails here, with an object or without.
    edge_syncer_publish::check_rules(&published).map_err(|error| chosen.error(error))?;
    let mut documents = vec![projected.schema(&settings.agent, settings.has_selectable_fields)];
    if let Some(copied) = &settings.copied {
        let in_kcp = (&*projected.crd.group, &*projected.crd.names.kind);
        documents.push(copy(
            settings,
            copied,
            (&published, chosen),
            &crd,
            in_kcp,
            objects,
            now,
        )?);
    }
    Ok(printed(&documents, settings.json))
}

/// The PublishedResource that is meant.
fn chosen<'a>(found: &'a [Found], name: Option<&str>) -> Result<(PublishedResource, &'a Found), RenderError> {
    let all: Vec<&Found> = found
        .iter()
        .filter(|it| it.is("syncagent.kcp.io", "PublishedResource"))
        .collect();
    let names = || all.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
    let unusable = |why: String| Err(RenderError::Unusable(why));
    let meant = match (name, all.as_slice()) {
        (_, []) => return unusable("there is no PublishedResource in the files".to_owned()),
        (None, [only]) => *only,
        (None, _) => {
            let names = names();
            return unusable(format!(
                "the files have several PublishedResources, choose one with --name: {names}"
            ));
        }
        (Some(name), all) => match all.iter().find(|it| it.name() == name) {
            Some(found) => *found,
            None => return unusable(format!("--name {name:?}: the files have {}", names())),
        },
    };
    let published = kinds::read(&meant.value()).map_err(|error| meant.error(error))?;
    Ok((published, meant))
}

/// The type that it is about.
fn type_of(published: &PublishedResource, found: &[Found]) -> Result<Crd, RenderError> {
    let (group, kind) = (&published.source.group, &published.source.kind);
    let crds = found
        .iter()
        .filter(|it| it.is("apiextensions.k8s.io", "CustomResourceDefinition"));
    for found in crds {
        let crd = Crd::read(&found.value()).map_err(|error| found.error(error))?;
        if crd.group == *group && crd.names.kind == *kind {
            return Ok(crd);
        }
    }
    let name = if group.is_empty() {
        kind.clone()
    } else {
        format!("{kind}.{group}")
    };
    Err(RenderError::Unusable(format!(
        "there is no CustomResourceDefinition of {name} in the files"
    )))
}

/// The copy of an object of this group and kind.
fn copy(
    settings: &Render,
    copied: &Copied,
    (published, chosen): (&PublishedResource, &Found),
    crd: &Crd,
    (group, kind): (&str, &str),
    objects: &[Found],
    now: SystemTime,
) -> Result<Value, RenderError> {
    let Some(found) = objects.iter().find(|it| it.is(group, kind)) else {
        let file = &copied.file;
        return Err(RenderError::Unusable(format!(
            "--object {file:?}: there is no {kind} of {group} in it"
        )));
    };
    let object = found.value();
    let text = |key: &str| {
        let value = object.get("metadata").and_then(|metadata| metadata.get(key));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let namespace = objects
        .iter()
        .find(|it| it.is("", "Namespace") && it.name() == text("namespace"));
    if !published.filter.matches(&object, namespace.map(Found::value).as_ref()) {
        return Err(found.error("has no copy: spec.filter of the PublishedResource leaves it out"));
    }
    let path = if published.workspace_paths {
        copied.path.as_str()
    } else {
        ""
    };
    let workspace = Workspace {
        cluster: copied.cluster.clone(),
        path: path.to_owned(),
    };
    let namer = Namer::new(&published.naming).map_err(|error| chosen.error(error))?;
    let name = namer
        .name(&object, &workspace, crd.scope, now)
        .map_err(|error| found.error(error))?;
    let Some(stored) = crd.stored_version() else {
        return Err(chosen.error("the CRD stores no version"));
    };
    let subresources: Vec<&str> = SUBRESOURCES.into_iter().filter(|name| stored.has(name)).collect();
    let terms = Terms {
        marks: Marks::Primary(&settings.agent),
        subresources: &subresources,
    };
    let key = ObjectKey {
        cluster: copied.cluster.clone(),
        workspace_path: Some(path.to_owned()),
        namespace: text("namespace"),
        name: text("name"),
    };
    let api_version = format!("{}/{}", crd.group, stored.name);
    let made = |object: &Value| copy::create(object, &terms, &key, &api_version, &crd.names.kind, &name);
    let rules = Rules::new(&published.mutation, "spec.mutation").map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        chosen.error(errors.join("; "))
    })?;
    // Mutations see the copy that would be without them.
    let planned = made(&object);
    let mutated = rules.spec(object, &planned, now).map_err(|error| found.error(error))?;
    Ok(made(&mutated))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PUBLISHED: &str = "kind: PublishedResource\napiVersion: syncagent.kcp.io/v1alpha1\nmetadata: {name: shops}\nspec:\n  \
                             resource: {apiGroup: demo.example.org, kind: Shop}\n  projection: {kind: Store}\n  filter: {resource: \
                             {matchLabels: {a: b}}}\n";
    const CRD: &str = "---\nkind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: {name: shops.demo.example.org}\n\
                       spec:\n  group: demo.example.org\n  names: {plural: shops, singular: shop, kind: Shop, listKind: ShopList}\n  \
                       scope: Namespaced\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: \
                       object}}, subresources: {status: {}}}\n";
    const OBJECT: &str = "kind: Store\napiVersion: demo.example.org/v1\nmetadata: {name: web, namespace: shop, labels: {a: b}}\nspec: {a: \
                          1}\nstatus: {b: 2}\n";

    fn rendered(text: &str, object: Option<&str>, name: Option<&str>, json: bool) -> Result<String, String> {
        let settings = Render {
            files: Vec::new(),
            name: name.map(str::to_owned),
            copied: object.map(|_| Copied {
                file: "o".to_owned(),
                cluster: "c1".to_owned(),
                path: "root:org".to_owned(),
            }),
            agent: "agent".to_owned(),
            has_selectable_fields: false,
            json,
        };
        let run = || {
            let found = objects("--file", "a", text)?;
            let objects = object.map_or(Ok(Vec::new()), |text| objects("--object", "o", text))?;
            made(&settings, &found, &objects, SystemTime::UNIX_EPOCH)
        };
        run().map_err(|error: RenderError| error.to_string())
    }

    #[test]
    fn prints_the_schema_and_the_copy() {
        let text = rendered(&format!("{PUBLISHED}{CRD}"), Some(OBJECT), None, false).unwrap();
        let (schema, copy) = text.split_once("---\n").unwrap();
        assert!(schema.contains("kind: APIResourceSchema\n"), "{schema}");
        assert!(schema.contains(".stores.demo.example.org\n"), "{schema}");
        let expected = "apiVersion: demo.example.org/v1\nkind: Shop\nmetadata:\n  annotations:\n    \
                        syncagent.kcp.io/remote-object-name: web\n    syncagent.kcp.io/remote-object-namespace: shop\n  labels:\n    a: \
                        b\n    syncagent.kcp.io/agent-name: agent\n    syncagent.kcp.io/remote-object-cluster: c1\n    \
                        syncagent.kcp.io/remote-object-name-hash: ca84d1343b96baa8137c943ed1860e522cacb238\n    \
                        syncagent.kcp.io/remote-object-namespace-hash: ";
        assert!(copy.starts_with(expected), "{copy}");
        let end = "\n  name: f39597dce3aed80bee3d-6a31816d04deed5f5bcd\n  namespace: c1\nspec:\n  a: 1\n";
        assert!(copy.ends_with(end), "{copy}");
        let list = rendered(&format!("{PUBLISHED}{CRD}"), Some(OBJECT), Some("shops"), true).unwrap();
        let list: Value = serde_json::from_str(&list).unwrap();
        assert_eq!(list["items"][1]["spec"], json!({"a": 1}));
        assert_eq!(list["items"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn the_copy_is_as_mutations_leave_it() {
        let mutated = |rule: &str| {
            let published = PUBLISHED.replace("spec:\n", &format!("spec:\n  mutation: {{spec: [{rule}]}}\n"));
            rendered(&format!("{published}{CRD}"), Some(OBJECT), None, false)
        };
        let copy = mutated("{cel: {path: spec.a, expression: 'value + 1'}}").unwrap();
        assert!(copy.ends_with("spec:\n  a: 2\n"), "{copy}");
        let copy = mutated("{delete: {path: spec.a}}").unwrap();
        assert!(copy.ends_with("spec: {}\n"), "{copy}");
        let wrong = mutated("{cel: {path: spec.a, expression: 'value +'}}").unwrap_err();
        assert!(
            wrong.starts_with("a: PublishedResource shops: spec.mutation"),
            "{wrong}"
        );
        let fails = mutated("{cel: {path: spec.a, expression: 'value + \"x\"'}}").unwrap_err();
        assert!(fails.starts_with("o: Store web: "), "{fails}");
    }

    #[test]
    fn rules_are_read_without_an_object_too() {
        let related = "{identifier: a, origin: kcp, kind: Secret, object: {reference: {path: x}}, mutation: {spec: [{cel: {path: \
                       spec.a, expression: 'value +'}}]}}";
        for (wrong, place) in [
            (
                "mutation: {spec: [{regex: {path: spec.a, pattern: '(', replacement: ''}}]}".to_owned(),
                "spec.mutation.spec[0]",
            ),
            (format!("related: [{related}]"), "spec.related[0].mutation.spec[0]"),
            ("naming: {name: '{{ .Object'}".to_owned(), "spec.naming.name"),
        ] {
            let published = PUBLISHED.replace("spec:\n", &format!("spec:\n  {wrong}\n"));
            let error = rendered(&format!("{published}{CRD}"), None, None, false).unwrap_err();
            assert!(
                error.starts_with("a: PublishedResource shops: ") && error.contains(place),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_wrong_has_its_file_and_place() {
        let two = format!("{PUBLISHED}---\n{}", PUBLISHED.replace("name: shops", "name: others"));
        let all = format!("{PUBLISHED}{CRD}");
        let bare = PUBLISHED
            .replace("spec:\n", "spec:\n  naming: 1\n")
            .replace("kind: Shop}", "version: 1}");
        let no_version = all.replace("kind: Shop}", "kind: Shop, versions: [v2]}");
        let other = OBJECT.replace("a: b", "a: c");
        for (text, object, name, expected) in [
            ("", None, None, "--file \"a\": there is no object in it"),
            (CRD, None, None, "there is no PublishedResource in the files"),
            (
                &*two,
                None,
                None,
                "the files have several PublishedResources, choose one with --name: shops, others",
            ),
            (&*two, None, Some("x"), "--name \"x\": the files have shops, others"),
            (
                PUBLISHED,
                None,
                None,
                "there is no CustomResourceDefinition of Shop.demo.example.org in the files",
            ),
            ("- x", None, None, "a: document 1, line 1: is a list, not a mapping"),
            (
                &*bare,
                None,
                None,
                "a: PublishedResource shops: spec.resource.version: must be a text; spec.resource.kind: is missing; \
                 spec.naming: must be a mapping",
            ),
            (
                &*no_version,
                None,
                None,
                "a: PublishedResource shops: the CRD has none of these versions: v2",
            ),
            (
                &*all,
                Some(&*other),
                None,
                "o: Store web: has no copy: spec.filter of the PublishedResource leaves it out",
            ),
            (
                &*all,
                Some("{kind: Shop, apiVersion: demo.example.org/v1}"),
                None,
                "--object \"o\": there is no Store of demo.example.org in it",
            ),
        ] {
            assert_eq!(rendered(text, object, name, false), Err(expected.to_owned()), "{text}");
        }
    }
}
