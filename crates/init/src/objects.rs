//! Rendered text as the objects to create, in their order.

use std::time::SystemTime;
use std::{error, fmt};

use gotemplate::objects::{self, Object};
use gotemplate::yaml::DocumentError;
use gotemplate::{LIBRARY, Template, TemplateError};

use crate::kinds::{InitTarget, InitTemplate};

/// How many objects a source may have.
pub const MOST_OBJECTS: usize = 10_000;

/// Which objects are created before which: those that others need come first.
fn rank(object: &Object) -> u8 {
    let is = |group: &str, kind: &str| {
        object.group().eq_ignore_ascii_case(group) && object.kind().eq_ignore_ascii_case(kind)
    };
    let first = [
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apis.kcp.io", "APIExport"),
        ("apis.kcp.io", "APIBinding"),
        ("", "Namespace"),
    ];
    let before = first.iter().take_while(|(group, kind)| !is(group, kind));
    u8::try_from(before.count()).unwrap_or(u8::MAX)
}

/// The workspace that a template is rendered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Its cluster id.
    pub cluster_name: String,
    /// Its full path.
    pub cluster_path: String,
}

impl Data {
    fn fields(&self) -> gotemplate::Data {
        gotemplate::Data::new("the template's data, which has ClusterName and ClusterPath")
            .with("ClusterName", &*self.cluster_name)
            .with("ClusterPath", &*self.cluster_path)
    }
}

/// Why a source gives no objects. A person has to repair it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceError {
    /// It has no kind of source that is known.
    Unknown,
    /// There is no such template.
    NoTemplate {
        /// Its name.
        template: String,
    },
    /// The template cannot be rendered.
    Template(TemplateError),
    /// What the template renders are no objects.
    Rendered {
        /// The template.
        template: String,
        /// What is wrong, and where.
        error: DocumentError,
    },
    /// The template renders too many objects.
    TooMany {
        /// The template.
        template: String,
    },
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown kind of source: only template is known"),
            Self::NoTemplate { template } => write!(f, "there is no InitTemplate {template}"),
            Self::Template(error) => error.fmt(f),
            Self::Rendered { template, error } => write!(f, "what template {template} renders, {error}"),
            Self::TooMany { template } => write!(f, "template {template} renders more than {MOST_OBJECTS} objects"),
        }
    }
}

impl error::Error for SourceError {}

/// The objects of a target's source for a workspace, in the order in which they are created. The source is named by its
/// index.
pub fn of_source<'t>(
    target: &InitTarget,
    index: usize,
    template: impl Fn(&str) -> Option<&'t InitTemplate>,
    data: &Data,
    now: SystemTime,
) -> Result<Vec<Object>, SourceError> {
    let source = target
        .spec
        .sources
        .get(index)
        .and_then(|source| source.template.as_ref());
    let name = &source.ok_or(SourceError::Unknown)?.name;
    let found = template(name).ok_or_else(|| SourceError::NoTemplate { template: name.clone() })?;
    of_template(name, &found.spec.template, data, now)
}

