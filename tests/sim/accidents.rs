//! What people do where most of what there is goes, or seems to go.

use edge_syncer::side::Side;
use serde_json::{Value, json};

use super::ledger::MASS;
use super::store::Key;
use super::world::{CONFIGS, World};

/// So many are many.
pub const MANY: usize = 60;
/// The annotation that lets deletes go on.
const CONFIRM: &str = "edge.kubestellar.io/confirm-deletes";
/// The length of its value.
const TOKEN: usize = 8;

impl World {
    /// Many objects, which a config of their own selects.
    pub fn hub_creates_many(&mut self) {
        self.hub.create("kubectl-create", "namespaces", "", "shop", json!({}));
        let all = json!([{"group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}]);
        let spec = json!({"spec": {"namespacedObjects": all}});
        self.hub.create("kubectl-create", CONFIGS, "", "many", spec);
        for index in 0..MANY {
            let body = self.content("configmaps");
            let name = format!("{MASS}-{index}");
            self.hub.create("kubectl-create", "configmaps", "shop", &name, body);
        }
    }

    /// They all go at once.
    pub fn delete_many(&mut self, side: Side) {
        for key in self.many(side) {
            self.server(side).delete(&key);
        }
    }

    /// True if most of them are there.
    pub fn has_many(&self, side: Side) -> bool {
        self.many(side).len() > MANY / 2
    }

    fn many(&self, side: Side) -> Vec<Key> {
        let namespace = if side == Side::Hub { "shop" } else { "field" };
        let mut objects = self.objects(side);
        objects.retain(|key| &*key.namespace == namespace && key.name.starts_with(MASS));
        objects
    }

    /// Somebody reads at the configs that deletes are held, and lets them go on. False if none are. What would delete too
    /// what is not to be deleted stays: the message names an object that somebody wants.
    pub fn confirm_deletes(&mut self) -> bool {
        let configs: Vec<(Key, Value)> = {
            let store = self.hub.store.borrow();
            let configs = store.of(CONFIGS, "");
            configs
                .map(|(key, config)| (key.clone(), config["status"].clone()))
                .collect()
        };
        let mut confirmed = false;
        for (key, status) in configs {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let mut held = conditions.filter(|one| one["type"] == "DeletesHeld" && one["status"] == "True");
            let message = held.find_map(|one| one["message"].as_str()).unwrap_or_default();
            let confirm = format!("{CONFIRM}=");
            let harmless = message.split("; confirm with").zip(message.split(&confirm).skip(1));
            let tokens = harmless.filter(|(hold, _)| !hold.contains("would delete"));
            let Some(token) = tokens.map(|(_, rest)| &rest[..TOKEN]).last() else {
                continue;
            };
            self.hub.patch(
                "kubectl-annotate",
                &key,
                &json!({"metadata": {"annotations": {CONFIRM: token}}}),
            );
            confirmed = true;
        }
        confirmed
    }
}
