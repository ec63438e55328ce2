//! The end of what belongs to a primary: with it, or when it belongs to it no longer.
//!
//! Promises: what is marked or made for a primary is written down before, beside its state, so that it is let go even when
//! nothing names it any more; what another primary has stays; nothing goes that was not made for this workspace.

use std::collections::BTreeSet;

use bytes::Bytes;
use kube_lite::ObjectName;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::locating::{Located, Pair, RelatedEnd, used};
use super::state::StateKey;
use super::{Pass, delete};
use crate::keys::{BELONGINGS, state_key, state_key_of_kind, state_key_of_pair};
use crate::kinds::{Origin, Related, TypeOf};
use crate::lifecycle::{self, Propagation};
use crate::sides::Side;
use crate::trouble::{Stop, passed};
use crate::turn::{FoundUses, Use};

/// What belongs to a primary, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Belonging {
    origin: Origin,
    from: Named,
    to: Named,
}

/// An object at one side.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Named {
    #[serde(flatten)]
    type_of: TypeOf,
    namespace: String,
    name: String,
}

impl Named {
    fn of(end: &RelatedEnd<'_>, name: &ObjectName) -> Self {
        let resource = &end.served.resource;
        Self {
            type_of: TypeOf {
                group: resource.group.clone(),
                version: resource.version.clone(),
                resource: resource.resource.clone(),
            },
            namespace: name.namespace().to_owned(),
            name: name.name.to_string(),
        }
    }

    /// True for this object, in whichever version.
    fn is(&self, end: &RelatedEnd<'_>, name: &ObjectName) -> bool {
        let TypeOf { group, resource, .. } = &self.type_of;
        end.served.resource.is(group, resource) && self.namespace == name.namespace() && self.name == *name.name
    }
}

