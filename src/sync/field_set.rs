//! A field set of `managedFields` (`fieldsV1`): objects within objects, where an empty one is a leaf. It is as deep as
//! the object that it is about, so it is handled without recursion.

use std::collections::btree_map;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::canonical::{Token, Tokens};

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

    /// True if both have a field in common: not only a list or object that both have something in, nor the fields that
    /// an item of a list is known by.
    pub(super) fn shares_with(&self, other: &Self) -> bool {
        let mut pairs = vec![(0, 0, "")];
        while let Some((mine, theirs, at)) = pairs.pop() {
            for (key, below) in self.fields(mine).filter(|(key, _)| !is_of_place(key, at)) {
                match other.below(theirs, key) {
                    Some(theirs) if self.is_leaf(below) && other.is_leaf(theirs) => return true,
                    Some(theirs) => pairs.push((below, theirs, key)),
                    None => {}
                }
            }
        }
        false
    }

    /// Leaves out the fields that another one has too, and what holds nothing else. True if there were any.
    pub(super) fn subtract(&mut self, other: &Self) -> bool {
        self.prune(
            0,
            |&theirs, key| other.below(theirs, key),
            |&theirs, _| other.is_leaf(theirs),
        )
    }

    /// Leaves out the fields of that key, wherever they are below the given one, and what holds nothing else. True if there
    /// were any.
    pub(super) fn leave_out_below_key(&mut self, top: &str, key: &str) -> bool {
        let below = |&is_below: &bool, key: &str| (is_below || is_meant(key, top)).then_some(true);
        self.prune(false, below, |_, leaf| is_meant(leaf, key))
    }

    /// Leaves out the leaves for which `goes`, and what holds nothing else then. `below` gives what is to be known of the
    /// field under a key; `None` leaves that as it is. True if anything went.
    fn prune<P>(&mut self, root: P, below: impl Fn(&P, &str) -> Option<P>, goes: impl Fn(&P, &str) -> bool) -> bool {
        // Each place after the one that it is in.
        let mut places = vec![(0, String::new(), root)];
        let mut at = 0;
        while let Some((node, _, place)) = places.get(at) {
            let inner: Vec<_> = self
                .fields(*node)
                .filter_map(|(key, node)| Some((node, key.to_owned(), below(place, key)?)))
                .collect();
            places.extend(inner);
            at += 1;
        }
        let of_node: HashMap<usize, usize> = places.iter().enumerate().map(|(at, place)| (place.0, at)).collect();
        let mut changed = BTreeSet::new();
        for (node, at, _) in places.iter().rev() {
            let is_over = |(key, below): &(&str, usize)| {
                let place = of_node.get(below).and_then(|&at| places.get(at));
                !is_of_place(key, at)
                    && if changed.contains(below) {
                        self.fields(*below).all(|(inner, _)| is_of_place(inner, key))
                    } else {
                        self.is_leaf(*below) && place.is_some_and(|(_, _, place)| goes(place, key))
                    }
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
        if is_any && self.fields(0).all(|(key, _)| is_of_place(key, "")) {
            *self = Self::default();
        }
        is_any
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

/// True if a key, as it is written, is the wanted one.
fn is_meant(key: &str, wanted: &str) -> bool {
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
    let item = serde_json::from_str::<String>(at).ok();
    let item = item.as_deref().and_then(|at| at.strip_prefix("k:"));
    let known_by = item.and_then(|item| serde_json::from_str::<Map<String, Value>>(item).ok());
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
                &format!(r#"{{"f:env":{{{ITEM}:{{".":{{}},"f:name":{{}},"f:more":{{}},"f:value":{{}}}}}}}}"#),
                &format!(r#"{{"f:env":{{{ITEM}:{{".":{{}},"f:name":{{}},"f:value":{{}}}}}}}}"#),
                &format!(r#"{{"f:env":{{{ITEM}:{{".":{{}},"f:more":{{}},"f:name":{{}}}}}}}}"#),
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
            assert_eq!(set.subtract(&other), has_any, "{mine} {theirs}");
            assert_eq!(set.render(), left, "{mine} {theirs}");
        }
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
