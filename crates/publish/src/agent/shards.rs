//! The virtual workspaces of the export, and who has bound it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kube_lite::meta::Meta;

use crate::kcp::{Binding, CLUSTER, parsed};

/// A virtual workspace.
#[derive(Debug)]
struct Shard {
    number: u32,
    /// By workspace and name, and whether they are ready.
    bindings: BTreeMap<(Rc<str>, Box<str>), bool>,
    unlisted: BTreeSet<(Rc<str>, Box<str>)>,
    are_read: bool,
}

/// What a binding's change means.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bound {
    /// These workspaces have it no longer.
    pub(super) left: Vec<Rc<str>>,
    /// The first binding at the shard is ready: its types are served from now on.
    pub(super) begins: bool,
}

/// See the module's doc.
#[derive(Debug, Default)]
pub(super) struct Shards {
    by_url: BTreeMap<Rc<str>, Shard>,
    next: u32,
}

impl Shards {
    /// These URLs are those of the export from now on. Gives those that end, and those that begin, with their numbers.
    pub(super) fn are(&mut self, urls: &BTreeSet<Rc<str>>) -> [Vec<(u32, Rc<str>)>; 2] {
        let over = self.by_url.iter().filter(|(url, _)| !urls.contains(*url));
        let over = over.map(|(url, shard)| (shard.number, Rc::clone(url))).collect();
        self.by_url.retain(|url, _| urls.contains(url));
        let mut new = Vec::new();
        for url in urls {
            if self.by_url.contains_key(url) {
                continue;
            }
            let number = self.next;
            self.next += 1;
            let shard = Shard {
                number,
                bindings: BTreeMap::new(),
                unlisted: BTreeSet::new(),
                are_read: false,
            };
            self.by_url.insert(Rc::clone(url), shard);
            new.push((number, Rc::clone(url)));
        }
        [over, new]
    }

    /// The numbers of all of them.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + Clone {
        self.by_url.values().map(|shard| shard.number)
    }

    /// How many workspaces are known to have bound the export; `None` if none is, and a shard has not answered yet.
    pub(super) fn bound(&self) -> Option<usize> {
        let all = self.by_url.values();
        let ready = all
            .clone()
            .flat_map(|shard| shard.bindings.iter().filter(|(_, is_ready)| **is_ready));
        let workspaces: BTreeSet<&Rc<str>> = ready.map(|((workspace, _), _)| workspace).collect();
        let is_known = !workspaces.is_empty() || all.clone().all(|shard| shard.are_read);
        is_known.then_some(workspaces.len())
    }

    /// The workspaces that have a binding.
    pub(super) fn workspaces(&self) -> BTreeSet<Rc<str>> {
        let bindings = self.by_url.values().flat_map(|shard| shard.bindings.keys());
        bindings.map(|(workspace, _)| Rc::clone(workspace)).collect()
    }

    /// The workspaces that have a binding at just one shard, and which one that is.
    pub(super) fn at(&self) -> BTreeMap<Rc<str>, u32> {
        let mut at: BTreeMap<Rc<str>, BTreeSet<u32>> = BTreeMap::new();
        for shard in self.by_url.values() {
            for (workspace, _) in shard.bindings.keys() {
                at.entry(Rc::clone(workspace)).or_default().insert(shard.number);
            }
        }
        let alone = at.into_iter().filter(|(_, shards)| shards.len() == 1);
        alone
            .filter_map(|(workspace, shards)| Some((workspace, shards.first().copied()?)))
            .collect()
    }

    fn shard(&mut self, number: u32) -> Option<&mut Shard> {
        self.by_url.values_mut().find(|shard| shard.number == number)
    }

    /// A list of bindings begins.
    pub(super) fn begins(&mut self, number: u32) {
        if let Some(shard) = self.shard(number) {
            shard.unlisted = shard.bindings.keys().cloned().collect();
        }
    }

    /// A binding is there.
    pub(super) fn is_there(&mut self, number: u32, object: &[u8]) -> Bound {
        let (Some(key), Ok(binding)) = (key(object), parsed::<Binding>(object)) else {
            return Bound::default();
        };
        let Some(shard) = self.shard(number) else {
            return Bound::default();
        };
        shard.unlisted.remove(&key);
        let had_any = shard.bindings.values().any(|is_ready| *is_ready);
        shard.bindings.insert(key, binding.is_ready());
        Bound {
            left: Vec::new(),
            begins: !had_any && binding.is_ready(),
        }
    }

    /// A binding is gone.
    pub(super) fn is_gone(&mut self, number: u32, object: &[u8]) -> Bound {
        let left = key(object).and_then(|key| self.shard(number)?.leaves(&key));
        Bound {
            left: left.into_iter().collect(),
            begins: false,
        }
    }

    /// The list is complete: what it does not name is gone.
    pub(super) fn is_complete(&mut self, number: u32) -> Bound {
        let Some(shard) = self.shard(number) else {
            return Bound::default();
        };
        shard.are_read = true;
        let gone = std::mem::take(&mut shard.unlisted);
        Bound {
            left: gone.iter().filter_map(|key| shard.leaves(key)).collect(),
            begins: false,
        }
    }
}

