//! A field set of `managedFields` (`fieldsV1`): objects within objects, where an empty one is a leaf. It is as deep as
//! the object that it is about, so it is handled without recursion.

use std::collections::BTreeMap;
use std::collections::btree_map;

use super::canonical::{Token, Tokens};

/// A field set: nodes with their fields by key (as it is written, in quotes), the first one the root.
#[derive(Debug)]
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
    fn depth_costs_no_stack() {
        let text = format!("{}{}", "{\"f:a\":".repeat(100_000), "{}") + &"}".repeat(100_000);
        let mut set = FieldSet::parse(&text).unwrap();
        set.add(&FieldSet::parse(&text).unwrap());
        assert_eq!(set.render(), text);
    }
}
