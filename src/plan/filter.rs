//! What the edge does not let the hub do: rules of the edge's owner that stand above every config.
//!
//! Promises: a rule whose spelling cannot be right is an error, never a rule without effect (no server is asked, so a
//! misspelt group is not noticed); where two rules disagree, the one that refuses wins; without rules nothing is
//! refused. It says only what is refused; that a refused object is not written is up to the caller.

use std::error::Error;
use std::fmt;

use super::selector::ALL;
use super::{Bounds, Direction};
use crate::cluster::{ObjectName, ResourceType};
use crate::spelling;

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

/// What kubectl calls them for short.
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
            Self::Deny { resource, group } => write!(f, "{DENY} {}", crate::cluster::qualified(group, resource)),
            Self::AllowNamespace(pattern) => write!(f, "{ALLOW_NAMESPACE} {pattern}"),
            Self::DenyNamespace(pattern) => write!(f, "{DENY_NAMESPACE} {pattern}"),
        }
    }
}

/// A rule that cannot be followed. Do not start: without the rule, the filter would let through what it is to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RuleError {}

/// The rules that bound what the hub may do at this edge: the owner's, and those that hold unless he lifts them. By default
/// there are none and everything is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    rules: Vec<Rule>,
    bounds: Option<Bounds>,
}

impl Filter {
    /// Reads one rule as a line of a filter file states it, `deny secrets`.
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

    /// Keeps the configs out of what the system and the syncer live on.
    pub fn keep_out_of(&mut self, bounds: Bounds) {
        self.bounds = Some(bounds);
    }

    /// True if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.bounds.is_none()
    }

    /// Why an object of the edge may not be synced that way, in words that name the flag; `None` if it may.
    pub fn refuses(&self, direction: Direction, resource: &ResourceType, name: &ObjectName) -> Option<String> {
        let by_rule = self.refuses_type(resource).or_else(|| {
            let namespace = bounding_namespace(resource, name)?;
            self.refuses_namespace(namespace)
        });
        by_rule.or_else(|| self.bounds.as_ref()?.refuses(direction, resource, name))
    }

    /// Why no object of a type may be synced, so that nothing is asked about any; `None` if some may.
    pub fn refuses_type(&self, resource: &ResourceType) -> Option<String> {
        let ResourceType { group, kind, .. } = resource;
        let by_plural = self.refuses_named(group, &resource.resource);
        by_plural.or_else(|| self.refuses_named(group, kind))
    }

    /// The same of a type by its plural or by its kind, and of all types of a group by `*`.
    pub(super) fn refuses_named(&self, group: &str, name: &str) -> Option<String> {
        let denies =
            |rule: &&Rule| matches!(rule, Rule::Deny { resource, group: of } if of == group && names(resource, name));
        self.rules.iter().find(denies).map(|rule| format!("--{rule}"))
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
    if resource.is("", "namespaces") {
        Some(&name.name)
    } else if resource.namespaced || !name.namespace.is_empty() {
        Some(&name.namespace)
    } else {
        None
    }
}

/// True if a deny rule for `resource` means the types of its group that are called so. The kind counts as a name too, since
/// it is the singular that people confuse with the plural.
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
mod tests {
    use super::*;

    fn resource(qualified: &str, kind: &str, namespaced: bool) -> ResourceType {
        let (resource, group) = qualified.split_once('.').unwrap_or((qualified, ""));
        ResourceType {
            group: group.into(),
            version: "v1".into(),
            resource: resource.into(),
            kind: kind.into(),
            namespaced,
        }
    }

    /// A few types by their plural and group.
    fn known(qualified: &str) -> ResourceType {
        let (kind, namespaced) = match qualified {
            "secrets" | "secrets.example.org" => ("Secret", true),
            "configmaps" => ("ConfigMap", true),
            "deployments.apps" => ("Deployment", true),
            "gauges.example.org" | "gauges.sub.example.org" => ("Gauge", false),
            "namespaces" => ("Namespace", false),
            "clusterroles.rbac.authorization.k8s.io" => ("ClusterRole", false),
            other => panic!("not known: {other}"),
        };
        resource(qualified, kind, namespaced)
    }

    fn filter(text: &str) -> Filter {
        let mut filter = Filter::default();
        filter.add_file("file", &text.replace("; ", "\n")).unwrap();
        filter
    }

