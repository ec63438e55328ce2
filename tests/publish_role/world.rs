//! What a scenario has: a service cluster, which is a real API server, with types of its own; a workspace with an export;
//! consumers; and an agent that has exactly the rights of the manifests at both.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::of_role::Agent;
use crate::stage::{Stage, Which};
use crate::support::manifests::documents_in;
use crate::support::objects::{namespace, path};
use crate::support::process::Folder;
use crate::support::story::{SOON, becomes, crd, gone, install_crd};
use crate::support::{
    AuditEvent, KubeconfigParts, Objects, Server, ServerOptions, User, eventually, rbac, unique_suffix,
};

pub(crate) const APIS: &str = "apis.kcp.io/v1alpha1";
pub(crate) const SYNCAGENT: &str = "syncagent.kcp.io/v1alpha1";
const TENANCY: &str = "tenancy.kcp.io/v1alpha1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The finalizer of objects that have copies.
pub(crate) const FINALIZER: &str = "syncagent.kcp.io/cleanup";
/// How long something that must not happen is watched for.
pub(crate) const A_WHILE: Duration = Duration::from_millis(1_500);

/// See the module's doc.
pub(crate) struct World {
    pub(crate) stage: Stage,
    pub(crate) folder: Folder,
    pub(crate) service: &'static Server,
    /// What is on the service cluster.
    pub(crate) local: Objects,
    /// The end of all names.
    pub(crate) suffix: String,
    /// The group of the type `shops`.
    pub(crate) group: String,
    /// The export, and the name of the slice that kcp makes of it.
    pub(crate) export: String,
    pub(crate) provider_path: String,
    pub(crate) provider: Objects,
    /// Whom the agent speaks for in kcp.
    pub(crate) user: String,
    /// Where the agent's states and Lease are.
    pub(crate) space: String,
    /// How the agent reaches the service cluster: written once, since agents read it at any time.
    limited: PathBuf,
}

/// A workspace that has bound the export.
pub(crate) struct Consumer {
    /// The id of its cluster.
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) objects: Objects,
}

/// The service cluster of all scenarios but those that do something to it: each has its own group, its own
/// `PublishedResources` by a label, and its own namespaces.
async fn service() -> &'static Server {
    static SHARED: OnceCell<Server> = OnceCell::const_new();
    SHARED
        .get_or_init(async || {
            let server = Server::start("service", ServerOptions::default()).await;
            prepare(&server).await;
            server
        })
        .await
}

/// Installs what the manifests have for every service cluster.
pub(crate) async fn prepare(server: &Server) {
    let local = server.objects();
    let definitions = manifest("config/publishedresources.yaml");
    for definition in &definitions {
        install_crd(&[&local], definition).await;
    }
    for role in manifest("config/permissions.yaml") {
        if role["kind"] == "ClusterRole" {
            rbac::allow(&local, "api-syncagent", role["rules"].clone()).await;
        }
        if role["kind"] == "Role" && role["metadata"]["namespace"] == "default" {
            allow_in(&local, "default", &role["rules"]).await;
        }
    }
}

/// The documents of a manifest of the role.
fn manifest(name: &str) -> Vec<Value> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("manifests/publish")
        .join(name);
    documents_in(&file)
}

/// The slice that kcp makes of an export.
fn slice_of(export: &str) -> [&str; 4] {
    [APIS, "apiexportendpointslices", "", export]
}

/// Lets user `limited` do this in a namespace.
async fn allow_in(at: &Objects, space: &str, rules: &Value) {
    let metadata = json!({"name": "api-syncagent", "namespace": space});
    at.create(&json!({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules}))
        .await;
    at.create(&json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "api-syncagent"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]}))
        .await;
}

impl World {
    /// One on a kcp and a service cluster that others may use too.
    pub(crate) async fn of(which: Which) -> Self {
        Self::on(Stage::of(which).await).await
    }

    /// One on this kcp.
    pub(crate) async fn on(stage: Stage) -> Self {
        Self::between(stage, service().await).await
    }

