//! Another client, which acts between two requests of the syncer: people at either side, a controller at the edge.
//!
//! What the syncer has read is not what there is when its next request arrives. Only the server can tell the two
//! apart, by what a request says that has to be so.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use edge_syncer::side::Side;
use serde_json::{Value, json};

use super::conversions::Conversions;
use super::fields;
use super::flows::{DOWNSYNC, Flow, OWNER, UPSYNC};
use super::ledger::BYSTANDER;
use super::request::Ask;
use super::server::Server;
use super::store::Key;
use super::weather::Moment;
use super::world::OVERWRITE;

/// What another client does to an object and its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The copy is deleted, and somebody makes an object of their own of that name.
    TakePlace,
    /// The copy loses annotation and label.
    Unmark,
    /// The copy loses its label.
    Unlabel,
    /// The copy says that it is left to the edge.
    HandsOff,
    /// The syncer of another sync target makes the copy its own: the same marks, but for whose it is.
    TakeOver,
    /// People change the content of the copy.
    Edit,
    /// A controller changes the content of the copy.
    Control,
    /// Another tool installs what the copy has, by its own apply: both have the fields then.
    Share,
    /// The type drops the version at which all field managers have written the copy.
    DropVersion,
    /// A controller writes the status of the copy.
    Report,
    /// A controller holds the copy by a finalizer, and lets it go when it is being deleted.
    Hold,
    /// The copy is deleted.
    Delete,
    /// The origin is created, if there is none.
    OriginComes,
    /// The origin is deleted.
    OriginGoes,
    /// The origin is deleted, and created again with another content.
    OriginAnew,
    /// The origin is changed.
    OriginChanges,
    /// The origin loses what it holds.
    OriginDrops,
}

/// Every deed.
pub const DEEDS: &[Deed] = &[
    Deed::TakePlace,
    Deed::Unmark,
    Deed::Unlabel,
    Deed::HandsOff,
    Deed::TakeOver,
    Deed::Edit,
    Deed::Control,
    Deed::Share,
    Deed::DropVersion,
    Deed::Report,
    Deed::Hold,
    Deed::Delete,
    Deed::OriginComes,
    Deed::OriginGoes,
    Deed::OriginAnew,
    Deed::OriginChanges,
    Deed::OriginDrops,
];

/// Those that are done by chance, several to one object.
pub const BY_CHANCE: &[Deed] = &[
    Deed::HandsOff,
    Deed::Share,
    Deed::DropVersion,
    Deed::Report,
    Deed::Hold,
    Deed::Delete,
    Deed::OriginComes,
    Deed::OriginGoes,
    Deed::OriginAnew,
    Deed::OriginChanges,
    Deed::OriginDrops,
];

/// One deed at one request.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Requests until then.
    pub left: u32,
    /// Just before that request takes effect, or just after.
    pub moment: Moment,
    /// What is done.
    pub deed: Deed,
    /// To what.
    pub key: Key,
}

/// The other client.
#[derive(Default)]
pub struct Others {
    plans: RefCell<VecDeque<Plan>>,
    deeds: Cell<u32>,
}

impl Others {
    /// What it is to do, after what it was to do before.
    pub fn intend(&self, plan: Plan) {
        self.plans.borrow_mut().push_back(plan);
    }

    /// It is to do nothing.
    pub fn rest(&self) {
        self.plans.borrow_mut().clear();
    }

    /// True if it has not come to that.
    pub fn waits(&self) -> bool {
        !self.plans.borrow().is_empty()
    }

    /// Counts a request, if its time has come. What is to be done now, if anything is.
    pub fn count(&self, moment: Moment) -> Option<(Deed, Key)> {
        let mut plans = self.plans.borrow_mut();
        let next = plans.front_mut()?;
        if next.left == 0 && next.moment == moment {
            return plans.pop_front().map(|plan| (plan.deed, plan.key));
        }
        // A request is over with its second moment.
        if moment == Moment::After {
            next.left = next.left.saturating_sub(1);
        }
        None
    }

    /// A number for each deed, so that each makes something new.
    fn next(&self) -> u32 {
        self.deeds.set(self.deeds.get() + 1);
        self.deeds.get()
    }
}

/// The object of a synced type that a request is about, and the flow in which it is synced.
fn subject(ask: &Ask) -> Option<Key> {
    let target = &ask.target;
    let named = ask.asked("fieldSelector").strip_prefix("metadata.name=");
    let name = named.unwrap_or(&target.name);
    let is_object = target.resource == "panels" || target.resource == "summaries" || !target.namespace.is_empty();
    let is_own = name.starts_with("edge-syncer");
    (is_object && !name.is_empty() && !is_own).then(|| Key::new(&target.qualified(), &target.namespace, name))
}

fn flow_of(key: &Key) -> &'static Flow {
    let goes_up = key.name.starts_with("up-") || &*key.namespace == "field" || &*key.namespace == "yard";
    if goes_up { &UPSYNC } else { &DOWNSYNC }
}

