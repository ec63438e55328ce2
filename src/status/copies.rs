//! Compares what configs select with the copies that there are, object by object, as far as metadata show it.
//!
//! Lists in pages, of metadata alone; of each copy a few numbers are kept until its origin has come.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use kube_lite::read::read_metadata;
use kube_lite::{Cluster, Content, Error, ListRequest, ObjectName, Scope, qualified};

use super::report::{CopyFinding, OfType, OutOfPlace};
use crate::cli;
use crate::plan::{Direction, Filter, Plan, Selection, TypePlan, kept};
use crate::side::Side;
use crate::sync::meta::{Meta, Object};
use crate::sync::object::{Address, Desired, is_left_out};
use crate::sync::own_objects::is_record;
use crate::sync::ownership::{Copy, CopyState, Marked as _, SyncTarget, mark_selector, origin_hash};

/// More objects than that are listed, and not read one by one.
const FEW: usize = 20;
/// Says so often how many objects have been read.
const OFTEN: usize = 1000;

/// Both sides, and what their objects are judged by.
pub(super) struct Bench<'a> {
    pub(super) hub: &'a Rc<Cluster>,
    pub(super) edge: &'a Rc<Cluster>,
    pub(super) we: &'a SyncTarget,
    pub(super) filter: &'a Filter,
    /// What is selected is all that is: any other copy is left over.
    pub(super) is_all: bool,
    /// It is not known what is selected: copies are counted.
    pub(super) counts_only: bool,
}

/// What was found of one type.
#[derive(Default)]
pub(super) struct Found {
    pub(super) counts: OfType,
    pub(super) objects: Vec<OutOfPlace>,
}

/// Says how far it is, once that takes long.
#[derive(Default)]
pub(super) struct Progress {
    read: usize,
}

impl Progress {
    fn one_more(&mut self) {
        self.read += 1;
        if self.read.is_multiple_of(OFTEN) {
            cli::say(&format!("{} objects read so far", self.read));
        }
    }
}

/// An origin that no copy was found for, and where it would be.
struct Absent {
    origin: Address,
    copy: Address,
    selection: Selection,
}

