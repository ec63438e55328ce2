//! The words of a config, checked before they are used in requests: a name that nothing can have selects nothing, and
//! is reported.

use kube_lite::{is_path_segment, is_word};

use super::kept::{Unless, keeps_all};
use super::names::{ALL, Names};
use crate::api::edge_sync_config::Ref;

/// The longest name of a namespace (a DNS label).
const LONGEST_NAMESPACE: usize = 63;
/// The group of roles, whose names may be anything that can be a part of a path.
const ROLES: &str = "rbac.authorization.k8s.io";
/// The most of a word that is printed.
const SHOWN: usize = 60;

/// Why nothing has that group; `None` if something may.
pub(super) fn bad_group(group: &str) -> Option<String> {
    (!group.is_empty() && !is_word(group)).then(|| format!("{} is no API group", cut(group)))
}

/// Why no resource, version or kind (`what`) has that name; `None` if one may.
pub(super) fn bad_word(what: &str, word: &str) -> Option<String> {
    (!is_word(word)).then(|| format!("{} is no {what}", cut(word)))
}

/// Why that is no version; `None` if it may be one.
pub(super) fn bad_version(version: &str) -> Option<String> {
    if version.is_empty() {
        Some("is empty; write the version, such as \"v1\"".to_owned())
    } else if version.contains('/') {
        Some(format!(
            "{} holds a group; write the version alone, such as \"v1\"",
            cut(version)
        ))
    } else {
        bad_word("version", version)
    }
}

/// Why no namespace has that name; `None` if one may.
pub(super) fn bad_namespace(name: &str) -> Option<String> {
    let is_label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let can_be = (1..=LONGEST_NAMESPACE).contains(&name.len())
        && name.bytes().all(is_label)
        && !name.starts_with('-')
        && !name.ends_with('-');
    (!can_be).then(|| format!("{} is no name of a namespace", cut(name)))
}

/// Why no object of the group has that name; `None` if one may. Only roles, and perhaps objects of another server, may
/// have other characters in their names than small letters, digits, `-` and `.`.
fn bad_name(group: &str, name: &str) -> Option<String> {
    let is_strict = matches!(group, "" | "apps" | "batch");
    let is_usual = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if !is_path_segment(name) {
        Some(format!("{} is no name of an object", cut(name)))
    } else if name.contains('*') && group != ROLES {
        let why = "is no name of an object: \"*\" matches all names, not parts of a name";
        Some(format!("{} {why}", cut(name)))
    } else if is_strict && !name.bytes().all(is_usual) {
        Some(format!("{} is no name of an object", cut(name)))
    } else {
        None
    }
}

/// The part of a reference that nothing can have as name, and why; `None` if there is none.
pub(super) fn bad_reference(item: &Ref) -> Option<(&'static str, String)> {
    let namespace = match item.namespace.as_str() {
        "" | ALL => None,
        namespace => bad_namespace(namespace),
    };
    let name = match item.name.as_str() {
        ALL => None,
        name => bad_name(&item.group, name),
    };
    [
        ("group", bad_group(&item.group)),
        ("version", bad_version(&item.version)),
        ("kind", bad_word("kind", &item.kind)),
        ("namespace", namespace),
        ("name", name),
    ]
    .into_iter()
    .find_map(|(part, why)| Some((part, why?)))
}

/// True if a conversion may use these words.
pub(super) fn are_usable(group: &str, kind: &str, name: &str) -> bool {
    bad_group(group).is_none() && is_word(kind) && is_path_segment(name)
}

/// The names of a list that objects of the group may have, and what is wrong with the others: one sentence, however many
/// there are.
pub(super) fn names(group: &str, list: &[String]) -> (Names, Option<String>) {
    usable(list, |name| bad_name(group, name))
}

/// The same of namespaces.
pub(super) fn namespaces(list: &[String]) -> (Names, Option<String>) {
    usable(list, bad_namespace)
}

