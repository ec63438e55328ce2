//! What the copies of objects are called on the service cluster.
//!
//! Promises: an object has the same name whenever it is asked for, the one that the Go agent gives; templates are parsed
//! once.

use std::time::SystemTime;
use std::{error, fmt};

use gotemplate::{Data, Template, TemplateError};
use serde_json::{Value, json};

use crate::json;
use crate::kinds::{Naming, Scope};
use crate::templates::{parse, render};

/// Where a copy is without other wishes.
const NAMESPACE: &str = "{{ .ClusterName }}";

/// What it is called.
const NAME: &str = "{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}";

/// What it is called if its object is in no namespace.
const NAME_ALONE: &str = "{{ .Object.metadata.name | sha3short }}";

/// The characters of hashes in the old form.
const SHORT: usize = 20;

/// Gives names to copies.
#[derive(Debug)]
pub struct Namer {
    name: Rule,
    /// For objects that are in no namespace.
    name_alone: Option<Rule>,
    namespace: Rule,
    /// A template that somebody has written may read all of an object.
    reads_content: bool,
}

/// How a name is made.
#[derive(Debug)]
enum Rule {
    Template(Template),
    /// A text with placeholders.
    Old(String),
}

/// What a copy is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyName {
    /// Its namespace; empty if its type has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The workspace of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Its cluster id.
    pub cluster: String,
    /// Its path; empty unless the PublishedResource asks for paths.
    pub path: String,
}

/// Why an object's copy has no name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameError {
    /// A template fails.
    Template(TemplateError),
    /// It renders nothing.
    Empty(&'static str),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template(error) => error.fmt(f),
            Self::Empty(field) => write!(f, "{field} gives an empty text for this object"),
        }
    }
}

impl error::Error for NameError {}

impl Namer {
    /// By these rules.
    pub fn new(naming: &Naming) -> Result<Self, TemplateError> {
        let rule = |field: &str, text: &Option<String>, default: &str| match text.as_deref() {
            Some(text) if !text.contains("{{") => Ok(Rule::Old(text.to_owned())),
            text => parse(field, text.unwrap_or(default)).map(Rule::Template),
        };
        let name_alone = match naming.name {
            Some(_) => None,
            None => Some(rule("spec.naming.name", &None, NAME_ALONE)?),
        };
        let mut given = [&naming.name, &naming.namespace].into_iter().flatten();
        Ok(Self {
            reads_content: given.any(|text| text.contains("{{")),
            name: rule("spec.naming.name", &naming.name, NAME)?,
            name_alone,
            namespace: rule("spec.naming.namespace", &naming.namespace, NAMESPACE)?,
        })
    }

    /// What the copy of this object is called, if its type has this scope on the service cluster.
    pub fn name(
        &self,
        object: &Value,
        workspace: &Workspace,
        scope: Scope,
        now: SystemTime,
    ) -> Result<CopyName, NameError> {
        let data = Data::new("the template's data, which has Object, ClusterName and ClusterPath")
            .with(
                "Object",
                if self.reads_content {
                    object.clone()
                } else {
                    named(object)
                },
            )
            .with("ClusterName", &*workspace.cluster)
            .with("ClusterPath", &*workspace.path);
        let made = |rule: &Rule, field| {
            let name = match rule {
                Rule::Template(template) => render(template, &data, now).map_err(NameError::Template)?,
                Rule::Old(text) => replaced(text, object, &workspace.cluster),
            };
            if name.is_empty() {
                Err(NameError::Empty(field))
            } else {
                Ok(name)
            }
        };
        let rule = match &self.name_alone {
            Some(alone) if metadata(object, "namespace").is_empty() => alone,
            _ => &self.name,
        };
        Ok(CopyName {
            namespace: match scope {
                Scope::Cluster => String::new(),
                Scope::Namespaced => made(&self.namespace, "spec.naming.namespace")?,
            },
            name: made(rule, "spec.naming.name")?,
        })
    }
}

/// What the names without other wishes follow from, however large the object is.
fn named(object: &Value) -> Value {
    json!({"metadata": {"namespace": metadata(object, "namespace"), "name": metadata(object, "name")}})
}

fn metadata<'a>(object: &'a Value, key: &str) -> &'a str {
    let value = object.get("metadata").and_then(|metadata| metadata.get(key));
    value.and_then(Value::as_str).unwrap_or_default()
}

