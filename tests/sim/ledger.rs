//! The checker's own record of a run: what each side ever held, what the syncer was shown, what it did; and the promises
//! that are checked the moment something happens.
//!
//! Nothing here knows the syncer's state. The truth is what the stores held.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::Value;
use tokio::time::Instant;

use super::choices::Choices;
use super::converged;
use super::conversions::origin_of;
use super::fields::owns_replicas;
use super::flows::{DOWNSYNC, FLOWS, Flow, SYNC_TARGET, UPSYNC, is_another_targets, origin_uid};
use super::history::History;
use super::places::rest;
use super::request::{Ask, Verb};
use super::seen::Seen;
use super::store::{Change, Key, Store};
use super::taken::Taken;
use super::trace::Trace;
use super::types::Type;

/// How old a proof of absence may be when the delete that rests on it takes effect. Between them are a look at the copy,
/// a list by name and the two questions who the side is: six requests of at most 80 ms each, since one that takes longer
/// here is never answered; and a second in which that question may wait for one under way. Counted on the syncer's clock,
/// which stands still when the machine is suspended.
pub(super) const PROOF_AGE: Duration = Duration::from_millis(1480);

/// How long a side has to say that it does not serve a type before it counts: ten times, or three, three seconds apart or more.
const TEN_ROUNDS: Duration = Duration::from_secs(27);
const THREE_ROUNDS: Duration = Duration::from_secs(6);

/// Namespaces that upsync may have at the hub.
const HUB_NAMESPACES: usize = 5;
/// Requests for Events at once: one at each side.
const EVENTS: usize = 2;

/// Requests in a run. One that has more is in a loop.
const MOST_REQUESTS: u64 = 60_000;

/// Names of edge objects that have nothing to do with the hub.
pub const BYSTANDER: &str = "bystander";

/// Names of objects of which there are many.
pub const MASS: &str = "many";
/// So many may go at any time. More, and more than half of all copies, are a mass.
pub const MOST: usize = 20;

/// The one object that the syncer writes for itself.
pub const RECORD: &str = "edge-syncer-types-this-one";
/// Who holds it syncs.
pub const LEASE: &str = "edge-syncer-this-one";
/// How long after another one holds it a syncer may still write: until it stops by itself, and what is on its way arrives.
const LEASE_LOST: Duration = Duration::from_secs(40);

/// With what the field manager of status return begins.
const STATUS_MANAGER: &str = "edge-syncer-status";

/// A write of the syncer that has taken effect.
pub struct Write<'a> {
    /// Which syncer.
    pub process: u32,
    /// Where.
    pub side: Side,
    /// What it asked for.
    pub ask: &'a Ask,
    /// The type of the object.
    pub ty: &'a Type,
    /// What it was.
    pub before: Option<&'a Value>,
    /// What it is.
    pub after: Option<&'a Value>,
    /// The origins' side serves the type.
    pub origin_type_served: bool,
    /// For how long it has not, though it keeps the objects.
    pub origin_type_hidden: Option<Duration>,
    /// What a delete deletes too, and is not itself to be deleted.
    pub takes: &'a [Key],
    /// Types that this side does not serve for now.
    pub hidden: &'a BTreeMap<String, Instant>,
}

/// What a request about one object is for, as far as it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Errand {
    /// Syncing an object.
    Object,
    /// The record of types.
    Record,
    /// The Lease of who syncs.
    Lease,
    /// Who a side is, or what defines a type there.
    Identity,
    /// The heartbeat on a config, or a look at it.
    Heartbeat,
    /// A namespace at the hub, which may be an object like others, or one that upsync makes and clears away.
    HubNamespace,
}

impl Errand {
    /// `None` for a request about a whole collection.
    pub fn of(side: Side, ask: &Ask) -> Option<Self> {
        let target = &ask.target;
        Some(match &*target.name {
            "" => return None,
            RECORD => Self::Record,
            LEASE => Self::Lease,
            "kube-system" | "default" if target.resource == "namespaces" => Self::Identity,
            _ if ask.verb == Verb::Get
                && ["customresourcedefinitions", "logicalclusters"].contains(&&*target.resource) =>
            {
                Self::Identity
            }
            _ if converged::is_config(&key_of(ask)) => Self::Heartbeat,
            _ if side == Side::Hub && target.resource == "namespaces" => Self::HubNamespace,
            _ => Self::Object,
        })
    }
}