fn usable(list: &[String], bad: impl Fn(&str) -> Option<String>) -> (Names, Option<String>) {
    let mut names = Names::from_list(list);
    let Names::These(these) = &mut names else {
        return (names, None);
    };
    let mut wrong = list.iter().filter_map(|name| bad(name));
    let Some(first) = wrong.next() else {
        return (names, None);
    };
    let others = match wrong.count() {
        0 => String::new(),
        more => format!(", nor are {more} more"),
    };
    these.retain(|name| bad(name).is_none());
    (names, Some(first + &others))
}

/// A word in quotes, shortened if it is long.
pub(super) fn cut(word: &str) -> String {
    match word.char_indices().nth(SHOWN) {
        None => format!("{word:?}"),
        Some((end, _)) => {
            let begin = word.get(..end).unwrap_or_default();
            format!("{begin:?}… ({} characters)", word.chars().count())
        }
    }
}

/// Types that belong to one side alone, by plural or kind: kcp's own APIs, the syncer's configs, and what controllers use
/// to talk to each other.
pub(super) fn is_never_synced(group: &str, word: &str) -> bool {
    belongs_to_one_side(group) || keeps_all(group, word) == Some(Unless::Never)
}

/// The same, and types of which objects are synced only if each of them is named.
pub(super) fn is_never_synced_unnamed(group: &str, word: &str) -> bool {
    belongs_to_one_side(group) || keeps_all(group, word).is_some()
}

fn belongs_to_one_side(group: &str) -> bool {
    group == crate::api::GROUP || group == "kcp.io" || group.ends_with(".kcp.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_can_be_called_is_printed_in_few_words() {
        let long = "x".repeat(66_000);
        for (name, namespace, word) in [
            ("shop", true, true),
            ("shop-1", true, true),
            ("1", true, true),
            (&"x".repeat(63), true, true),
            (&"x".repeat(64), false, true),
            ("Shop", false, true),
            ("-shop", false, true),
            ("shop-", false, true),
            ("a.b", false, true),
            ("system:node", false, true),
            ("a/b", false, false),
            ("a%2Fb", false, false),
            ("..", false, false),
            ("", false, false),
            (&long, false, false),
        ] {
            assert_eq!(bad_namespace(name).is_none(), namespace, "{name:.80}");
            assert_eq!(bad_word("kind", name).is_none(), word, "{name:.80}");
            assert_eq!(bad_group(name).is_none(), word || name.is_empty(), "{name:.80}");
        }
        let reported = bad_namespace(&long).unwrap();
        assert!(reported.len() < 120 && reported.contains("66000"), "{reported}");
        assert_eq!(bad_word("kind", "é/").as_deref(), Some("\"é/\" is no kind"));
    }

    #[test]
    fn many_wrong_names_are_one_sentence() {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let (usable, why) = names("", &list(&["a", "b/c", "..", "d"]));
        assert_eq!(usable, Names::from_list(&list(&["a", "d"])));
        assert_eq!(why.as_deref(), Some("\"b/c\" is no name of an object, nor are 1 more"));
        let (usable, why) = namespaces(&list(&["Shop"]));
        assert!(usable.is_empty());
        assert_eq!(why.as_deref(), Some("\"Shop\" is no name of a namespace"));
        assert_eq!(names("", &list(&["*", "b/c"])), (Names::All, None));
    }

    #[test]
    fn a_name_that_no_object_has_is_reported_and_one_that_a_role_may_have_is_not() {
        for (group, name, expected) in [
            ("", "prices", true),
            ("", "prices.v2-1", true),
            ("", "pri*", false),
            ("", "Prices", false),
            ("apps", "shop!", false),
            ("example.org", "pri*", false),
            ("example.org", "Prices", true),
            ("rbac.authorization.k8s.io", "system:*", true),
            ("rbac.authorization.k8s.io", "a/b", false),
        ] {
            assert_eq!(bad_name(group, name).is_none(), expected, "{group} {name}");
        }
        let reported = bad_name("", "pri*").unwrap();
        assert!(
            reported.starts_with("\"pri*\" is no name of an object: \"*\" matches all names"),
            "{reported}"
        );
        assert_eq!(
            bad_namespace("sho*").as_deref(),
            Some("\"sho*\" is no name of a namespace")
        );
    }
}
