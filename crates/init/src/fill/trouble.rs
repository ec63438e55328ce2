//! Why a workspace is not finished, in words: what failed, on which object, the server's words, and what to do.

use std::fmt;

use kube_lite::{Error, ObjectName};

use crate::kinds::InitTarget;
use crate::objects::SourceError;

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The server refuses something.
    Refused(Error),
    /// This template cannot be read.
    Template(String, Error),
    /// The source gives no objects.
    Source(SourceError),
    /// The workspace has no path.
    NoPath,
    /// The object has no name and no `generateName`.
    NoName,
    /// The kind of the object is not served in the workspace.
    NotServed,
    /// The object has to have this condition first.
    NotReady(String),
    /// The initializer cannot be taken off.
    Kept(Error),
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// The target, if it is about one.
    pub(crate) target: Option<ObjectName>,
    /// The UID of that.
    pub(crate) uid: String,
    /// The index of the source.
    pub(crate) source: Option<usize>,
    /// The object that is to be created; empty if it is about none.
    pub(crate) object: String,
    /// What is wrong.
    pub(crate) why: Why,
}

impl Trouble {
    /// About the workspace itself.
    pub(crate) fn of_workspace(why: Why) -> Self {
        Self {
            target: None,
            uid: String::new(),
            source: None,
            object: String::new(),
            why,
        }
    }

    /// About a source of a target.
    pub(crate) fn of_source(target: &InitTarget, index: usize, why: Why) -> Self {
        Self::of_workspace(why).at_source(target, index)
    }

    /// About an object.
    pub(crate) fn of_object(object: String, why: Why) -> Self {
        Self {
            object,
            ..Self::of_workspace(why)
        }
    }

    /// The same, which a source of a target is about.
    pub(crate) fn at_source(self, target: &InitTarget, index: usize) -> Self {
        Self {
            target: Some(target.object_name()),
            uid: target.metadata.uid.clone(),
            source: Some(index),
            ..self
        }
    }

    /// What is wrong, in the words of the server or of the template engine.
    pub(crate) fn words(&self) -> String {
        match &self.why {
            Why::Refused(error) | Why::Kept(error) => error.to_string(),
            Why::Template(name, error) => format!("InitTemplate {name} cannot be read: {error}"),
            Why::Source(error) => error.to_string(),
            Why::NoPath => "its LogicalCluster has no annotation kcp.io/path".to_owned(),
            Why::NoName => "it has neither a metadata.name nor a generateName".to_owned(),
            Why::NotServed => "its kind is not served in the workspace".to_owned(),
            Why::NotReady(condition) => format!("its condition {condition} is not True"),
        }
    }

    /// One word for what is wrong.
    pub(crate) fn reason(&self) -> &'static str {
        match &self.why {
            Why::Refused(_) => "ObjectRefused",
            Why::Template(..) => "TemplateUnreadable",
            Why::Source(SourceError::Unknown) => "SourceUnknown",
            Why::Source(SourceError::NoTemplate { .. }) => "TemplateNotFound",
            Why::Source(_) => "TemplateInvalid",
            Why::NoPath => "WorkspaceWithoutPath",
            Why::NoName => "ObjectWithoutName",
            Why::NotServed => "KindNotServed",
            Why::NotReady(_) => "ObjectNotReady",
            Why::Kept(_) => "InitializerKept",
        }
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> String {
        let text = match &self.why {
            Why::Source(SourceError::NoTemplate { template }) => {
                return format!("create InitTemplate {template} in the target's workspace, or correct the target");
            }
            Why::Source(SourceError::Unknown) => "give the source a template with a name",
            Why::Source(_) => "correct the template; it is tried at once when that changes",
            Why::NoPath => "nothing has to be done if it comes by itself; otherwise see kcp's log",
            Why::NoName => "give the object a name in the template",
            Why::NotServed => {
                "it continues by itself when a CRD or an APIBinding brings the kind: check that one is in an earlier document, \
                 a default of the type, or made by somebody else; and how kind and apiVersion are spelt"
            }
            Why::NotReady(_) => "it continues by itself when the condition is True",
            Why::Template(_, error) if error.is_forbidden() => {
                "allow the agent's user get, list and watch of inittargets and inittemplates of initialization.kcp.io in the \
                 config workspace"
            }
            Why::Refused(error) | Why::Template(_, error) | Why::Kept(error) => return about(error),
        };
        text.to_owned()
    }

    /// What several workspaces may have in common: all but the workspace.
    pub(crate) fn shared(&self) -> Option<String> {
        if let Why::Refused(error) | Why::Template(_, error) | Why::Kept(error) = &self.why
            && error.is_unauthorized()
        {
            return Some(error.to_string());
        }
        let source = self.source?;
        let target = self.target.as_ref()?;
        let is_of_all = matches!(self.why, Why::Source(_) | Why::Template(..) | Why::NoName);
        is_of_all.then(|| format!("{target:?} {source} {}", self.words()))
    }
}