    /// One on this kcp and this service cluster.
    pub(crate) async fn between(stage: Stage, service: &'static Server) -> Self {
        let (folder, suffix, user) = (Folder::create("publish"), unique_suffix(), Stage::new_user());
        let provider_path = format!("root:provider-{suffix}");
        workspace(&stage, &folder, &provider_path).await;
        let limited = KubeconfigParts::with(|parts| parts.user = User::Limited);
        let world = Self {
            local: service.objects(),
            limited: service.write_kubeconfig(&format!("limited-{suffix}"), &limited),
            group: format!("{suffix}.example.org"),
            export: format!("export-{suffix}"),
            provider: stage.objects(&folder, &provider_path, None).await,
            space: format!("agent-{suffix}"),
            provider_path,
            stage,
            folder,
            service,
            suffix,
            user,
        };
        world.local.create(&namespace(&world.space)).await;
        for role in manifest("config/permissions.yaml") {
            if role["kind"] == "Role" && role["metadata"]["namespace"] == "kcp-system" {
                allow_in(&world.local, &world.space, &role["rules"]).await;
            }
        }
        world.define("shops", true).await;
        create(
            &world.provider,
            &json!({"apiVersion": APIS, "kind": "APIExport", "metadata": {"name": world.export}}),
        )
        .await;
        // kcp makes its slice a moment later, and an agent that finds none ends.
        becomes(&world.provider, slice_of(&world.export), "is there", |_| true).await;
        world.grant(&world.provider).await;
        // Its rights are known a moment later.
        let own = world
            .stage
            .objects(&world.folder, &world.provider_path, Some(&world.user))
            .await;
        becomes(&own, slice_of(&world.export), "may be read", |_| true).await;
        world
    }

