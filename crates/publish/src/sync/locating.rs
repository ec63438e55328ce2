//! Where objects are that belong to a primary: of which type at either side, and what they are called there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;

use kube_lite::discovery::ServedResource;
use kube_lite::{Cluster, Content, ObjectName, ResourceType, is_path_segment};
use serde_json::Value;

use super::large::Large;
use super::{Pass, covered};
use crate::kcp::parsed;
use crate::kinds::{Locator, Origin, Related, SelectorLocator, TypeOf};
use crate::labels::Selector;
use crate::lifecycle;
use crate::related::{Both, Names, other};
use crate::sides::Side;
use crate::trouble::{Stop, passed};
use crate::turn::Use;

/// What to do about a related resource that cannot be found out.
pub(super) const CORRECT: &str =
    "correct spec.related of the PublishedResource, or the object; it is tried at once when either changes";

/// How many objects may belong to a primary by one rule: each is asked for in each turn, and the consumer says which.
const MOST_RELATED: usize = 1000;
/// How many objects a page has where all of them are too long for one answer.
const PAGE: usize = 4;

/// A related object, at its origin and at the other end.
pub(super) type Pair = (ObjectName, ObjectName);

/// What belongs to a primary by one of the rules.
pub(super) struct Located<'a> {
    pub(super) related: &'a Related,
    pub(super) ends: [RelatedEnd<'a>; 2],
    pub(super) pairs: Vec<Pair>,
}

impl Located<'_> {
    /// What the primary has of it, if it ends with it.
    pub(super) fn uses(&self) -> Vec<Use> {
        let pairs = self.pairs.iter().filter(|_| self.related.ends_with_primary());
        pairs.flat_map(|pair| used(&self.ends, pair)).collect()
    }
}

/// One end of a related object.
pub(super) struct RelatedEnd<'a> {
    pub(super) side: Side,
    pub(super) server: &'a Rc<Cluster>,
    /// The workspace; empty on the service cluster.
    pub(super) workspace: &'a str,
    pub(super) served: ServedResource,
    /// The turn of large objects.
    pub(super) large: &'a Large<'a>,
}

impl RelatedEnd<'_> {
    pub(super) fn name(&self, namespace: &str, name: &str) -> ObjectName {
        let namespace = if self.served.resource.namespaced { namespace } else { "" };
        ObjectName::in_workspace(self.workspace, namespace, name)
    }

    /// An object there, in words.
    pub(super) fn texts<'n>(&'n self, name: &'n ObjectName) -> [&'n str; 4] {
        let ResourceType { group, resource, .. } = &self.served.resource;
        [group, resource, name.namespace(), &name.name]
    }

    /// An object there, in a few bits.
    pub(super) fn used(&self, name: &ObjectName) -> Use {
        let mut hasher = DefaultHasher::new();
        let ResourceType { group, resource, .. } = &self.served.resource;
        (self.side == Side::Service, group, resource, name).hash(&mut hasher);
        hasher.finish()
    }

    /// Why nothing of an object at this end may go to the other one.
    pub(super) fn is_no_origin(&self, source: &Value) -> Option<&'static str> {
        lifecycle::is_no_origin(source).filter(|_| self.side == Side::Service)
    }

    pub(super) fn stop(&self, doing: &'static str, name: &ObjectName, error: kube_lite::Error) -> Stop {
        let object = format!("{} {name:?}", self.served.resource.kind);
        Stop::of_content(self.side, doing, object, error)
    }

    pub(super) async fn get(&self, name: &ObjectName) -> Result<Option<Value>, Stop> {
        const DOING: &str = "reading a related object";
        match self.server.get(&self.served.resource, name, Content::Full).await {
            Ok(found) => {
                self.large.reads(DOING, &found).await?;
                parsed(&found).map(Some).map_err(|error| self.stop(DOING, name, error))
            }
            Err(error) if error.proves_absent(&name.name) => Ok(None),
            Err(error) => Err(self.stop(DOING, name, error)),
        }
    }
}

