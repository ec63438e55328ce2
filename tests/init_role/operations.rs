//! How it is run: scenarios 23 to 27 and 29.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use crate::agent::Agent;
use crate::objects::{FACTS, has_facts};
use crate::stage::{Stage, Which};
use crate::support::objects::namespace;
use crate::support::story::{SOON, becomes};
use crate::support::{Objects, eventually, free_port};
use crate::wire::fetch;
use crate::world::{INIT, TENANCY, World, create, definitions, sources};

const LEASES: &str = "coordination.k8s.io/v1";
const LEASE: &str = "init-agent.kcp.io";

/// What leader election needs, in a namespace of the config workspace.
async fn grant_leases(world: &World, space: &str) {
    let rbac = "rbac.authorization.k8s.io/v1";
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let rules = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}]);
    let metadata = json!({"name": "init-agent", "namespace": space});
    create(
        &world.conf,
        &json!({"apiVersion": rbac, "kind": "Role", "metadata": metadata, "rules": rules}),
    )
    .await;
    create(
        &world.conf,
        &json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "init-agent"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": world.user}]}),
    )
    .await;
}

async fn is_led(world: &World, space: &str) {
    becomes(&world.conf, [LEASES, "leases", space, LEASE], "has a holder", |lease| {
        lease["spec"]["holderIdentity"]
            .as_str()
            .is_some_and(|holder| !holder.is_empty())
    })
    .await;
}

pub(crate) async fn one_of_two_replicas_works_and_the_other_takes_over(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    grant_leases(&world, "default").await;
    let flags = ["--enable-leader-election=true", "--leader-election-namespace=default"];
    let mut first = world.agent(&flags);
    is_led(&world, "default").await;
    let mut second = world.agent(&flags);
    world.workspace("a", "dev").await;
    world.ready("a").await;
    assert!(second.0.is_running() && first.0.is_running());
    first.0.kill();
    world.workspace("b", "dev").await;
    let inside = world.ready("b").await;
    has_facts(&world, &inside, "b").await;
    second.ends_well().await;
    becomes(&world.conf, [LEASES, "leases", "default", LEASE], "is free", |lease| {
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty()
    })
    .await;
}

pub(crate) async fn a_server_that_restarts_finds_the_agent_alive(which: Which) {
    let mut world = World::on(Stage::own(which).await).await;
    world.serve("dev", FACTS).await;
    let mut agent = world.agent(&[]);
    world.workspace("before", "dev").await;
    world.ready("before").await;
    let away = if which == Which::Real { 30 } else { 3 };
    world.restart(Duration::from_secs(away)).await;
    world.workspace("after", "dev").await;
    let inside = world.ready("after").await;
    has_facts(&world, &inside, "after").await;
    assert!(agent.0.is_running());
    agent.ends_well().await;
}

/// The ports at which a process listens.
fn listens(pid: u32) -> BTreeSet<u16> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let sockets: Vec<String> = links
        .filter_map(|link| std::fs::read_link(link.path()).ok())
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let tables =
        ["tcp", "tcp6"].map(|name| std::fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default());
    let listed = tables.iter().flat_map(|table| table.lines());
    let ports = listed.filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_ours =
            fields.get(3) == Some(&"0A") && sockets.iter().any(|socket| fields.get(9) == Some(&socket.as_str()));
        let (_, port) = fields.get(1).filter(|_| is_ours)?.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok()
    });
    ports.collect()
}