    /// Waits until kcp is back, whose administrator has a new token then.
    pub(crate) async fn is_back(&mut self, consumer: &mut Consumer) {
        self.provider = self.stage.objects(&self.folder, &self.provider_path, None).await;
        consumer.objects = self.stage.objects(&self.folder, &consumer.path, None).await;
        eventually("kcp is back", SOON, async || {
            let read = consumer.objects.read("/api/v1/namespaces/shop").await;
            read.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
    }

    /// Gives the agent's user in kcp what the manifests give, in one workspace.
    pub(crate) async fn grant(&self, at: &Objects) {
        let mut role = manifest("kcp/permissions.yaml").swap_remove(0);
        for rule in role["rules"].as_array_mut().into_iter().flatten() {
            if rule["resourceNames"].is_array() {
                rule["resourceNames"] = json!([self.export]);
            }
        }
        create(at, &role).await;
        create(
            at,
            &json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "api-syncagent"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "api-syncagent"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self.user}]}),
        )
        .await;
    }

    /// Makes a type on the service cluster, with the rights that the agent needs for it.
    pub(crate) async fn define(&self, plural: &str, namespaced: bool) {
        self.define_as(&crd(&self.group, plural, namespaced)).await;
    }

    /// The same by a whole definition.
    pub(crate) async fn define_as(&self, definition: &Value) {
        install_crd(&[&self.local], definition).await;
        let plural = definition["spec"]["names"]["plural"].as_str().expect("it has one");
        self.allow(
            plural,
            json!([{"apiGroups": [self.group], "resources": [plural], "verbs":
            ["get", "list", "watch", "create", "update", "patch", "delete"]}]),
        )
        .await;
    }

    /// Lets the agent do more on the service cluster.
    pub(crate) async fn allow(&self, what: &str, rules: Value) {
        rbac::allow(&self.local, &format!("{what}-{}", self.suffix), rules).await;
    }

    /// The agent's flags.
    pub(crate) fn flags(&self) -> Vec<String> {
        let kcp = self.stage.kubeconfig(
            &self.folder,
            &format!("/clusters/{}", self.provider_path),
            Some(&self.user),
            |_| {},
        );
        vec![
            format!("--kcp-kubeconfig={}", kcp.display()),
            format!("--kubeconfig={}", self.limited.display()),
            format!("--namespace={}", self.space),
            format!("--apiexportendpointslice-ref={}", self.export),
            format!("--published-resource-selector=world={}", self.suffix),
            "--metrics-address=0".to_owned(),
        ]
    }

    /// Starts the agent, with more flags. Of two of one name, the later one counts.
    pub(crate) fn agent(&self, more: &[&str]) -> Agent {
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        let mut flags = self.flags();
        flags.retain(|flag| !more.iter().any(|other| name(other) == name(flag)));
        let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        flags.extend(more);
        Agent::of_role("publish", &flags)
    }

    /// The name of the agent, which is that of the slice and more.
    pub(crate) fn agent_name(&self) -> String {
        format!("{}-syncagent", self.export)
    }

    /// `PublishedResource` of this name for a kind of the group, with more in its spec.
    pub(crate) fn published(&self, name: &str, kind: &str, more: &Value) -> Value {
        let mut object = json!({"apiVersion": SYNCAGENT, "kind": "PublishedResource",
            "metadata": {"name": self.name_of(name), "labels": {"world": self.suffix}},
            "spec": {"resource": {"apiGroup": self.group, "kind": kind, "versions": ["v1"]}}});
        let spec = object["spec"].as_object_mut().expect("it is an object");
        spec.extend(more.as_object().cloned().unwrap_or_default());
        object
    }

    /// What a `PublishedResource` is called, which has no namespace.
    pub(crate) fn name_of(&self, name: &str) -> String {
        format!("{name}-{}", self.suffix)
    }

    /// Publishes shops, with more in the spec of their `PublishedResource`.
    pub(crate) async fn publish(&self, more: &Value) {
        self.local.create(&self.published("shops", "Shop", more)).await;
    }

    /// Changes how shops are published.
    pub(crate) async fn republish(&self, spec: &Value) {
        let patch = json!({"spec": spec});
        self.local
            .merge_patch(SYNCAGENT, "publishedresources", "", &self.name_of("shops"), &patch)
            .await;
    }

    /// Waits until a `PublishedResource` has the name of its schema, and gives that.
    pub(crate) async fn schema_of(&self, name: &str) -> String {
        let name = self.name_of(name);
        let at = [SYNCAGENT, "publishedresources", "", &name];
        let found = becomes(&self.local, at, "has a schema", |it| {
            it["status"]["resourceSchemaName"].is_string()
        })
        .await;
        found["status"]["resourceSchemaName"]
            .as_str()
            .expect("it has one")
            .to_owned()
    }

    /// Waits until the export has so many schemas, and so many claims, and gives it.
    pub(crate) async fn exports(&self, schemas: usize, claims: usize) -> Value {
        let at = [APIS, "apiexports", "", &self.export];
        let count = |list: &Value| list.as_array().map_or(0, Vec::len);
        becomes(&self.provider, at, "has its schemas and claims", |it| {
            count(&it["spec"]["latestResourceSchemas"]) == schemas && count(&it["spec"]["permissionClaims"]) == claims
        })
        .await
    }

    /// A workspace that has bound the export and accepts all of its claims; its types are served there.
    pub(crate) async fn consumer(&self, name: &str) -> Consumer {
        let consumer = self.visitor(name).await;
        let claims = [
            ["", "events"],
            ["", "namespaces"],
            ["", "secrets"],
            ["", "configmaps"],
            ["core.kcp.io", "logicalclusters"],
        ];
        self.bind(&consumer, &claims).await;
        consumer.objects.create(&namespace("shop")).await;
        consumer
    }

    /// A workspace that has not bound it.
    pub(crate) async fn visitor(&self, name: &str) -> Consumer {
        let path = format!("root:{name}-{}", self.suffix);
        Consumer {
            id: workspace(&self.stage, &self.folder, &path).await,
            objects: self.stage.objects(&self.folder, &path, None).await,
            path,
        }
    }

    /// Binds the export, and accepts claims, each a group and a plural.
    pub(crate) async fn bind(&self, consumer: &Consumer, claims: &[[&str; 2]]) {
        let claims = claims.iter().map(|[group, resource]| {
            let mut claim = json!({"resource": resource, "all": true, "state": "Accepted"});
            if !group.is_empty() {
                claim["group"] = json!(group);
            }
            claim
        });
        let claims: Vec<Value> = claims.collect();
        create(
            &consumer.objects,
            &json!({"apiVersion": APIS, "kind": "APIBinding", "metadata": {"name": self.export}, "spec":
                {"reference": {"export": {"path": self.provider_path, "name": self.export}}, "permissionClaims": claims}}),
        )
        .await;
        becomes(
            &consumer.objects,
            [APIS, "apibindings", "", &self.export],
            "is bound",
            |it| it["status"]["phase"] == "Bound",
        )
        .await;
    }

    /// The version of the group.
    pub(crate) fn v1(&self) -> String {
        format!("{}/v1", self.group)
    }

    /// A shop in the namespace `shop`.
    pub(crate) fn shop(&self, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": self.v1(), "kind": "Shop", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    }

    /// Opens a shop, once kcp serves the type.
    pub(crate) async fn open(&self, consumer: &Consumer, name: &str, spec: &Value) {
        create(&consumer.objects, &self.shop(name, spec)).await;
    }

    /// The shop as it is in a workspace.
    pub(crate) async fn origin(&self, consumer: &Consumer, name: &str) -> Value {
        let found = consumer.objects.get(&self.v1(), "shops", "shop", name).await;
        found.unwrap_or_else(|| panic!("{name} is there"))
    }

    /// Changes it.
    pub(crate) async fn edit(&self, consumer: &Consumer, name: &str, patch: &Value) {
        consumer
            .objects
            .merge_patch(&self.v1(), "shops", "shop", name, patch)
            .await;
    }

    /// All copies of the shops of a workspace.
    pub(crate) async fn copies(&self, consumer: &Consumer) -> Vec<Value> {
        let of = format!("syncagent.kcp.io/remote-object-cluster={}", consumer.id);
        self.local.list(&self.v1(), "shops", "", &of).await
    }

    /// Waits until the copy of a shop is as it should be, and gives it.
    pub(crate) async fn copy(
        &self,
        consumer: &Consumer,
        name: &str,
        what: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Value {
        eventually(&format!("the copy of {name} {what}"), SOON, async || {
            let mut all = self.copies(consumer).await;
            all.retain(|copy| copy["metadata"]["annotations"]["syncagent.kcp.io/remote-object-name"] == name);
            match all.as_slice() {
                [copy] if is_so(copy) => Ok(copy.clone()),
                other => Err(format!("there is {other:#?}")),
            }
        })
        .await
    }

    /// Waits until there is a copy with this spec, and gives it.
    pub(crate) async fn copied(&self, consumer: &Consumer, name: &str, spec: &Value) -> Value {
        self.copy(consumer, name, &format!("has {spec}"), |copy| copy["spec"] == *spec)
            .await
    }

    /// A consumer deletes an object, and waits until it is gone.
    pub(crate) async fn closes(&self, consumer: &Consumer, name: &str) {
        let version = self.v1();
        consumer.objects.delete(&version, "shops", "shop", name).await;
        gone(&consumer.objects, &version, "shops", "shop", name).await;
    }

    /// Waits until no copy of a workspace is left.
    pub(crate) async fn has_no_copies(&self, consumer: &Consumer) {
        eventually("all copies go", SOON, async || {
            let all = self.copies(consumer).await;
            all.is_empty().then_some(()).ok_or(format!("{all:#?}"))
        })
        .await;
    }

    /// Changes a copy, as an operator does.
    pub(crate) async fn touch(&self, copy: &Value, patch: &Value) -> Value {
        let at = place(copy);
        self.local.merge_patch(&self.v1(), "shops", &at.0, &at.1, patch).await
    }

    /// Writes its status, as an operator does.
    pub(crate) async fn operate(&self, copy: &Value, status: &Value) {
        let at = place(copy);
        self.local.patch_status(&self.v1(), "shops", &at.0, &at.1, status).await;
    }

    /// Waits until a shop is as it should be.
    pub(crate) async fn shows(
        &self,
        consumer: &Consumer,
        name: &str,
        what: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Value {
        becomes(&consumer.objects, [&self.v1(), "shops", "shop", name], what, is_so).await
    }

    /// The states that are kept for objects of a workspace.
    pub(crate) async fn states(&self, consumer: &Consumer) -> Vec<Value> {
        let of = format!(
            "syncagent.kcp.io/object-state=true,syncagent.kcp.io/remote-object-cluster={}",
            consumer.id
        );
        self.local.list("v1", "secrets", &self.space, &of).await
    }

    /// What the agent has asked kcp for.
    pub(crate) fn requests(&self) -> Vec<AuditEvent> {
        self.stage.requests(&self.user)
    }
}

/// Namespace and name of an object.
pub(crate) fn place(object: &Value) -> (String, String) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// Makes a workspace below the root, waits until it is ready, and gives its id.
async fn workspace(stage: &Stage, folder: &Folder, path_of: &str) -> String {
    let root = stage.objects(folder, "root", None).await;
    let name = path_of.trim_start_matches("root:");
    root.create(
        &json!({"apiVersion": TENANCY, "kind": "Workspace", "metadata": {"name": name},
        "spec": {"type": {"name": "universal", "path": "root"}}}),
    )
    .await;
    let made = becomes(&root, [TENANCY, "workspaces", "", name], "is ready", |it| {
        it["status"]["phase"] == "Ready"
    })
    .await;
    let at = stage.objects(folder, path_of, None).await;
    let spaces = path("v1", "namespaces", "", "default");
    eventually("it has a namespace", SOON, async || {
        at.read(&spaces).await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    made["spec"]["cluster"].as_str().expect("it has one").to_owned()
}

/// Creates an object; kcp may know its type, its namespace or its rights a moment late.
pub(crate) async fn create(at: &Objects, object: &Value) {
    eventually("it can be created", SOON, async || {
        let created = at.try_create(object).await;
        created.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}
