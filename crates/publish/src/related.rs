//! Which objects belong to a primary, and what they are called on both sides.
//!
//! Promises: what a field or a template of one side does not name yet is left out, and is no error; the names of both sides
//! belong together one by one, or none is used.

use std::time::SystemTime;

use gotemplate::Data;
use serde_json::Value;

use crate::kinds::{FieldReference, Origin, Rewrite, SelectorLocator};
use crate::labels::Selector;
use crate::mutation::Rewriting;
use crate::path;
use crate::templates::{parse, render};

/// What a template has where a field is not there.
const NO_VALUE: &str = "<no value>";

/// A primary, on both sides, and its workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Both<'a> {
    /// The object in its workspace.
    pub(crate) kcp: &'a Value,
    /// Its copy.
    pub(crate) service: &'a Value,
    /// The cluster id of the workspace.
    pub(crate) cluster: &'a str,
    /// Its path; empty unless paths are asked for.
    pub(crate) path: &'a str,
    /// For functions that know the time.
    pub(crate) now: SystemTime,
}

/// What an object, or a namespace, is called at the side of the origin and at the other one.
pub(crate) type Names = (String, String);

impl<'a> Both<'a> {
    fn at(&self, side: Origin) -> &'a Value {
        match side {
            Origin::Kcp => self.kcp,
            Origin::Service => self.service,
        }
    }

    /// The namespaces of the primary.
    pub(crate) fn own_namespaces(&self, origin: Origin) -> Result<Names, String> {
        let of = |side: Origin| {
            let namespace = self.at(side)["metadata"]["namespace"].as_str().unwrap_or_default();
            if namespace.is_empty() {
                let side = side.name();
                return Err(format!(
                    "object.namespace is missing: the primary is in no namespace at the side {side}"
                ));
            }
            Ok(namespace.to_owned())
        };
        Ok((of(origin)?, of(other(origin))?))
    }

    /// What a field of the primary names on each side.
    pub(crate) fn referenced(&self, place: &FieldReference, origin: Origin) -> Result<Vec<Names>, String> {
        let rewriting = match &place.regex {
            Some((pattern, replacement)) => Some(Rewriting::new(pattern, replacement)?),
            None => None,
        };
        let of = |side: Origin| -> Result<Vec<String>, String> {
            let found = path::read(self.at(side), &place.path).map_err(|error| error.to_string())?;
            let texts = match found {
                Some(found) => found.texts().map_err(|error| error.to_string())?,
                None => Vec::new(),
            };
            let rewritten = texts.iter().map(|text| match &rewriting {
                Some(rewriting) => rewriting.apply(text.trim()),
                None => Ok(text.trim().to_owned()),
            });
            rewritten.collect()
        };
        let (at_origin, at_other) = (of(origin)?, of(other(origin))?);
        if at_origin.is_empty() || at_other.is_empty() {
            return Ok(Vec::new());
        }
        if at_origin.len() != at_other.len() {
            let (one, two) = (at_origin.len(), at_other.len());
            return Err(format!(
                "{:?} names {one} objects at the side {}, and {two} at the other one",
                place.path,
                origin.name()
            ));
        }
        let both = at_origin.into_iter().zip(at_other);
        Ok(both.filter(|(one, two)| !one.is_empty() && !two.is_empty()).collect())
    }

    /// What a template gives for each side.
    pub(crate) fn rendered(&self, template: &str, origin: Origin) -> Result<Vec<Names>, String> {
        let of = |side: Origin| {
            let data = Data::new("the template's data, which has Side, Object, ClusterName and ClusterPath")
                .with("Side", side.name())
                .with("Object", self.at(side).clone())
                .with("ClusterName", self.cluster)
                .with("ClusterPath", self.path);
            self.render("object.template", template, &data)
        };
        let names = (of(origin)?, of(other(origin))?);
        // A field that is not there yet is rendered as it is in Go, and is no name.
        let is_name = |name: &String| !name.is_empty() && !name.contains(NO_VALUE);
        let is_complete = is_name(&names.0) && is_name(&names.1);
        Ok(is_complete.then_some(names).into_iter().collect())
    }

    fn render(&self, name: &str, template: &str, data: &Data) -> Result<String, String> {
        let template = parse(name, template).map_err(|error| error.to_string())?;
        render(&template, data, self.now).map_err(|error| error.to_string())
    }

    fn primaries(&self, what: &'static str) -> Data {
        Data::new(what)
            .with("LocalObject", self.service.clone())
            .with("RemoteObject", self.kcp.clone())
            .with("ClusterName", self.cluster)
            .with("ClusterPath", self.path)
    }

    /// The labels of a selector with its templates rendered: for this primary alone. `None` if nothing is left of it: one
    /// that had conditions never means all objects.
    pub(crate) fn selector(&self, locator: &SelectorLocator) -> Result<Option<Selector>, String> {
        let data =
            self.primaries("the template's data, which has LocalObject, RemoteObject, ClusterName and ClusterPath");
        let rendered = |text: &String| {
            if text.contains("{{") {
                self.render("selector.matchLabels", text, &data)
            } else {
                Ok(text.clone())
            }
        };
        let mut selector = Selector {
            expressions: locator.selector.expressions.clone(),
            ..Selector::default()
        };
        for (key, value) in &locator.selector.labels {
            let (key, value) = (rendered(key)?, rendered(value)?);
            if !key.is_empty() {
                selector.labels.insert(key, value);
            }
        }
        selector.check()?;
        let is_left = !selector.is_of_all() || locator.selector.is_of_all();
        Ok(is_left.then_some(selector))
    }

    /// What something that a selector has found is called on the other side. A namespace has no object.
    pub(crate) fn rewritten(&self, locator: &SelectorLocator, name: &str, found: &Value) -> Result<String, String> {
        match &locator.rewrite {
            Rewrite::Regex(pattern, replacement) => Rewriting::new(pattern, replacement)?.apply(name),
            Rewrite::Template(template) => {
                let what = "the template's data, which has Value, RelatedObject, LocalObject, RemoteObject, ClusterName and ClusterPath";
                let data = self
                    .primaries(what)
                    .with("Value", name)
                    .with("RelatedObject", found.clone());
                self.render("selector.rewrite.template", template, &data)
            }
        }
    }
}

