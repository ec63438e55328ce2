//! Short verbs for the objects of one API server, as plain JSON and without discovery.
//!
//! A resource is named by its `apiVersion` and its plural (`configmaps`); where it says so, the kind (`ConfigMap`)
//! does as well. The namespace `""` is for cluster-scoped objects, and for lists over all namespaces. The verbs panic
//! with the request and the server's reason when they fail; the `try_` variants and [`Objects::send`] return errors,
//! for use within [`super::eventually`] and where an error is what a test expects.

use std::path::Path;

use http::{Method, Request};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::POLL_INTERVAL;
pub use super::shapes::{config_map, edge_sync_config, namespace, path, plural, secret, syncer_config};

/// `Content-Type` of a JSON merge patch.
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// `Content-Type` of a JSON patch.
pub const JSON_PATCH: &str = "application/json-patch+json";
/// `Content-Type` of a server-side apply.
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";
/// `Content-Type` of a whole object.
pub const JSON: &str = "application/json";

/// The objects of one API server, seen through one client.
#[derive(Clone)]
pub struct Objects {
    client: Client,
}

impl Objects {
    /// Uses `client` for everything.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Uses what a kubeconfig says, by its current context or this one.
    pub async fn by_kubeconfig(file: &Path, context: Option<&str>) -> Self {
        let kubeconfig = Kubeconfig::read_from(file).expect("it can be parsed");
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .expect("it is complete");
        Self::new(Client::try_from(config).expect("its credentials can be used"))
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Creates an object; returns it as stored.
    pub async fn create(&self, object: &Value) -> Value {
        expect("create", &describe(object), self.try_create(object).await)
    }

    /// Creates an object; returns it as stored.
    pub async fn try_create(&self, object: &Value) -> Result<Value, kube::Error> {
        let (api_version, kind, namespace, _) = identity(object);
        self.send(
            Method::POST,
            &path(api_version, kind, namespace, ""),
            JSON,
            Some(object),
        )
        .await
    }

    /// Replaces an object as a whole; a `resourceVersion` in it is a precondition.
    pub async fn replace(&self, object: &Value) -> Value {
        expect("replace", &describe(object), self.try_replace(object).await)
    }

    /// Replaces an object as a whole; a `resourceVersion` in it is a precondition.
    pub async fn try_replace(&self, object: &Value) -> Result<Value, kube::Error> {
        self.send(Method::PUT, &path_of(object), JSON, Some(object)).await
    }

    /// Replaces the status of an object, through its status subresource.
    pub async fn replace_status(&self, object: &Value) -> Value {
        let path = format!("{}/status", path_of(object));
        expect(
            "replace the status of",
            &describe(object),
            self.send(Method::PUT, &path, JSON, Some(object)).await,
        )
    }

    /// Changes an object by a JSON merge patch: `null` removes a field.
    pub async fn merge_patch(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Value {
        let target = path(api_version, plural, namespace, name);
        expect(
            "patch",
            &target,
            self.send(Method::PATCH, &target, MERGE_PATCH, Some(patch)).await,
        )
    }

    /// Changes the status of an object by a JSON merge patch of its status subresource; `status` is its new content.
    pub async fn patch_status(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        name: &str,
        status: &Value,
    ) -> Value {
        let path = format!("{}/status", path(api_version, plural, namespace, name));
        let body = json!({"status": status});
        expect(
            "patch",
            &path,
            self.send(Method::PATCH, &path, MERGE_PATCH, Some(&body)).await,
        )
    }

    /// Applies an object on the server side as field manager `manager`, taking over contested fields.
    pub async fn apply_as(&self, manager: &str, object: &Value) -> Value {
        let path = format!("{}?fieldManager={manager}&force=true", path_of(object));
        expect(
            "apply",
            &describe(object),
            self.send(Method::PATCH, &path, APPLY_PATCH, Some(object)).await,
        )
    }

    /// Creates or replaces an object as the field manager `manager`, as clients without server-side apply do.
    pub async fn update_as(&self, manager: &str, object: &Value) -> Value {
        let path = format!("{}?fieldManager={manager}", path_of(object));
        expect(
            "update",
            &describe(object),
            self.send(Method::PUT, &path, JSON, Some(object)).await,
        )
    }

    /// The object, if it exists; `kind` is the plural or the kind.
    pub async fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        expect(
            "get",
            &path(api_version, kind, namespace, name),
            self.try_get(api_version, kind, namespace, name).await,
        )
    }

    /// The object, if it exists; `kind` is the plural or the kind.
    pub async fn try_get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, kube::Error> {
        found(self.read(&path(api_version, kind, namespace, name)).await)
    }

    /// The object as it is now at the server, if it still exists.
    pub async fn reread(&self, object: &Value) -> Option<Value> {
        expect("get", &describe(object), found(self.read(&path_of(object)).await))
    }

    /// The objects that match `label_selector` (`""`: all) in one or all namespaces.
    pub async fn list(&self, api_version: &str, kind: &str, namespace: &str, label_selector: &str) -> Vec<Value> {
        let path = path(api_version, kind, namespace, "");
        expect(
            "list",
            &path,
            self.try_list(api_version, kind, namespace, label_selector).await,
        )
    }

    /// The objects that match `label_selector` (`""`: all) in one or all namespaces.
    pub async fn try_list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        label_selector: &str,
    ) -> Result<Vec<Value>, kube::Error> {
        let selector = label_selector
            .replace('=', "%3D")
            .replace(',', "%2C")
            .replace('!', "%21")
            .replace(' ', "%20");
        let path = format!("{}?labelSelector={selector}", path(api_version, kind, namespace, ""));
        let mut list = self.read(&path).await?;
        Ok(match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        })
    }

    /// Deletes an object; `false` when there was none.
    pub async fn delete(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> bool {
        let path = path(api_version, kind, namespace, name);
        expect(
            "delete",
            &path,
            found(self.send(Method::DELETE, &path, JSON, None).await),
        )
        .is_some()
    }

    /// Deletes all objects of a type in one or all namespaces, and takes away the finalizers of those that linger.
    /// A type that the server does not have has no objects.
    pub async fn delete_all(&self, api_version: &str, kind: &str, namespace: &str) {
        let all = path(api_version, kind, namespace, "");
        // The answer names all that goes, however deep it is nested, and is of no interest.
        let deleted = once_ready(async || {
            let request = Request::delete(&all)
                .body(Vec::new())
                .expect("paths of tests are valid");
            self.client.request_text(request).await
        });
        if expect("delete", &all, found(deleted.await)).is_none() {
            return;
        }
        // The type itself may go meanwhile.
        let left = expect(
            "list",
            &all,
            found(self.try_list(api_version, kind, namespace, "").await),
        );
        for item in left.unwrap_or_default() {
            let metadata = &item["metadata"];
            let namespace = metadata["namespace"].as_str().unwrap_or_default();
            let path = path(
                api_version,
                kind,
                namespace,
                metadata["name"].as_str().unwrap_or_default(),
            );
            let body = json!({"metadata": {"finalizers": null}});
            expect(
                "patch",
                &path,
                found(self.send(Method::PATCH, &path, MERGE_PATCH, Some(&body)).await),
            );
        }
    }

    /// Reads any path; the answer must be JSON or `ok`.
    pub async fn read(&self, path: &str) -> Result<Value, kube::Error> {
        once_ready(async || {
            let request = Request::get(path).body(Vec::new()).expect("paths of tests are valid");
            let text = self.client.request_text(request).await?;
            Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
        })
        .await
    }

    /// Sends one request.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        self.send_bytes(method, path, content_type, body).await
    }

    /// Sends one request whose body need not be JSON.
    pub async fn send_bytes(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Value, kube::Error> {
        once_ready(async || {
            let request = Request::builder()
                .method(method.clone())
                .uri(path)
                .header("content-type", content_type)
                .body(body.clone())
                .expect("paths of tests are valid");
            self.client.request(request).await
        })
        .await
    }
}