/// The objects that a template renders for a workspace, in the order in which they are created.
pub fn of_template(name: &str, text: &str, data: &Data, now: SystemTime) -> Result<Vec<Object>, SourceError> {
    let template = Template::parse(name, text, &LIBRARY).map_err(SourceError::Template)?;
    let rendered = template.render(&data.fields(), now).map_err(SourceError::Template)?;
    let wrong = |error| SourceError::Rendered {
        template: name.to_owned(),
        error,
    };
    let mut objects = objects::of_text(&rendered).map_err(wrong)?;
    if objects.len() > MOST_OBJECTS {
        let template = name.to_owned();
        return Err(SourceError::TooMany { template });
    }
    // Objects of one rank stay in the order in which they are written.
    objects.sort_by_key(rank);
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(template: &str) -> Result<Vec<String>, String> {
        let data = Data {
            cluster_name: "2abc".to_owned(),
            cluster_path: "root:org".to_owned(),
        };
        let found = of_template("base", template, &data, SystemTime::UNIX_EPOCH);
        found
            .map(|objects| {
                let name = |object: &Object| object.fields["metadata"]["name"].as_str().unwrap_or("?").to_owned();
                objects.iter().map(name).collect()
            })
            .map_err(|error| error.to_string())
    }

    /// A document of this kind, group and name.
    fn document(kind: &str, api_version: &str, name: &str) -> String {
        format!("---\nkind: {kind}\napiVersion: {api_version}\nmetadata: {{name: {name}}}\n")
    }

    #[test]
    fn what_others_need_comes_first_and_the_rest_stays_in_order() {
        let rows = [
            ("ConfigMap", "v1", "a"),
            ("Namespace", "example.com/v1", "b"),
            ("Namespace", "v1", "c"),
            ("apibinding", "apis.kcp.io/v1alpha2", "d"),
            ("APIExport", "APIs.kcp.io/v1alpha1", "e"),
            ("CustomResourceDefinition", "apiextensions.k8s.io/v1", "f"),
            ("Secret", "v1", "g"),
            ("Namespace", "v1", "h"),
            ("APIBinding", "apis.kcp.io/v1alpha1", "i"),
        ];
        let text: String = rows
            .iter()
            .map(|(kind, version, name)| document(kind, version, name))
            .collect();
        let expected = ["f", "e", "d", "i", "c", "h", "a", "b", "g"];
        assert_eq!(objects(&text), Ok(expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn lists_are_unpacked() {
        let list = "kind: List\napiVersion: v1\nitems:\n- kind: List\n  apiVersion: v1\n  items: [{kind: A, apiVersion: v1, metadata: {name: a}}]\n- {kind: Namespace, apiVersion: v1, metadata: {name: b}}\n";
        assert_eq!(objects(list), Ok(vec!["b".to_owned(), "a".to_owned()]));
        assert_eq!(objects("kind: List\napiVersion: v1\n"), Ok(vec![]));
        assert_eq!(
            objects("kind: List\napiVersion: v1\nitems: [{kind: A}]"),
            Err(
                "what template base renders, document 1, line 1: item 1 of the List: the object has no apiVersion"
                    .to_owned()
            )
        );
    }

    #[test]
    fn what_is_no_object_is_named() {
        let prefix = "what template base renders, document";
        let rows = [
            ("- a", format!("{prefix} 1, line 1: is a list, not a mapping")),
            ("# c\n---\n---\nx", format!("{prefix} 2, line 4: is a text, not a mapping")),
            ("kind: A", format!("{prefix} 1, line 1: the object has no apiVersion")),
            (
                "apiVersion: v1\nmetadata: {name: x}",
                format!("{prefix} 1, line 1: the object x has no kind"),
            ),
            ("kind: 1\napiVersion: v1", format!("{prefix} 1, line 1: the object has no kind")),
            ("a: b: c", format!("{prefix} 1, line 1: mapping values are not allowed in this context")),
            ("{{ .Nope }}", "template base, line 1, column 4: executing \"base\" at <.Nope>: can't evaluate field Nope in type the template's data, which has ClusterName and ClusterPath".to_owned()),
        ];
        for (template, expected) in rows {
            assert_eq!(objects(template), Err(expected), "{template}");
        }
    }

    #[test]
    fn a_template_that_renders_to_nothing_has_no_objects() {
        for template in ["", "# only\n---\n", "{{ if false }}x{{ end }}"] {
            assert_eq!(objects(template), Ok(vec![]), "{template}");
        }
    }

    #[test]
    fn too_many_objects_are_cut_off() {
        let loop_of = |body: &str| format!("{{{{ range until 10001 }}}}---\n{body}\n{{{{ end }}}}");
        let error = objects(&loop_of("{kind: A, apiVersion: v1}")).unwrap_err();
        assert_eq!(error, "template base renders more than 10000 objects");
        let error = objects("{{ range until 100000 }}---\nkind: A\napiVersion: v1\nmetadata: {name: a}\n{{ end }}");
        assert!(error.unwrap_err().starts_with("template base, line 1"));
    }
}
