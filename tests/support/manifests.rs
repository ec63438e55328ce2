//! What `kubectl kustomize` makes of `manifests/overlays/`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::kubectl;

/// The documents of an overlay, with `${name}` replaced by each value.
pub fn overlay(name: &str, values: &[(&str, &str)]) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("manifests/overlays")
        .join(name);
    let output = Command::new(kubectl()).arg("kustomize").arg(&folder).output();
    let output = output.expect("kubectl can be run");
    let mut text = String::from_utf8(output.stdout).expect("kubectl prints UTF-8");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (name, value) in values {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    assert!(!text.contains("${"), "a placeholder has no value: {text}");
    documents(&text)
}

/// The documents in a YAML text.
pub fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("it is YAML")
}

/// The documents in a file that was written.
pub fn documents_in(file: &Path) -> Vec<Value> {
    documents(&std::fs::read_to_string(file).expect("it was written"))
}
