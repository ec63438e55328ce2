//! What the edge does not let the hub do: rules of the edge's owner, which no config can override.
//!
//! Promises: a rule whose spelling cannot be right is an error, never a rule without effect (no server is asked, so a
//! misspelt group is not noticed); where two rules disagree, the one that refuses wins; without rules nothing is
//! refused. It says only what is refused; that a refused object is not written is up to the caller.

use std::error::Error;
use std::fmt;

use kube_lite::spelling;
use kube_lite::{ObjectName, ResourceType, twin};

use super::names::ALL;
use super::{Bounds, Direction, SyncedType};

/// The words that a rule begins with; with two dashes in front, the flags.
const DENY: &str = "deny";
const ALLOW_NAMESPACE: &str = "allow-namespace";
const DENY_NAMESPACE: &str = "deny-namespace";

/// The types of the core group, which is closed to new ones. A rule such as `deny deployments`, whose author forgot
/// the group, would otherwise never match.
const CORE: [&str; 17] = [
    "bindings",
    "componentstatuses",
    "configmaps",
    "endpoints",
    "events",
    "limitranges",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "serviceaccounts",
    "services",
];

/// Short names that kubectl has for them.
const SHORT: [(&str, &str); 14] = [
    ("cm", "configmaps"),
    ("cs", "componentstatuses"),
    ("ep", "endpoints"),
    ("ev", "events"),
    ("limits", "limitranges"),
    ("no", "nodes"),
    ("ns", "namespaces"),
    ("po", "pods"),
    ("pv", "persistentvolumes"),
    ("pvc", "persistentvolumeclaims"),
    ("quota", "resourcequotas"),
    ("rc", "replicationcontrollers"),
    ("sa", "serviceaccounts"),
    ("svc", "services"),
];

/// One rule, as [`Filter::parse_rule`] checked it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// No object of this type.
    Deny {
        /// Plural, or `*` for all of the group.
        resource: String,
        /// API group; empty for the core group.
        group: String,
    },
    /// Nothing in other namespaces than these: a name, or the start of names before a `*`.
    AllowNamespace(String),
    /// Nothing in these namespaces: a name, or the start of names before a `*`.
    DenyNamespace(String),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deny { resource, group } => write!(f, "{DENY} {}", kube_lite::qualified(group, resource)),
            Self::AllowNamespace(pattern) => write!(f, "{ALLOW_NAMESPACE} {pattern}"),
            Self::DenyNamespace(pattern) => write!(f, "{DENY_NAMESPACE} {pattern}"),
        }
    }
}

/// A rule that cannot be followed. The program must not start then: without the rule, the filter would allow what it is
/// to refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RuleError {}

/// The rules that bound what the hub may do at this edge: the owner's, and those that apply unless the owner lifts
/// them. By default there are none and everything is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    rules: Vec<Rule>,
    bounds: Option<Bounds>,
}

impl Filter {
    /// Reads one rule in the form of a line of a filter file, `deny secrets`.
    pub fn parse_rule(text: &str) -> Result<Rule, RuleError> {
        let text = text.trim();
        let (word, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let value = value.trim();
        let rule = match word {
            DENY => denied_type(value),
            ALLOW_NAMESPACE => namespace_pattern(value).map(Rule::AllowNamespace),
            DENY_NAMESPACE => namespace_pattern(value).map(Rule::DenyNamespace),
            _ => {
                let words = format!("must begin with {DENY}, {ALLOW_NAMESPACE} or {DENY_NAMESPACE}");
                return Err(RuleError(format!("{text:?}: {words}")));
            }
        };
        rule.map_err(|why| RuleError(format!("{word} {value:?}: {why}")))
    }

    /// Adds a rule. Their order has no meaning.
    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Adds the rules of a filter file, one a line; `#` begins a comment. `file` names it in the error.
    pub fn add_file(&mut self, file: &str, text: &str) -> Result<(), RuleError> {
        for (index, line) in text.lines().enumerate() {
            let rule = line.split_once('#').map_or(line, |(rule, _)| rule).trim();
            if !rule.is_empty() {
                let rule = Self::parse_rule(rule);
                self.add(rule.map_err(|error| RuleError(format!("{file} line {}: {error}", index + 1)))?);
            }
        }
        Ok(())
    }

    /// Keeps the configs out of what the system and the syncer need.
    pub fn keep_out_of(&mut self, bounds: Bounds) {
        self.bounds = Some(bounds);
    }

    /// True if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.bounds.is_none()
    }

    /// True if configs may name what is out of bounds otherwise.
    pub(super) fn allows_system(&self) -> bool {
        self.bounds.is_none()
    }

    /// Why an object of the edge may not be synced that way, in words that name the flag; `None` if it may.
    pub fn refuses(&self, direction: Direction, resource: &ResourceType, name: &ObjectName) -> Option<String> {
        let by_rule = self.refuses_type(resource).or_else(|| {
            let namespace = bounding_namespace(resource, name)?;
            self.refuses_namespace(namespace)
        });
        by_rule.or_else(|| self.bounds.as_ref()?.refuses(direction, resource, name))
    }