    /// Checks what rules, separated by `; `, say of an object, `[namespace/]name`; an empty reason means allowed.
    fn check(rules: &str, qualified: &str, object: &str, reason: &str) {
        let (namespace, name) = object.split_once('/').unwrap_or(("", object));
        let found = filter(rules).refuses(Direction::Down, &known(qualified), &ObjectName::new(namespace, name));
        assert_eq!(found.unwrap_or_default(), reason, "{rules:?} of {qualified} {object}");
    }

    #[test]
    fn allows_everything_by_default() {
        assert!(Filter::default().is_empty());
        assert!(filter("# nothing; ;   ").is_empty());
        assert!(!filter("deny secrets").is_empty());
        check("", "secrets", "kube-system/x", "");
        check("", "namespaces", "kube-system", "");
        check("", "clusterroles.rbac.authorization.k8s.io", "x", "");
    }

    #[test]
    fn denies_a_type_in_every_namespace_and_no_other_type() {
        for (rules, qualified, object, reason) in [
            ("deny secrets", "secrets", "shop/x", "--deny secrets"),
            ("deny secrets", "secrets.example.org", "shop/x", ""),
            ("deny secrets", "configmaps", "shop/x", ""),
            (
                "deny deployments.apps",
                "deployments.apps",
                "a/x",
                "--deny deployments.apps",
            ),
            (
                "deny deployment.apps",
                "deployments.apps",
                "a/x",
                "--deny deployment.apps",
            ),
            ("deny deploy.apps", "deployments.apps", "a/x", ""),
            ("deny *.example.org", "gauges.example.org", "x", "--deny *.example.org"),
            (
                "deny *.example.org",
                "secrets.example.org",
                "a/x",
                "--deny *.example.org",
            ),
            ("deny *.example.org", "gauges.sub.example.org", "x", ""),
            ("deny *.example.org", "secrets", "a/x", ""),
            ("deny namespaces", "namespaces", "shop", "--deny namespaces"),
            ("deny namespaces", "configmaps", "shop/x", ""),
            ("deny secrets; deny *.apps", "deployments.apps", "a/x", "--deny *.apps"),
            (
                "deny secrets; allow-namespace shop",
                "secrets",
                "shop/x",
                "--deny secrets",
            ),
        ] {
            check(rules, qualified, object, reason);
        }
        assert_eq!(
            filter("deny secrets").refuses_type(&known("secrets")).as_deref(),
            Some("--deny secrets")
        );
        assert_eq!(filter("deny-namespace *").refuses_type(&known("secrets")), None);
    }

    #[test]
    fn bounds_namespaces_and_what_is_in_them() {
        const OUTSIDE: &str = "not in --allow-namespace";
        for (rules, qualified, object, reason) in [
            ("allow-namespace shop", "secrets", "shop/x", ""),
            ("allow-namespace shop", "secrets", "shop-a/x", OUTSIDE),
            ("allow-namespace shop", "namespaces", "shop", ""),
            ("allow-namespace shop", "namespaces", "default", OUTSIDE),
            ("allow-namespace shop", "gauges.example.org", "x", ""),
            ("allow-namespace shop-*", "secrets", "shop-a/x", ""),
            ("allow-namespace shop-*", "secrets", "shop/x", OUTSIDE),
            ("allow-namespace a; allow-namespace b*", "secrets", "bc/x", ""),
            ("allow-namespace a; allow-namespace b*", "secrets", "c/x", OUTSIDE),
            (
                "deny-namespace kube-*",
                "secrets",
                "kube-system/x",
                "--deny-namespace kube-*",
            ),
            (
                "deny-namespace kube-*",
                "namespaces",
                "kube-system",
                "--deny-namespace kube-*",
            ),
            ("deny-namespace kube-*", "secrets", "kube/x", ""),
            ("deny-namespace kube-*", "gauges.example.org", "kube-x", ""),
            ("deny-namespace *", "secrets", "a/x", "--deny-namespace *"),
        ] {
            check(rules, qualified, object, reason);
        }
    }

    #[test]
    fn what_refuses_wins_in_any_order() {
        for rules in [
            "allow-namespace shop-*; deny-namespace shop-x",
            "deny-namespace shop-x; allow-namespace shop-*",
            "deny-namespace shop-x; allow-namespace shop-x; allow-namespace *",
        ] {
            check(rules, "secrets", "shop-x/x", "--deny-namespace shop-x");
            check(rules, "namespaces", "shop-x", "--deny-namespace shop-x");
            check(rules, "secrets", "shop-y/x", "");
        }
    }