impl Belonging {
    fn is(&self, [here, there]: &[RelatedEnd<'_>; 2], (from, to): &Pair) -> bool {
        self.from.is(here, from) && self.to.is(there, to)
    }

    fn of(origin: Origin, [here, there]: &[RelatedEnd<'_>; 2], (from, to): &Pair) -> Self {
        Self {
            origin,
            from: Named::of(here, from),
            to: Named::of(there, to),
        }
    }
}

/// Where it is written down.
fn book() -> StateKey {
    StateKey {
        own: BELONGINGS.to_owned(),
        former: Vec::new(),
        kind: None,
    }
}

/// What is written down, if it can be read.
fn read(text: &Value) -> BTreeSet<Belonging> {
    serde_json::from_value(text["objects"].clone()).unwrap_or_default()
}

/// Where the state of a pair is.
pub(super) fn state_of([origin, there]: &[RelatedEnd<'_>; 2], (from, to): &Pair) -> StateKey {
    let cluster = origin.workspace;
    let kind = &origin.served.resource.kind;
    StateKey {
        own: state_key_of_pair(cluster, [origin.texts(from), there.texts(to)]),
        // That of the Go agent lacks the kind too.
        former: vec![
            state_key_of_kind(cluster, from.namespace(), &from.name, kind),
            state_key(cluster, from.namespace(), &from.name),
        ],
        kind: Some(kind.clone()),
    }
}

impl Pass<'_> {
    /// What is written down of this primary.
    pub(super) async fn written_down(&self) -> Result<BTreeSet<Belonging>, Stop> {
        if let Some(known) = &*self.book.borrow() {
            return Ok(known.clone());
        }
        let found = match self.state(&book()).await? {
            Some(found) => read(&found),
            None => self.written_down_again().await?,
        };
        self.book.replace(Some(found.clone()));
        Ok(found)
    }

    /// What is found again if nothing is written down: at the latest at the end.
    async fn written_down_again(&self) -> Result<BTreeSet<Belonging>, Stop> {
        let was_lost = self.is_known.get() && (self.states.are_missing() || self.is_ending.get());
        if !was_lost {
            return Ok(BTreeSet::new());
        }
        let mut all = BTreeSet::new();
        for (ends, pairs) in &self.labelled().await? {
            all.extend(pairs.iter().map(|pair| Belonging::of(Origin::Kcp, ends, pair)));
        }
        if !all.is_empty() && !self.is_ending.get() {
            self.keep(BELONGINGS, &json!({"objects": all}));
        }
        Ok(all)
    }

    async fn write_book(&self, all: BTreeSet<Belonging>) -> Result<(), Stop> {
        self.keep(BELONGINGS, &json!({"objects": all}));
        self.write_states().await?;
        self.book.replace(Some(all));
        Ok(())
    }

    /// Writes a pair down, if it is not.
    pub(super) async fn write_down(
        &self,
        related: &Related,
        ends: &[RelatedEnd<'_>; 2],
        pair: &Pair,
    ) -> Result<(), Stop> {
        let known = &self.job.turn.uses.known;
        let is_known = used(ends, pair).iter().all(|used| known.contains(used));
        // Somebody may have deleted the Secret.
        if is_known && !self.states.are_missing() {
            return Ok(());
        }
        let mut all = self.written_down().await?;
        if all.insert(Belonging::of(related.origin, ends, pair)) {
            self.write_book(all).await?;
        }
        Ok(())
    }

    /// This is the last state of a pair from now on.
    pub(super) fn keep_related(&self, key: &StateKey, state: &Value) {
        self.drop_related_state(key);
        self.keep(&key.own, state);
    }

    /// The key of the Go agent may be that of the primary too.
    fn drop_related_state(&self, key: &StateKey) {
        for key in [&key.own].into_iter().chain(key.former.first()) {
            self.drop_state(key);
        }
    }

    /// True if there is a state of a pair.
    async fn has_state(&self, ends: &[RelatedEnd<'_>; 2], pair: &Pair) -> Result<bool, Stop> {
        Ok(self.state(&state_of(ends, pair)).await?.is_some())
    }

    /// What belonged to the primary when it last had its turn, and what of it does so no longer, if it is known what does.
    pub(super) fn known_uses(&self, current: Option<&BTreeSet<Use>>) -> FoundUses {
        let all = self.job.turn.uses.known.clone();
        let left = current.map(|current| all.difference(current).copied().collect());
        FoundUses {
            all,
            left: left.unwrap_or_default(),
        }
    }

    /// Lets go what is written down and does not belong to the primary any more: objects of the consumer, which nobody else
    /// would let go. Gives what is not gone yet.
    pub(super) async fn let_go(&self, current: &BTreeSet<Use>) -> Result<FoundUses, Stop> {
        let own = &self.job.turn.uses;
        if own.is_known && own.known.is_subset(current) {
            return Ok(FoundUses::default());
        }
        let (mut all, mut left) = (self.written_down().await?, Vec::new());
        for one in all.iter().filter(|one| one.origin == Origin::Kcp) {
            // Those of a type that is not served any more are out of reach.
            let Some((ends, pair)) = self.place_of(one).await? else {
                continue;
            };
            if !used(&ends, &pair).iter().all(|used| current.contains(used)) {
                left.push((one.clone(), ends, pair));
            }
        }
        let mut found = FoundUses::default();
        found
            .all
            .extend(left.iter().flat_map(|(_, ends, pair)| used(ends, pair)));
        let leaves = !found.all.is_empty();
        if leaves && !(own.is_known && found.all.is_subset(&own.known)) {
            // Whether others have it too is known at the next turn.
            found.all.extend(&own.known);
            found.left = found.all.difference(current).copied().collect();
            self.uses.replace(Some(found));
            return Err(Stop::again("letting go what does not belong to the object any more"));
        }
        let (mut rest, mut failure) = (FoundUses::default(), None);
        for (one, ends, pair) in left {
            let is_over = own.are_all_known
                && passed(self.end_related(&ends, &pair, current).await, &mut failure)?.unwrap_or(false);
            if is_over {
                self.drop_related_state(&state_of(&ends, &pair));
                all.remove(&one);
            } else {
                rest.all.extend(used(&ends, &pair));
            }
        }
        if leaves {
            self.write_book(all).await?;
        }
        rest.left = rest.all.difference(current).copied().collect();
        // Its end is no news to anybody.
        self.waits.set(self.waits.get() || !rest.all.is_empty());
        failure.map_or(Ok(rest), Err)
    }

    /// Where something is that is written down; `None` if one of its types is not served.
    async fn place_of(&self, one: &Belonging) -> Result<Option<([RelatedEnd<'_>; 2], Pair)>, Stop> {
        let other = crate::related::other(one.origin);
        let ends = async {
            let from = self.end(one.origin, &one.from.type_of).await?;
            Ok([from, self.end(other, &one.to.type_of).await?])
        };
        let ends: [RelatedEnd<'_>; 2] = match ends.await {
            Err(stop @ Stop::Fails(_)) if stop.is_of_rules() => return Ok(None),
            other => other?,
        };
        let name = |end: &RelatedEnd<'_>, named: &Named| end.name(&named.namespace, &named.name);
        let pair = (name(&ends[0], &one.from), name(&ends[1], &one.to));
        Ok(Some((ends, pair)))
    }

    /// Whether something ends with it, by the rules of now or of before.
    pub(super) async fn has_related(&self) -> Result<bool, Stop> {
        let by_rules = self.route.resource.related.iter().any(Related::ends_with_primary);
        Ok(by_rules || !self.written_down().await?.is_empty())
    }

    /// Takes away what goes with the primary, and no other primary has. True if all of it is gone.
    pub(super) async fn clean_up(&self, object: &Value, copy: &Value) -> Result<bool, Stop> {
        let (located, failure) = self.locate(object, copy, Related::ends_with_primary).await?;
        // What the rules do not name any more, or is out of reach, is written down.
        let mut failure = failure.filter(|stop| !stop.is_of_rules() && !stop.is_denied());
        let mut all = Vec::new();
        let mut uses: BTreeSet<Use> = located.iter().flat_map(Located::uses).collect();
        for one in &self.written_down().await? {
            let place = self.place_of(one).await;
            let Some((ends, pair)) = passed(place, &mut failure)?.flatten() else {
                continue;
            };
            let is_new = !used(&ends, &pair).iter().all(|used| uses.contains(used));
            if is_new {
                all.push((ends, vec![pair]));
            }
        }
        uses.extend(
            all.iter()
                .flat_map(|(ends, pairs)| pairs.iter().flat_map(|pair| used(ends, pair))),
        );
        all.extend(located.into_iter().map(|located| (located.ends, located.pairs)));
        if uses.is_empty() {
            return failure.map_or(Ok(true), Err);
        }
        let own = &self.job.turn.uses;
        let is_known = own.is_known && uses.is_subset(&own.known);
        self.uses.replace(Some(FoundUses {
            all: uses,
            ..FoundUses::default()
        }));
        if !is_known {
            // Whether others have it too is known at the next turn.
            return Err(Stop::again("cleaning up related objects"));
        }
        if !own.are_all_known {
            return Ok(false);
        }
        let mut is_gone = true;
        for (ends, pairs) in &all {
            for pair in pairs {
                let is_over = self.end_related(ends, pair, &BTreeSet::new()).await;
                is_gone &= passed(is_over, &mut failure)?.unwrap_or(false);
            }
        }
        failure.map_or(Ok(is_gone), Err)
    }

    /// The object at the other end goes, and then our finalizer at the origin, but for what is to stay. True if both are
    /// gone, or stay since another primary has them.
    async fn end_related(&self, ends: &[RelatedEnd<'_>; 2], pair: &Pair, stays: &BTreeSet<Use>) -> Result<bool, Stop> {
        match self.try_to_end(ends, pair, stays).await {
            // What the agent could never read or write has never come to the other end.
            Err(stop) if stop.is_denied() && !self.was_synced(ends, pair).await? => Ok(true),
            ended => ended,
        }
    }

    async fn try_to_end(&self, ends: &[RelatedEnd<'_>; 2], pair: &Pair, stays: &BTreeSet<Use>) -> Result<bool, Stop> {
        let (from, to) = pair;
        let source = ends[0].get(from).await?;
        // Names come from both sides: one that was never synced is somebody else's, whatever names it.
        if source
            .as_ref()
            .is_some_and(|source| ends[0].is_no_origin(source).is_some())
        {
            return Ok(true);
        }
        let is_marked = source.as_ref().is_some_and(lifecycle::has_finalizer);
        if !is_marked && !self.has_state(ends, pair).await? {
            return Ok(true);
        }
        match source {
            Some(source) => self.end_related_of(&source, ends, pair, stays).await,
            None if self.is_kept(&ends[1], to, stays) => Ok(true),
            None => self.delete_related(ends, pair).await,
        }
    }

    /// True if something of a pair was made or marked: then it is written down, or there is a state.
    async fn was_synced(&self, ends: &[RelatedEnd<'_>; 2], pair: &Pair) -> Result<bool, Stop> {
        let is_written = self.written_down().await?.iter().any(|one| one.is(ends, pair));
        Ok(is_written || self.has_state(ends, pair).await?)
    }

    /// Another primary has this too.
    pub(super) fn is_shared(&self, end: &RelatedEnd<'_>, name: &ObjectName) -> bool {
        self.job.turn.uses.shared.contains(&end.used(name))
    }

    /// Another primary has this too, or it is to stay.
    fn is_kept(&self, end: &RelatedEnd<'_>, name: &ObjectName, stays: &BTreeSet<Use>) -> bool {
        self.is_shared(end, name) || stays.contains(&end.used(name))
    }

    pub(super) async fn end_related_of(
        &self,
        source: &Value,
        ends: &[RelatedEnd<'_>; 2],
        pair: &Pair,
        stays: &BTreeSet<Use>,
    ) -> Result<bool, Stop> {
        let ([origin, there], (from, to)) = (ends, pair);
        if !self.is_kept(there, to, stays) && !self.delete_related(ends, pair).await? {
            return Ok(false);
        }
        let is_ours = origin.side != Side::Service && !self.is_kept(origin, from, stays);
        let patch = lifecycle::remove_finalizer(source).filter(|_| is_ours);
        if let Some(patch) = patch {
            let body = Bytes::from(patch.to_string());
            match origin.server.merge_patch(&origin.served.resource, from, body).await {
                Ok(_) => {}
                Err(error) if error.proves_absent(&from.name) => {}
                Err(error) => return Err(origin.stop("removing the finalizer from", from, error)),
            }
        }
        Ok(true)
    }

    /// True if the object at the other end is gone, or none of ours.
    async fn delete_related(&self, ends: &[RelatedEnd<'_>; 2], pair @ (_, to): &Pair) -> Result<bool, Stop> {
        let there = &ends[1];
        if let Some(found) = there.get(to).await? {
            if self.is_foreign(&found, ends, pair).await?.is_some() {
                return Ok(true);
            }
            if !lifecycle::is_in_deletion(&found) {
                let resource = &there.served.resource;
                let deleted = delete(there.server, resource, to, &found, Propagation::Background).await;
                deleted.map_err(|error| there.stop("deleting a related object", to, error))?;
            }
            if there.get(to).await?.is_some() {
                return Ok(false);
            }
        }
        if there.side == Side::Service {
            self.left.borrow_mut().insert(to.namespace().into());
        }
        Ok(true)
    }

    /// Why an object at the other end is not what has come there from this origin, with this primary or another one.
    pub(super) async fn is_foreign(
        &self,
        found: &Value,
        ends: &[RelatedEnd<'_>; 2],
        pair @ (from, to): &Pair,
    ) -> Result<Option<&'static str>, Stop> {
        let [origin, there] = ends;
        let (cluster, agent) = (&self.key.cluster, &self.job.agent);
        let why = |is_known| match there.side {
            Side::Service => lifecycle::belongs_to_another(found, cluster, agent, is_known),
            _ => lifecycle::is_of_consumer(found, is_known),
        };
        if why(false).is_some() {
            return Ok(why(self.has_state(ends, pair).await?));
        }
        let of = lifecycle::origin_of(found).filter(|_| there.side == Side::Service);
        let Some((namespace, name)) = of.filter(|of| *of != (from.namespace(), &*from.name)) else {
            return Ok(None);
        };
        // The primary may name another object than before, whose copy has the same name.
        let former = (origin.name(namespace, name), to.clone());
        let was_ours = self.has_state(ends, &former).await?;
        Ok((!was_ours).then_some("it belongs to another object of the workspace"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_again_and_anything_else_is_nothing() {
        let named = |name: &str| Named {
            type_of: TypeOf {
                group: String::new(),
                version: "v1".to_owned(),
                resource: "secrets".to_owned(),
            },
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let all = BTreeSet::from([Belonging {
            origin: Origin::Kcp,
            from: named("a"),
            to: named("b"),
        }]);
        let text = json!({"objects": all});
        let secret = |name: &str| json!({"group": "", "version": "v1", "resource": "secrets", "namespace": "shop", "name": name});
        assert_eq!(
            text["objects"],
            json!([{"origin": "kcp", "from": secret("a"), "to": secret("b")}])
        );
        assert_eq!(read(&text), all);
        for other in [json!({}), json!({"objects": 1}), json!({"objects": [{"origin": "x"}]})] {
            assert_eq!(read(&other), BTreeSet::new(), "{other}");
        }
    }
}