pub(crate) async fn probes_and_metrics_are_where_flags_say_and_nowhere_else(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    let (metrics, health) = (free_port(), free_port());
    let at = [
        format!("--metrics-address=127.0.0.1:{metrics}"),
        format!("--health-address=127.0.0.1:{health}"),
    ];
    let agent = world.agent(&[&at[0], &at[1]]);
    world.workspace("w", "dev").await;
    world.ready("w").await;
    for (port, path) in [(metrics, "/metrics"), (health, "/healthz"), (health, "/readyz")] {
        eventually(&format!("{path} answers 200"), SOON, async || {
            match fetch(port, path).await {
                Ok((200, _)) => Ok(()),
                Ok((code, text)) => Err(format!("{code}: {text}")),
                Err(why) => Err(why),
            }
        })
        .await;
    }
    assert_eq!(listens(agent.0.pid()), BTreeSet::from([metrics, health]));
    let (_, text) = fetch(metrics, "/metrics").await.expect("it has answered before");
    for part in [
        "target=\"dev\"",
        "edge_syncer_init_requests_total{side=\"kcp\",verb=\"watch\",code=\"200\"} ",
        "edge_syncer_init_last_contact_timestamp_seconds{side=\"kcp\"} ",
        "process_open_fds ",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let (code, _) = fetch(metrics, "/healthz").await.expect("it has answered before");
    assert_eq!(code, 404, "each has its own address");
    drop(agent);
    let agent = world.agent(&["--metrics-address=0", "--health-address=0"]);
    world.workspace("again", "dev").await;
    world.ready("again").await;
    assert_eq!(listens(agent.0.pid()), BTreeSet::new());
}

pub(crate) async fn a_config_workspace_may_be_named_in_many_ways(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    let shown = world
        .conf
        .get("v1", "namespaces", "", "default")
        .await
        .expect("it is there");
    let id = shown["metadata"]["annotations"]["kcp.io/cluster"].as_str();
    let id = id.map_or_else(|| world.conf_path.clone(), str::to_owned);
    let as_path = format!("/clusters/{}", world.conf_path);
    let user = Some(world.user.as_str());
    let acts = |config: &mut serde_json::Value| config["users"][0]["user"]["as"] = json!(world.user);
    let file = |path: &str| world.stage.kubeconfig(&world.folder, path, user, |_| {});
    let acting = world.stage.kubeconfig(&world.folder, "", None, acts);
    let ways = [
        ("a path", file(""), world.conf_path.as_str()),
        (
            "another workspace in the server",
            file("/clusters/root:other"),
            &world.conf_path,
        ),
        ("the same with a slash", file("/clusters/root/"), &world.conf_path),
        ("a slash", file("/"), &world.conf_path),
        ("an id", file(""), &id),
        ("the path of a URL", file("/clusters/root"), &as_path),
        ("impersonation", acting, &world.conf_path),
    ];
    for (i, (way, file, workspace)) in ways.iter().enumerate() {
        crate::support::process::complain(&format!("by {way}"));
        let _agent = Agent::start(file, workspace, &[]);
        let name = format!("w-{i}");
        world.workspace(&name, "dev").await;
        has_facts(&world, &world.ready(&name).await, &name).await;
    }
}

/// The types of configs come by an export to the workspaces that have targets, here that of the tenants.
async fn configs_are_exported(world: &World) {
    let of_kcp = "apis.kcp.io/v1alpha1";
    let mut names = Vec::new();
    for definition in definitions() {
        let spec = &definition["spec"];
        let version = &spec["versions"][0];
        let name = format!(
            "v1.{}.initialization.kcp.io",
            spec["names"]["plural"].as_str().expect("it has one")
        );
        let version = json!({"name": version["name"], "served": true, "storage": true,
            "schema": version["schema"]["openAPIV3Schema"]});
        let schema = json!({"apiVersion": of_kcp, "kind": "APIResourceSchema", "metadata": {"name": name},
            "spec": {"group": spec["group"], "names": spec["names"], "scope": "Cluster", "versions": [version]}});
        create(&world.types, &schema).await;
        names.push(name);
    }
    let export = json!({"apiVersion": of_kcp, "kind": "APIExport", "metadata": {"name": "init"},
        "spec": {"latestResourceSchemas": names}});
    create(&world.types, &export).await;
    let content = json!([{"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": ["init"],
        "verbs": ["*"]}]);
    world.grant(&world.types, "content", &content).await;
    let reference = json!({"export": {"path": world.types_path, "name": "init"}});
    let binding = json!({"apiVersion": of_kcp, "kind": "APIBinding", "metadata": {"name": "init"},
        "spec": {"reference": reference}});
    create(&world.tenants, &binding).await;
    becomes(&world.tenants, [of_kcp, "apibindings", "", "init"], "is bound", |it| {
        it["status"]["phase"] == "Bound"
    })
    .await;
}

/// The id of the workspace of an object.
async fn id_of(at: &Objects, [version, plural, name]: [&str; 3]) -> String {
    let found = at.get(version, plural, "", name).await.expect("it is there");
    let id = found["metadata"]["annotations"]["kcp.io/cluster"].as_str();
    id.expect("kcp says so").to_owned()
}

pub(crate) async fn targets_may_come_from_all_workspaces_that_have_bound_an_export(which: Which) {
    let world = World::of(which).await;
    configs_are_exported(&world).await;
    world.new_type("dev", serde_json::Value::Null).await;
    let template = json!({"apiVersion": INIT, "kind": "InitTemplate", "metadata": {"name": "dev"},
        "spec": {"template": FACTS}});
    let target = json!({"apiVersion": INIT, "kind": "InitTarget", "metadata": {"name": "dev"},
        "spec": {"workspaceTypeRef": {"path": world.types_path, "name": "dev"}, "sources": sources(&["dev"])}});
    for object in [template, target] {
        create(&world.tenants, &object).await;
    }
    let export = id_of(&world.types, [TENANCY, "workspacetypes", "dev"]).await;
    let tenants = id_of(&world.tenants, [INIT, "inittargets", "dev"]).await;
    let file = world.stage.kubeconfig(&world.folder, "", Some(&world.user), |_| {});
    for (name, of) in [("all", "*"), ("one", &*tenants)] {
        let path = format!("/services/apiexport/{export}/init/clusters/{of}");
        let mut agent = Agent::start(&file, &path, &[]);
        world.workspace(name, "dev").await;
        has_facts(&world, &world.ready(name).await, name).await;
        agent.ends_well().await;
    }
}

pub(crate) async fn the_arguments_of_the_chart_start_the_agent(which: Which) {
    let world = World::of(which).await;
    world.new_type("dev", serde_json::Value::Null).await;
    world.template("dev", FACTS).await;
    let sources = crate::world::sources(&["dev"]);
    world.target_with("dev", "dev", &sources, json!({"app": "x"})).await;
    create(&world.conf, &namespace("kcp-init-agent")).await;
    grant_leases(&world, "kcp-init-agent").await;
    let file = world
        .stage
        .kubeconfig(&world.folder, "/clusters/root", Some(&world.user), |_| {});
    // In the order of the chart; what is after the selector are its extra flags.
    let args = [
        &format!("--config-workspace={}", world.conf_path),
        "--enable-leader-election=true",
        "--leader-election-namespace=kcp-init-agent",
        &format!("--kubeconfig={}", file.display()),
        "--init-target-selector=app=x",
        &format!("--metrics-address=127.0.0.1:{}", free_port()),
        &format!("--health-address=127.0.0.1:{}", free_port()),
        "--log-format=Console",
        "--log-debug=true",
    ];
    let mut agent = Agent::start_by_name(world.folder.path(), &args);
    is_led(&world, "kcp-init-agent").await;
    world.workspace("w", "dev").await;
    has_facts(&world, &world.ready("w").await, "w").await;
    agent.ends_well().await;
}

pub(crate) async fn an_agent_that_is_asked_to_end_does(which: Which) {
    let world = World::of(which).await;
    // Once before there is anything to do, once with a workspace that waits, once when all is done.
    let mut agent = world.agent(&[]);
    eventually("it asks for targets", SOON, async || {
        let has_asked = world.requests().iter().any(|event| event.uri.contains("inittargets"));
        has_asked.then_some(()).ok_or("it has not")
    })
    .await;
    agent.ends_well().await;
    world
        .serve(
            "dev",
            "apiVersion: nowhere.example.com/v1\nkind: Unknown\nmetadata: {name: u}\n",
        )
        .await;
    let mut agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    world.waits("w").await;
    world.keeps_waiting("w").await;
    agent.ends_well().await;
    world.repair("dev", FACTS).await;
    let mut agent = world.agent(&[]);
    has_facts(&world, &world.ready("w").await, "w").await;
    agent.ends_well().await;
}

pub(crate) async fn wrong_flags_end_the_agent_with_one_line(which: Which) {
    let world = World::of(which).await;
    let file = world.stage.kubeconfig(&world.folder, "", Some(&world.user), |_| {});
    let file = format!("--kubeconfig={}", file.display());
    let of = format!("--config-workspace={}", world.conf_path);
    for (args, code, words) in [
        (vec![file.as_str()], 1, "config-workspace"),
        (
            vec![&file, &of, "--init-target-selector=a in"],
            1,
            "init-target-selector",
        ),
        (vec![&file, &of, "--no-such-flag"], 2, "no-such-flag"),
        (vec![&file, &of, "--log-format=XML"], 2, "log-format"),
        (
            vec![&file, &of, "--enable-leader-election=true"],
            1,
            "leader-election-namespace",
        ),
    ] {
        let mut agent = Agent::start_raw(&args);
        let status = agent.0.wait(SOON).await;
        let log = agent.0.log();
        assert_eq!(status.code(), Some(code), "{args:?}: {log}");
        assert!(log.contains(words), "{args:?}: {log}");
        assert!(code != 1 || log.trim_end().lines().count() == 1, "{args:?}: {log}");
    }
}