impl Bench<'_> {
    pub(super) fn at(&self, side: Side) -> &Rc<Cluster> {
        match side {
            Side::Hub => self.hub,
            Side::Edge => self.edge,
        }
    }

    /// Compares all types. What cannot be read is given with the side that says so.
    pub(super) async fn compare(&self, plan: &Plan, progress: &mut Progress) -> Vec<Result<Found, (Side, Error)>> {
        let mut all = Vec::new();
        for of in plan.types.values() {
            if !of.selected && !self.is_all {
                continue;
            }
            match self.compare_type(of, progress).await {
                Ok(found) if found.counts.selected + found.counts.copies == 0 => {}
                result => all.push(result),
            }
        }
        all
    }

    async fn compare_type(&self, of: &TypePlan, progress: &mut Progress) -> Result<Found, (Side, Error)> {
        let (origins_at, copies_at) = (of.direction.origin(), of.direction.copy());
        let copies = self.list_copies(of, progress).await;
        let mut copies = copies.map_err(|error| (copies_at, error))?;
        let mut found = Found {
            counts: OfType {
                resource: of.at_origin().qualified(),
                direction: of.direction.to_string(),
                copies: copies.len(),
                ..OfType::default()
            },
            objects: Vec::new(),
        };
        if self.counts_only {
            return Ok(found);
        }
        let mut absent = Vec::new();
        if of.selected && !of.gone_at_origin {
            let matched = self.match_origins(of, &mut copies, &mut found, &mut absent, progress);
            matched.await.map_err(|error| (origins_at, error))?;
        }
        let places = self.find_absent(of, absent, &mut found, progress).await?;
        found.objects.extend(places);
        if self.is_all {
            found.counts.left = copies.len();
            let mut left: Vec<ObjectName> = copies.into_keys().collect();
            left.sort();
            let left = left.iter().map(|name| out_of_place(of, name, CopyFinding::Left));
            found.objects.extend(left);
        }
        found.counts.in_place = found.counts.selected - found.counts.out_of_place;
        Ok(found)
    }

    /// The copies of this sync target.
    async fn list_copies(&self, of: &TypePlan, progress: &mut Progress) -> Result<HashMap<ObjectName, Copy>, Error> {
        let resource = of.at_copy();
        let mut listing = self.at(of.direction.copy()).list(ListRequest {
            label_selector: Some(mark_selector(of.direction).into()),
            ..ListRequest::of_all(resource.clone(), Content::Metadata)
        });
        let mut copies = HashMap::new();
        while let Some(object) = listing.next().await? {
            progress.one_more();
            let meta = Meta::parse(&object)?;
            let copy = Copy::of(of.direction, resource, &meta, self.we);
            if copy.state == CopyState::Ours && is_of(of, &meta) {
                copies.insert(meta.object_name(), copy);
            }
        }
        Ok(copies)
    }

    /// Finds the copy of each origin that is selected, and leaves the copies that have none.
    async fn match_origins(
        &self,
        of: &TypePlan,
        copies: &mut HashMap<ObjectName, Copy>,
        found: &mut Found,
        absent: &mut Vec<Absent>,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        for scope in of.origin_scopes() {
            let mut listing = self.at(of.direction.origin()).list(ListRequest {
                scope,
                field_selector: kept::field_selector(of.at_origin()).map(Into::into),
                ..ListRequest::of_all(of.at_origin().clone(), Content::Metadata)
            });
            while let Some(object) = listing.next().await? {
                progress.one_more();
                let meta = Meta::parse(&object)?;
                let Some((wanted, selection)) = wanted(of, self.filter, &meta) else {
                    continue;
                };
                found.counts.selected += 1;
                let place = if let Some(copy) = copies.remove(&wanted) {
                    place(copy, &meta.uid)
                } else {
                    absent.push(Absent {
                        origin: address(of, of.direction.origin(), meta.object_name()),
                        copy: address(of, of.direction.copy(), wanted),
                        selection,
                    });
                    continue;
                };
                if place != CopyFinding::Right {
                    found.counts.out_of_place += 1;
                    found.objects.push(out_of_place(of, &wanted, place));
                }
            }
        }
        Ok(())
    }

    /// What is in the places of copies that no list of copies has named.
    async fn find_absent(
        &self,
        of: &TypePlan,
        absent: Vec<Absent>,
        found: &mut Found,
        progress: &mut Progress,
    ) -> Result<Vec<OutOfPlace>, (Side, Error)> {
        let side = of.direction.copy();
        let listed = if absent.len() > FEW {
            let listed = self.list_others(of, &absent, progress).await;
            Some(listed.map_err(|error| (side, error))?)
        } else {
            None
        };
        let mut places = Vec::new();
        for Absent {
            origin,
            copy,
            selection,
        } in absent
        {
            let place = if let Some(listed) = &listed {
                listed.get(&copy.name).copied().unwrap_or(CopyFinding::Missing)
            } else {
                let meta = read_metadata(self.at(side), &copy.resource, &copy.name).await;
                let meta: Option<Meta> = meta.map_err(|error| (side, error))?;
                meta.map_or(CopyFinding::Missing, |meta| other(of, &meta, self.we))
            };
            let has_finished =
                place == CopyFinding::Missing && self.has_finished(of, &origin, &copy, selection).await?;
            if has_finished {
                found.counts.selected -= 1;
                continue;
            }
            found.counts.out_of_place += 1;
            places.push(out_of_place(of, &copy.name, place));
        }
        Ok(places)
    }

    /// What is in the places of these, from a list of all that is in their namespaces.
    async fn list_others(
        &self,
        of: &TypePlan,
        absent: &[Absent],
        progress: &mut Progress,
    ) -> Result<HashMap<ObjectName, CopyFinding>, Error> {
        let namespaces: BTreeSet<&str> = absent.iter().map(|absent| absent.copy.name.namespace()).collect();
        let only = namespaces
            .first()
            .filter(|first| namespaces.len() == 1 && !first.is_empty());
        let mut listing = self.at(of.direction.copy()).list(ListRequest {
            scope: Scope {
                namespace: only.map(|only| (*only).into()),
                name: None,
            },
            ..ListRequest::of_all(of.at_copy().clone(), Content::Metadata)
        });
        let names: HashSet<&ObjectName> = absent.iter().map(|absent| &absent.copy.name).collect();
        let mut others = HashMap::new();
        while let Some(object) = listing.next().await? {
            progress.one_more();
            let meta = Meta::parse(&object)?;
            let name = meta.object_name();
            if names.contains(&name) {
                others.insert(name, other(of, &meta, self.we));
            }
        }
        Ok(others)
    }

    /// True for a Job that has finished: its copy may be gone.
    async fn has_finished(
        &self,
        of: &TypePlan,
        origin: &Address,
        copy: &Address,
        selection: Selection,
    ) -> Result<bool, (Side, Error)> {
        if !origin.resource.is("batch", "jobs") {
            return Ok(false);
        }
        let side = of.direction.origin();
        let failed = |error| (side, error);
        match self.at(side).get(&origin.resource, &origin.name, Content::Full).await {
            // It went meanwhile.
            Err(error) if error.proves_absent(&origin.name.name) => Ok(true),
            Err(error) => Err(failed(error)),
            Ok(object) => {
                let parsed = Object::named(&origin.name, object).map_err(failed)?;
                let desired = Desired::from_origin(of.direction, origin, copy, selection, &parsed);
                let desired = desired.map_err(failed)?;
                Ok(desired.is_some_and(|desired| desired.finished))
            }
        }
    }
}