/// What to do about a refusal inside a workspace.
fn about(error: &Error) -> String {
    if let Some(rule) = error
        .status()
        .filter(|status| status.code == 403)
        .and_then(|status| Rule::denied(&status.message))
    {
        return format!("add {rule} to spec.initializerPermissions of the WorkspaceType");
    }
    if let Some(namespace) = error.missing_namespace() {
        return format!(
            "add Namespace {namespace} to the template, or name another one; only workspaces of types that extend \
             root:universal have the namespace default"
        );
    }
    let text = match error.status().map_or(0, |status| status.code) {
        401 if error.is_unauthorized() => "renew the token or certificate of the agent in its kubeconfig, if it lasts",
        403 if error.is_denial() => {
            "the named webhook refuses it: change the object in the template, or the webhook's rules"
        }
        403 => {
            "allow the agent's user initialize of this WorkspaceType in its workspace (workspacetypes of tenancy.kcp.io); a \
             grant counts within some seconds"
        }
        400 | 422 => "correct the object in the template; it is tried at once when that changes",
        404 => "it continues by itself when what is named appears",
        405 => "the server does not know this verb for the kind",
        413 => "make the object smaller in the template",
        429 | 500..=504 => "it is tried again; see kcp's log if it lasts",
        _ => "it is tried again",
    };
    text.to_owned()
}

/// A rule that an answer says is missing.
struct Rule<'a> {
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
}

impl<'a> Rule<'a> {
    /// Reads `… no rule allows create on core/configmaps in namespace x`, or `… on apps/deployments`.
    fn denied(message: &'a str) -> Option<Self> {
        let (_, rule) = message.split_once("no rule allows ")?;
        let (verb, rest) = rule.split_once(" on ")?;
        let what = rest.split_whitespace().next()?;
        let (group, resource) = what
            .split_once('/')
            .filter(|_| !what.starts_with('/'))
            .unwrap_or(("", what));
        let group = if group == "core" { "" } else { group };
        Some(Self { verb, group, resource })
    }
}

impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource } = self;
        if resource.starts_with('/') {
            return write!(
                f,
                "the rule {{nonResourceURLs: [/api, /api/*, /apis, /apis/*], verbs: [{verb}]}}"
            );
        }
        write!(
            f,
            "the rule {{apiGroups: [{group:?}], resources: [{resource}], verbs: [{verb}]}}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, body: &str) -> Why {
        Why::Refused(Error::from_answer(code, None, body.as_bytes()))
    }

    #[test]
    fn credentials_that_are_not_accepted_are_one_failure_of_all_workspaces() {
        let status = || kube_lite::ApiStatus {
            code: 401,
            ..kube_lite::ApiStatus::default()
        };
        let why = || Why::Refused(Error::Unauthorized(Box::new(status())));
        let [one, other] = ["Namespace//a", "Namespace//b"].map(|object| Trouble::of_object(object.to_owned(), why()));
        assert!(one.shared().is_some() && one.shared() == other.shared());
        assert!(one.advice().contains("token"), "{}", one.advice());
        assert_eq!(Trouble::of_object(String::new(), refused(403, "no")).shared(), None);
    }

    #[test]
    fn a_missing_rule_is_named_with_what_to_add() {
        let initializer = "initializer \"2abc:dev\" denied by initializerPermissions: no rule allows ";
        for (words, expected) in [
            (
                "create on core/configmaps in namespace base",
                "add the rule {apiGroups: [\"\"], resources: [configmaps], verbs: [create]} to spec.initializerPermissions \
                 of the WorkspaceType",
            ),
            (
                "create on apps/deployments",
                "add the rule {apiGroups: [\"apps\"], resources: [deployments], verbs: [create]} to \
                 spec.initializerPermissions of the WorkspaceType",
            ),
            (
                "get on /apis/example.com/v1",
                "add the rule {nonResourceURLs: [/api, /api/*, /apis, /apis/*], verbs: [get]} to \
                 spec.initializerPermissions of the WorkspaceType",
            ),
        ] {
            let trouble = Trouble::of_object(
                "ConfigMap base/a".to_owned(),
                refused(403, &format!("{initializer}{words}")),
            );
            assert_eq!(trouble.advice(), expected);
            assert!(trouble.words().contains(words), "{}", trouble.words());
        }
        let other = Trouble::of_workspace(refused(403, "initializer 2abc:dev cannot access this workspace"));
        assert!(other.advice().contains("initialize of this WorkspaceType"));
    }
}
