//! The PublishedResources, what has become of each, and which routes follow from that.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kube_lite::meta::Meta;

use crate::kinds::{self, PublishedResource};
use crate::route::{Route, Served};

/// A PublishedResource.
struct One {
    resource: Rc<PublishedResource>,
    uid: Rc<str>,
    served: Option<Served>,
    /// The number of its route, if it has one.
    route: Option<u32>,
}

/// What a change means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    Nothing,
    /// It is to be published.
    Publish(Rc<str>),
    /// It is not there any more, nor this route.
    Left(Rc<str>, Option<u32>),
}

/// One that cannot be understood.
pub(super) struct Misfit {
    pub(super) name: Rc<str>,
    pub(super) uid: Rc<str>,
    pub(super) words: String,
    pub(super) left: Option<u32>,
}

/// See the module's doc.
#[derive(Default)]
pub(super) struct Published {
    all: BTreeMap<Rc<str>, One>,
    routes: BTreeMap<u32, Rc<Route>>,
    next_route: u32,
    unlisted: BTreeSet<Rc<str>>,
    are_read: bool,
}

impl Published {
    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = Rc<str>> {
        self.all.keys().cloned()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn are_read(&self) -> bool {
        self.are_read
    }

    pub(super) fn begin(&mut self) {
        self.unlisted = self.all.keys().cloned().collect();
    }

    /// One is there.
    pub(super) fn is_there(&mut self, object: &[u8]) -> Result<Change, Misfit> {
        let Ok(meta) = <Meta>::parse(object) else {
            return Ok(Change::Nothing);
        };
        let (name, uid): (Rc<str>, Rc<str>) = (meta.name.as_str().into(), meta.uid.as_str().into());
        self.unlisted.remove(&name);
        let misfit = |words: String, left| Misfit {
            name: Rc::clone(&name),
            uid: Rc::clone(&uid),
            words,
            left,
        };
        let value = match serde_json::from_slice(object) {
            Ok(value) => value,
            Err(error) => return Err(misfit(error.to_string(), self.leave(&name))),
        };
        let resource = match kinds::read(&value) {
            Ok(resource) => Rc::new(resource),
            Err(invalid) => return Err(misfit(invalid.to_string(), self.leave(&name))),
        };
        if resource.is_deleted {
            return Ok(Change::Left(Rc::clone(&name), self.leave(&name)));
        }
        let schema = resource.schema_name.clone();
        let known = self.all.get_mut(&name).filter(|known| known.uid == uid);
        if let Some(known) = known.filter(|known| is_same(&known.resource, &resource)) {
            let is_ours = known
                .served
                .as_ref()
                .is_none_or(|served| Some(&*served.schema) == schema.as_deref());
            known.resource = resource;
            // Somebody else has written another name into its status.
            return Ok(if is_ours {
                Change::Nothing
            } else {
                Change::Publish(name)
            });
        }
        if let Some(known) = self.all.get_mut(&name) {
            (known.resource, known.uid) = (resource, uid);
        } else {
            let one = One {
                resource,
                uid,
                served: None,
                route: None,
            };
            self.all.insert(Rc::clone(&name), one);
        }
        Ok(Change::Publish(name))
    }

    /// One is gone, or has other labels now.
    pub(super) fn is_gone(&mut self, object: &[u8]) -> Change {
        let Ok(meta) = <Meta>::parse(object) else {
            return Change::Nothing;
        };
        let name: Rc<str> = meta.name.as_str().into();
        Change::Left(Rc::clone(&name), self.leave(&name))
    }

    /// The list is complete: what it does not name is gone.
    pub(super) fn is_complete(&mut self) -> Vec<Change> {
        self.are_read = true;
        let gone = std::mem::take(&mut self.unlisted);
        let left = gone.into_iter().map(|name| {
            let route = self.leave(&name);
            Change::Left(name, route)
        });
        left.collect()
    }

    fn leave(&mut self, name: &str) -> Option<u32> {
        let route = self.all.remove(name)?.route?;
        self.routes.remove(&route);
        Some(route)
    }

    /// Those whose type is of this group.
    pub(super) fn of_group(&self, group: &str) -> Vec<Rc<str>> {
        let of_group = self
            .all
            .iter()
            .filter(|(_, known)| known.resource.source.group == group);
        of_group.map(|(name, _)| Rc::clone(name)).collect()
    }

    pub(super) fn get(&self, name: &str) -> Option<Rc<PublishedResource>> {
        self.all.get(name).map(|known| Rc::clone(&known.resource))
    }

    /// Its UID.
    pub(super) fn uid(&self, name: &str) -> Rc<str> {
        self.all
            .get(name)
            .map(|known| Rc::clone(&known.uid))
            .unwrap_or_default()
    }

    /// All of them, and what has become of them.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Rc<PublishedResource>, Option<&Served>)> {
        self.all.values().map(|known| (&known.resource, known.served.as_ref()))
    }