impl Server {
    /// The time between two requests of the syncer, which others may use.
    pub fn between(self: &Rc<Self>, ask: &Ask, moment: Moment) {
        let (others, by_chance) = {
            let mut weather = self.weather.borrow_mut();
            // An origin of a bystander's name would make it a copy.
            let by_chance = subject(ask).filter(|key| weather.is_interrupted() && !key.name.starts_with(BYSTANDER));
            let by_chance = by_chance.map(|key| (BY_CHANCE[weather.dice.usize(0..BY_CHANCE.len())], key));
            (Rc::clone(&weather.others), by_chance)
        };
        let Some(other) = self.other.get().and_then(std::rc::Weak::upgrade) else {
            return;
        };
        if let Some((deed, key)) = others.count(moment).or(by_chance) {
            let flow = flow_of(&key);
            let line = format!("* between requests: {deed:?} {key}");
            self.ledger.borrow_mut().trace.add(line);
            let hub = if self.side == Side::Hub { self } else { &other };
            let there = Conversions::at(&hub.store.borrow()).at_side(other.side, &key);
            let there = there.unwrap_or_else(|| key.clone());
            let (from, to) = if flow.from == self.side {
                ((self, &key), (&other, &there))
            } else {
                ((&other, &there), (self, &key))
            };
            act(deed, flow, others.next(), from, to);
        }
    }
}

/// One of the two sides of a flow, and what it calls the object there.
type At<'a> = (&'a Rc<Server>, &'a Key);

/// What an object of that type holds, another thing each time.
fn content(key: &Key, count: u32) -> Value {
    if &*key.resource == "configmaps" {
        json!({"data": {"x": format!("other-{count}")}})
    } else {
        json!({"spec": {"replicas": 1000 + count}})
    }
}

/// An object of others. It has something that no origin has: who has made what in one second is known by that.
fn of_others(key: &Key, count: u32) -> Value {
    let mut object = content(key, count);
    object["metadata"] = json!({"labels": {"app.example.org/of": "others"}});
    object
}

fn act(deed: Deed, flow: &Flow, count: u32, (from, origin): At<'_>, (to, key): At<'_>) {
    let create = |at: &Rc<Server>, key: &Key, body: Value| {
        at.create("kubectl-create", &key.resource, &key.namespace, &key.name, body)
    };
    let there = || to.store.borrow().get(key).cloned();
    match deed {
        Deed::TakePlace => {
            if there().is_some() {
                to.delete(key);
            }
            if let Some(made) = create(to, key, of_others(key, count)) {
                let uid = made["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                to.ledger.borrow_mut().theirs.insert(uid);
            }
        }
        Deed::Unmark => {
            let marks = json!({"labels": {flow.mark: null}, "annotations": {flow.mark: null}});
            to.patch("kubectl-annotate", key, &json!({"metadata": marks}));
        }
        Deed::Unlabel => {
            to.patch(
                "kubectl-label",
                key,
                &json!({"metadata": {"labels": {flow.mark: null}}}),
            );
        }
        Deed::HandsOff => {
            to.patch(
                "kubectl-annotate",
                key,
                &json!({"metadata": {"annotations": {OVERWRITE: "false"}}}),
            );
        }
        Deed::TakeOver => {
            let owner = format!("uid-elsewhere/{}/another-one", key.resource);
            let marks = json!({"labels": {flow.mark: "true"}, "annotations": {OWNER: owner}});
            to.patch("edge-syncer", key, &json!({"metadata": marks}));
        }
        Deed::Edit => {
            let mut change = content(key, count);
            // A field that no origin has, too.
            let part = if change["data"].is_null() { "spec" } else { "data" };
            change[part]["byHand"] = json!("1");
            to.patch("kubectl-edit", key, &change);
        }
        Deed::Control => {
            let mut change = content(key, count);
            change["metadata"] = json!({"annotations": {"controller.example.org/seen": count.to_string()}});
            to.patch("controller", key, &change);
        }
        Deed::Share => {
            // What people have added there would be the installer's then, and stay.
            let is_edited = there().is_some_and(|object| {
                let owners = fields::owners(&object);
                owners.iter().any(|(_, manager)| manager.starts_with("kubectl"))
            });
            if !is_edited {
                to.apply("installer", key);
            }
        }
        Deed::DropVersion => {
            to.drop_version(key);
        }
        Deed::Report => {
            to.patch_status("controller", key, &json!({"status": {"observed": count}}));
        }
        Deed::Hold => {
            let going = there().is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string());
            let held = if going {
                Value::Null
            } else {
                json!(["controller.example.org/held"])
            };
            to.patch("controller", key, &json!({"metadata": {"finalizers": held}}));
        }
        Deed::Delete => {
            to.delete(key);
        }
        Deed::OriginComes => {
            create(from, origin, content(origin, count));
        }
        Deed::OriginGoes => {
            from.delete(origin);
        }
        Deed::OriginAnew => {
            if from.delete(origin).is_some() {
                create(from, origin, content(origin, count));
            }
        }
        Deed::OriginChanges => {
            from.patch("kubectl-edit", origin, &content(origin, count));
        }
        Deed::OriginDrops => {
            from.patch("kubectl-edit", origin, &json!({"data": null, "spec": null}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_at_the_one_moment_of_the_one_request() {
        let others = Others::default();
        let key = Key::new("configmaps", "shop", "a");
        for (left, moment, at) in [
            (0, Moment::Before, 0),
            (0, Moment::After, 1),
            (2, Moment::Before, 4),
            (2, Moment::After, 5),
        ] {
            others.intend(Plan {
                left,
                moment,
                deed: Deed::Delete,
                key: key.clone(),
            });
            let moments = (0..8).map(|index| if index % 2 == 0 { Moment::Before } else { Moment::After });
            let acted: Vec<bool> = moments.map(|moment| others.count(moment).is_some()).collect();
            let expected: Vec<bool> = (0..8).map(|index| index == at).collect();
            assert_eq!(acted, expected);
        }
    }
}
