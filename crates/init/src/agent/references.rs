//! The types that targets name, each read at the workspace that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::kcp::WorkspaceType;

/// How a target names a type: a workspace, by path or id, and a name. Several may mean one type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeName {
    pub(crate) workspace: Rc<str>,
    pub(crate) name: Rc<str>,
}

/// What is known of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The server has not answered yet.
    Nothing,
    /// It could not be read so far.
    Unreadable,
    /// There is none.
    Absent,
    /// It is there.
    Type(Type),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Type {
    /// Its initializer.
    pub(super) initializer: Rc<str>,
    /// Where the workspaces that wait for it are shown.
    pub(super) urls: BTreeSet<Rc<str>>,
    /// False if no workspace ever waits for it.
    pub(super) blocks: bool,
}

struct Reference {
    number: u32,
    known: Known,
    /// The list that is being read has named it.
    is_listed: bool,
}

/// All that targets name.
#[derive(Default)]
pub(super) struct References {
    by_name: BTreeMap<TypeName, Reference>,
    next: u32,
}

/// What begins and what ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) begin: Vec<(u32, TypeName)>,
    pub(super) end: Vec<(u32, TypeName)>,
}

impl References {
    /// Follows these, and no others.
    pub(super) fn follow(&mut self, wanted: &BTreeSet<TypeName>) -> Change {
        let mut change = Change::default();
        self.by_name.retain(|name, reference| {
            let stays = wanted.contains(name);
            if !stays {
                change.end.push((reference.number, name.clone()));
            }
            stays
        });
        for name in wanted {
            if self.by_name.contains_key(name) {
                continue;
            }
            let number = self.next;
            self.next += 1;
            let reference = Reference {
                number,
                known: Known::Nothing,
                is_listed: false,
            };
            self.by_name.insert(name.clone(), reference);
            change.begin.push((number, name.clone()));
        }
        change
    }

    /// What is known of a type.
    pub(super) fn known(&self, name: &TypeName) -> &Known {
        self.by_name.get(name).map_or(&Known::Nothing, |it| &it.known)
    }

    /// The type with this number.
    pub(super) fn named(&self, number: u32) -> Option<&TypeName> {
        let found = self.by_name.iter().find(|(_, reference)| reference.number == number);
        found.map(|(name, _)| name)
    }

    /// A list of it begins.
    pub(super) fn begins(&mut self, number: u32) {
        if let Some(reference) = self.of(number) {
            reference.is_listed = false;
        }
    }

    /// It is there. True if that changes what is known.
    pub(super) fn is_there(&mut self, number: u32, found: &WorkspaceType) -> bool {
        let known = match found.initializer() {
            Some(initializer) => Known::Type(Type {
                initializer: initializer.into(),
                urls: found.urls().map(Rc::from).collect(),
                blocks: found.spec.initializer,
            }),
            None => Known::Unreadable,
        };
        self.of(number).is_some_and(|reference| {
            reference.is_listed = true;
            reference.learn(known)
        })
    }

    /// The list of it is complete. True if that changes what is known.
    pub(super) fn is_complete(&mut self, number: u32) -> bool {
        let reference = self.of(number);
        reference.is_some_and(|reference| !reference.is_listed && reference.learn(Known::Absent))
    }

    /// It is gone. True if that changes what is known.
    pub(super) fn is_gone(&mut self, number: u32) -> bool {
        self.of(number).is_some_and(|reference| reference.learn(Known::Absent))
    }

    /// It cannot be read now. What is known of it stays. True if that is the first that is known.
    pub(super) fn is_unreadable(&mut self, number: u32) -> bool {
        let reference = self.of(number).filter(|reference| reference.known == Known::Nothing);
        reference.is_some_and(|reference| reference.learn(Known::Unreadable))
    }

    fn of(&mut self, number: u32) -> Option<&mut Reference> {
        self.by_name.values_mut().find(|reference| reference.number == number)
    }
}

impl Reference {
    fn learn(&mut self, known: Known) -> bool {
        let is_news = self.known != known;
        self.known = known;
        is_news
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name(workspace: &str, name: &str) -> TypeName {
        TypeName {
            workspace: workspace.into(),
            name: name.into(),
        }
    }

    fn found(urls: &[(&str, Option<&str>)]) -> WorkspaceType {
        let urls: Vec<_> = urls
            .iter()
            .map(|(url, purpose)| match purpose {
                Some(purpose) => json!({"url": url, "type": purpose}),
                None => json!({"url": url}),
            })
            .collect();
        let annotations = json!({"kcp.io/cluster": "2abc"});
        serde_json::from_value(json!({
            "metadata": {"name": "dev", "annotations": annotations},
            "spec": {"initializer": true},
            "status": {"virtualWorkspaces": urls},
        }))
        .unwrap()
    }

    #[test]
    fn each_is_followed_under_a_number_of_its_own_until_no_target_names_it() {
        let mut all = References::default();
        let [a, b] = [name("root", "a"), name("2abc", "a")];
        let change = all.follow(&BTreeSet::from([a.clone(), b.clone()]));
        assert_eq!(change.begin, [(0, b.clone()), (1, a.clone())]);
        assert_eq!(all.follow(&BTreeSet::from([a.clone(), b.clone()])), Change::default());
        let change = all.follow(&BTreeSet::from([a.clone()]));
        assert_eq!((change.begin, change.end), (vec![], vec![(0, b.clone())]));
        assert_eq!(all.named(1), Some(&a));
        assert_eq!(all.named(0), None);
        assert_eq!(
            all.follow(&BTreeSet::from([a, b.clone()])).begin,
            [(2, b)],
            "a new number"
        );
    }

    #[test]
    fn what_is_known_stays_while_it_cannot_be_read_and_ends_when_it_is_gone() {
        let mut all = References::default();
        let a = name("root", "a");
        all.follow(&BTreeSet::from([a.clone()]));
        assert_eq!(*all.known(&a), Known::Nothing);
        assert!(all.is_unreadable(0) && !all.is_unreadable(0));
        let urls = [
            ("https://a/services/initializingworkspaces/2abc:dev/", None),
            (
                "https://b/services/initializingworkspaces/2abc:dev",
                Some("initializing"),
            ),
            ("https://a/services/terminatingworkspaces/2abc:dev", Some("terminating")),
            ("https://c/services/terminatingworkspaces/2abc:dev", None),
        ];
        all.begins(0);
        assert!(all.is_there(0, &found(&urls)) && !all.is_there(0, &found(&urls)));
        assert!(!all.is_complete(0) && !all.is_unreadable(0));
        let Known::Type(known) = all.known(&a) else {
            panic!("it is known")
        };
        assert_eq!(&*known.initializer, "2abc:dev");
        let of = |host: &str| Rc::from(format!("https://{host}/services/initializingworkspaces/2abc:dev"));
        assert_eq!(known.urls, BTreeSet::from([of("a"), of("b")]));
        all.begins(0);
        assert!(all.is_complete(0), "the list no longer has it");
        assert_eq!(*all.known(&a), Known::Absent);
        assert!(all.is_there(0, &found(&urls)) && all.is_gone(0));
    }
}