    /// This has become of one that was published as `resource`. Gives whether that is news, and the route that ends and the
    /// one that begins, if they are not the same; `None` if it is another one by now, and is to be published again.
    pub(super) fn is_served(
        &mut self,
        name: &str,
        resource: &PublishedResource,
        served: Served,
    ) -> Option<(bool, [Option<u32>; 2])> {
        let known = self.all.get_mut(name)?;
        if !is_same(&known.resource, resource) {
            return None;
        }
        let before = known.route.and_then(|number| self.routes.get(&number));
        let is_synced = known.resource.is_synced;
        let stays = before.is_some_and(|route| route.served == served && is_same(&route.resource, &known.resource));
        known.resource = Rc::new(PublishedResource {
            schema_name: Some(served.schema.to_string()),
            ..(*known.resource).clone()
        });
        let is_news = known.served.as_ref() != Some(&served);
        known.served = Some(served.clone());
        if is_synced && stays {
            return Some((is_news, [None, None]));
        }
        let ends = known.route.take();
        if let Some(ends) = ends {
            self.routes.remove(&ends);
        }
        if !is_synced {
            return Some((is_news, [ends, None]));
        }
        let number = self.next_route;
        self.next_route += 1;
        // They were read when the schema was made.
        let Ok(route) = Route::new(Rc::clone(&known.resource), served) else {
            return Some((is_news, [ends, None]));
        };
        self.routes.insert(number, Rc::new(route));
        known.route = Some(number);
        Some((is_news, [ends, Some(number)]))
    }

    pub(super) fn route(&self, number: u32) -> Option<&Rc<Route>> {
        self.routes.get(&number)
    }

    pub(super) fn routes(&self) -> impl Iterator<Item = (u32, &Rc<Route>)> {
        self.routes.iter().map(|(number, route)| (*number, route))
    }
}

/// True if the same is wanted: all is equal but the name of the schema, which the agent writes.
fn is_same(one: &PublishedResource, other: &PublishedResource) -> bool {
    let other = PublishedResource {
        schema_name: one.schema_name.clone(),
        ..other.clone()
    };
    *one == other
}

#[cfg(test)]
mod tests {
    use kube_lite::ResourceType;
    use serde_json::{Value, json};

    use super::*;

    fn object(uid: &str, spec: &Value) -> Vec<u8> {
        let mut spec = spec.clone();
        spec["resource"] = json!({"apiGroup": "demo.example.org", "kind": "Shop"});
        json!({"metadata": {"name": "shops", "uid": uid}, "spec": spec})
            .to_string()
            .into_bytes()
    }

    fn served(schema: &str) -> Served {
        let shops = ResourceType::new(["demo.example.org", "v1", "shops", "Shop"], true);
        Served {
            schema: schema.into(),
            remote: shops.clone(),
            local: shops,
            other_versions: Rc::default(),
            has_status: [true, true],
        }
    }

    #[test]
    fn an_edit_ends_one_route_and_begins_another() {
        let mut published = Published::default();
        let publish = Change::Publish("shops".into());
        assert_eq!(published.is_there(&object("1", &json!({}))).ok(), Some(publish));
        let first = published.get("shops").unwrap();
        assert_eq!(
            published.is_served("shops", &first, served("a")),
            Some((true, [None, Some(0)]))
        );
        // The same once more, as after a restart of a watch.
        assert_eq!(
            published.is_served("shops", &first, served("a")),
            Some((false, [None, None]))
        );
        let edited = object("1", &json!({"naming": {"name": "x"}}));
        assert!(matches!(published.is_there(&edited), Ok(Change::Publish(_))));
        // The answer is about what it was before.
        assert_eq!(published.is_served("shops", &first, served("a")), None);
        let second = published.get("shops").unwrap();
        assert_eq!(
            published.is_served("shops", &second, served("a")),
            Some((false, [Some(0), Some(1)]))
        );
        assert_eq!(published.routes().map(|(number, _)| number).collect::<Vec<_>>(), [1]);
        let off = object("1", &json!({"synchronization": {"enabled": false}}));
        assert!(matches!(published.is_there(&off), Ok(Change::Publish(_))));
        let third = published.get("shops").unwrap();
        assert_eq!(
            published.is_served("shops", &third, served("a")),
            Some((false, [Some(1), None]))
        );
    }

    #[test]
    fn one_that_is_gone_or_wrong_leaves_with_its_route() {
        let mut published = Published::default();
        let begin = |published: &mut Published| {
            assert!(published.is_there(&object("1", &json!({}))).is_ok());
            let resource = published.get("shops").unwrap();
            published.is_served("shops", &resource, served("a")).unwrap().1[1]
        };
        let route = begin(&mut published);
        assert_eq!(
            published.is_gone(&object("1", &json!({}))),
            Change::Left("shops".into(), route)
        );
        let route = begin(&mut published);
        let misfit = published
            .is_there(&object("1", &json!({"projection": {"scope": "Any"}})))
            .err()
            .unwrap();
        assert_eq!(misfit.left, route);
        assert!(misfit.words.contains("spec.projection.scope"), "{}", misfit.words);
        let route = begin(&mut published);
        published.begin();
        assert_eq!(published.is_complete(), [Change::Left("shops".into(), route)]);
        assert!(published.are_read());
    }
}