/// A mass of deletes that is to be held.
pub struct Mass {
    /// Until when.
    pub until: Instant,
    /// The side at which they were deleted.
    pub at: Side,
    /// How many of them have gone at the other side.
    pub gone: usize,
    /// How many copies have gone there since.
    pub all_gone: usize,
}

/// How many requests there were, by side and verb; the pages of a list are one.
pub type Counts = BTreeMap<(Side, Verb), u64>;

/// An origin that an accident took.
pub struct Lost {
    /// Its UID.
    pub uid: String,
    /// What took it.
    pub why: &'static str,
}

/// See the module's doc.
pub struct Ledger {
    /// What happened.
    pub trace: Trace,
    /// Promises that were broken, with the objects they are about.
    pub broken: Vec<(String, Vec<String>)>,
    requests: u64,
    /// Requests that the run may have.
    pub most_requests: u64,
    /// Requests so far, by side and verb.
    pub counts: Counts,
    /// Requests about one object so far.
    pub about: BTreeMap<Key, u64>,
    /// Those of them that a fault has kept from the server.
    pub spoiled: BTreeMap<Key, u64>,
    /// Requests about the objects of a type so far.
    types: BTreeMap<(Side, String), u64>,
    /// Time that the machine was suspended.
    pub suspended: Duration,
    start: Instant,
    /// Since when each object exists, or since when it does not, on the syncer's clock.
    pub(super) existence: BTreeMap<(Side, Key), (Duration, bool)>,
    /// When a side has begun to serve a type.
    came_back: BTreeMap<(Side, String), Duration>,
    /// When a side has begun to serve a type again that it had hidden, and how long that was before.
    shown: BTreeMap<(Side, String), (Duration, Duration)>,
    /// What the sides have shown each process.
    pub(super) seen: Seen,
    /// What any config ever asked for.
    pub history: History,
    /// Origins that an accident took, whose copies are to stay until people confirm that they may go.
    pub lost: BTreeMap<(Side, Key), Lost>,
    /// Origins that went with their type.
    pub taken: Taken,
    /// What a backup has brought back.
    pub revived: BTreeSet<(Side, Key)>,
    /// Who holds the Lease at the edge, and since when, on the syncer's clock.
    leader: Option<(String, Duration)>,
    /// Deletes that are to be held.
    pub mass: Option<Mass>,
    /// UIDs of objects that others have made in the place of copies.
    pub theirs: BTreeSet<String>,
    /// Since when copies are another sync target's, on the syncer's clock.
    anothers: BTreeMap<(Side, Key), Duration>,
    /// How long after that they may still be overwritten, by who has not heard of it; for ever where that is not judged.
    pub overwrites: Duration,
    /// Objects of the hub of which somebody there has ever said how many replicas they are to have.
    scaled: BTreeSet<Key>,
    /// The copies at each side.
    copies: BTreeSet<(Side, Key)>,
    /// What the edge's owner has chosen.
    pub choices: Choices,
    /// Lists may lie, so that a namespace looks empty that is not.
    pub lists_lie: bool,
    /// How old what a side shows may be.
    pub staleness: Duration,
    /// Configs are marked with the time.
    pub heartbeat: bool,
    /// Requests about one object that are under way, by process.
    in_flight: BTreeMap<(u32, Errand), usize>,
    /// How many objects a process may sync at once.
    pub workers: usize,
    /// How many it may read besides: sources that poll read what has changed.
    pub readers: usize,
}

