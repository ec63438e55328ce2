//! The PublishedResources, what has become of each, and which routes follow from that.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kube_lite::meta::Meta;

use crate::kinds::{self, PublishedResource};
use crate::rivals::{self, Claimant, May};
use crate::route::{Route, Served, check_rules};

/// A PublishedResource.
struct One {
    resource: Rc<PublishedResource>,
    uid: Rc<str>,
    served: Option<Served>,
    /// It was published as it is, or that has failed.
    is_tried: bool,
    /// An older one has what it wants.
    is_refused: bool,
    /// The number of its route, if it has one.
    route: Option<u32>,
}

/// What becomes of one that was published.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// It has another schema, or other types.
    pub(super) is_news: bool,
    /// The route that ends.
    pub(super) ends: Option<u32>,
    /// The route that begins.
    pub(super) begins: Option<u32>,
    /// No route goes on with the objects of the one that ends.
    pub(super) leaves: bool,
    /// What is wrong with its rules.
    pub(super) wrong: Option<String>,
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
    /// What becomes of its objects.
    pub(super) outcome: Outcome,
}

/// See the module's doc.
#[derive(Default)]
pub(super) struct Published {
    all: BTreeMap<Rc<str>, One>,
    /// Those that cannot be understood, and why. What they were before an edit is still known of some.
    misfits: BTreeMap<Rc<str>, Box<str>>,
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

    /// How many there are, with those that cannot be understood.
    pub(super) fn len(&self) -> usize {
        self.all.len() + self.misfits.keys().filter(|name| !self.all.contains_key(*name)).count()
    }

    pub(super) fn are_read(&self) -> bool {
        self.are_read
    }

    pub(super) fn begin(&mut self) {
        self.unlisted = self.all.keys().chain(self.misfits.keys()).cloned().collect();
    }

    /// One is there.
    pub(super) fn is_there(&mut self, object: &[u8]) -> Result<Change, Misfit> {
        let Ok(meta) = <Meta>::parse(object) else {
            return Ok(Change::Nothing);
        };
        let (name, uid): (Rc<str>, Rc<str>) = (meta.name.as_str().into(), meta.uid.as_str().into());
        self.unlisted.remove(&name);
        let read = serde_json::from_slice(object).map_err(|error| error.to_string());
        let read = read.and_then(|value| kinds::read(&value).map_err(|invalid| invalid.to_string()));
        let resource = match read {
            Ok(resource) => Rc::new(resource),
            Err(words) => {
                let outcome = self.is_misfit(&name, &uid, &words);
                return Err(Misfit {
                    name,
                    uid,
                    words,
                    outcome,
                });
            }
        };
        let was_misfit = self.misfits.remove(&name).is_some();
        if resource.is_deleted {
            return Ok(Change::Left(Rc::clone(&name), self.leave(&name)));
        }
        let schema = resource.schema_name.clone();
        let known = self.all.get_mut(&name).filter(|known| known.uid == uid);
        if let Some(known) = known.filter(|known| is_same(&known.resource, &resource)) {
            let is_ours = match &known.served {
                Some(served) => Some(&*served.schema) == schema.as_deref(),
                None => !known.is_tried || known.resource.schema_name == schema,
            };
            known.resource = resource;
            // Somebody else has written another name into its status, or the first one.
            return Ok(if is_ours && !was_misfit {
                Change::Nothing
            } else {
                Change::Publish(name)
            });
        }
        if let Some(known) = self.all.get_mut(&name) {
            (known.resource, known.uid, known.is_tried) = (resource, uid, false);
        } else {
            let one = One {
                resource,
                uid,
                served: None,
                is_tried: false,
                is_refused: false,
                route: None,
            };
            self.all.insert(Rc::clone(&name), one);
        }
        Ok(Change::Publish(name))
    }

