//! Two servers, a hub and an edge, and a few such pairs shared by the tests of a binary.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use http::Method;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::objects::{APPLY_PATCH, Objects, code, path};
use super::server::{Server, ServerOptions};
use super::story::SOON;
use super::{Syncer, eventually, unique_suffix};

/// What is special about the two servers of a pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairOptions {
    /// The hub.
    pub hub: ServerOptions,
    /// The edge.
    pub edge: ServerOptions,
}

impl PairOptions {
    /// An edge with a controller manager, and a hub without one, as a kcp workspace is.
    pub fn with_controllers_at_the_edge() -> Self {
        let both = Self::with_controller_managers();
        Self {
            hub: ServerOptions::default(),
            edge: both.edge,
        }
    }

    /// Both sides with a controller manager.
    pub fn with_controller_managers() -> Self {
        let side = ServerOptions {
            controller_manager: true,
            extra_args: Vec::new(),
        };
        Self {
            hub: side.clone(),
            edge: side,
        }
    }
}

/// A hub and an edge.
pub struct Pair {
    /// The side that holds the configs and the desired state.
    pub hub: Server,
    /// The side where the objects are wanted.
    pub edge: Server,
}

impl Pair {
    /// Starts both sides at the same time and installs `manifests/crds` at the hub.
    pub async fn start(options: PairOptions) -> Self {
        let (hub, edge) = tokio::join!(Server::start("hub", options.hub), Server::start("edge", options.edge));
        install_crds(&hub.objects()).await;
        Self { hub, edge }
    }

    /// Starts a syncer between the two sides as admin, with more arguments for `run`.
    pub fn syncer(&self, extra_args: &[&str]) -> Syncer {
        Syncer::start(&self.hub.kubeconfig(), &self.edge.kubeconfig(), extra_args)
    }
}

/// Pairs of a kind that run at once: each may have a test, and takes 600 MB and some of the processor for as long as the
/// binary runs. Most tests of other binaries than `sync` have servers of their own.
fn pairs() -> usize {
    if env!("CARGO_CRATE_NAME") == "sync" { 3 } else { 1 }
}

/// The pairs of this test binary, by what is special about them. They are never dropped; their processes end with the
/// test process.
static POOLS: Mutex<Vec<(PairOptions, &'static Pool)>> = Mutex::new(Vec::new());

/// Pairs that differ in nothing.
struct Pool {
    /// A permit for each pair that runs or may be started.
    free: Semaphore,
    /// Those that no test has.
    idle: Mutex<Vec<SharedPair>>,
}

struct SharedPair {
    pair: Pair,
    /// Namespaces that the test has named, to be emptied before the next one.
    namespaces: Mutex<Vec<String>>,
}

/// A shared pair, for the time of one test.
pub struct PairLease {
    /// Always there but while this is being dropped.
    shared: Option<SharedPair>,
    pool: &'static Pool,
    _permit: SemaphorePermit<'static>,
}

/// Waits until a shared pair is free, starts it if it is the first time, and clears it: both servers run, there are no
/// configs at the hub, and the namespaces of the test before are gone at both sides.
pub async fn shared_pair() -> PairLease {
    shared_pair_with(PairOptions::default()).await
}

/// As [`shared_pair`], with a controller manager at the edge.
pub async fn shared_pair_with_controllers() -> PairLease {
    shared_pair_with(PairOptions::with_controllers_at_the_edge()).await
}

/// As [`shared_pair`], of the pairs with these options.
pub async fn shared_pair_with(options: PairOptions) -> PairLease {
    let pool = pool(&options);
    let permit = pool.free.acquire().await.expect("it is never closed");
    let idle = lock(&pool.idle).pop();
    let shared = match idle {
        Some(mut shared) => {
            shared.clear().await;
            shared
        }
        None => SharedPair {
            pair: Pair::start(options).await,
            namespaces: Mutex::default(),
        },
    };
    PairLease {
        shared: Some(shared),
        pool,
        _permit: permit,
    }
}

fn pool(options: &PairOptions) -> &'static Pool {
    let mut pools = lock(&POOLS);
    if let Some((_, pool)) = pools.iter().find(|(known, _)| known == options) {
        return pool;
    }
    let pool = Box::leak(Box::new(Pool {
        free: Semaphore::new(pairs()),
        idle: Mutex::default(),
    }));
    pools.push((options.clone(), pool));
    pool
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it is locked")
}