/// The other side.
pub(crate) fn other(side: Origin) -> Origin {
    match side {
        Origin::Kcp => Origin::Service,
        Origin::Service => Origin::Kcp,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::labels::{Expression, Operator};

    fn check(
        kcp: &Value,
        service: &Value,
        what: impl Fn(&Both<'_>) -> Result<Vec<Names>, String>,
    ) -> Result<Vec<Names>, String> {
        what(&Both {
            kcp,
            service,
            cluster: "c1",
            path: "",
            now: SystemTime::UNIX_EPOCH,
        })
    }

    fn names(all: &[(&str, &str)]) -> Vec<Names> {
        let names = all.iter().map(|(one, two)| ((*one).to_owned(), (*two).to_owned()));
        names.collect()
    }

    #[test]
    fn fields_of_both_sides_belong_together_one_by_one() {
        let place = |regex: Option<(&str, &str)>| FieldReference {
            path: "spec.secrets".to_owned(),
            regex: regex.map(|(pattern, replacement)| (pattern.to_owned(), replacement.to_owned())),
        };
        let with = |secrets: Value| json!({"spec": {"secrets": secrets}});
        for (kcp, service, regex, expected) in [
            (json!("a"), json!("b"), None, Ok(names(&[("a", "b")]))),
            (
                json!(["a", " ", "c"]),
                json!(["x", "y", "z "]),
                None,
                Ok(names(&[("a", "x"), ("c", "z")])),
            ),
            (json!(null), json!("b"), None, Ok(names(&[]))),
            (json!([]), json!(["b"]), None, Ok(names(&[]))),
            (
                json!("a"),
                json!("b"),
                Some(("(.*)", "x-$1")),
                Ok(names(&[("x-a", "x-b")])),
            ),
            (
                json!(["a", "b"]),
                json!(["c"]),
                None,
                Err("\"spec.secrets\" names 2 objects at the side kcp, and 1 at the other one".to_owned()),
            ),
        ] {
            let found = check(&with(kcp), &with(service), |both| {
                both.referenced(&place(regex), Origin::Kcp)
            });
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_template_is_rendered_for_each_side() {
        let (kcp, service) = (
            json!({"metadata": {"name": "web"}}),
            json!({"metadata": {"name": "copy"}}),
        );
        let template = "{{ .Side }}-{{ .Object.metadata.name }}-{{ .ClusterName }}";
        let found = check(&kcp, &service, |both| both.rendered(template, Origin::Service));
        assert_eq!(found, Ok(names(&[("service-copy-c1", "kcp-web-c1")])));
        let found = check(&kcp, &service, |both| {
            both.rendered("{{ if eq .Side \"kcp\" }}a{{ end }}", Origin::Kcp)
        });
        assert_eq!(found, Ok(names(&[])));
        // What an operator has not written yet.
        for template in ["{{ .Object.status.secret }}", "{{ .Object.metadata.labels.a }}-key"] {
            let found = check(&kcp, &service, |both| both.rendered(template, Origin::Service));
            assert_eq!(found.unwrap_or_default(), names(&[]), "{template}");
        }
    }

    #[test]
    fn the_labels_of_a_selector_are_those_of_one_primary() {
        let locator = SelectorLocator {
            selector: Selector {
                labels: [
                    ("app".to_owned(), "{{ .RemoteObject.metadata.name }}".to_owned()),
                    ("{{ if false }}x{{ end }}".to_owned(), "y".to_owned()),
                ]
                .into(),
                ..Selector::default()
            },
            rewrite: Rewrite::Template("{{ .Value }}-{{ .LocalObject.metadata.name }}".to_owned()),
        };
        for name in ["web", "db"] {
            let (kcp, service) = (
                json!({"metadata": {"name": name}}),
                json!({"metadata": {"name": "copy"}}),
            );
            let both = Both {
                kcp: &kcp,
                service: &service,
                cluster: "c1",
                path: "",
                now: SystemTime::UNIX_EPOCH,
            };
            let selector = both.selector(&locator).unwrap().unwrap();
            assert_eq!(selector.labels, [("app".to_owned(), name.to_owned())].into());
            assert_eq!(
                both.rewritten(&locator, "found", &Value::Null),
                Ok("found-copy".to_owned())
            );
        }
    }
    // Such a selector meant all Secrets of a namespace.
    #[test]
    fn a_selector_of_which_templates_leave_nothing_means_nothing() {
        let hidden = "{{ if .LocalObject.spec.key }}app{{ end }}";
        let exists = || Expression {
            key: "app".to_owned(),
            operator: Operator::Exists,
            values: Vec::new(),
        };
        let selector = |labels: &[&str], expressions: Vec<Expression>| Selector {
            labels: labels.iter().map(|key| ((*key).to_owned(), "x".to_owned())).collect(),
            expressions,
        };
        for (given, expected) in [
            (selector(&[hidden], vec![]), None),
            (selector(&[hidden, "{{ \"\" }}"], vec![]), None),
            (selector(&[hidden, "of"], vec![]), Some("of=x")),
            (selector(&[hidden], vec![exists()]), Some("app")),
            // Somebody has written that it means all.
            (selector(&[], vec![]), Some("")),
        ] {
            let locator = SelectorLocator {
                selector: given,
                rewrite: Rewrite::Template("{{ .Value }}".to_owned()),
            };
            let both = Both {
                kcp: &json!({}),
                service: &json!({"spec": {}}),
                cluster: "c1",
                path: "",
                now: SystemTime::UNIX_EPOCH,
            };
            let found = both.selector(&locator).unwrap();
            assert_eq!(
                found.map(|selector| selector.to_string()).as_deref(),
                expected,
                "{locator:?}"
            );
        }
    }
}
