//! The search itself: gjson's, step by step, on values instead of texts.

use std::rc::Rc;

use serde_json::Value;

use super::Work;
use super::modifiers::{self, Applied, Modifier};
use super::node::{Node, ValuePath};
use super::query::Query;
use super::syntax::{self, Element, Member, Rest};
use super::wildcard;

/// What a part of a search gives to the whole.
#[derive(Default)]
struct Search<'a, 'p> {
    found: Option<Node<'a>>,
    /// What is to be done with what was found.
    pipe: Option<&'p str>,
}

/// How a path starts.
enum Start<'a> {
    /// With a key or an index.
    Plain,
    /// With what it makes itself, which has been searched in already.
    Made(Option<Node<'a>>),
}

/// What a path finds in a value.
pub(super) fn get<'a>(from: Option<&Node<'a>>, path: &str, work: &Work) -> Option<Node<'a>> {
    if !work.spend(1 + path.len() / 32) {
        return None;
    }
    work.deeper(|| match start(from, path, work) {
        Start::Made(found) => found,
        Start::Plain => walk(from?, path, work),
    })
}

/// A modifier, a constant or a selection at the start of a path.
fn start<'a>(from: Option<&Node<'a>>, path: &str, work: &Work) -> Start<'a> {
    if path.len() < 2 {
        return Start::Plain;
    }
    let applied = match path.as_bytes()[0] {
        b'@' => modified(from, path, work),
        b'!' => modifiers::constant(path),
        b'[' | b'{' => select(from, path, work),
        _ => None,
    };
    let Some(Applied { found, rest }) = applied else {
        return Start::Plain;
    };
    let found = found.map(Node::detached);
    Start::Made(match rest.strip_prefix(['.', '|']) {
        Some(rest) => get(found.as_ref(), rest, work).map(Node::detached),
        None => found,
    })
}

/// What a modifier at the start of a path makes.
fn modified<'a, 'p>(from: Option<&Node<'a>>, path: &'p str, work: &Work) -> Option<Applied<'a, 'p>> {
    let Modifier { name, argument, rest } = modifiers::parse(path)?;
    let found = if name == "dig" {
        let mut found = Vec::new();
        if let Some(from) = from {
            dig(from, argument, &mut found, work);
        }
        Some(Node::list(found))
    } else {
        modifiers::apply(from, name, argument, work)
    };
    Some(Applied { found, rest })
}

/// What a path finds in a value and in all that it contains.
fn dig<'a>(node: &Node<'a>, path: &str, found: &mut Vec<Node<'a>>, work: &Work) {
    found.extend(get(Some(node), path, work));
    if !work.spend(1) {
        return;
    }
    let inner = match node.members() {
        Some(members) => members.into_iter().map(|(_, value)| value).collect(),
        None => node.elements().unwrap_or_default(),
    };
    let _ = work.deeper(|| {
        for value in inner {
            dig(&value, path, found, work);
        }
        Some(())
    });
}

/// `[path,path]` and `{"name":path,path}`.
fn select<'a, 'p>(from: Option<&Node<'a>>, path: &'p str, work: &Work) -> Option<Applied<'a, 'p>> {
    let (paths, rest) = syntax::selection(path)?;
    if !rest.is_empty() && !rest.starts_with(['.', '|']) {
        return None;
    }
    let is_list = path.starts_with('[');
    let (mut items, mut members) = (Vec::new(), Vec::new());
    for (name, path) in paths {
        let Some(found) = get(from, path, work) else { continue };
        if is_list {
            items.push(found);
        } else {
            members.push((selected_name(name, path), found));
        }
    }
    let made = if is_list {
        Node::list(items)
    } else {
        Node::object(members)
    };
    let found = Some(made);
    Some(Applied { found, rest })
}

fn selected_name(name: &str, path: &str) -> String {
    if name.is_empty() {
        let last = syntax::last_name(path);
        return if syntax::is_simple_name(last) { last } else { "_" }.to_owned();
    }
    serde_json::from_str(name).unwrap_or_else(|_| name.to_owned())
}

fn walk<'a>(from: &Node<'a>, path: &str, work: &Work) -> Option<Node<'a>> {
    let mut search = Search::default();
    if let Some(path) = path.strip_prefix("..") {
        // Lines of JSON: a document is one.
        search.list(&Node::list(vec![from.clone()]), path, work);
    } else if from.is_object() {
        search.object(from, path, work);
    } else if from.is_list() {
        search.list(from, path, work);
    }
    match search.pipe {
        Some(pipe) => get(search.found.as_ref(), pipe, work).map(Node::detached),
        None => search.found,
    }
}