/// A name at a side, with its type there.
pub(super) fn address(of: &TypePlan, side: Side, name: ObjectName) -> Address {
    let resource = if side == of.direction.origin() {
        of.at_origin()
    } else {
        of.at_copy()
    };
    Address {
        resource: resource.clone(),
        name,
    }
}

fn out_of_place(of: &TypePlan, copy: &ObjectName, state: CopyFinding) -> OutOfPlace {
    OutOfPlace {
        object: copy.of_kind(&of.at_copy().kind).to_string(),
        side: of.direction.copy().word(),
        state,
    }
}

/// True if a copy was made from an object of this type, where copies of several types of origins are of one.
fn is_of(of: &TypePlan, meta: &Meta) -> bool {
    let (origin, copy) = (of.at_origin(), of.at_copy());
    match meta.renamed_from() {
        Some((kind, _)) => kind == qualified(&origin.group, &origin.kind),
        None => (&origin.group, &origin.kind) == (&copy.group, &copy.kind),
    }
}

/// The copy that an object is to have, if it is to have one.
pub(super) fn wanted(of: &TypePlan, filter: &Filter, meta: &Meta) -> Option<(ObjectName, Selection)> {
    let origin = meta.object_name();
    let copy = of.named_copy(&origin)?;
    let selection = of.selection(&copy);
    let edge = match of.direction {
        Direction::Down => &copy,
        Direction::Up => &origin,
    };
    let is_refused = filter.refuses(of.direction, &of.at_edge, edge).is_some();
    let origin = address(of, of.direction.origin(), meta.object_name());
    let place = address(of, of.direction.copy(), copy.clone());
    let is_left_out = selection == Selection::None
        || is_refused
        // What the other direction has created is not synced back.
        || meta.is_copy_of(of.direction.other(), &origin.resource.kind)
        || is_record(&of.at_edge, &edge.name)
        || is_left_out(&origin, &place, meta, selection);
    (!is_left_out).then_some((copy, selection))
}

/// What is in the place of a copy, as its marks say it, where the origin has this UID.
pub(super) fn place(copy: Copy, origin: &str) -> CopyFinding {
    let origin = origin_hash(origin);
    match copy.state {
        CopyState::Absent => CopyFinding::Missing,
        CopyState::Foreign => CopyFinding::Foreign,
        CopyState::Anothers => CopyFinding::OfAnotherSyncer,
        CopyState::Ours if copy.terminating => CopyFinding::Terminating,
        CopyState::Ours if copy.origin != 0 && origin != 0 && copy.origin != origin => CopyFinding::OfEarlierOrigin,
        CopyState::Ours => CopyFinding::Right,
    }
}

/// What an object is that no list of copies has named.
fn other(of: &TypePlan, meta: &Meta, we: &SyncTarget) -> CopyFinding {
    match place(Copy::of(of.direction, of.at_copy(), meta, we), "") {
        CopyFinding::Right if !meta.is_labelled(of.direction) => CopyFinding::Unlabelled,
        // It came after the copies were listed.
        place => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_place_of_a_copy_follows_from_its_marks() {
        let ours = Copy {
            state: CopyState::Ours,
            origin: origin_hash("u1"),
            ..Copy::default()
        };
        let of = |state| Copy { state, ..ours };
        for (copy, origin, expected) in [
            (ours, "u1", CopyFinding::Right),
            (ours, "u2", CopyFinding::OfEarlierOrigin),
            // The Go syncer's copies do not say of what they were made, and nor do some servers.
            (Copy { origin: 0, ..ours }, "u2", CopyFinding::Right),
            (ours, "", CopyFinding::Right),
            (
                Copy {
                    terminating: true,
                    ..ours
                },
                "u1",
                CopyFinding::Terminating,
            ),
            (of(CopyState::Absent), "u1", CopyFinding::Missing),
            (of(CopyState::Foreign), "u1", CopyFinding::Foreign),
            (of(CopyState::Anothers), "u1", CopyFinding::OfAnotherSyncer),
        ] {
            assert_eq!(place(copy, origin), expected, "{copy:?} {origin}");
        }
    }
}
