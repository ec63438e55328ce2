//! The chart `api-syncagent` of kcp, with another image: its arguments start ours.

use crate::of_role::Agent;
use crate::stage::Which;
use crate::support::{Syncer, free_port};
use crate::world::World;
use serde_json::{Value, json};

/// What the template `deployment.yaml` of chart 0.6.2 makes of its values. A pod has put in the names of its namespace and of
/// the agent.
fn arguments(values: &Value, [namespace, agent]: [&str; 2], [kcp, service]: [&str; 2]) -> Vec<String> {
    let text = |key: &str| values[key].as_str().filter(|text| !text.is_empty());
    let list = |key: &str| -> Vec<&str> {
        let all = values[key].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).collect()
    };
    let mut args = vec![
        format!("--namespace={namespace}"),
        format!("--enable-leader-election={}", values["enableLeaderElection"]),
    ];
    args.push(match (text("apiExportEndpointSliceName"), text("apiExportName")) {
        (Some(slice), _) => format!("--apiexportendpointslice-ref={slice}"),
        (None, export) => format!("--apiexport-ref={}", export.expect("the chart requires one of both")),
    });
    args.push(format!("--agent-name={agent}"));
    args.push(format!("--kcp-kubeconfig={kcp}"));
    args.extend(text("kubeconfig").map(|_| format!("--kubeconfig={service}")));
    for (key, flag) in [
        ("kubeconfigHostOverride", "kubeconfig-host-override"),
        ("kubeconfigCAFileOverride", "kubeconfig-ca-file-override"),
        ("publishedResourceSelector", "published-resource-selector"),
    ] {
        args.extend(text(key).map(|value| format!("--{flag}={value}")));
    }
    let disabled = list("disabledControllers");
    args.extend((!disabled.is_empty()).then(|| format!("--disabled-controllers={}", disabled.join(","))));
    args.extend(list("extraFlags").into_iter().map(str::to_owned));
    args
}

/// Called as the image of the Go agent calls its own.
fn start_by_name(world: &World, args: &[String]) -> Agent {
    let link = world.folder.path().join("api-syncagent");
    if !link.exists() {
        std::os::unix::fs::symlink(Syncer::program_with("publish"), &link).expect("a link can be made");
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Agent(Syncer::start_program(&link, &args, &[]))
}

pub(crate) async fn the_arguments_of_the_chart_start_the_agent(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let own = world.flags();
    let file = |flag: &str| {
        let mut values = own.iter().filter_map(|arg| arg.strip_prefix(&format!("--{flag}=")));
        values.next().expect("it is set").to_owned()
    };
    let files = [file("kcp-kubeconfig"), file("kubeconfig")];
    let files = [&*files[0], &*files[1]];
    let defaults = json!({"enableLeaderElection": true, "kubeconfigHostOverride": "", "kubeconfigCAFileOverride": "",
        "publishedResourceSelector": format!("world={}", world.suffix), "disabledControllers": [],
        "kubeconfig": "of-the-service-cluster", "extraFlags": ["--metrics-address=0"]});
    let with = |more: Value| {
        let mut values = defaults.clone();
        let values_of = values.as_object_mut().expect("it is an object");
        values_of.extend(more.as_object().cloned().unwrap_or_default());
        arguments(&values, [&world.space, "release"], files)
    };
    let mut agent = start_by_name(&world, &with(json!({"apiExportEndpointSliceName": world.export})));
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
    assert_eq!(copy["metadata"]["labels"]["syncagent.kcp.io/agent-name"], "release");
    let lease = world
        .local
        .get("coordination.k8s.io/v1", "leases", &world.space, "syncagent.release")
        .await;
    assert!(lease.is_some());
    agent.ends_well().await;
    // With all values, and the one of before.
    let ca = world.folder.path().join("ca.pem");
    std::fs::write(&ca, world.service.ca_pem()).expect("a file can be written");
    let health = format!("--health-address=127.0.0.1:{}", free_port());
    let all = json!({"apiExportName": world.export, "disabledControllers": ["apiexport", "apiresourceschema"],
        "kubeconfigHostOverride": world.service.url(), "kubeconfigCAFileOverride": ca,
        "extraFlags": ["--metrics-address=0", health, "--log-debug=true", "--log-format=Console",
            "--enable-server-side-apply=true"]});
    let mut agent = start_by_name(&world, &with(all));
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    world.copied(&consumer, "web", &json!({"size": 2})).await;
    agent.ends_well().await;
}