impl<'a, 'p> Search<'a, 'p> {
    /// Searches in a value of an object or a list. Whether the search is over.
    fn inner(&mut self, node: &Node<'a>, path: &'p str, work: &Work) -> bool {
        if !work.spend(1) {
            return true;
        }
        let mut over = false;
        let _ = work.deeper(|| {
            if node.is_object() {
                over = self.object(node, path, work);
            } else if node.is_list() {
                over = self.list(node, path, work);
            }
            Some(())
        });
        over
    }

    fn object(&mut self, node: &Node<'a>, path: &'p str, work: &Work) -> bool {
        let Member { name, wild, rest } = syntax::member(path);
        if let Rest::Pipe(pipe) = rest {
            self.pipe = Some(pipe);
        }
        if !wild {
            return node.member(&name).is_some_and(|value| self.hit(value, rest, work));
        }
        for (key, value) in node.members().unwrap_or_default() {
            if !work.spend(1 + key.len() * name.len() / 64) {
                return true;
            }
            if wildcard::matches(&key, &name) && self.hit(value, rest, work) {
                return true;
            }
        }
        false
    }

    fn list(&mut self, node: &Node<'a>, path: &'p str, work: &Work) -> bool {
        let element = syntax::element(path);
        if let Element::Index(_, Rest::Pipe(pipe))
        | Element::Count(Rest::Pipe(pipe))
        | Element::Query(_, Rest::Pipe(pipe))
        | Element::None(Rest::Pipe(pipe)) = element
        {
            self.pipe = Some(pipe);
        }
        match element {
            Element::None(_) => false,
            Element::Index(index, rest) => index
                .and_then(|index| node.element(index))
                .is_some_and(|value| self.hit(value, rest, work)),
            Element::Count(_) => {
                let count = node.length().unwrap_or_default();
                self.found = Some(Node::owned(Value::from(count)));
                true
            }
            Element::Each(path) => {
                self.each(node, path, work);
                true
            }
            Element::Query(query, rest) => self.query(node, &query, rest, work),
        }
    }

    /// A value that this part of the path names.
    fn hit(&mut self, value: Node<'a>, rest: Rest<'p>, work: &Work) -> bool {
        let Some(path) = rest.path() else {
            self.found = Some(value);
            return true;
        };
        self.inner(&value, path, work)
    }

    /// What a path finds in each element.
    fn each(&mut self, node: &Node<'a>, path: &'p str, work: &Work) {
        let mut path = path;
        if let Some((left, right)) = syntax::split_pipe(path) {
            (path, self.pipe) = (left, Some(right));
        }
        let elements = node.elements().unwrap_or_default();
        let found = elements.iter().filter_map(|element| get(Some(element), path, work));
        self.found = Some(collected(found.collect()));
    }

    fn query(&mut self, node: &Node<'a>, query: &Query<'p>, rest: Rest<'p>, work: &Work) -> bool {
        let mut path = rest.path();
        let mut all = Vec::new();
        for element in node.elements().unwrap_or_default() {
            let is_scalar = element.scalar().is_some();
            if is_scalar && !query.path.is_empty() {
                continue;
            }
            let matched = if is_scalar {
                query.matches(Some(&element), work)
            } else {
                query.matches(get(Some(&element), query.path, work).as_ref(), work)
            };
            if !work.spend(1) {
                return true;
            }
            if !matched {
                continue;
            }
            if let Some((left, right)) = path.and_then(syntax::split_pipe) {
                (path, self.pipe) = (Some(left), Some(right));
            }
            let found = match path {
                Some(path) => get(Some(&element), path, work),
                None => Some(element),
            };
            if !query.all {
                self.found = found;
                return true;
            }
            all.extend(found);
        }
        if query.all && self.found.is_none() {
            self.found = Some(collected(all));
        }
        false
    }
}

/// A list of values, which knows where all of them are.
fn collected(items: Vec<Node<'_>>) -> Node<'_> {
    let mut places = Vec::new();
    let mut known = true;
    for item in &items {
        match &item.place {
            ValuePath::At(step) => places.push(Rc::clone(step)),
            ValuePath::Many(steps) => places.extend(steps.iter().cloned()),
            ValuePath::Nowhere | ValuePath::Root => known = false,
        }
    }
    let mut list = Node::list(items);
    if known && !places.is_empty() {
        list.place = ValuePath::Many(places.into());
    }
    list
}