/// Sends a request again as long as the server says that it is not ready for it, as one does for a moment that has just
/// got a CRD, or another form of one, or has just started.
async fn once_ready<T>(request: impl AsyncFn() -> Result<T, kube::Error>) -> Result<T, kube::Error> {
    loop {
        match request().await {
            Err(error) if matches!(code(&error), 429 | 503) => sleep(POLL_INTERVAL).await,
            other => return other,
        }
    }
}

/// The HTTP status code of an API error, 0 for any other.
pub fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

fn path_of(object: &Value) -> String {
    let (api_version, kind, namespace, name) = identity(object);
    path(api_version, kind, namespace, name)
}

fn describe(object: &Value) -> String {
    let (_, kind, namespace, name) = identity(object);
    format!("{kind}/{namespace}/{name}")
}

/// `apiVersion`, `kind`, namespace and name.
fn identity(object: &Value) -> (&str, &str, &str, &str) {
    let metadata = &object["metadata"];
    (
        object["apiVersion"].as_str().expect("an object has an apiVersion"),
        object["kind"].as_str().expect("an object has a kind"),
        metadata["namespace"].as_str().unwrap_or_default(),
        metadata["name"].as_str().unwrap_or_default(),
    )
}

fn found<T>(result: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if code(&error) == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn expect<T>(verb: &str, what: &str, result: Result<T, kube::Error>) -> T {
    result.unwrap_or_else(|error| panic!("cannot {verb} {what}: {error}"))
}
