//! Permissions as roles for a server: YAML, with a comment for each rule that says what it is for.

use std::fmt::Write as _;

use kube_lite::{ObjectName, is_of_every_cluster};

use super::{Needed, Permission, Row};
use crate::plan::is_label;
use crate::side::Side;
use crate::sync::own_objects::lease_name;

/// Where the lines of comments end.
const WIDTH: usize = 118;

/// The comment above the role for the syncer's own objects.
const OWN: &str = "What the syncer keeps for itself. That an object is created by a POST cannot be bound to its name.";

/// Whose roles they are.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// The side that they are for.
    pub side: Side,
    /// The namespace of the service account; at the edge also that of the syncer itself.
    pub namespace: &'a str,
    /// The UID of the sync target, after which account and roles are named.
    pub sync_target: &'a str,
    /// The configs that they are for.
    pub configs: &'a [String],
}

/// The documents: namespace, account, roles and their bindings.
pub fn documents(account: &Account<'_>, needed: &Needed) -> String {
    let (account_name, role) = (name_of(account.sync_target), lease_name(account.sync_target));
    let namespace = account.namespace;
    let mut text = String::new();
    comment(&mut text, &head(account));
    if !is_of_every_cluster(namespace) {
        line(&mut text, "apiVersion: v1\nkind: Namespace");
        line(&mut text, &format!("metadata: {{name: {}}}\n---", word(namespace)));
    }
    line(&mut text, "apiVersion: v1\nkind: ServiceAccount");
    let account_name = word(&account_name);
    let at = format!("metadata: {{name: {account_name}, namespace: {}}}", word(namespace));
    line(&mut text, &at);
    let subject = format!(
        "- {{kind: ServiceAccount, name: {account_name}, namespace: {}}}",
        word(namespace)
    );
    let (own, rest): (Vec<_>, Vec<_>) = needed
        .permissions
        .iter()
        .partition(|permission| permission.namespace.is_some());
    let left_out = left_out(account.side, &needed.escalating);
    bound_role(&mut text, ["ClusterRole", &role, ""], &rest, &left_out, &subject);
    let mut namespaces: Vec<&str> = own.iter().filter_map(|own| own.namespace.as_deref()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    for namespace in namespaces {
        let is_here = |own: &&&Permission| own.namespace.as_deref() == Some(namespace);
        let here: Vec<&Permission> = own.iter().filter(is_here).copied().collect();
        line(&mut text, "---");
        if account.side == Side::Edge {
            comment(&mut text, OWN);
        }
        let at = format!(", namespace: {}", word(namespace));
        role_and_binding(&mut text, ["Role", &role, &at], &here, "", &subject);
    }
    text
}

/// The rules alone, as the list of a role.
pub fn rules(permissions: &[&Permission]) -> String {
    let mut text = String::new();
    let mut rest = permissions;
    while let Some(first) = rest.first() {
        let is_of_row = |permission: &&&Permission| same_row(permission.row, first.row);
        let (of_row, others) = rest.split_at(rest.iter().take_while(is_of_row).count());
        comment(&mut text, &first.row.comment());
        rules_of_row(&mut text, of_row);
        rest = others;
    }
    text
}

fn same_row(one: &'static Row, other: &'static Row) -> bool {
    std::ptr::eq(one, other)
}

/// The rules of a row: one for all types of a group that have the same verbs. What is optional is behind a `#`.
fn rules_of_row(text: &mut String, permissions: &[&Permission]) {
    let mut done: Vec<&Permission> = Vec::new();
    for permission in permissions {
        let is_alike = |other: &Permission| {
            (&other.group, &other.names, &other.verbs) == (&permission.group, &permission.names, &permission.verbs)
        };
        if done.iter().any(|other| is_alike(other)) {
            continue;
        }
        done.push(permission);
        let alike = permissions.iter().filter(|other| is_alike(other));
        let resources: Vec<&str> = alike.map(|other| &*other.resource).collect();
        let mut rule = format!("- apiGroups: [{}]\n", word(&permission.group));
        let _ = writeln!(rule, "  resources: [{}]", words(&resources));
        if !permission.names.is_empty() {
            let _ = writeln!(rule, "  resourceNames: [{}]", words(&permission.names));
        }
        let _ = writeln!(rule, "  verbs: [{}]", words(&permission.verbs));
        let mark = if permission.row.is_optional { "# " } else { "" };
        for one in rule.lines() {
            let _ = writeln!(text, "{mark}{one}");
        }
    }
}

fn head(account: &Account<'_>) -> String {
    let (side, uid) = (account.side, account.sync_target);
    let configs = match account.configs {
        [] => "without any configs".to_owned(),
        configs => format!("for {}", configs.join(", ")),
    };
    let own = if account.side == Side::Edge {
        format!(" Run it with NAMESPACE={}.", account.namespace)
    } else {
        String::new()
    };
    format!(
        "What the syncer of the sync target {uid} needs at the {side}, {configs}. Made by edge-syncer gen rbac: make it \
         again when the configs select other types.{own}"
    )
}

fn left_out(side: Side, escalating: &[String]) -> String {
    if escalating.is_empty() {
        return String::new();
    }
    format!(
        "Left out: {}. Whoever may write these at the {side} can grant permissions beyond their own. Print them with \
         --allow-escalation if the hub is to be trusted with that.",
        escalating.join(", ")
    )
}

/// A role after others, if there is anything in it.
fn bound_role(text: &mut String, names: [&str; 3], permissions: &[&Permission], note: &str, subject: &str) {
    line(text, "---");
    role_and_binding(text, names, permissions, note, subject);
}

/// A role of this kind, name and place, and its binding.
fn role_and_binding(
    text: &mut String,
    [kind, name, at]: [&str; 3],
    permissions: &[&Permission],
    note: &str,
    subject: &str,
) {
    let group = "rbac.authorization.k8s.io";
    let metadata = format!("metadata: {{name: {}{at}}}", word(name));
    line(
        text,
        &format!("apiVersion: {group}/v1\nkind: {kind}\n{metadata}\nrules:"),
    );
    text.push_str(&rules(permissions));
    comment(text, note);
    line(
        text,
        &format!("---\napiVersion: {group}/v1\nkind: {kind}Binding\n{metadata}"),
    );
    let name = word(name);
    line(
        text,
        &format!("roleRef: {{apiGroup: {group}, kind: {kind}, name: {name}}}"),
    );
    line(text, "subjects:");
    line(text, subject);
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Adds a sentence as comment lines.
fn comment(text: &mut String, sentence: &str) {
    let mut width = 0;
    for word in sentence.split_whitespace() {
        if width == 0 || width + 1 + word.len() > WIDTH {
            let _ = write!(text, "{}# {word}", if width == 0 { "" } else { "\n" });
            width = 2 + word.len();
        } else {
            let _ = write!(text, " {word}");
            width += 1 + word.len();
        }
    }
    if width > 0 {
        text.push('\n');
    }
}

/// The account that the roles are for.
pub fn account(namespace: &str, sync_target: &str) -> ObjectName {
    ObjectName::new(namespace, &name_of(sync_target))
}

/// The account has the name of the sync target, if that can be a name.
fn name_of(sync_target: &str) -> String {
    if is_label(sync_target) {
        sync_target.to_owned()
    } else {
        lease_name(sync_target)
    }
}

fn words(words: &[impl AsRef<str>]) -> String {
    let words: Vec<String> = words.iter().map(|text| word(text.as_ref())).collect();
    words.join(", ")
}

/// A text as a YAML scalar, in quotes if it could be taken for something else.
fn word(text: &str) -> String {
    const OTHERS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/');
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_plain);
    if is_name && !OTHERS.contains(&&*text.to_ascii_lowercase()) {
        return text.to_owned();
    }
    // A JSON string is a YAML string.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_yaml_would_take_for_something_else_is_in_quotes() {
        for (text, expected) in [
            ("apps", "apps"),
            ("deployments/status", "deployments/status"),
            ("", "\"\""),
            ("*", "\"*\""),
            ("no", "\"no\""),
            ("1e3", "\"1e3\""),
            ("a: b", "\"a: b\""),
            ("a\"b", "\"a\\\"b\""),
        ] {
            assert_eq!(word(text), expected);
        }
    }

    #[test]
    fn comments_are_as_wide_as_a_terminal_of_today() {
        let mut text = String::new();
        comment(&mut text, &"word ".repeat(100));
        assert_eq!(text.lines().count(), 5);
        assert!(
            text.lines()
                .all(|line| line.starts_with("# word") && line.len() <= WIDTH)
        );
        let mut nothing = String::new();
        comment(&mut nothing, "");
        assert!(nothing.is_empty());
    }

    #[test]
    fn a_namespace_that_every_cluster_has_is_not_printed() {
        for (namespace, is_printed) in [("edge-syncer", true), ("default", false), ("kube-system", false)] {
            let account = Account {
                side: Side::Edge,
                namespace,
                sync_target: "site-7",
                configs: &[],
            };
            let text = documents(&account, &Needed::default());
            assert_eq!(text.contains("kind: Namespace\n"), is_printed, "{text}");
        }
    }

    #[test]
    fn an_account_is_called_as_its_sync_target_if_it_can_be() {
        assert_eq!(name_of("site-7"), "site-7");
        assert!(name_of("Site 7").starts_with("edge-syncer-"));
    }
}
