//! A field set of `managedFields` (`fieldsV1`): objects within objects, where an empty one is a leaf. It is as deep as
//! the object that it is about, so it is handled without recursion.

use std::collections::btree_map;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use kube_lite::fields::from_text;
use serde_json::{Map, Value};

use super::canonical::{Token, Tokens};

/// The way to a field: keys as in a field set, out of their quotes.
pub(super) type Path = Vec<String>;

/// A field set: nodes with their fields by key (as it is written, in quotes), the first one the root.
#[derive(Clone, Debug)]
pub(super) struct FieldSet(Vec<BTreeMap<String, usize>>);

impl Default for FieldSet {
    fn default() -> Self {
        Self(vec![BTreeMap::new()])
    }
}

impl FieldSet {
    /// Reads a field set; `None` if the text is something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut tokens = Tokens::of(text);
        if tokens.next()? != Token::Open(b'{') {
            return None;
        }
        let mut set = Self::default();
        let (mut open, mut key) = (vec![0], None);
        for token in tokens {
            match token {
                Token::Scalar(text) if key.is_none() && text.starts_with('"') => key = Some(text),
                Token::Open(b'{') => open.push(set.child(*open.last()?, key.take()?)),
                Token::Close if key.is_none() => {
                    open.pop()?;
                }
                _ => return None,
            }
        }
        open.is_empty().then_some(set)
    }

    /// The node under a key, which may be new.
    fn child(&mut self, of: usize, key: &str) -> usize {
        let new = self.0.len();
        let Some(node) = self.0.get_mut(of) else { return 0 };
        if let Some(&known) = node.get(key) {
            return known;
        }
        node.insert(key.to_owned(), new);
        self.0.push(BTreeMap::new());
        new
    }

    /// The fields of a node, each with its key as it is written. The root is 0.
    pub(super) fn fields(&self, node: usize) -> impl Iterator<Item = (&str, usize)> {
        let fields = self.0.get(node).into_iter().flatten();
        fields.map(|(key, &below)| (key.as_str(), below))
    }

    /// The node under a key as it is written.
    pub(super) fn below(&self, node: usize, key: &str) -> Option<usize> {
        self.0.get(node)?.get(key).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.first().is_none_or(BTreeMap::is_empty)
    }

    /// What is at a path of keys, where a `*` at the end of a key stands for anything.
    pub(super) fn only(&self, path: &[&str]) -> Self {
        let mut found = Self::default();
        self.copy_below(0, path, (&mut found, 0));
        found
    }

    fn copy_below(&self, node: usize, path: &[&str], (to, at): (&mut Self, usize)) {
        let Some((first, rest)) = path.split_first() else {
            return to.add_below(at, (self, node));
        };
        for (key, below) in self.fields(node).filter(|(key, _)| is_meant(key, first)) {
            if self.has(below, rest) {
                let at = to.child(at, key);
                self.copy_below(below, rest, (to, at));
            }
        }
    }

    fn has(&self, node: usize, path: &[&str]) -> bool {
        let Some((first, rest)) = path.split_first() else {
            return true;
        };
        let mut fields = self.fields(node);
        fields.any(|(key, below)| is_meant(key, first) && self.has(below, rest))
    }

    /// Leaves out what is at such a path, and what holds nothing else.
    pub(super) fn leave_out(&mut self, path: &[&str]) {
        self.leave_out_below(0, path);
    }

    /// The same below a node. True if nothing is left there.
    fn leave_out_below(&mut self, node: usize, path: &[&str]) -> bool {
        let Some((first, rest)) = path.split_first() else {
            return true;
        };
        let meant = self.fields(node).filter(|(key, _)| is_meant(key, first));
        let meant: Vec<(String, usize)> = meant.map(|(key, below)| (key.to_owned(), below)).collect();
        let over: Vec<String> = meant
            .into_iter()
            .filter_map(|(key, below)| self.leave_out_below(below, rest).then_some(key))
            .collect();
        let Some(fields) = self.0.get_mut(node) else {
            return false;
        };
        fields.retain(|key, _| !over.contains(key));
        !over.is_empty() && fields.is_empty()
    }

    /// Adds what another one has.
    pub(super) fn add(&mut self, other: &Self) {
        self.add_below(0, (other, 0));
    }

    fn add_below(&mut self, node: usize, (other, theirs): (&Self, usize)) {
        let mut pairs = vec![(node, theirs)];
        while let Some((mine, theirs)) = pairs.pop() {
            for (key, &below) in other.0.get(theirs).into_iter().flatten() {
                let at = self.child(mine, key);
                pairs.push((at, below));
            }
        }
    }

    /// True if both have a field or an item of a list in common: not only a list or object that both have something in.
    /// An item is in common if this one lists it as its own, with anything of it itself.
    pub(super) fn shares_with(&self, other: &Self) -> bool {
        let mut pairs = vec![(0, 0, "")];
        while let Some((mine, theirs, at)) = pairs.pop() {
            let is_listed = self.lists_item(mine, at);
            for (key, below) in self.fields(mine).filter(|(key, _)| !is_of_place(key, at)) {
                match other.below(theirs, key) {
                    Some(theirs) if self.is_leaf(below) && (is_listed || other.is_leaf(theirs)) => return true,
                    Some(_) if self.lists_item(below, key) && self.is_of_place_alone(below, key) => return true,
                    Some(theirs) => pairs.push((below, theirs, key)),
                    None if is_listed && self.is_leaf(below) => return true,
                    None => {}
                }
            }
        }
        false
    }

    /// True if another one has all of its fields.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let mut open = vec![(0, 0)];
        while let Some((node, theirs)) = open.pop() {
            for (key, below) in self.fields(node) {
                match other.below(theirs, key) {
                    Some(their_below) if self.is_leaf(below) == other.is_leaf(their_below) => {
                        open.push((below, their_below));
                    }
                    _ => return false,
                }
            }
        }
        true
    }

    /// Leaves out the fields that another one has too, and what holds nothing else. True if there were any.
    pub(super) fn subtract(&mut self, other: &Self) -> bool {
        self.prune(
            0,
            |_, _, &theirs, key| other.below(theirs, key),
            |&theirs, _, is_leaf| is_leaf && other.is_leaf(theirs),
        )
    }

    /// The same, and the fields of items that both have: what whoever has made an item holds of it beside what is shared, as
    /// defaults of the schema, would keep it. What it holds further down, as an item in a list of that item, is its own.
    pub(super) fn subtract_with_items(&mut self, other: &Self) -> bool {
        self.prune(
            Shared {
                theirs: Some(0),
                is_listed: false,
                is_of_item: false,
            },
            |set, below, at: &Shared, key| match other.below(at.theirs?, key) {
                Some(theirs) => Some(Shared {
                    theirs: Some(theirs),
                    is_listed: set.lists_item(below, key),
                    is_of_item: at.is_listed,
                }),
                None => (at.is_listed && set.is_leaf(below)).then_some(Shared {
                    theirs: None,
                    is_listed: false,
                    is_of_item: true,
                }),
            },
            |at, _, is_leaf| match at.theirs {
                _ if !is_leaf => at.is_listed,
                // What is left of a field of an item: the server takes what is within it from a manager that lacks a
                // default in it, as soon as another one applies it.
                Some(theirs) => at.is_of_item || other.is_leaf(theirs),
                None => true,
            },
        )
    }

    /// The ways to the items of lists that are in this set as a whole, with keys as they are written.
    pub(super) fn items(&self) -> Vec<Path> {
        let (mut found, mut open) = (Vec::new(), vec![(0, Path::new())]);
        while let Some((node, path)) = open.pop() {
            for (key, below) in self.fields(node) {
                let path: Path = path.iter().cloned().chain([key.trim_matches('"').to_owned()]).collect();
                if self.lists_item(below, key) {
                    found.push(path.clone());
                }
                open.push((below, path));
            }
        }
        found
    }

    /// True if it names an item of a list.
    pub(super) fn has_items(&self) -> bool {
        let mut keys = self.0.iter().flat_map(BTreeMap::keys);
        keys.any(|key| key.starts_with("\"k:") || key.starts_with("\"v:"))
    }

    /// True for an item of a list that is in this set as a whole.
    fn lists_item(&self, node: usize, key: &str) -> bool {
        key.starts_with("\"k:") && self.below(node, "\".\"").is_some()
    }

    /// True if nothing is in a node but that it is there.
    fn is_of_place_alone(&self, node: usize, at: &str) -> bool {
        self.fields(node).all(|(key, _)| is_of_place(key, at))
    }

    /// Leaves out the fields of that key, wherever they are below the given one, and what holds nothing else. True if there
    /// were any.
    pub(super) fn leave_out_below_key(&mut self, top: &str, key: &str) -> bool {
        let below = |_: &Self, _, &is_below: &bool, key: &str| (is_below || is_meant(key, top)).then_some(true);
        self.prune(false, below, |_, leaf, is_leaf| is_leaf && is_meant(leaf, key))
    }

    /// Leaves out the leaves for which `goes`, what holds nothing else then, and, of nodes that say no more than that they are
    /// there, those for which `goes`, too (with `false` for no leaf). `below` gives what is to be known of the node under a
    /// key; `None` leaves that as it is. True if anything went.
    fn prune<P>(
        &mut self,
        root: P,
        below: impl Fn(&Self, usize, &P, &str) -> Option<P>,
        goes: impl Fn(&P, &str, bool) -> bool,
    ) -> bool {
        // Each place after the one that it is in.
        let mut places = vec![(0, String::new(), root)];
        let mut at = 0;
        while let Some((node, _, place)) = places.get(at) {
            let inner: Vec<_> = self
                .fields(*node)
                .filter_map(|(key, node)| Some((node, key.to_owned(), below(self, node, place, key)?)))
                .collect();
            places.extend(inner);
            at += 1;
        }
        let of_node: HashMap<usize, usize> = places.iter().enumerate().map(|(at, place)| (place.0, at)).collect();
        let mut changed = BTreeSet::new();
        for (node, at, _) in places.iter().rev() {
            let is_over = |(key, below): &(&str, usize)| {
                let place = of_node.get(below).and_then(|&at| places.get(at));
                let is_leaf = self.is_leaf(*below);
                let goes = || place.is_some_and(|(_, _, place)| goes(place, key, is_leaf));
                !is_of_place(key, at) && self.is_of_place_alone(*below, key) && (changed.contains(below) || goes())
            };
            let over: Vec<String> = self
                .fields(*node)
                .filter(is_over)
                .map(|(key, _)| key.to_owned())
                .collect();
            if over.is_empty() {
                continue;
            }
            changed.insert(*node);
            if let Some(fields) = self.0.get_mut(*node) {
                fields.retain(|key, _| !over.contains(key));
            }
        }
        let is_any = !changed.is_empty();
        if is_any && self.is_of_place_alone(0, "") {
            *self = Self::default();
        }
        is_any
    }

    /// The ways to the fields that have no others below them, without those that an item of a list is known by.
    pub(super) fn leaves(&self) -> Vec<Path> {
        let (mut found, mut open) = (Vec::new(), vec![(0, "", Path::new())]);
        while let Some((node, at, path)) = open.pop() {
            for (key, below) in self.fields(node).filter(|(key, _)| !is_of_place(key, at)) {
                let name = from_text(key).unwrap_or_default();
                let path: Path = path.iter().cloned().chain([name]).collect();
                if !self.is_leaf(below) {
                    open.push((below, key, path));
                } else if is_meant(key, "f:*") {
                    found.push(path);
                }
            }
        }
        found
    }

    fn is_leaf(&self, node: usize) -> bool {
        self.0.get(node).is_none_or(BTreeMap::is_empty)
    }

    /// Its JSON.
    pub(super) fn render(&self) -> String {
        let mut text = String::from("{");
        let mut open: Vec<btree_map::Iter<'_, String, usize>> =
            self.0.first().map(BTreeMap::iter).into_iter().collect();
        while let Some(fields) = open.last_mut() {
            let Some((key, &below)) = fields.next() else {
                text.push('}');
                open.pop();
                continue;
            };
            if !text.ends_with('{') {
                text.push(',');
            }
            text.push_str(key);
            text.push_str(":{");
            open.extend(self.0.get(below).map(BTreeMap::iter));
        }
        text
    }
}