/// What a syncer is called as a candidate for the Lease.
pub fn candidate(process: u32) -> String {
    format!("p{process}")
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self {
            trace: Trace::new(),
            broken: Vec::new(),
            requests: 0,
            most_requests: MOST_REQUESTS,
            counts: Counts::new(),
            about: BTreeMap::new(),
            spoiled: BTreeMap::new(),
            types: BTreeMap::new(),
            suspended: Duration::ZERO,
            start: Instant::now(),
            existence: BTreeMap::new(),
            came_back: BTreeMap::new(),
            shown: BTreeMap::new(),
            seen: Seen::default(),
            history: History::default(),
            lost: BTreeMap::new(),
            taken: Taken::default(),
            revived: BTreeSet::new(),
            leader: None,
            mass: None,
            theirs: BTreeSet::new(),
            anothers: BTreeMap::new(),
            overwrites: Duration::MAX,
            scaled: BTreeSet::new(),
            copies: BTreeSet::new(),
            choices: Choices::default(),
            lists_lie: false,
            staleness: Duration::ZERO,
            heartbeat: false,
            in_flight: BTreeMap::new(),
            workers: usize::MAX / 2,
            readers: 0,
        }
    }

    /// The syncer's clock.
    pub(super) fn clock(&self) -> Duration {
        self.start.elapsed().saturating_sub(self.suspended)
    }

    /// A promise is broken.
    pub fn break_promise(&mut self, what: String, about: &[&Key]) {
        self.trace.add(format!("BROKEN: {what}"));
        let about = about
            .iter()
            .map(|key| format!("{}/{}", key.namespace, key.name))
            .collect();
        self.broken.push((what, about));
    }

    /// A request begins. False if there have been so many that the run has to end.
    pub fn begins(&mut self, process: u32, side: Side, ask: &Ask) -> bool {
        self.requests += 1;
        let most = self.most_requests;
        if self.requests > most {
            if self.requests == most + 1 {
                let about = if ask.target.name.is_empty() {
                    None
                } else {
                    Some(key_of(ask))
                };
                self.break_promise(
                    format!("more than {most} requests, now {ask}"),
                    about.as_ref().as_slice(),
                );
            }
            return false;
        }
        self.note_request(process, side, ask);
        true
    }

    /// A fault keeps a request from the server, or its answer from the syncer.
    pub fn is_spoiled(&mut self, ask: &Ask) {
        *self.spoiled.entry(key_of(ask)).or_default() += 1;
    }

    fn note_request(&mut self, process: u32, side: Side, ask: &Ask) {
        if ask.asked("continue").is_empty() {
            *self.counts.entry((side, ask.verb)).or_default() += 1;
        }
        *self.types.entry((side, ask.target.qualified())).or_default() += 1;
        let Some(errand) = Errand::of(side, ask) else {
            return;
        };
        *self.about.entry(key_of(ask)).or_default() += 1;
        *self.in_flight.entry((process, errand)).or_default() += 1;
        let of = |errand| self.in_flight.get(&(process, errand)).copied().unwrap_or_default();
        let workers = self.workers + self.readers;
        // A worker may ask who a side is, beside the three questions of the engine; and there are as many namespaces at
        // the hub for upsync to make and to clear away as have names. Events are written by no worker: at each side one
        // after another, with a look at what each is about.
        let (objects, asked) = (of(Errand::Object), of(Errand::Identity));
        let namespaces = of(Errand::HubNamespace);
        let too_many = match errand {
            // Whoever polls reads what has changed too, of each kind of configs by itself.
            Errand::Heartbeat => of(errand) > if self.readers > 0 { 3 } else { 2 },
            Errand::Record | Errand::Lease => of(errand) > 2,
            Errand::Object | Errand::Identity => objects + asked.saturating_sub(3) > workers + EVENTS,
            Errand::HubNamespace => namespaces > workers + HUB_NAMESPACES,
        };
        if too_many {
            self.break_promise(format!("{} requests like {ask} in flight", of(errand)), &[]);
        }
    }

    /// A request is over, answered or not.
    pub fn ends(&mut self, process: u32, errand: Errand) {
        if let Some(in_flight) = self.in_flight.get_mut(&(process, errand)) {
            *in_flight -= 1;
        }
    }

    /// A side has changed.
    pub fn changed(&mut self, side: Side, change: &Change) {
        if side == Side::Hub && converged::is_config(&change.key) {
            let names = self.history.config_is(&change.key, change.after.as_deref());
            if let Some(names) = names {
                self.trace.add(format!("* hub -> edge:{names}"));
            }
        }
        if let Some(lease) = change.after.as_ref().filter(|_| &*change.key.name == LEASE) {
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            if self.leader.as_ref().is_none_or(|(known, _)| known != holder) {
                self.leader = Some((holder.to_owned(), self.clock()));
            }
        }
        if let Some(object) = change.after.as_deref().filter(|_| side == Side::Hub)
            && owns_replicas(object)
        {
            self.scaled.insert(change.key.clone());
        }
        let exists = change.after.is_some();
        let place = (side, change.key.clone());
        let owned = |object: &Value| FLOWS.iter().any(|flow| flow.to == side && flow.owns(object));
        if change.after.as_deref().is_some_and(owned) {
            self.copies.insert(place.clone());
        } else {
            self.copies.remove(&place);
        }
        if exists {
            self.lost.remove(&place);
        }
        if change.after.as_deref().is_some_and(is_another_targets) {
            let now = self.clock();
            self.anothers.entry(place.clone()).or_insert(now);
        }
        if exists && side == Side::Hub {
            self.taken.is_back(&change.key);
        }
        let now = self.clock();
        let entry = self.existence.entry(place).or_insert((now, exists));
        if entry.1 != exists {
            *entry = (now, exists);
        }
    }

    /// True if somebody at the hub has ever said how many replicas an object is to have, whatever the edge calls it: then
    /// that comes to the edge.
    pub fn wants_replicas(&self, at_edge: &Key) -> bool {
        self.scaled
            .iter()
            .any(|origin| origin == at_edge || self.history.had_place(origin, at_edge))
    }

    /// The first syncer begins: what there was before is nothing that it has been shown, unless lists show it, which lie.
    pub fn begins_to_sync(&mut self) {
        self.history.begins();
        if self.lists_lie {
            self.history.may_lack_names();
        }
    }

    /// A side serves a type from now on.
    pub fn serves(&mut self, side: Side, resource: &str) {
        let now = self.clock();
        self.came_back.insert((side, resource.to_owned()), now);
        if side == Side::Hub {
            self.taken.served(resource, self.start.elapsed());
        }
    }

    /// A side serves a type again that it has hidden for so long.
    pub fn shows_again(&mut self, side: Side, resource: String, hidden: Duration) {
        let now = self.clock();
        self.shown.insert((side, resource), (now, hidden));
    }

    /// For how long a side has hidden a type that it has only just begun to serve again: a proof may be from before that.
    fn was_hidden(&self, side: Side, resource: &str) -> Option<Duration> {
        let &(at, hidden) = self.shown.get(&(side, resource.to_owned()))?;
        let since = self.clock().saturating_sub(at);
        (since <= PROOF_AGE + self.staleness).then_some(hidden + since)
    }

    /// A side has shown a process that an object is not there, and it is not.
    pub fn proved_absent(&mut self, process: u32, side: Side, key: Key) {
        let now = self.clock();
        self.seen.absent(process, side, key, now);
    }

    /// A side has answered a process: what that shows of the types that it serves, and of what was missed.
    pub fn answered(&mut self, process: u32, side: Side, ask: &Ask, store: &Store) {
        let now = self.clock();
        self.seen.types(process, side, ask, store, now);
        if ask.verb.watches() {
            self.seen.watches(process, side, now);
        }
    }

    /// The syncer has changed an object.
    pub fn syncer_wrote(&mut self, write: &Write<'_>) {
        let &Write { side, ask, before, .. } = write;
        let key = key_of(ask);
        if [RECORD, LEASE].contains(&&*key.name) {
            return;
        }
        self.check_lead(write.process, &key);
        if key.name.starts_with(BYSTANDER) || key.is_each_sides_own() {
            self.break_promise(format!("wrote {key}, which is none of its business"), &[&key]);
        }
        if side == Side::Hub && self.heartbeat && converged::is_config(&key) {
            if rest(before) != rest(write.after) {
                self.break_promise(format!("wrote more than the status of {key}"), &[&key]);
            }
            return;
        }
        if side == Side::Hub && self.heartbeat && converged::is_edge(&key) {
            let is_ours = &*key.name == SYNC_TARGET && ask.verb == Verb::Apply;
            if !is_ours || before.is_some_and(|before| rest(Some(before)) != rest(write.after)) {
                self.break_promise(format!("wrote more than the status of its own object: {key}"), &[&key]);
            }
            return;
        }
        if side == Side::Hub && ask.asked("fieldManager").starts_with(STATUS_MANAGER) {
            self.check_status(write, &key);
            return;
        }
        let flow = match side {
            Side::Edge => &DOWNSYNC,
            Side::Hub => &UPSYNC,
        };
        self.check_anothers(write, &key);
        match side {
            Side::Hub => self.check_upward(write, &key),
            Side::Edge => self.check_downward(write, &key),
        }
        let Some(before) = before.filter(|_| ask.verb == Verb::Delete) else {
            return;
        };
        if !flow.owns(before) {
            self.break_promise(format!("deleted {key}, which it does not own"), &[&key]);
        }
        let is_confirmed = flow.is_adopted(before) && self.choices.delete_adopted;
        let uid = before["metadata"]["uid"].as_str().unwrap_or_default();
        if self.theirs.contains(uid) && !is_confirmed {
            self.break_promise(format!("deleted {key}, which somebody else has made"), &[&key]);
        }
        if flow.to == Side::Edge && converged::is_create_only(before) {
            self.break_promise(format!("deleted {key}, which is left to the edge"), &[&key]);
        }
        self.check_taken(write, &key);
        let origin = origin_of(&key, before);
        if flow.is_adopted(before) && !self.choices.delete_adopted {
            self.break_promise(format!("deleted {key}, which was there before"), &[&key]);
        }
        if side == Side::Edge || !write.ty.is_namespace() {
            let hidden = write.origin_type_hidden;
            let shown = || {
                let shown = self
                    .seen
                    .unserved_for(write.process, flow.from, &origin.resource, self.clock());
                shown.unwrap_or_default()
            };
            let hidden = hidden.or_else(|| self.was_hidden(flow.from, &origin.resource));
            match hidden.map(|time| time.max(shown())) {
                Some(time) if !self.is_proved(write.process, flow, &origin) => {
                    self.check_hidden(flow, &key, &origin, time);
                }
                _ => self.check_proof(write.process, flow, (&key, before), write.origin_type_served),
            }
        }
    }

    /// Who does not hold the Lease does not write.
    fn check_lead(&mut self, process: u32, key: &Key) {
        let Some((holder, since)) = &self.leader else { return };
        let is_other = !holder.is_empty() && *holder != candidate(process);
        if is_other && self.clock().saturating_sub(*since) > LEASE_LOST {
            let what = format!("p{process} wrote {key} while {holder} held the Lease");
            self.break_promise(what, &[key]);
        }
    }

    /// What another sync target has made is never deleted, and not overwritten by who can know whose it is.
    fn check_anothers(&mut self, write: &Write<'_>, key: &Key) {
        let since = self.anothers.get(&(write.side, key.clone())).copied();
        let Some(since) = since.filter(|_| write.before.is_some_and(is_another_targets)) else {
            self.anothers.remove(&(write.side, key.clone()));
            return;
        };
        let known = self.clock().saturating_sub(since) > self.overwrites;
        if write.ask.verb == Verb::Delete || known {
            let what = format!("{:?} of {key}, which is another sync target's", write.ask.verb);
            self.break_promise(what, &[key]);
        }
    }

    /// What a delete would delete too has to be to be deleted too. What has come since the syncer looked is not seen: no server
    /// has a precondition for that.
    fn check_taken(&mut self, write: &Write<'_>, key: &Key) {
        let since = self.clock().saturating_sub(PROOF_AGE + self.staleness);
        let was_there = |inner: &&Key| {
            let existence = self.existence.get(&(write.side, (*inner).clone()));
            existence.is_some_and(|&(at, exists)| exists && at < since)
        };
        let taken = write.takes.iter().find(|inner| was_there(inner)).cloned();
        // Nothing but a list can tell what is in a namespace.
        if let Some(inner) = taken.filter(|_| !self.lists_lie) {
            self.break_promise(format!("deleted {key}, which takes {inner} along"), &[key, &inner]);
        }
    }

    /// True if the side said a moment ago that the origin is gone. It says so only while it serves the type: before it began
    /// to hide it, or after that was over.
    fn is_proved(&self, process: u32, flow: &Flow, origin: &Key) -> bool {
        let proof = self.seen.absent_at(process, flow.from, origin);
        proof.is_some_and(|at| self.clock().saturating_sub(at) <= PROOF_AGE)
    }

    /// A type that the hub no longer serves, but every config has always named, is a riddle and no proof. What goes up
    /// follows the edge after ten answers, or three if nothing selects it, as what nothing names any more goes with its type.
    fn check_hidden(&mut self, flow: &Flow, key: &Key, origin: &Key, time: Duration) {
        // Where lists lie, they may have lacked the config.
        let always = |selects: bool| !self.lists_lie && selects;
        let (selected, least) = match flow.from {
            Side::Hub => (always(self.history.always_named(&origin.resource)), Duration::MAX),
            Side::Edge => (always(self.history.always_selected_upward(origin)), TEN_ROUNDS),
        };
        if time < if selected { least } else { THREE_ROUNDS } {
            let what = format!("deleted {key}, whose type the {} only hides, after {time:?}", flow.from);
            self.break_promise(what, &[key]);
        }
    }

    fn check_proof(&mut self, process: u32, flow: &Flow, (key, copy): (&Key, &Value), origin_type_served: bool) {
        let origin = &origin_of(key, copy);
        let now = self.clock();
        let age = PROOF_AGE + self.staleness;
        let recent = |at: Duration| now.saturating_sub(at) <= age;
        if let Some(&(since, true)) = self.existence.get(&(flow.from, origin.clone()))
            && !recent(since)
        {
            let what = format!(
                "deleted {key}, whose origin has existed for {:?}",
                now.saturating_sub(since)
            );
            self.break_promise(what, &[key]);
            return;
        }
        // One of its name that was deleted before may have been what the copy was made of.
        if let Some(Lost { uid, why }) = self.lost.get(&(flow.from, origin.clone()))
            && origin_uid(copy).is_none_or(|origin| origin == uid)
        {
            self.break_promise(format!("deleted {key} although {why}"), &[key]);
        }
        // What nothing selects any more goes, with its type or alone. Where lists lie, they may have lacked the config.
        let always_named = || !self.lists_lie && self.history.always_named(&origin.resource);
        if flow.from == Side::Hub && self.taken.keeps(origin, self.start.elapsed()) && always_named() {
            self.break_promise(format!("deleted {key}, whose origin went with its type"), &[key]);
        }
        self.check_mass(flow, key);
        let reported = self.is_proved(process, flow, origin);
        // A type that has only just come back proves as much by having been gone.
        let came_back = self.came_back.get(&(flow.from, origin.resource.to_string()));
        let is_served = origin_type_served && !came_back.is_some_and(|&at| recent(at));
        if !reported && is_served {
            self.break_promise(format!("deleted {key} without a proof that its origin is gone"), &[key]);
        }
    }

    /// One of a mass has gone: together they may not be many, and more than half of what there was.
    fn check_mass(&mut self, flow: &Flow, key: &Key) {
        let left = self.copies.iter().filter(|(side, _)| *side == flow.to).count();
        let Some(mass) = &mut self.mass else {
            return;
        };
        if mass.at != flow.from || Instant::now() >= mass.until {
            return;
        }
        let copies = left + mass.all_gone;
        mass.all_gone += 1;
        if !key.name.starts_with(MASS) {
            return;
        }
        mass.gone += 1;
        if mass.gone > MOST && mass.gone * 2 > copies {
            let what = format!("deleted {key}, number {} of {copies} at once", mass.gone);
            self.break_promise(what, &[key]);
        }
    }

    /// Requests so far that `which` picks.
    pub fn count(&self, which: impl Fn(Side, Verb) -> bool) -> u64 {
        let picked = self.counts.iter().filter(|&(&(side, verb), _)| which(side, verb));
        picked.map(|(_, count)| count).sum()
    }

    /// Requests so far about the objects of a type, `plural.group`, at the hub and at the edge.
    pub fn count_of_type(&self, resource: &str) -> [u64; 2] {
        let count = |side| {
            self.types
                .get(&(side, resource.to_owned()))
                .copied()
                .unwrap_or_default()
        };
        [count(Side::Hub), count(Side::Edge)]
    }
}

/// The object that a request is about. A create names it in its body.
pub fn key_of(ask: &Ask) -> Key {
    let body: Value = match ask.verb {
        Verb::Create => serde_json::from_slice(&ask.body).unwrap_or_default(),
        _ => Value::Null,
    };
    let name = body["metadata"]["name"].as_str().unwrap_or(&ask.target.name);
    Key::new(&ask.target.qualified(), &ask.target.namespace, name)
}