impl Pass<'_> {
    /// What belongs to a primary by the rules, as far as that is known, and the first thing that fails.
    pub(super) async fn locate<'r>(
        &'r self,
        object: &Value,
        copy: &Value,
        which: impl Fn(&Related) -> bool,
    ) -> Result<(Vec<Located<'r>>, Option<Stop>), Stop> {
        let both = self.both(object, copy);
        let (mut all, mut failure) = (Vec::new(), None);
        for related in self.route.resource.related.iter().filter(|related| which(related)) {
            let located = async {
                let ends = self.ends(related).await?;
                let pairs = self.pairs(related, &both, &ends).await?;
                Ok(Located { related, ends, pairs })
            };
            all.extend(passed(located.await, &mut failure)?);
        }
        Ok((all, failure))
    }

    fn both<'b>(&'b self, object: &'b Value, copy: &'b Value) -> Both<'b> {
        Both {
            kcp: object,
            service: copy,
            cluster: &self.key.cluster,
            path: self.key.workspace_path.as_deref().unwrap_or_default(),
            now: self.now,
        }
    }

    /// The end of the origin, and the other one.
    pub(super) async fn ends(&self, related: &Related) -> Result<[RelatedEnd<'_>; 2], Stop> {
        let end = async |at: Origin| self.end(at, &related.type_on(at)).await;
        Ok([end(related.origin).await?, end(other(related.origin)).await?])
    }

    /// The end at this side, for a type.
    pub(super) async fn end(&self, at: Origin, type_of: &TypeOf) -> Result<RelatedEnd<'_>, Stop> {
        let (side, server, workspace) = match at {
            Origin::Kcp => (self.primary.shard(), self.shard, self.primary.name.workspace()),
            Origin::Service => (Side::Service, self.service, ""),
        };
        let found = self.known.served((side, server), workspace, type_of).await;
        let found = found.map_err(|error| Stop::of(side, "finding a related type", &type_of.resource, error))?;
        let found = found.ok_or_else(|| unknown(type_of, at))?;
        Ok(RelatedEnd {
            side,
            server,
            workspace,
            served: found,
            large: &self.large,
        })
    }

    /// The names of the objects at both ends, in the order of those at the origin.
    pub(super) async fn pairs(
        &self,
        related: &Related,
        both: &Both<'_>,
        ends: &[RelatedEnd<'_>; 2],
    ) -> Result<Vec<(ObjectName, ObjectName)>, Stop> {
        let wrong = |words: String| self.wrong(related, both, words);
        let [origin, there] = ends;
        let namespaces = match &related.namespace {
            None if !origin.served.resource.namespaced && !there.served.resource.namespaced => {
                vec![Names::default()]
            }
            None => vec![both.own_namespaces(related.origin).map_err(wrong)?],
            Some(locator) => {
                let namespaces = ResourceType::namespaces();
                self.names(related, locator, both, origin, (&namespaces, "")).await?
            }
        };
        let mut pairs = Vec::new();
        for (from, to) in namespaces {
            let of_namespace = (&origin.served.resource, &*from);
            for (name, called) in self.names(related, &related.object, both, origin, of_namespace).await? {
                pairs.push((origin.name(&from, &name), there.name(&to, &called)));
            }
            if pairs.len() > MOST_RELATED {
                return Err(wrong(format!("more than {MOST_RELATED} objects belong to it")));
            }
        }
        pairs.sort();
        let mut taken = BTreeMap::new();
        for (from, to) in &pairs {
            if let Some(other) = taken.insert(to, from).filter(|other| *other != from) {
                return Err(wrong(format!(
                    "both {other:?} and {from:?} would be {to:?} at the other end"
                )));
            }
        }
        Ok(pairs)
    }

    /// The objects do not fit the rule. Nothing that a Secret holds is said.
    fn wrong(&self, related: &Related, both: &Both<'_>, words: String) -> Stop {
        let primaries = [both.kcp, both.service].into_iter();
        let words = primaries.fold(words, |words, object| covered(self.route.local(), &words, object));
        let words = format!("spec.related {:?}: {words}", related.identifier);
        Stop::because("finding related objects", words, CORRECT)
    }

    async fn names(
        &self,
        related: &Related,
        locator: &Locator,
        both: &Both<'_>,
        origin: &RelatedEnd<'_>,
        (resource, namespace): (&ResourceType, &str),
    ) -> Result<Vec<Names>, Stop> {
        let wrong = |words: String| self.wrong(related, both, words);
        let names = match locator {
            Locator::Reference(place) => both.referenced(place, related.origin),
            Locator::Template(template) => both.rendered(template, related.origin),
            Locator::Selector(locator) => {
                let Some(selector) = both.selector(locator).map_err(wrong)? else {
                    return Ok(Vec::new());
                };
                let names = |found: &Value| {
                    let names = rewritten(both, locator, found, resource.is("", "namespaces"));
                    names.map_err(|words| covered(resource, &words, found))
                };
                let found = self.list_related(origin, (resource, namespace), &selector, names);
                found.await?.into_iter().collect::<Result<Vec<_>, _>>()
            }
        };
        let names = names.map_err(wrong)?;
        names.iter().try_for_each(are_names).map_err(wrong)?;
        Ok(names)
    }

    /// What `each` gives of the objects with these labels at one end, of some more than may belong to a primary.
    pub(super) async fn list_related<T>(
        &self,
        at: &RelatedEnd<'_>,
        (resource, namespace): (&ResourceType, &str),
        selector: &Selector,
        each: impl Fn(&Value) -> T,
    ) -> Result<Vec<T>, Stop> {
        const DOING: &str = "listing related objects";
        let mut path = kube_lite::group_version_path(&resource.group, &resource.version);
        if resource.namespaced && !namespace.is_empty() {
            let _ = write!(path, "/namespaces/{}", encoded(namespace));
        }
        let selector = encoded(&selector.to_string());
        let _ = write!(path, "/{}?labelSelector={selector}", resource.resource);
        let (mut all, mut page) = (Vec::new(), String::new());
        loop {
            let path = format!("{path}{page}");
            let answer = if at.workspace.is_empty() {
                at.server.get_path(&path).await
            } else {
                at.server.get_path_in(at.workspace, &path).await
            };
            let stop = |error| Stop::of_content(at.side, DOING, &resource.resource, error);
            let answer = match answer {
                Err(error) if error.is_too_long() && page.is_empty() => {
                    page = format!("&limit={PAGE}");
                    continue;
                }
                answer => answer.map_err(stop)?,
            };
            self.large.reads(DOING, &answer).await?;
            let list = parsed::<Value>(&answer).map_err(stop)?;
            all.extend(list["items"].as_array().into_iter().flatten().map(&each));
            match list["metadata"]["continue"].as_str().filter(|more| !more.is_empty()) {
                Some(more) if all.len() <= MOST_RELATED => page = format!("&limit={PAGE}&continue={}", encoded(more)),
                _ => return Ok(all),
            }
        }
    }
}