/// What another set has of a field.
struct Shared {
    /// Its node there; absent for a field that only this one has, of an item that both have.
    theirs: Option<usize>,
    /// It is an item of a list that this one has as a whole.
    is_listed: bool,
    /// It is a field of such an item.
    is_of_item: bool,
}

/// True if a key, as it is written, is the wanted one.
pub(super) fn is_meant(key: &str, wanted: &str) -> bool {
    let key = key.trim_matches('"');
    wanted
        .strip_suffix('*')
        .map_or(key == wanted, |begin| key.starts_with(begin))
}

/// True for what says no more of the value under the key `at` than that it is there: itself (`.`) and, of an item of a list,
/// the fields that it is known by.
fn is_of_place(key: &str, at: &str) -> bool {
    let key = key.trim_matches('"');
    if key == "." {
        return true;
    }
    let item = from_text::<String>(at).ok();
    let item = item.as_deref().and_then(|at| at.strip_prefix("k:"));
    let known_by = item.and_then(|item| from_text::<Map<String, Value>>(item).ok());
    known_by.is_some_and(|fields| key.strip_prefix("f:").is_some_and(|field| fields.contains_key(field)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_adds_and_writes() {
        let mut set = FieldSet::parse(r#"{"f:data":{".":{},"f:a":{}},"f:spec":{}}"#).unwrap();
        let more = r#"{"f:data":{"f:b":{}},"f:status":{"f:x":{}},"f:list":{"k:{\"n\":1}":{"f:x":{}}},"k:{\"name\":\"a\"}":{}}"#;
        let mut more = FieldSet::parse(more).unwrap();
        more.leave_out(&["f:status"]);
        more.leave_out(&["f:list", "*", "f:x"]);
        more.leave_out(&["f:data", "f:none", "f:x"]);
        let paths: [&[&str]; 4] = [&["f:data"], &["f:d*", "f:b"], &["*", "f:none"], &["k*"]];
        let found = paths.map(|path| more.only(path).render());
        let data = r#"{"f:data":{"f:b":{}}}"#;
        assert_eq!(found, [data, data, "{}", r#"{"k:{\"name\":\"a\"}":{}}"#]);
        assert!(more.only(&["f:none"]).is_empty() && !more.is_empty());
        set.add(&more);
        let sum = r#"{"f:data":{".":{},"f:a":{},"f:b":{}},"f:spec":{},"k:{\"name\":\"a\"}":{}}"#;
        assert_eq!(set.render(), sum);
        assert_eq!(FieldSet::default().render(), "{}");
        for bad in ["", "[]", "1", "{\"a\":1}", "{\"a\":[]}", "{\"a\":{}", "{}}", "{1:{}}"] {
            assert!(FieldSet::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn subtracts_what_both_have_and_what_holds_nothing_else() {
        const ITEM: &str = r#""k:{\"name\":\"a\"}""#;
        const PORT: &str = r#""k:{\"port\":80,\"protocol\":\"TCP\"}""#;
        for (mine, theirs, left) in [
            (r#"{"f:data":{".":{},"f:a":{}}}"#, r#"{"f:data":{"f:a":{}}}"#, "{}"),
            (
                r#"{"f:data":{".":{},"f:a":{},"f:b":{}}}"#,
                r#"{"f:data":{"f:a":{}}}"#,
                r#"{"f:data":{".":{},"f:b":{}}}"#,
            ),
            // An item goes as a whole, or stays with what it is known by.
            (
                &format!(r#"{{"f:env":{{".":{{}},{ITEM}:{{".":{{}},"f:name":{{}},"f:value":{{}}}}}}}}"#),
                &format!(r#"{{"f:env":{{{ITEM}:{{".":{{}},"f:name":{{}},"f:value":{{}}}}}}}}"#),
                "{}",
            ),
            (
                &format!(r#"{{"f:env":{{{ITEM}:{{".":{{}},"f:name":{{}},"f:more":{{"f:x":{{}}}},"f:value":{{}}}}}}}}"#),
                &format!(r#"{{"f:env":{{{ITEM}:{{".":{{}},"f:name":{{}},"f:value":{{}}}}}}}}"#),
                &format!(r#"{{"f:env":{{{ITEM}:{{".":{{}},"f:more":{{"f:x":{{}}}},"f:name":{{}}}}}}}}"#),
            ),
            // So does what is left of a field, of which the other one has what is within.
            (
                &format!(r#"{{"f:env":{{{ITEM}:{{".":{{}},"f:name":{{}},"f:valueFrom":{{}}}}}}}}"#),
                &format!(r#"{{"f:env":{{{ITEM}:{{".":{{}},"f:name":{{}},"f:valueFrom":{{"f:fieldRef":{{}}}}}}}}}}"#),
                "{}",
            ),
            // A default goes with the item, also if nothing but what the item is known by is in common.
            (
                &format!(
                    r#"{{"f:ports":{{".":{{}},{PORT}:{{".":{{}},"f:port":{{}},"f:protocol":{{}},"f:targetPort":{{}}}}}}}}"#
                ),
                &format!(r#"{{"f:ports":{{{PORT}:{{".":{{}},"f:port":{{}}}}}}}}"#),
                "{}",
            ),
            (
                &format!(r#"{{"f:ports":{{{PORT}:{{".":{{}},"f:port":{{}},"f:protocol":{{}}}}}}}}"#),
                &format!(r#"{{"f:ports":{{{PORT}:{{".":{{}},"f:port":{{}}}}}}}}"#),
                "{}",
            ),
            // Whoever has set a field of an item has not made the item.
            (
                &format!(r#"{{"f:ports":{{{PORT}:{{"f:targetPort":{{}}}}}}}}"#),
                &format!(r#"{{"f:ports":{{{PORT}:{{".":{{}},"f:port":{{}}}}}}}}"#),
                &format!(r#"{{"f:ports":{{{PORT}:{{"f:targetPort":{{}}}}}}}}"#),
            ),
            // Nothing in common.
            (
                r#"{"f:a":{".":{}}}"#,
                r#"{"f:a":{".":{},"f:b":{}}}"#,
                r#"{"f:a":{".":{}}}"#,
            ),
            (r#"{"f:a":{}}"#, r#"{"f:a":{"f:b":{}}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{"f:b":{}}}"#, r#"{"f:a":{}}"#, r#"{"f:a":{"f:b":{}}}"#),
            ("{}", r#"{"f:a":{}}"#, "{}"),
        ] {
            let (mut set, other) = (FieldSet::parse(mine).unwrap(), FieldSet::parse(theirs).unwrap());
            let has_any = mine != left;
            assert_eq!(set.shares_with(&other), has_any, "{mine} {theirs}");
            assert_eq!(set.subtract_with_items(&other), has_any, "{mine} {theirs}");
            assert_eq!(set.render(), left, "{mine} {theirs}");
        }
    }

    #[test]
    fn subtracts_fields_alone() {
        let mut set = FieldSet::parse(r#"{"f:a":{".":{},"f:b":{},"f:c":{}}}"#).unwrap();
        assert!(set.subtract(&FieldSet::parse(r#"{"f:a":{"f:b":{}}}"#).unwrap()));
        assert_eq!(set.render(), r#"{"f:a":{".":{},"f:c":{}}}"#);
        assert!(!set.subtract(&FieldSet::parse(r#"{"f:a":{}}"#).unwrap()));
    }

    #[test]
    fn leaves_out_a_key_wherever_it_is_below_another() {
        let inner = r#"{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:x/y":{}}}}}"#;
        let mut set = FieldSet::parse(&format!(r#"{{"f:metadata":{{"f:x/y":{{}}}},"f:spec":{inner}}}"#)).unwrap();
        assert!(set.leave_out_below_key("f:spec", "f:x/y"));
        assert_eq!(set.render(), r#"{"f:metadata":{"f:x/y":{}}}"#);
        assert!(!set.leave_out_below_key("f:spec", "f:x/y"));
    }

    #[test]
    fn depth_costs_no_stack() {
        let text = format!("{}{}", "{\"f:a\":".repeat(100_000), "{}") + &"}".repeat(100_000);
        let mut set = FieldSet::parse(&text).unwrap();
        set.add(&FieldSet::parse(&text).unwrap());
        assert_eq!(set.render(), text);
        let other = set.clone();
        assert!(set.shares_with(&other) && set.subtract(&other) && set.is_empty());
    }
}