    /// Why nothing may be synced that way in a namespace; `None` if something may.
    pub(super) fn refuses_all_in(&self, direction: Direction, namespace: &str) -> Option<String> {
        let bounds = || {
            let any = (ResourceType::config_maps(), ObjectName::new(namespace, ""));
            self.bounds.as_ref()?.refuses(direction, &any.0, &any.1)
        };
        self.refuses_namespace(namespace).or_else(bounds)
    }

    /// Why no object of a type may be synced, so that nothing is asked about any; `None` if some may.
    pub fn refuses_type(&self, resource: &ResourceType) -> Option<String> {
        let ResourceType { group, kind, .. } = resource;
        let by_plural = self.refuses_named(group, &resource.resource);
        by_plural.or_else(|| self.refuses_named(group, kind))
    }

    /// The same of a type by its plural or by its kind, and of all types of a group by `*`.
    pub(super) fn refuses_named(&self, group: &str, name: &str) -> Option<String> {
        let meant = twin(group, name);
        let denies = |rule: &&Rule| match rule {
            Rule::Deny { resource, group: of } => {
                let is_it = |(group, name): (&str, &str)| of == group && names(resource, name);
                is_it((group, name)) || is_it(meant) || twin(of, resource) == meant
            }
            Rule::AllowNamespace(_) | Rule::DenyNamespace(_) => false,
        };
        self.rules.iter().find(denies).map(|rule| format!("--{rule}"))
    }

    /// True if a type that was synced before is not allowed any more: its copies are not touched, and not forgotten.
    pub(crate) fn refuses_synced(&self, known: &SyncedType) -> bool {
        let (group, resource) = match known.direction {
            Direction::Down => (&*known.group, &*known.resource),
            Direction::Up => known.origin(),
        };
        self.refuses_named(group, resource).is_some()
    }

    fn refuses_namespace(&self, namespace: &str) -> Option<String> {
        let mut bounded = false;
        let mut allowed = false;
        for rule in &self.rules {
            match rule {
                Rule::DenyNamespace(pattern) if matches(pattern, namespace) => return Some(format!("--{rule}")),
                Rule::AllowNamespace(pattern) => {
                    bounded = true;
                    allowed |= matches(pattern, namespace);
                }
                Rule::Deny { .. } | Rule::DenyNamespace(_) => {}
            }
        }
        (bounded && !allowed).then(|| format!("not in --{ALLOW_NAMESPACE}"))
    }
}

/// The namespace whose rules an object falls under: the one that it is in or, if it is a Namespace, the one that it is.
fn bounding_namespace<'a>(resource: &ResourceType, name: &'a ObjectName) -> Option<&'a str> {
    if resource.stands_for("", "namespaces") {
        Some(&name.name)
    } else if resource.namespaced || !name.namespace().is_empty() {
        Some(name.namespace())
    } else {
        None
    }
}

/// True if a deny rule for `resource` means a type of its group with the name `name`. The kind counts as a name too,
/// since people confuse the singular with the plural.
fn names(resource: &str, name: &str) -> bool {
    resource == ALL || name.eq_ignore_ascii_case(resource)
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix(ALL) {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

fn denied_type(text: &str) -> Result<Rule, String> {
    let (resource, group) = match text.split_once('.') {
        Some((resource, group)) => (resource, Some(group)),
        None => (text, None),
    };
    let well_formed = (is_label(resource) || (resource == ALL && group.is_some()))
        && group.is_none_or(|group| group.split('.').all(is_label));
    if !well_formed {
        let allowed = "must be a lowercase plural with its group, such as secrets, deployments.apps or *.example.org";
        return Err(format!("{allowed}{}", meant(text)));
    }
    let group_and_version = group.map(|group| group.rsplit_once('.').unwrap_or(("", group)));
    if let Some((group, last)) = group_and_version.filter(|(_, last)| *last == "core" || is_version(last)) {
        return Err(match group {
            "" => format!("the core group has no name: write {resource}"),
            _ => format!("{last} is a version: write {resource}.{group}"),
        });
    }
    if group.is_none() && !CORE.contains(&resource) {
        return Err(match meant(text).as_str() {
            "" => "is no plural of the core group; write the group too, such as deployments.apps".to_owned(),
            meant => format!("is no plural of the core group{meant}"),
        });
    }
    Ok(Rule::Deny {
        resource: resource.to_owned(),
        group: group.unwrap_or_default().to_owned(),
    })
}

/// True for `v1`, `v1beta1` and the like.
fn is_version(part: &str) -> bool {
    let number = part.strip_prefix('v').unwrap_or_default();
    number.starts_with(|c: char| c.is_ascii_digit())
}

/// `, did you mean secrets?`, or nothing.
fn meant(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    match SHORT.iter().find(|(short, _)| *short == lower) {
        Some((_, plural)) => format!(", did you mean {plural}?"),
        None => spelling::hint(text, CORE),
    }
}

fn namespace_pattern(text: &str) -> Result<String, String> {
    let start = text.strip_suffix(ALL).unwrap_or(text);
    if text == ALL || is_label(start) {
        Ok(text.to_owned())
    } else {
        Err("must be the name of a namespace, with a * at its end for all names that begin so".to_owned())
    }
}

/// True for what a part of a name in the API may consist of.
pub(crate) fn is_label(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_allowed)
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