    #[test]
    fn an_object_of_unclear_scope_is_refused() {
        let bounded = filter("allow-namespace shop");
        let without = bounded.refuses(Direction::Down, &known("secrets"), &ObjectName::new("", "x"));
        assert!(without.is_some());
        let within = bounded.refuses(
            Direction::Down,
            &known("gauges.example.org"),
            &ObjectName::new("other", "x"),
        );
        assert!(within.is_some());
    }

    #[test]
    fn reads_a_rule_back_as_it_was_written() {
        for rule in [
            "deny secrets",
            "deny deployments.apps",
            "deny *.example.org",
            "allow-namespace shop-*",
            "allow-namespace *",
            "deny-namespace kube-system",
        ] {
            assert_eq!(Filter::parse_rule(rule).unwrap().to_string(), rule);
        }
        let spaced = Filter::parse_rule("  deny \t secrets ").unwrap();
        assert_eq!(spaced.to_string(), "deny secrets");
    }

    #[test]
    fn refuses_a_rule_that_would_never_match() {
        const TYPE: &str =
            "must be a lowercase plural with its group, such as secrets, deployments.apps or *.example.org";
        const CORE: &str = "is no plural of the core group; write the group too, such as deployments.apps";
        const NAMESPACE: &str = "must be the name of a namespace, with a * at its end for all names that begin so";
        const WORD: &str = "must begin with deny, allow-namespace or deny-namespace";
        for (rule, expected) in [
            ("deny", format!("deny \"\": {TYPE}")),
            ("deny *", format!("deny \"*\": {TYPE}")),
            ("deny *.", format!("deny \"*.\": {TYPE}")),
            ("deny sec*", format!("deny \"sec*\": {TYPE}")),
            (
                "deny Secrets",
                format!("deny \"Secrets\": {TYPE}, did you mean secrets?"),
            ),
            ("deny deployments.", format!("deny \"deployments.\": {TYPE}")),
            ("deny .apps", format!("deny \".apps\": {TYPE}")),
            ("deny x.*.org", format!("deny \"x.*.org\": {TYPE}")),
            ("deny pods/exec", format!("deny \"pods/exec\": {TYPE}")),
            ("deny secrets pods", format!("deny \"secrets pods\": {TYPE}")),
            (
                "deny secret",
                "deny \"secret\": is no plural of the core group, did you mean secrets?".to_owned(),
            ),
            (
                "deny cm",
                "deny \"cm\": is no plural of the core group, did you mean configmaps?".to_owned(),
            ),
            (
                "deny secrets.core",
                "deny \"secrets.core\": the core group has no name: write secrets".to_owned(),
            ),
            (
                "deny secrets.v1",
                "deny \"secrets.v1\": the core group has no name: write secrets".to_owned(),
            ),
            (
                "deny deployments.apps.v1",
                "deny \"deployments.apps.v1\": v1 is a version: write deployments.apps".to_owned(),
            ),
            ("deny roles", format!("deny \"roles\": {CORE}")),
            ("deny deployments", format!("deny \"deployments\": {CORE}")),
            ("allow-namespace", format!("allow-namespace \"\": {NAMESPACE}")),
            ("allow-namespace a*b", format!("allow-namespace \"a*b\": {NAMESPACE}")),
            ("deny-namespace **", format!("deny-namespace \"**\": {NAMESPACE}")),
            ("deny-namespace *-x", format!("deny-namespace \"*-x\": {NAMESPACE}")),
            ("deny-namespace Shop", format!("deny-namespace \"Shop\": {NAMESPACE}")),
            ("deny-namespace a,b", format!("deny-namespace \"a,b\": {NAMESPACE}")),
            ("allow secrets", format!("\"allow secrets\": {WORD}")),
            ("--deny secrets", format!("\"--deny secrets\": {WORD}")),
        ] {
            assert_eq!(Filter::parse_rule(rule).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn names_file_and_line_of_a_wrong_rule() {
        let text = "# bounds\r\n\r\ndeny secrets # all of them\r\n  allow-namespace shop-*\r\nallow secrets\n";
        let found = Filter::default().add_file("/etc/filter", text);
        assert_eq!(
            found.unwrap_err().to_string(),
            "/etc/filter line 5: \"allow secrets\": must begin with deny, allow-namespace or deny-namespace"
        );
        let good: Vec<_> = text.lines().take(4).collect();
        assert_eq!(
            filter(&good.join("\n"))
                .rules
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            ["deny secrets", "allow-namespace shop-*"]
        );
    }
}