impl SharedPair {
    async fn clear(&mut self) {
        self.pair.hub.restore().await;
        self.pair.edge.restore().await;
        let (hub, edge) = (self.pair.hub.objects(), self.pair.edge.objects());
        for plural in ["syncerconfigs", "edgesyncconfigs"] {
            hub.delete_all("edge.kubestellar.io/v2alpha1", plural, "").await;
        }
        // The record of what the syncer of the test before had synced, and its Lease.
        edge.delete_all("v1", "configmaps", "default").await;
        edge.delete_all("coordination.k8s.io/v1", "leases", "default").await;
        let namespaces = std::mem::take(&mut *lock(&self.namespaces));
        if !namespaces.is_empty() {
            tokio::join!(hub.remove_namespaces(&namespaces), edge.remove_namespaces(&namespaces));
        }
    }
}

impl PairLease {
    /// A name for a namespace that no other test uses, such as `shop-x7k2p`. The namespace is not created; it is
    /// removed from both sides, with all that is in it, before the next test gets the pair.
    pub fn namespace(&self, prefix: &str) -> String {
        let name = format!("{prefix}-{}", unique_suffix());
        lock(&self.shared().namespaces).push(name.clone());
        name
    }

    fn shared(&self) -> &SharedPair {
        self.shared.as_ref().expect("it is there until this is dropped")
    }
}

impl std::ops::Deref for PairLease {
    type Target = Pair;

    fn deref(&self) -> &Pair {
        &self.shared().pair
    }
}

impl std::ops::DerefMut for PairLease {
    fn deref_mut(&mut self) -> &mut Pair {
        let shared = self.shared.as_mut();
        &mut shared.expect("it is there until this is dropped").pair
    }
}

impl Drop for PairLease {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.hub.keep_folder();
            self.edge.keep_folder();
        }
        lock(&self.pool.idle).extend(self.shared.take());
    }
}

/// Installs all of `manifests/crds` and waits until their types are served.
pub async fn install_crds(objects: &Objects) {
    for (file, document) in crd_documents() {
        let stem = file.file_stem().and_then(|stem| stem.to_str());
        let parts = stem.and_then(|stem| stem.split_once('_'));
        let (group, plural) = parts.expect("files are named after group and plural");
        let name = format!("{plural}.{group}");
        let target = path("apiextensions.k8s.io/v1", "customresourcedefinitions", "", &name);
        let target = format!("{target}?fieldManager=harness&force=true");
        // Applied, since a test before may have left it, and again if that one is still going.
        eventually(&format!("{} is created", file.display()), SOON, async || {
            let body = document.clone().into_bytes();
            let applied = objects.send_bytes(Method::PATCH, &target, APPLY_PATCH, body).await;
            let crd = applied.map_err(|error| error.to_string())?;
            let is_there = crd["metadata"]["deletionTimestamp"].is_null();
            is_there
                .then_some(())
                .ok_or_else(|| "the one before is going".to_owned())
        })
        .await;
        wait_for_crd(objects, &name).await;
    }
}

/// Waits until the CRD `name` is established and the server answers for all of its versions and names them where it tells
/// what it serves.
pub async fn wait_for_crd(objects: &Objects, name: &str) {
    eventually(&format!("the CRD {name} is served"), SOON, async || {
        let crd = objects
            .try_get("apiextensions.k8s.io/v1", "customresourcedefinitions", "", name)
            .await;
        let crd = crd.map_err(|error| error.to_string())?.ok_or("there is no such CRD")?;
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if !conditions
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
        {
            return Err(format!("not established: {conditions:?}"));
        }
        let spec = &crd["spec"];
        let (group, plural) = (&spec["group"], &spec["names"]["plural"]);
        let versions = spec["versions"].as_array().into_iter().flatten();
        for version in versions.filter(|version| version["served"] == true) {
            let [group, version, plural] =
                [group, &version["name"], plural].map(|text| text.as_str().unwrap_or_default());
            is_served(objects, &format!("{group}/{version}"), plural).await?;
        }
        Ok(())
    })
    .await;
}

