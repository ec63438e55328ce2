//! People who want objects to be called otherwise at the edge than at the hub: the conversions of `EdgeSyncConfig`s.

use edge_syncer::side::Side;
use fastrand::Rng;
use serde_json::{Value, json};

use super::conversions::NAMERS;
use super::store::Key;
use super::types::EDGE_SYNC_CONFIGS;
use super::world::World;

/// Share of the runs that have such people, of those in which the hub knows this kind of configs.
const SHARE: f64 = 0.3;
/// Share of these runs in which they change their minds.
const CHANGING: f64 = 0.6;
/// How likely they do at each deed of anybody.
const OFTEN: f64 = 0.08;

/// Their configs. The first by name has the last word.
const CONFIGS: [&str; 2] = ["names", "other-names"];
/// What goes up under other names, where they change their minds: these names stay. What becomes of a copy at the hub
/// whose origin gets another name there is covered by stories alone (`simulation/upward.rs`).
const LASTING: &str = "lasting-names";
/// A kind and its group.
type Kind = (&'static str, &'static str);
/// What goes down under other names.
const KINDS: [Kind; 4] = [
    ("ConfigMap", ""),
    ("Deployment", "apps"),
    ("Gauge", "example.org"),
    ("Panel", "example.org"),
];
/// And of what goes up.
const UPWARD_KINDS: [Kind; 3] = [
    ("ConfigMap", ""),
    ("Report", "field.example.org"),
    ("Summary", "field.example.org"),
];
/// What one side has as the one of them, and the other as the other; and the same for what goes up.
const TURNED: [(Kind, Kind); 2] = [(KINDS[1], KINDS[2]), (KINDS[2], KINDS[1])];
const TURNED_UPWARD: (Kind, Kind) = (UPWARD_KINDS[1], KINDS[2]);
/// A CRD may be stored at the hub as one of another group.
const DEFINITION: Kind = ("CustomResourceDefinition", "apiextensions.k8s.io");
const DEFINITIONS: [(&str, &str); 2] = [
    ("gauges.example.org", "gauges.edge.example.org"),
    ("panels.example.org", "panels.edge.example.org"),
];
/// Names at the side that the objects are from. The others may be among these too, so that objects change places.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const UPWARD_NAMES: [&str; 3] = ["up-a", "up-b", "up-c"];
/// Names that nothing has but by a conversion.
const NEW_NAMES: [&str; 2] = ["x", "y"];
const NEW_UPWARD_NAMES: [&str; 2] = ["up-x", "up-y"];

/// See the module's doc.
pub struct Namers {
    /// Their dice are their own, so that nothing else of a run depends on them.
    dice: Rng,
    change: bool,
}

impl Namers {
    /// Those of a run; `None` in most.
    pub fn of_run(seed: u64, world: &World) -> Option<Self> {
        let mut dice = Rng::with_seed(!seed.rotate_left(32));
        let is_known = !world.hub.store.borrow().lacks.contains(EDGE_SYNC_CONFIGS);
        let are_there = is_known && dice.f64() < SHARE;
        let change = dice.f64() < CHANGING;
        are_there.then_some(Self { dice, change })
    }

    fn some<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.dice.usize(0..items.len())]
    }

    /// A name of an object where it is from, and another for its copy.
    fn two_names(&mut self, names: &[&'static str], new: &[&'static str]) -> (&'static str, &'static str) {
        let of = self.some(names);
        let copy = if self.dice.bool() {
            self.some(names)
        } else {
            self.some(new)
        };
        (of, if of == copy { new[0] } else { copy })
    }

    fn conversion(&mut self, goes_up: bool) -> Value {
        let shape = self.dice.f64();
        if shape < 0.1 && !goes_up {
            let (hub, edge) = self.some(&DEFINITIONS);
            return conversion((DEFINITION, hub), (DEFINITION, edge));
        }
        let turns = shape < 0.25;
        if goes_up {
            let (edge, hub) = self.two_names(&UPWARD_NAMES, &NEW_UPWARD_NAMES);
            let kind = self.some(&UPWARD_KINDS);
            let (at_edge, at_hub) = if turns { TURNED_UPWARD } else { (kind, kind) };
            return conversion((at_hub, hub), (at_edge, edge));
        }
        let (hub, edge) = self.two_names(&NAMES, &NEW_NAMES);
        let kind = self.some(&KINDS);
        let (at_hub, at_edge) = if turns { self.some(&TURNED) } else { (kind, kind) };
        conversion((at_hub, hub), (at_edge, edge))
    }

    /// So many conversions of what goes down, of what goes up, or of both.
    fn conversions(&mut self, directions: &[bool]) -> Vec<Value> {
        let count = self.dice.usize(1..7);
        let mut any = || {
            let goes_up = self.some(directions);
            self.conversion(goes_up)
        };
        (0..count).map(|_| any()).collect()
    }

    fn spec(&mut self, upsync: bool) -> Value {
        let both = upsync && !self.change;
        let conversions = self.conversions(if both { &[false, true] } else { &[false] });
        // Now and then such a config selects something itself.
        let refs = if self.dice.f64() < 0.3 {
            let name = self.some(&["*", "a", "x"]);
            json!([{"version": "v1", "kind": "Namespace", "name": "shop"},
                {"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name}])
        } else {
            json!([])
        };
        json!({"spec": {"conversions": conversions, "downSyncedResources": refs}})
    }
}

fn conversion(hub: (Kind, &str), edge: (Kind, &str)) -> Value {
    let named =
        |((kind, group), name): (Kind, &str)| json!({"group": group, "version": "v1", "kind": kind, "name": name});
    json!({"upstream": named(hub), "downstream": named(edge)})
}

impl World {
    /// The names that are given before the syncer comes.
    pub(super) fn found_names(&mut self) {
        if let Some(namers) = self.namers.as_mut().filter(|namers| namers.change)
            && self.habits.upsync
        {
            let body = json!({"spec": {"conversions": namers.conversions(&[true])}});
            self.hub.create("kubectl-create", NAMERS, "", LASTING, body);
        }
        self.write_names(CONFIGS[0]);
        if self.namers.as_mut().is_some_and(|namers| namers.dice.bool()) {
            self.write_names(CONFIGS[1]);
        }
    }

    /// Somebody may want other names now.
    pub(super) fn change_names(&mut self) {
        let Some(namers) = self.namers.as_mut().filter(|namers| namers.change) else {
            return;
        };
        if namers.dice.f64() >= OFTEN {
            return;
        }
        let config = namers.some(&CONFIGS);
        if namers.dice.f64() < 0.3 {
            self.hub.delete(&Key::new(NAMERS, "", config));
        } else {
            self.write_names(config);
        }
    }

    /// Creates or replaces a config.
    fn write_names(&mut self, config: &str) {
        let upsync = self.habits.upsync;
        let Some(namers) = &mut self.namers else { return };
        let body = namers.spec(upsync);
        let hub = self.server(Side::Hub);
        if hub.create("kubectl-create", NAMERS, "", config, body.clone()).is_none() {
            hub.patch("kubectl-edit", &Key::new(NAMERS, "", config), &body);
        }
    }
}