/// A text of the old form with its placeholders replaced.
fn replaced(text: &str, object: &Value, cluster: &str) -> String {
    let (namespace, name) = (metadata(object, "namespace"), metadata(object, "name"));
    let short = |text: &str| json::hash(text)[..SHORT].to_owned();
    // Of two that fit, the longer one is meant.
    let placeholders = [
        ("$remoteClusterName", cluster.to_owned()),
        ("$remoteNamespaceHash", short(namespace)),
        ("$remoteNamespace", namespace.to_owned()),
        ("$remoteNameHash", short(name)),
        ("$remoteName", name.to_owned()),
    ];
    let (mut rest, mut out) = (text, String::new());
    while let Some(next) = rest.chars().next() {
        let found = placeholders
            .iter()
            .find(|(placeholder, _)| rest.starts_with(placeholder));
        if let Some((placeholder, value)) = found {
            out.push_str(value);
            rest = &rest[placeholder.len()..];
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(naming: (Option<&str>, Option<&str>), namespace: Option<&str>, scope: Scope) -> Result<String, String> {
        let naming = Naming {
            name: naming.0.map(str::to_owned),
            namespace: naming.1.map(str::to_owned),
        };
        let mut object = json!({"metadata": {"name": "web", "labels": {"a": "b"}}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let workspace = Workspace {
            cluster: "c1".to_owned(),
            path: "root:org".to_owned(),
        };
        let namer = Namer::new(&naming).map_err(|error| error.to_string())?;
        let found = namer.name(&object, &workspace, scope, SystemTime::UNIX_EPOCH);
        let found = found.map_err(|error| error.to_string())?;
        Ok(format!("{}/{}", found.namespace, found.name))
    }

    #[test]
    fn names_are_those_of_the_go_agent() {
        use Scope::{Cluster, Namespaced};
        let default = "f39597dce3aed80bee3d-6a31816d04deed5f5bcd";
        for (naming, namespace, scope, expected) in [
            ((None, None), Some("shop"), Namespaced, format!("c1/{default}")),
            ((None, None), Some("shop"), Cluster, format!("/{default}")),
            // Where the Go agent fails.
            ((None, None), None, Namespaced, "c1/6a31816d04deed5f5bcd".to_owned()),
            ((Some("x"), None), Some("shop"), Namespaced, "c1/x".to_owned()),
            ((None, Some("y")), Some("shop"), Namespaced, format!("y/{default}")),
            (
                (
                    Some("$remoteNameHash-$remoteName"),
                    Some("$remoteClusterName-$remoteNamespace"),
                ),
                Some("shop"),
                Namespaced,
                "c1-shop/ca84d1343b96baa8137c-web".to_owned(),
            ),
            (
                (Some("a$remoteNamespaceHash$b"), None),
                Some("web"),
                Cluster,
                "/aca84d1343b96baa8137c$b".to_owned(),
            ),
            (
                (
                    Some(" {{ .ClusterPath | replace \":\" \"-\" }}-{{ .Object.metadata.labels.a }} "),
                    Some("ns"),
                ),
                None,
                Namespaced,
                "ns/root-org-b".to_owned(),
            ),
            (
                (
                    Some("{{ .Object.metadata.name }}-{{ shortHash .Object.metadata.namespace }}"),
                    None,
                ),
                Some("web"),
                Cluster,
                "/web-ca84d1343b96baa8137c".to_owned(),
            ),
        ] {
            assert_eq!(check(naming, namespace, scope), Ok(expected), "{naming:?}");
        }
    }

    #[test]
    fn names_of_the_table_are_those_of_the_go_agent() {
        let cases = include_str!("../tests/data/generate/names.yaml");
        let cases = gotemplate::yaml::documents(cases).unwrap().remove(0).value;
        let rows: Vec<&str> = include_str!("../tests/data/names.jsonl").lines().collect();
        let all = cases["cases"].as_array().unwrap();
        assert_eq!(all.len(), rows.len());
        let workspace = Workspace {
            cluster: "2abc".to_owned(),
            path: "root:org:team".to_owned(),
        };
        for (case, row) in all.iter().zip(rows) {
            let text = |key: &str| case["naming"][key].as_str().map(str::to_owned);
            let naming = Naming {
                name: text("name"),
                namespace: text("namespace"),
            };
            let object = &cases["objects"][case["object"].as_str().unwrap()];
            let found = Namer::new(&naming)
                .map_err(|error| error.to_string())
                .and_then(|namer| {
                    let found = namer.name(object, &workspace, Scope::Namespaced, SystemTime::UNIX_EPOCH);
                    found.map_err(|error| error.to_string())
                });
            match (serde_json::from_str(row).unwrap(), found) {
                (Value::String(expected), Ok(found)) => {
                    assert_eq!(format!("{}/{}", found.namespace, found.name), expected, "{case}");
                }
                (Value::Object(_), Err(_)) => {}
                (row, found) => panic!("{case}: {found:?}, where the Go agent has {row}"),
            }
        }
    }

    #[test]
    fn what_gives_no_name_is_an_error() {
        for (naming, expected) in [
            (
                (Some("{{ if false }}x{{ end }}"), None),
                "spec.naming.name gives an empty text for this object",
            ),
            (
                (None, Some("{{ .Object.metadata.labels.nope | trim }}")),
                "template spec.naming.namespace, line 1, column 35: executing \"spec.naming.namespace\" at <trim>: \
                 invalid value; expected string",
            ),
            (
                (Some("{{ .Name }}"), None),
                "template spec.naming.name, line 1, column 4: executing \"spec.naming.name\" at <.Name>: can't evaluate \
                 field Name in type the template's data, which has Object, ClusterName and ClusterPath",
            ),
            (
                (Some("{{ env \"HOME\" }}"), None),
                "template spec.naming.name, line 1, column 4: function \"env\" is not allowed: it gives the agent's \
                 environment to whoever writes templates",
            ),
        ] {
            let found = check(naming, Some("shop"), Scope::Namespaced);
            assert_eq!(found, Err(expected.to_owned()), "{naming:?}");
        }
    }
}
