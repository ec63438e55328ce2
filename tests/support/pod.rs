//! The Pod of a manifest, where there is no kubelet.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use super::objects::JSON;
use super::process::Folder;
use super::{Credential, KubeconfigParts, Server, Syncer};

/// Starts the syncer as the Pod of the Deployment would: with its arguments, its volume and its account.
pub async fn start_as_pod(edge: &Server, folder: &Folder, documents: &[Value]) -> Syncer {
    let secret = documents
        .iter()
        .find(|object| !object["stringData"].is_null())
        .expect("there is one");
    let space = secret["metadata"]["namespace"].as_str().expect("it has one");
    let name = secret["metadata"]["name"].as_str().expect("it has one");
    let stored = edge
        .objects()
        .get("v1", "secrets", space, name)
        .await
        .expect("it was applied");
    let text = stored["data"]["kubeconfig"].as_str().expect("it has the key");
    let text = STANDARD.decode(text).expect("it is base64");
    let volume = folder.write("kubeconfig", text);
    let deployment = documents.iter().find(|object| object["kind"] == "Deployment");
    let container = &deployment.expect("there is one")["spec"]["template"]["spec"]["containers"][0];
    let args = container["args"].as_array().expect("it has arguments");
    let mut words: Vec<String> = args
        .iter()
        .map(|arg| arg.as_str().expect("it is text").to_owned())
        .collect();
    for word in &mut words {
        *word = word.replace("/kubestellar/kubeconfig", &volume.display().to_string());
        *word = word.replace("$(NAMESPACE)", space);
        // Other tests have that port.
        *word = word.replace(":8080", "127.0.0.1:0");
    }
    let account = as_account(edge, space, name).await;
    words.insert(0, "run".to_owned());
    words.push(format!("--to-kubeconfig={}", account.display()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Syncer::start_raw(&words, &[("NAMESPACE", space)])
}

/// A kubeconfig of a service account at the edge, as its Pod has it.
async fn as_account(edge: &Server, namespace: &str, name: &str) -> PathBuf {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = edge.objects().send(Method::POST, &path, JSON, Some(&request)).await;
    let answer = answer.expect("the account gets a token");
    let parts = KubeconfigParts::with(|parts| parts.credential = Credential::TokenFile);
    let file = edge.write_kubeconfig(name, &parts);
    let token = answer["status"]["token"].as_str().expect("a token is text");
    std::fs::write(file.with_file_name(format!("{name}.token")), token).expect("the folder can be written");
    file
}