/// An error if a server does not list the objects of a type, or does not name the type or its version where it tells what
/// it serves. It comes to do these things one after the other.
async fn is_served(objects: &Objects, api_version: &str, plural: &str) -> Result<(), String> {
    let reported = |error: kube::Error| format!("{api_version} {plural}: {error}");
    objects.try_list(api_version, plural, "", "").await.map_err(reported)?;
    let types = objects.read(&format!("/apis/{api_version}")).await.map_err(reported)?;
    let groups = objects.read("/apis").await.map_err(reported)?;
    let mut types = types["resources"].as_array().into_iter().flatten();
    let groups = groups["groups"].as_array().into_iter().flatten();
    let mut versions = groups.flat_map(|group| group["versions"].as_array().into_iter().flatten());
    if !types.any(|one| one["name"] == plural) {
        return Err(format!("{api_version} does not name {plural}"));
    }
    if !versions.any(|one| one["groupVersion"] == api_version) {
        return Err(format!("{api_version} is not among the groups"));
    }
    Ok(())
}

/// The YAML documents in `manifests/crds`, each with the file that it is from.
fn crd_documents() -> Vec<(PathBuf, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/crds");
    let files = std::fs::read_dir(folder).expect("manifests/crds exists");
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.expect("manifests/crds can be read").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let mut documents = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("the file was listed above");
        for document in format!("\n{text}").split("\n---") {
            if document
                .lines()
                .any(|line| !line.trim().is_empty() && !line.starts_with('#'))
            {
                documents.push((path.clone(), document.to_owned()));
            }
        }
    }
    documents
}

impl Objects {
    /// Deletes the namespaces and all that is in them. It does by itself what takes a controller manager otherwise,
    /// so that it works without one.
    pub async fn remove_namespaces(&self, names: &[String]) {
        let mut existing = Vec::new();
        for name in names {
            if self.delete("v1", "namespaces", "", name).await {
                existing.push(name);
            }
        }
        if existing.is_empty() {
            return;
        }
        let types = self.namespaced_types().await;
        for name in existing {
            for (api_version, plural) in &types {
                self.delete_all(api_version, plural, name).await;
            }
            self.finalize(name).await;
        }
    }

    /// Removes the finalizer of an empty namespace that is being deleted, which makes it go.
    pub async fn finalize(&self, name: &str) {
        let path = format!("/api/v1/namespaces/{name}/finalize");
        let body = serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []},
        });
        match self.send(Method::PUT, &path, super::objects::JSON, Some(&body)).await {
            Ok(_) => {}
            // The controller manager was faster.
            Err(error) if matches!(code(&error), 404 | 409) => {}
            Err(error) => panic!("cannot finalize namespace {name}: {error}"),
        }
    }

    /// The namespaced types whose objects can be deleted together, each in the first version that is served.
    async fn namespaced_types(&self) -> Vec<(String, String)> {
        let groups = self.read("/apis").await.expect("the server lists its groups");
        let mut versions = vec!["v1".to_owned()];
        for group in groups["groups"].as_array().into_iter().flatten() {
            versions.extend(group["preferredVersion"]["groupVersion"].as_str().map(str::to_owned));
        }
        let mut types = Vec::new();
        for version in versions {
            let root = if version.contains('/') { "/apis" } else { "/api" };
            // A group whose CRD has just been deleted may be listed and yet not be served.
            let Ok(list) = self.read(&format!("{root}/{version}")).await else {
                continue;
            };
            for resource in list["resources"].as_array().into_iter().flatten() {
                let verbs = resource["verbs"].as_array().cloned().unwrap_or_default();
                if resource["namespaced"] == true && verbs.iter().any(|verb| verb == "deletecollection") {
                    types.extend(
                        resource["name"]
                            .as_str()
                            .map(|plural| (version.clone(), plural.to_owned())),
                    );
                }
            }
        }
        types
    }
}
