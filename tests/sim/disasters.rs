//! What people do where most of what there is goes, or seems to go.

use edge_syncer::cluster::Side;
use serde_json::{Value, json};

use super::ledger::MASS;
use super::store::Key;
use super::world::{CONFIGS, World};

/// The annotation that lets deletes go on.
const CONFIRM: &str = "edge.kubestellar.io/confirm-deletes";

impl World {
    /// Many objects, which a config of their own selects.
    pub fn hub_creates_many(&mut self) {
        self.hub.create("kubectl-create", "namespaces", "", "shop", json!({}));
        let all = json!([{"group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}]);
        let spec = json!({"spec": {"namespacedObjects": all}});
        self.hub.create("kubectl-create", CONFIGS, "", "many", spec);
        for index in 0..60 {
            let body = self.content("configmaps");
            let name = format!("{MASS}-{index}");
            self.hub.create("kubectl-create", "configmaps", "shop", &name, body);
        }
    }

    /// They all go at once.
    pub fn hub_deletes_many(&mut self) {
        let many = self.objects(Side::Hub);
        for key in many.into_iter().filter(|key| key.name.starts_with(MASS)) {
            self.hub.delete(&key);
        }
    }

    /// Somebody reads at the configs that deletes are held, and lets them go on. False if none are.
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
            let held = conditions.filter(|one| one["type"] == "DeletesHeld" && one["status"] == "True");
            let message = held
                .map(|one| &one["message"])
                .find_map(Value::as_str)
                .unwrap_or_default();
            let Some((_, token)) = message.rsplit_once(&format!("{CONFIRM}=")) else {
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
