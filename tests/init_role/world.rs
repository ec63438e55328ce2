//! What a scenario has: a config workspace with its CRDs, a workspace for types, one for the workspaces of these types, and
//! a user with exactly the rights of the manifests.

use std::time::Duration;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::stage::{Stage, Which};
use crate::support::objects::path;
use crate::support::process::Folder;
use crate::support::story::{SOON, becomes, crd};
use crate::support::{AuditEvent, Objects, eventually, holds_throughout, unique_suffix};

pub(crate) const INIT: &str = "initialization.kcp.io/v1alpha1";
pub(crate) const TENANCY: &str = "tenancy.kcp.io/v1alpha1";
pub(crate) const CORE: &str = "core.kcp.io/v1alpha1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// How long something that must not happen is watched for.
pub(crate) const A_WHILE: Duration = Duration::from_millis(1_500);

/// See the module's doc.
pub(crate) struct World {
    pub(crate) stage: Stage,
    pub(crate) folder: Folder,
    /// The end of all names, and the path of the config workspace.
    pub(crate) suffix: String,
    pub(crate) conf_path: String,
    pub(crate) types_path: String,
    tenants_path: String,
    pub(crate) conf: Objects,
    pub(crate) types: Objects,
    pub(crate) tenants: Objects,
    /// Whom the agent speaks for.
    pub(crate) user: String,
}