/// What a primary has of a pair.
pub(super) fn used([origin, there]: &[RelatedEnd<'_>; 2], (from, to): &Pair) -> [Use; 2] {
    [origin.used(from), there.used(to)]
}

fn rewritten(both: &Both<'_>, locator: &SelectorLocator, found: &Value, is_namespace: bool) -> Result<Names, String> {
    let name = found["metadata"]["name"].as_str().unwrap_or_default();
    let object = if is_namespace { &Value::Null } else { found };
    let names = (name.to_owned(), both.rewritten(locator, name, object)?);
    are_names(&names)?;
    Ok(names)
}

/// Whether these can be names of objects, and parts of a path: consumers write what fields and templates give.
fn are_names((one, other): &Names) -> Result<(), String> {
    let is_one = |name: &&String| is_path_segment(name) && !name.contains(char::is_control);
    match [one, other].into_iter().find(|name| !is_one(name)) {
        Some(name) => Err(format!("{name:?} is no name of an object")),
        None => Ok(()),
    }
}

fn unknown(type_of: &TypeOf, at: Origin) -> Stop {
    let TypeOf {
        group,
        version,
        resource,
    } = type_of;
    let side = at.name();
    let words = format!("the side {side} does not serve {resource} of {group}/{version}");
    let advice =
        "the consumer has to accept the claim for it, and the service cluster to have it; or correct spec.related";
    Stop::because("finding a related type", words, advice)
}

/// As a part of a URL's query.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_part_of_a_query() {
        assert_eq!(encoded("a/b=c,e in (x)"), "a%2Fb%3Dc%2Ce%20in%20%28x%29");
    }

    #[test]
    fn what_is_no_name_is_not_asked_for() {
        let names = |name: &str| are_names(&("a".to_owned(), name.to_owned()));
        for name in ["a", "a.b", "system:x", "a b?c#d", &"n".repeat(253)] {
            assert!(names(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "a/b", "../x", "a%2Fb", "a\r\nb", &"n".repeat(254)] {
            assert!(names(name).is_err(), "{name:?}");
        }
    }
}
