//! Exec plugins: programs that a kubeconfig names to get credentials from (`client.authentication.k8s.io`).
//!
//! Promises: a plugin gets what kubectl gives it, and its credentials are kept only in memory; a message about one
//! names the program and what is wrong, and nothing of what it has printed on its output.

use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::error::BadField;

/// The versions of the exchange that are in use.
const VERSIONS: [&str; 2] = [
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
];

/// Runs the plugin, if the user entry names one, and returns the entry with the plugin's credentials instead.
pub(super) fn resolve(user: Map<String, Value>, cluster: &Map<String, Value>) -> Result<Map<String, Value>, BadField> {
    let Some(exec) = user.get("exec").filter(|exec| !exec.is_null()) else {
        return Ok(user);
    };
    let credentials = run(exec, cluster).map_err(|why| BadField::new("exec", why))?;
    let mut user = user;
    user.remove("exec");
    user.extend(credentials);
    Ok(user)
}

/// Makes a command with a folder in it absolute, as kubectl does.
pub(super) fn make_absolute(exec: &mut Value, folder: &Path) {
    let Some(Value::String(command)) = exec.get_mut("command") else {
        return;
    };
    if command.contains('/') {
        *command = folder.join(&*command).to_string_lossy().into_owned();
    }
}

fn run(exec: &Value, cluster: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let command = exec["command"].as_str().filter(|command| !command.is_empty());
    let command = command.ok_or("its command is missing")?;
    let version = exec["apiVersion"].as_str().unwrap_or_default();
    if !VERSIONS.contains(&version) {
        return Err(format!(
            "its apiVersion is {version:?}, and must be {}",
            VERSIONS.join(" or ")
        ));
    }
    let mut program = Command::new(command);
    for argument in exec["args"].as_array().into_iter().flatten() {
        program.arg(argument.as_str().ok_or("its args must be text")?);
    }
    for variable in exec["env"].as_array().into_iter().flatten() {
        let of = |field: &str| variable[field].as_str().ok_or("each env must have a name and a value");
        program.env(of("name")?, of("value")?);
    }
    program.env("KUBERNETES_EXEC_INFO", info(exec, version, cluster).to_string());
    // It may have to ask the user for something, so it shares our standard input and error.
    program.stdin(Stdio::inherit()).stderr(Stdio::inherit());
    let output = program.output().map_err(|error| {
        let hint = exec["installHint"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .replace('\n', " ");
        let hint = if hint.is_empty() { hint } else { format!(" ({hint})") };
        format!("{command} cannot be run: {error}{hint}")
    })?;
    if !output.status.success() {
        return Err(format!("{command} failed: {}", output.status));
    }
    credentials(&output.stdout, version).map_err(|why| format!("what {command} has printed cannot be used: {why}"))
}

/// The input of the plugin.
fn info(exec: &Value, version: &str, cluster: &Map<String, Value>) -> Value {
    let is_interactive = exec["interactiveMode"] != "Never";
    let mut spec = json!({"interactive": is_interactive && std::io::IsTerminal::is_terminal(&std::io::stdin())});
    if exec["provideClusterInfo"] == true {
        let mut known = Map::new();
        for field in [
            "server",
            "tls-server-name",
            "insecure-skip-tls-verify",
            "certificate-authority-data",
            "proxy-url",
        ] {
            if let Some(value) = cluster.get(field) {
                known.insert(field.to_owned(), value.clone());
            }
        }
        spec["cluster"] = known.into();
    }
    json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec})
}

/// The fields of a user entry that an answer stands for.
fn credentials(answer: &[u8], version: &str) -> Result<Map<String, Value>, &'static str> {
    // The parser's own words might quote a token.
    let answer: Value = serde_json::from_slice(answer).map_err(|_| "it is not JSON")?;
    if answer["kind"] != "ExecCredential" {
        return Err("it is no ExecCredential");
    }
    if answer["apiVersion"] != version {
        return Err("it has another apiVersion than the kubeconfig says");
    }
    let status = &answer["status"];
    let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
    let mut found = Map::new();
    if let Some(token) = text("token") {
        found.insert("token".into(), token.into());
    }
    match (text("clientCertificateData"), text("clientKeyData")) {
        (Some(certificate), Some(key)) => {
            found.insert("client-certificate-data".into(), STANDARD.encode(certificate).into());
            found.insert("client-key-data".into(), STANDARD.encode(key).into());
        }
        (None, None) if found.is_empty() => return Err("it has neither a token nor a client certificate"),
        (None, None) => {}
        _ => return Err("a client certificate and its key must come together"),
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = VERSIONS[0];

    #[test]
    fn takes_tokens_and_certificates_and_quotes_nothing() {
        for (status, expected) in [
            (json!({"token": "t"}), Ok(json!({"token": "t"}))),
            (
                json!({"clientCertificateData": "c", "clientKeyData": "k"}),
                Ok(json!({"client-certificate-data": "Yw==", "client-key-data": "aw=="})),
            ),
            (
                json!({"token": ""}),
                Err("it has neither a token nor a client certificate"),
            ),
            (
                json!({"token": "t", "clientKeyData": "k"}),
                Err("a client certificate and its key must come together"),
            ),
        ] {
            let answer = json!({"apiVersion": V1, "kind": "ExecCredential", "status": status}).to_string();
            let found = credentials(answer.as_bytes(), V1).map(Value::Object);
            assert_eq!(found, expected);
        }
        assert_eq!(credentials(b"secret", V1), Err("it is not JSON"));
        assert_eq!(credentials(b"{}", V1), Err("it is no ExecCredential"));
        let beta = json!({"apiVersion": VERSIONS[1], "kind": "ExecCredential"}).to_string();
        assert_eq!(
            credentials(beta.as_bytes(), V1),
            Err("it has another apiVersion than the kubeconfig says")
        );
    }

    #[test]
    fn commands_in_folders_are_relative_to_the_kubeconfig() {
        for (command, expected) in [
            ("plugin", "plugin"),
            ("./plugin", "/folder/./plugin"),
            ("/bin/plugin", "/bin/plugin"),
        ] {
            let mut exec = json!({"command": command});
            make_absolute(&mut exec, Path::new("/folder"));
            assert_eq!(exec["command"], expected);
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_plugin() {
        for (exec, expected) in [
            (json!({"apiVersion": V1}), "its command is missing"),
            (
                json!({"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}),
                "its apiVersion is \"client.authentication.k8s.io/v1alpha1\", and must be client.authentication.k8s.io/v1 or \
                 client.authentication.k8s.io/v1beta1",
            ),
            (
                json!({"command": "/nonexistent/plugin", "apiVersion": V1, "installHint": "get it\nthere"}),
                "/nonexistent/plugin cannot be run: No such file or directory (os error 2) (get it there)",
            ),
            (
                json!({"command": "false", "apiVersion": V1}),
                "false failed: exit status: 1",
            ),
            (
                json!({"command": "echo", "args": ["secret"], "apiVersion": V1}),
                "what echo has printed cannot be used: it is not JSON",
            ),
        ] {
            assert_eq!(run(&exec, &Map::new()), Err(expected.to_owned()));
        }
    }
}