/// The types of configs: what the manifests have of them that a server heeds.
pub(crate) fn definitions() -> [Value; 2] {
    let spec = |fields: &Value, required: &Value| {
        json!({"type": "object", "required": ["spec"], "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
            "spec": {"type": "object", "required": required, "properties": fields}}})
    };
    let string = json!({"type": "string"});
    let target = json!({"workspaceTypeRef": {"type": "object", "required": ["path", "name"],
            "properties": {"path": string, "name": string}},
        "sources": {"type": "array", "items": {"type": "object", "properties": {"template": {"type": "object",
            "required": ["name"], "properties": {"name": string}}}}}});
    let template = json!({"template": string});
    [
        ("InitTarget", spec(&target, &json!(["workspaceTypeRef", "sources"]))),
        ("InitTemplate", spec(&template, &json!(["template"]))),
    ]
    .map(|(kind, schema)| {
        let mut definition = crd("initialization.kcp.io", &format!("{}s", kind.to_lowercase()), false);
        let spec = &mut definition["spec"];
        spec["names"]["kind"] = json!(kind);
        spec["names"]["listKind"] = json!(format!("{kind}List"));
        spec["versions"] = json!([{"name": "v1alpha1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}}]);
        definition
    })
}

impl World {
    /// One on a stage that others may use too.
    pub(crate) async fn of(which: Which) -> Self {
        Self::on(Stage::of(which).await).await
    }

    /// One on this stage.
    pub(crate) async fn on(stage: Stage) -> Self {
        let (folder, suffix, user) = (Folder::create("init"), unique_suffix(), Stage::new_user());
        let root = stage.objects(&folder, "root", None).await;
        let names = ["conf", "types", "tenants"].map(|what| format!("{what}-{suffix}"));
        for name in &names {
            root.create(&workspace(name, &json!({"name": "universal", "path": "root"})))
                .await;
        }
        for name in &names {
            becomes(&root, [TENANCY, "workspaces", "", name], "is ready", is_ready).await;
        }
        let [conf_path, types_path, tenants_path] = names.map(|name| format!("root:{name}"));
        let world = Self {
            conf: stage.objects(&folder, &conf_path, None).await,
            types: stage.objects(&folder, &types_path, None).await,
            tenants: stage.objects(&folder, &tenants_path, None).await,
            stage,
            folder,
            suffix,
            conf_path,
            types_path,
            tenants_path,
            user,
        };
        world.define().await;
        world.grant_in_conf().await;
        world.grant_in_types().await;
        world
    }

    /// Ends kcp as a crash does, and waits until it is back.
    pub(crate) async fn restart(&mut self, away: Duration) {
        self.stage.restart(away).await;
        // The administrator of a real one has a new token then.
        for (objects, path) in [
            (&mut self.conf, &self.conf_path),
            (&mut self.types, &self.types_path),
            (&mut self.tenants, &self.tenants_path),
        ] {
            *objects = self.stage.objects(&self.folder, path, None).await;
        }
        eventually("kcp is back", SOON, async || {
            let read = self.tenants.read("/apis/tenancy.kcp.io/v1alpha1/workspaces").await;
            read.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
    }

    async fn define(&self) {
        for definition in definitions() {
            create(&self.conf, &definition).await;
        }
        for plural in ["inittargets", "inittemplates"] {
            let path = path(INIT, plural, "", "");
            eventually("the types of configs are served", SOON, async || {
                self.conf
                    .read(&path)
                    .await
                    .map(|_| ())
                    .map_err(|error| error.to_string())
            })
            .await;
        }
    }

    /// What the agent needs in the config workspace.
    pub(crate) async fn grant_in_conf(&self) {
        let rules = json!([
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
            {"apiGroups": ["initialization.kcp.io"], "resources": ["inittargets", "inittemplates"],
                "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        ]);
        self.grant(&self.conf, "init-agent", &rules).await;
    }

    /// What it needs where the types are.
    pub(crate) async fn grant_in_types(&self) {
        let rules = json!([
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
            {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"],
                "verbs": ["get", "list", "watch", "initialize"]},
        ]);
        self.grant(&self.types, "init-agent", &rules).await;
    }

    /// Targets get a status, which the agent may write.
    pub(crate) async fn give_status(&self) {
        let of = ["apiextensions.k8s.io/v1", "customresourcedefinitions"];
        let name = "inittargets.initialization.kcp.io";
        let mut version = definitions()[0]["spec"]["versions"][0].clone();
        version["subresources"] = json!({"status": {}});
        version["schema"]["openAPIV3Schema"]["properties"]["status"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let patch = json!({"spec": {"versions": [version]}});
        self.conf.merge_patch(of[0], of[1], "", name, &patch).await;
        let rules =
            json!([{"apiGroups": ["initialization.kcp.io"], "resources": ["inittargets/status"], "verbs": ["patch"]}]);
        self.grant(&self.conf, "init-agent-status", &rules).await;
    }

    /// Gives the agent's user rights in a workspace.
    pub(crate) async fn grant(&self, at: &Objects, name: &str, rules: &Value) {
        create(
            at,
            &json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}),
        )
        .await;
        create(
            at,
            &json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self.user}]}),
        )
        .await;
    }

    /// Takes all those rights away.
    pub(crate) async fn revoke(&self, at: &Objects, name: &str) {
        at.delete(RBAC, "clusterrolebindings", "", name).await;
        at.delete(RBAC, "clusterroles", "", name).await;
    }

    /// Starts the agent, with more flags.
    pub(crate) fn agent(&self, flags: &[&str]) -> Agent {
        let file = self.stage.kubeconfig(&self.folder, "", Some(&self.user), |_| {});
        Agent::start(&file, &self.conf_path, flags)
    }

    /// Makes a type, with more in its spec, and waits until it has the URL of its virtual workspace.
    pub(crate) async fn new_type(&self, name: &str, more: Value) {
        let mut object = json!({"apiVersion": TENANCY, "kind": "WorkspaceType", "metadata": {"name": name},
            "spec": {"initializer": true}});
        if let (Some(spec), Value::Object(more)) = (object["spec"].as_object_mut(), more) {
            spec.extend(more);
        }
        create(&self.types, &object).await;
        becomes(
            &self.types,
            [TENANCY, "workspacetypes", "", name],
            "has a URL",
            |object| {
                object["status"]["virtualWorkspaces"]
                    .to_string()
                    .contains("/initializingworkspaces/")
            },
        )
        .await;
    }

    /// Makes the type `base`, and `dev`, whose workspaces wait for its initializer too.
    pub(crate) async fn dev_on_base(&self) {
        self.new_type("base", Value::Null).await;
        let with = json!([{"name": "base", "path": self.types_path}]);
        self.new_type("dev", json!({"extend": {"with": with}})).await;
    }

    /// Makes a template.
    pub(crate) async fn template(&self, name: &str, text: &str) {
        create(
            &self.conf,
            &json!({"apiVersion": INIT, "kind": "InitTemplate", "metadata": {"name": name}, "spec": {"template": text}}),
        )
        .await;
    }

    /// Changes it.
    pub(crate) async fn repair(&self, name: &str, text: &str) {
        let patch = json!({"spec": {"template": text}});
        self.conf.merge_patch(INIT, "inittemplates", "", name, &patch).await;
    }

    /// Makes a target for a type, whose sources are these templates.
    pub(crate) async fn target(&self, name: &str, of_type: &str, templates: &[&str]) {
        self.target_with(name, of_type, &sources(templates), json!({})).await;
    }

    /// The same with these sources and labels.
    pub(crate) async fn target_with(&self, name: &str, of_type: &str, sources: &Value, labels: Value) {
        create(
            &self.conf,
            &json!({"apiVersion": INIT, "kind": "InitTarget", "metadata": {"name": name, "labels": labels},
            "spec": {"workspaceTypeRef": {"path": self.types_path, "name": of_type}, "sources": sources}}),
        )
        .await;
    }

    /// Makes a type, a template and a target, all of one name.
    pub(crate) async fn serve(&self, name: &str, text: &str) {
        self.new_type(name, Value::Null).await;
        self.template(name, text).await;
        self.target(name, name, &[name]).await;
    }

    /// Makes a workspace of a type, which is then served or not.
    pub(crate) async fn workspace(&self, name: &str, of_type: &str) {
        let of_type = json!({"name": of_type, "path": self.types_path});
        create(&self.tenants, &workspace(name, &of_type)).await;
    }

    /// Its full path.
    pub(crate) fn path_of(&self, name: &str) -> String {
        format!("{}:{name}", self.tenants_path)
    }

    /// The workspace as its parent shows it.
    pub(crate) async fn shown(&self, name: &str) -> Value {
        let found = self.tenants.get(TENANCY, "workspaces", "", name).await;
        found.expect("it is there")
    }

    /// Waits until it is ready, and gives what is in it.
    pub(crate) async fn ready(&self, name: &str) -> Objects {
        becomes(&self.tenants, [TENANCY, "workspaces", "", name], "is ready", is_ready).await;
        self.inside(name).await
    }

    /// What is in it.
    pub(crate) async fn inside(&self, name: &str) -> Objects {
        self.stage.objects(&self.folder, &self.path_of(name), None).await
    }

    /// Waits until it is being initialized and waits for no more than one initializer, and gives its id.
    pub(crate) async fn waits(&self, name: &str) -> String {
        let found = becomes(&self.tenants, [TENANCY, "workspaces", "", name], "waits", |object| {
            let initializers = object["status"]["initializers"].as_array();
            object["status"]["phase"] == "Initializing" && initializers.is_some_and(|all| all.len() == 1)
        })
        .await;
        found["spec"]["cluster"].as_str().expect("it has an id").to_owned()
    }

    /// Checks for a while that it stays so.
    pub(crate) async fn keeps_waiting(&self, name: &str) {
        // What its parent shows may be behind.
        self.waits(name).await;
        holds_throughout("the workspace waits", A_WHILE, async || {
            let phase = self.shown(name).await["status"]["phase"].clone();
            (phase == "Initializing").then_some(()).ok_or(phase)
        })
        .await;
    }

    /// What the initializer of a type is called.
    pub(crate) async fn initializer(&self, of_type: &str) -> String {
        let found = self.types.get(TENANCY, "workspacetypes", "", of_type).await;
        let found = found.expect("it is there");
        let cluster = found["metadata"]["annotations"]["kcp.io/cluster"]
            .as_str()
            .expect("it has one");
        format!("{cluster}:{of_type}")
    }

    /// What the agent has asked for.
    pub(crate) fn requests(&self) -> Vec<AuditEvent> {
        self.stage.requests(&self.user)
    }
}

/// Sources that are these templates.
pub(crate) fn sources(templates: &[&str]) -> Value {
    templates
        .iter()
        .map(|name| json!({"template": {"name": name}}))
        .collect()
}

/// Whether a workspace is ready.
pub(crate) fn is_ready(object: &Value) -> bool {
    object["status"]["phase"] == "Ready"
}

fn workspace(name: &str, of_type: &Value) -> Value {
    json!({"apiVersion": TENANCY, "kind": "Workspace", "metadata": {"name": name}, "spec": {"type": of_type}})
}

/// Creates an object; kcp may know its type, its namespace or its rights a moment late.
pub(crate) async fn create(at: &Objects, object: &Value) {
    eventually("it can be created", SOON, async || {
        let created = at.try_create(object).await;
        created.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}
