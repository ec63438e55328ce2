//! What a dry run has shown so far and other work depends on: namespaces that would be there, and objects that would not be.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::side::Side;

/// Group, plural, namespace and name. Versions show the same object.
type Name = [String; 4];

/// What is shown so far.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    namespaces: BTreeSet<(Side, String)>,
    gone: BTreeSet<(Side, Name)>,
}

impl Elsewhere {
    /// This has become of what has this path.
    pub(super) fn note(&mut self, side: Side, path: &str, is_there: bool) {
        let Some(name) = name_of(path) else { return };
        if name[0].is_empty() && name[1] == "namespaces" {
            let namespace = (side, name[3].clone());
            if is_there {
                self.namespaces.insert(namespace);
            } else {
                self.namespaces.remove(&namespace);
            }
        }
        if is_there {
            self.gone.remove(&(side, name));
        } else {
            self.gone.insert((side, name));
        }
    }

    /// True if the namespace would be there by now.
    pub(super) fn has_namespace(&self, side: Side, name: &str) -> bool {
        self.namespaces.contains(&(side, name.to_owned()))
    }

    /// True if anything would not be there any more.
    pub(super) fn lacks_any(&self) -> bool {
        !self.gone.is_empty()
    }

    /// The page of a list that has this path, without what would be gone by now; as it is if it is no list.
    pub(super) fn without_gone(&self, side: Side, path: &str, page: &[u8]) -> Option<String> {
        let [group, plural, ..] = collection_of(path)?;
        let mut page: Value = serde_json::from_slice(page).ok()?;
        let items = page.get_mut("items")?.as_array_mut()?;
        items.retain(|item| {
            let of = |field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
            let name = [group.to_owned(), plural.to_owned(), of("namespace"), of("name")];
            !self.gone.contains(&(side, name))
        });
        Some(page.to_string())
    }
}

/// Group and what is below the version.
fn split(path: &str) -> Option<(&str, Vec<&str>)> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match *parts {
        ["api", _, ref below @ ..] => Some(("", below.to_vec())),
        ["apis", group, _, ref below @ ..] => Some((group, below.to_vec())),
        _ => None,
    }
}

fn name_of(path: &str) -> Option<Name> {
    let (group, below) = split(path)?;
    match *below {
        [plural, name] => Some([group, plural, "", name].map(str::to_owned)),
        ["namespaces", namespace, plural, name] => Some([group, plural, namespace, name].map(str::to_owned)),
        _ => None,
    }
}

/// Group and plural of a list.
fn collection_of(path: &str) -> Option<[&str; 2]> {
    let (group, below) = split(path)?;
    match *below {
        [plural] | ["namespaces", _, plural] => Some([group, plural]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_would_be_gone_is_in_no_list_of_that_side_at_any_version() {
        let mut elsewhere = Elsewhere::default();
        elsewhere.note(Side::Edge, "/apis/apps/v1/namespaces/shop/deployments/a", false);
        elsewhere.note(Side::Edge, "/api/v1/namespaces/shop", true);
        assert!(elsewhere.has_namespace(Side::Edge, "shop") && !elsewhere.has_namespace(Side::Hub, "shop"));
        let page = json!({"items": [{"metadata": {"namespace": "shop", "name": "a"}}, {"metadata": {"namespace": "x", "name": "a"}}]});
        let left = |elsewhere: &Elsewhere, side, path| {
            let page = elsewhere.without_gone(side, path, page.to_string().as_bytes());
            let page: Value = serde_json::from_str(&page.unwrap()).unwrap();
            page["items"].as_array().map(Vec::len)
        };
        for (side, path, expected) in [
            (Side::Edge, "/apis/apps/v1/namespaces/shop/deployments", Some(1)),
            (Side::Edge, "/apis/apps/v1beta1/deployments", Some(1)),
            (Side::Hub, "/apis/apps/v1/deployments", Some(2)),
            (Side::Edge, "/apis/other/v1/deployments", Some(2)),
        ] {
            assert_eq!(left(&elsewhere, side, path), expected, "{path}");
        }
        assert_eq!(
            elsewhere.without_gone(Side::Edge, "/apis/apps/v1/deployments", b"{}"),
            None
        );
        elsewhere.note(Side::Edge, "/apis/apps/v1/namespaces/shop/deployments/a", true);
        assert!(!elsewhere.lacks_any());
    }
}