impl Shard {
    /// A binding is there no longer. Gives its workspace if it was the last one there.
    fn leaves(&mut self, key: &(Rc<str>, Box<str>)) -> Option<Rc<str>> {
        self.bindings.remove(key)?;
        let is_bound = self.bindings.keys().any(|(workspace, _)| *workspace == key.0);
        (!is_bound).then(|| Rc::clone(&key.0))
    }
}

fn key(object: &[u8]) -> Option<(Rc<str>, Box<str>)> {
    let meta = <Meta>::parse(object).ok()?;
    let workspace = meta.annotations.get(CLUSTER)?;
    Some((workspace.as_str().into(), meta.name.as_str().into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn binding(workspace: &str, name: &str, is_ready: bool) -> Vec<u8> {
        let status = if is_ready { "True" } else { "False" };
        let binding = json!({
            "metadata": {"name": name, "annotations": {"kcp.io/cluster": workspace}},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        });
        binding.to_string().into_bytes()
    }

    #[test]
    fn urls_that_stay_keep_their_numbers() {
        let mut shards = Shards::default();
        let urls = |all: &[&str]| all.iter().map(|url| Rc::from(*url)).collect::<BTreeSet<Rc<str>>>();
        assert_eq!(shards.are(&urls(&["a", "b"]))[1].len(), 2);
        let change = shards.are(&urls(&["b", "c"]));
        assert_eq!(change, [vec![(0, "a".into())], vec![(2, "c".into())]]);
        assert_eq!(shards.numbers().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(shards.bound(), None);
    }

    #[test]
    fn who_has_bound_at_one_shard_counts_while_another_does_not_answer() {
        let mut shards = Shards::default();
        shards.are(&BTreeSet::from(["a".into(), "b".into()]));
        shards.begins(0);
        shards.is_complete(0);
        assert_eq!(shards.bound(), None);
        shards.is_there(0, &binding("c1", "one", true));
        assert_eq!(shards.bound(), Some(1));
        shards.is_gone(0, &binding("c1", "one", true));
        shards.is_complete(1);
        assert_eq!(shards.bound(), Some(0));
    }

    #[test]
    fn a_workspace_leaves_with_its_last_binding() {
        let mut shards = Shards::default();
        shards.are(&BTreeSet::from(["a".into()]));
        shards.begins(0);
        assert!(shards.is_there(0, &binding("c1", "one", true)).begins);
        // The second one is no news, nor is one that is not ready.
        assert_eq!(shards.is_there(0, &binding("c1", "two", true)), Bound::default());
        assert_eq!(shards.is_there(0, &binding("c2", "one", false)), Bound::default());
        shards.is_complete(0);
        assert_eq!(shards.bound(), Some(1));
        assert_eq!(shards.is_gone(0, &binding("c1", "one", true)), Bound::default());
        assert_eq!(shards.is_gone(0, &binding("c1", "two", true)).left, ["c1".into()]);
        // What a list does not name has left too.
        shards.begins(0);
        assert_eq!(shards.is_complete(0).left, ["c2".into()]);
        assert_eq!(shards.bound(), Some(0));
    }
}