    /// One cannot be understood. Where it was edited, its objects fail from now on, as if a rule were wrong.
    fn is_misfit(&mut self, name: &Rc<str>, uid: &str, words: &str) -> Outcome {
        let known = self.all.get(name).filter(|known| *known.uid == *uid);
        let known = known.map(|known| Rc::clone(&known.resource));
        let ends = if known.is_none() { self.leave(name) } else { None };
        self.misfits.insert(Rc::clone(name), words.into());
        match known {
            Some(known) => self.breaks(name, &known, None, words),
            None => Outcome {
                ends,
                ..Outcome::default()
            },
        }
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
        self.misfits.remove(name);
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

    /// Those that may be published, and those that were: an older one that was edited ends them only when it is published.
    pub(super) fn free(&self) -> Vec<Rc<PublishedResource>> {
        let is_free = |name: &str, may: &May| match may {
            May::Publish => true,
            May::Wait => self.all.get(name).is_some_and(|known| known.served.is_some()),
            May::NotBeside(_) => false,
        };
        let all = self.allowed().into_iter();
        all.filter(|(name, may, _)| is_free(name, may))
            .filter_map(|(name, ..)| self.get(&name))
            .collect()
    }

    /// How it stands with each of them, and whether it was refused so far.
    pub(super) fn allowed(&self) -> Vec<(Rc<str>, May, bool)> {
        let claimants = self.all.values().map(|known| Claimant {
            resource: &known.resource,
            served: known.served.as_ref().filter(|_| known.is_tried),
            is_tried: known.is_tried,
        });
        let found = rivals::allowed(&claimants.collect::<Vec<_>>());
        let all = self.all.iter().zip(found);
        all.map(|((name, known), may)| (Rc::clone(name), may, known.is_refused))
            .collect()
    }

    /// Whether one may be published.
    pub(super) fn may(&self, name: &str) -> May {
        let found = self.allowed().into_iter().find(|(other, ..)| **other == *name);
        found.map_or(May::Publish, |(_, may, _)| may)
    }

    /// An older one has what it wants. Gives its route, which ends.
    pub(super) fn is_refused(&mut self, name: &str) -> Option<u32> {
        let known = self.all.get_mut(name)?;
        (known.is_refused, known.served) = (true, None);
        let ends = known.route.take()?;
        self.routes.remove(&ends);
        Some(ends)
    }

    /// It may be published after all.
    pub(super) fn is_free(&mut self, name: &str) {
        if let Some(known) = self.all.get_mut(name) {
            (known.is_refused, known.is_tried) = (false, false);
        }
    }

    /// This has become of one that was published as `resource`; `writes` says that the agent has made the schema, and not
    /// another one. `None` if it is another one by now, and is to be published again.
    pub(super) fn is_served(
        &mut self,
        name: &str,
        resource: &PublishedResource,
        served: Served,
        writes: bool,
    ) -> Option<Outcome> {
        let known = self.all.get_mut(name)?;
        if !is_same(&known.resource, resource) {
            return None;
        }
        let misfit = self.misfits.get(name).map(ToString::to_string);
        if let Err(words) = misfit.map_or_else(|| check_rules(&known.resource), Err) {
            return Some(self.breaks(name, resource, Some(served), &words));
        }
        // Which schema another one has made, only the status says.
        let served = match known.resource.schema_name.as_deref().filter(|_| !writes) {
            Some(schema) => Served {
                schema: schema.into(),
                ..served
            },
            None => served,
        };
        known.resource = Rc::new(PublishedResource {
            schema_name: Some(served.schema.to_string()),
            ..(*known.resource).clone()
        });
        let is_news = known.served.as_ref() != Some(&served);
        (known.served, known.is_tried) = (Some(served.clone()), true);
        let may_sync = known.resource.is_synced && !matches!(self.may(name), May::NotBeside(_));
        let known = self.all.get_mut(name)?;
        let before = known.route.and_then(|number| self.routes.get(&number));
        let stays = before.is_some_and(|route| {
            route.served == served && is_same(&route.resource, &known.resource) && !route.is_broken
        });
        let mut outcome = Outcome {
            is_news,
            ..Outcome::default()
        };
        if may_sync && stays {
            return Some(outcome);
        }
        // They were read just now.
        let route = Route::new(Rc::clone(&known.resource), served).ok().filter(|_| may_sync);
        self.replace_route(name, route, &mut outcome);
        Some(outcome)
    }

    /// One that was published as `resource` cannot be published for these reasons. If it was edited, or there is no route
    /// yet, its objects fail from now on, but for those that are being deleted: their copies go by what is known of the
    /// types.
    pub(super) fn breaks(
        &mut self,
        name: &str,
        resource: &PublishedResource,
        served: Option<Served>,
        words: &str,
    ) -> Outcome {
        let mut outcome = Outcome {
            wrong: Some(words.to_owned()),
            ..Outcome::default()
        };
        let Some(known) = self
            .all
            .get_mut(name)
            .filter(|known| is_same(&known.resource, resource))
        else {
            return outcome;
        };
        known.is_tried = true;
        let before = known.route.and_then(|number| self.routes.get(&number));
        let was_edited = self.misfits.contains_key(name) && before.is_some_and(|route| !route.is_broken);
        if !was_edited && before.is_some_and(|route| is_same(&route.resource, &known.resource)) {
            return outcome;
        }
        // Without a schema there is no object.
        let is_shown = known.resource.schema_name.is_some() && known.resource.is_synced && !known.is_refused;
        let served = known.served.clone().or(served).filter(|_| is_shown);
        let route = served.and_then(|served| Route::broken(Rc::clone(&known.resource), served, words).ok());
        self.replace_route(name, route, &mut outcome);
        outcome
    }

    /// One that was to be published as `resource` could not be.
    pub(super) fn is_tried(&mut self, name: &str, resource: &PublishedResource) {
        let known = self
            .all
            .get_mut(name)
            .filter(|known| is_same(&known.resource, resource));
        if let Some(known) = known {
            known.is_tried = true;
        }
    }

    /// The route of one ends, and this one begins.
    fn replace_route(&mut self, name: &str, route: Option<Route>, outcome: &mut Outcome) {
        let Some(known) = self.all.get_mut(name) else { return };
        outcome.ends = known.route.take();
        let before = outcome.ends.and_then(|ends| self.routes.remove(&ends));
        let goes_on = |before: &Rc<Route>| route.as_ref().is_some_and(|route| route.remote() == before.remote());
        outcome.leaves = before.as_ref().is_some_and(|before| !goes_on(before));
        if let Some(route) = route {
            known.route = Some(self.next_route);
            self.routes.insert(self.next_route, Rc::new(route));
            self.next_route += 1;
        }
        outcome.begins = known.route;
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
#[path = "published_tests.rs"]
mod tests;
