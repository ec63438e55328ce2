//! What the tests about hostile peers share.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::support::objects::{JSON, code, path};
use crate::support::stage::CONFIG_API;
use crate::support::story::SOON;
use crate::support::{Objects, Server, Syncer, eventually, holds_throughout};

/// An object by `apiVersion`, plural, namespace and name.
pub(crate) type At<'a> = [&'a str; 4];

/// How long something is watched that must not happen, though the syncer waits for a second answer or a third before it
/// acts.
pub(crate) const LONG_ENOUGH: Duration = Duration::from_secs(15);

/// A syncer of the sync target of this UID.
pub(crate) fn syncer_of(target: &str, hub: &Server, edge: &Server) -> Syncer {
    let args = [
        "run".to_owned(),
        format!("--from-kubeconfig={}", hub.kubeconfig().display()),
        format!("--to-kubeconfig={}", edge.kubeconfig().display()),
        format!("--sync-target-uid={target}"),
        "--heartbeat-interval=1s".to_owned(),
    ];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Syncer::start_raw(&args, &[])
}

/// The UID of an object as it was stored.
pub(crate) fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().expect("it has a UID").to_owned()
}

/// Checks for so long that an object stays the one that it is.
pub(crate) async fn stays_the_same(at: &Objects, of: At<'_>, uid: &str, period: Duration) {
    let [api_version, plural, namespace, name] = of;
    holds_throughout(&format!("{plural} {namespace}/{name} stays"), period, async || match at
        .try_get(api_version, plural, namespace, name)
        .await
    {
        Ok(None) => Err("it is gone".to_owned()),
        Ok(Some(object)) if !object["metadata"]["deletionTimestamp"].is_null() => Err("it is going".to_owned()),
        Ok(Some(object)) if object["metadata"]["uid"] != uid => Err("it is another one".to_owned()),
        Ok(Some(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    })
    .await;
}

/// Waits until another object has the place of one, and gives it.
pub(crate) async fn is_recreated(at: &Objects, of: At<'_>, uid: &str) -> Value {
    let [api_version, plural, namespace, name] = of;
    eventually(
        &format!("{plural} {namespace}/{name} is recreated"),
        SOON,
        async || match at.try_get(api_version, plural, namespace, name).await {
            Ok(None) => Err("it is not there".to_owned()),
            Ok(Some(object)) if !object["metadata"]["deletionTimestamp"].is_null() => Err("it is going".to_owned()),
            Ok(Some(object)) if object["metadata"]["uid"] == uid => Err(format!("it is the same one: {object}")),
            Ok(Some(object)) => Ok(object),
            Err(error) => Err(error.to_string()),
        },
    )
    .await
}

/// Deletes an object and, in the background, what belongs to it. False if there is none.
pub(crate) async fn delete_with_all(at: &Objects, of: At<'_>) -> bool {
    let [api_version, plural, namespace, name] = of;
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
    let target = path(api_version, plural, namespace, name);
    match at.send(Method::DELETE, &target, JSON, Some(&options)).await {
        Ok(_) => true,
        Err(error) if code(&error) == 404 => false,
        Err(error) => panic!("cannot delete {target}: {error}"),
    }
}

/// Waits until a syncer has said in one line all of these words.
pub(crate) async fn says(syncer: &mut Syncer, words: &[&str]) {
    eventually(&format!("the syncer says {words:?}"), SOON, async || {
        assert!(syncer.is_running(), "the syncer has ended");
        let log = syncer.log();
        if log.lines().any(|line| words.iter().all(|word| line.contains(word))) {
            Ok(())
        } else {
            Err("it has not")
        }
    })
    .await;
}

/// Waits until a config says that deletes are held, for whatever reason.
pub(crate) async fn deletes_are_held(hub: &Objects, config: &str) {
    eventually("the config says that deletes are held", SOON, async || {
        let found = hub.try_get(CONFIG_API, "syncerconfigs", "", config).await;
        let config = found.map_err(|error| error.to_string())?.ok_or("there is no config")?;
        let conditions = config["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let held = conditions.iter().find(|one| one["type"] == "DeletesHeld");
        let held = held.ok_or_else(|| format!("no condition: {}", config["status"]))?;
        if held["status"] == "True" {
            Ok(())
        } else {
            Err(held.to_string())
        }
    })
    .await;
}
