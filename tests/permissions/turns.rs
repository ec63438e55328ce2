//! Each permission of the printed roles is taken out in turn: one line names it and the side, the rest continues, and what
//! it is for is done once it is back.

use serde_json::{Value, json};

use crate::bench::{Atom, OWN, Site, ensure_namespace, pair};
use crate::printed::selection;
use crate::support::objects::{config_map, edge_sync_config, syncer_config};
use crate::support::stage::{CONFIG_API, config_map_ref};
use crate::support::statuses::{deployment, set_status, web};
use crate::support::story::{SOON, arrives, becomes, copy_equals, gone};
use crate::support::{Objects, Syncer, eventually};

const DEPLOYMENTS: &str = "apps/v1";

/// What the rounds are about: in each, all that the syncer is for is done once.
struct Rounds {
    site: Site,
    shop: String,
    round: u32,
    /// What goes up is there in this round.
    has_sales: bool,
}

impl Rounds {
    /// Everything is synced, by a syncer that may do everything it needs.
    async fn begin() -> Self {
        let pair = pair().await;
        let shop = pair.namespace("shop");
        let hub = pair.hub.objects();
        hub.create(&syncer_config("demo", selection(&shop))).await;
        let refs = json!({"downSyncedResources": [config_map_ref(&shop, "keep")]});
        hub.create(&edge_sync_config("by-kind", refs)).await;
        let site = Site::prepare(pair, &["--leader-elect"]).await;
        let rounds = Self {
            site,
            shop,
            round: 0,
            has_sales: true,
        };
        let (hub, edge, shop) = (&rounds.site.hub, &rounds.site.edge, &*rounds.shop);
        ensure_namespace(hub, shop).await;
        hub.create(&deployment(shop, "web:0")).await;
        hub.create(&config_map(shop, "keep", json!({"round": "0"}))).await;
        let mut syncer = rounds.syncer(&[]);
        rounds.do_all().await;
        rounds.all_is_done(&mut syncer).await;
        let (status, _) = syncer.terminate().await;
        assert_eq!(status.code(), Some(0));
        assert!(arrives(edge, "v1", "configmaps", shop, "keep").await.is_object());
        rounds
    }

    fn syncer(&self, flags: &[&str]) -> Syncer {
        self.site
            .syncer(&[&["--leader-elect", "--heartbeat-interval=1s"], flags].concat())
    }

    /// What is new, changes and goes in this round.
    async fn do_all(&self) {
        let (hub, edge, shop, round) = (&self.site.hub, &self.site.edge, &*self.shop, self.round);
        let data = json!({"round": round.to_string()});
        hub.create(&config_map(shop, &format!("c{round}"), data.clone())).await;
        let mut other = deployment(shop, "other:1");
        other["metadata"]["name"] = json!(format!("d{round}"));
        hub.create(&other).await;
        hub.merge_patch("v1", "configmaps", shop, "keep", &json!({"data": data}))
            .await;
        let image = json!({"metadata": {"labels": {"round": round.to_string()}}});
        hub.merge_patch(DEPLOYMENTS, "deployments", shop, "web", &image).await;
        ensure_namespace(edge, shop).await;
        edge.delete("v1", "configmaps", shop, "sales").await;
        if self.has_sales {
            edge.create(&config_map(shop, "sales", data)).await;
        }
        if let Some(before) = round.checked_sub(1) {
            hub.delete("v1", "configmaps", shop, &format!("c{before}")).await;
            hub.delete(DEPLOYMENTS, "deployments", shop, &format!("d{before}"))
                .await;
            // There is a copy of it from the round before.
            set_status(edge, web(shop), true, &self.status()).await;
        }
    }

    fn status(&self) -> Value {
        json!({"observedGeneration": 1, "replicas": self.round})
    }

    /// Waits until everything of this round is done.
    async fn all_is_done(&self, syncer: &mut Syncer) {
        let (hub, edge, shop, round) = (&self.site.hub, &self.site.edge, &*self.shop, self.round);
        let data = json!({"round": round.to_string()});
        copy_equals(edge, shop, &format!("c{round}"), &data).await;
        copy_equals(edge, shop, "keep", &data).await;
        arrives(edge, DEPLOYMENTS, "deployments", shop, &format!("d{round}")).await;
        self.web_follows().await;
        if self.has_sales {
            copy_equals(hub, shop, "sales", &data).await;
        } else {
            gone(hub, "v1", "configmaps", shop, "sales").await;
        }
        if let Some(before) = round.checked_sub(1) {
            gone(edge, "v1", "configmaps", shop, &format!("c{before}")).await;
            gone(edge, DEPLOYMENTS, "deployments", shop, &format!("d{before}")).await;
            let status = self.status();
            let is_back = |object: &Value| object["status"] == status;
            becomes(hub, web(shop), "has its status", is_back).await;
        }
        assert!(syncer.is_running());
    }

    async fn web_follows(&self) {
        let round = json!(self.round.to_string());
        let follows = |object: &Value| object["metadata"]["labels"]["round"] == round;
        becomes(&self.site.edge, web(&self.shop), "follows", follows).await;
    }

    /// The side of a permission, and as its account sees it.
    fn at(&self, atom: &Atom) -> (&Objects, &Objects) {
        match atom.side {
            "hub" => (&self.site.hub, &self.site.accounts[0]),
            _ => (&self.site.edge, &self.site.accounts[1]),
        }
    }

    /// One round without a permission, and with it again.
    async fn without(&mut self, atom: &Atom) -> Option<String> {
        self.round += 1;
        self.has_sales = (atom.side, &*atom.verb, &*atom.resource) != ("hub", "delete", "configmaps");
        let (at, account) = self.at(atom);
        self.prepare(atom).await;
        atom.take_out(at, account).await;
        self.do_all().await;
        let mut syncer = self.syncer(flags_for(atom));
        self.provoke(atom, &mut syncer).await;
        let words = format!("cannot {} resource \\\"{}\\\"", atom.verb, atom.resource);
        syncer.wait_for_log(&words, SOON).await;
        self.rest_goes_on(atom).await;
        atom.give_back(at, account).await;
        self.all_is_done(&mut syncer).await;
        let log = syncer.log();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(&words)).collect();
        let (status, _) = syncer.terminate().await;
        assert_eq!(status.code(), Some(0), "{}", syncer.log());
        let side = format!("side={}", atom.side);
        let is_right = matches!(lines[..], [line] if line.contains(&side));
        (!is_right).then(|| format!("{} {}:\n{log}", atom.verb, atom.resource))
    }

    /// Makes sure that the permission will be asked for.
    async fn prepare(&self, atom: &Atom) {
        let (hub, edge, shop) = (&self.site.hub, &self.site.edge, &*self.shop);
        match (atom.side, &*atom.verb, &*atom.resource) {
            ("edge", "create", "leases") => {
                edge.delete("coordination.k8s.io/v1", "leases", OWN, "edge-syncer-site-7")
                    .await;
            }
            ("hub", "create", "configmaps") => {
                hub.delete("v1", "configmaps", shop, "sales").await;
            }
            ("hub", "create" | "patch", "edges") => {
                hub.delete(CONFIG_API, "edges", "", "site-7").await;
            }
            // A namespace that only the edge has: upsync creates it at the hub.
            ("hub", "create", "namespaces") => self.select_also(&format!("up-{shop}")).await,
            (_, _, "events") => self.make_conflict(atom).await,
            ("edge", "create" | "patch", "namespaces") => {
                ensure_namespace(hub, &self.other()).await;
                self.select_also(&self.other()).await;
            }
            _ => {}
        }
    }

    /// The copy of another syncer is in the place of one, which has Events on it and on the config. They are there already if
    /// they are to be patched.
    async fn make_conflict(&self, atom: &Atom) {
        let (hub, edge, shop) = (&self.site.hub, &self.site.edge, &*self.shop);
        let mut taken = config_map(shop, "taken", json!({}));
        taken["metadata"]["labels"] = json!({"edge.kubestellar.io/downsynced": "true"});
        taken["metadata"]["annotations"] = json!({
            "edge.kubestellar.io/downsynced": format!("ConfigMap/{shop}/taken"),
            "edge.kubestellar.io/owner": "uid/configmaps/another",
        });
        if atom.verb != "patch" {
            edge.create(&taken).await;
            hub.create(&config_map(shop, "taken", json!({}))).await;
            return;
        }
        let (at, namespace, about) = match atom.side {
            "hub" => (hub, "default", hub.get(CONFIG_API, "syncerconfigs", "", "demo").await),
            _ => (edge, shop, edge.get("v1", "configmaps", shop, "taken").await),
        };
        let uid = &about.expect("it is there")["metadata"]["uid"];
        let mut syncer = self.syncer(&[]);
        eventually("there is an Event", SOON, async || {
            let found = at.list("events.k8s.io/v1", "events", namespace, "").await;
            let is_there = found.iter().any(|event| event["regarding"]["uid"] == *uid);
            is_there.then_some(()).ok_or(found.len())
        })
        .await;
        syncer.terminate().await;
    }

    fn other(&self) -> String {
        format!("{}-{}", self.shop, self.round)
    }

    async fn select_also(&self, namespace: &str) {
        let mut spec = selection(&self.shop);
        spec["namespaceScope"]["namespaces"] = json!([self.shop, self.other()]);
        spec["upsync"][0]["namespaces"] = json!([self.shop, namespace]);
        let patch = json!({"spec": spec});
        self.site
            .hub
            .merge_patch(CONFIG_API, "syncerconfigs", "", "demo", &patch)
            .await;
    }

    /// What has to happen while the permission is missing, so that it is asked for.
    async fn provoke(&self, atom: &Atom, syncer: &mut Syncer) {
        let (hub, edge, shop) = (&self.site.hub, &self.site.edge, &*self.shop);
        match (atom.side, &*atom.verb, &*atom.resource) {
            // Configs are read one by one only when they are polled.
            ("hub", "get", "syncerconfigs" | "edgesyncconfigs") => {
                self.web_follows().await;
                let label = json!({"metadata": {"labels": {"round": self.round.to_string()}}});
                let name = if atom.resource == "syncerconfigs" {
                    "demo"
                } else {
                    "by-kind"
                };
                hub.merge_patch(CONFIG_API, &atom.resource, "", name, &label).await;
            }
            ("hub", "create", "namespaces") => {
                let namespace = format!("up-{shop}");
                ensure_namespace(edge, &namespace).await;
                edge.create(&config_map(&namespace, "sales", json!({}))).await;
            }
            _ => {}
        }
        assert!(syncer.is_running());
    }

    /// What does not need the permission is done without it.
    async fn rest_goes_on(&self, atom: &Atom) {
        let data = json!({"round": self.round.to_string()});
        match (&*atom.verb, &*atom.resource) {
            // Without all configs nobody knows what is to be synced, and without the Lease another syncer may be active.
            ("list", "syncerconfigs" | "edgesyncconfigs") | (_, "leases") => {}
            (_, "deployments") => {
                copy_equals(&self.site.edge, &self.shop, "keep", &data).await;
            }
            _ => self.web_follows().await,
        }
    }
}

/// Flags of the syncer with which a permission is asked for.
fn flags_for(atom: &Atom) -> &'static [&'static str] {
    match (&*atom.verb, &*atom.resource) {
        ("get", "syncerconfigs" | "edgesyncconfigs") => &["--mode=poll", "--poll-interval=1s"],
        _ => &[],
    }
}

async fn each_in_turn(side: &'static str) {
    let mut rounds = Rounds::begin().await;
    let printed = &rounds.site.printed[usize::from(side == "edge")];
    let atoms = Atom::all(side, printed);
    assert!(atoms.len() > 10, "{printed}");
    // Words of the only ones to take out, such as "patch deployments", for whoever looks into one.
    let only = std::env::var("EDGE_SYNCER_ATOM").unwrap_or_default();
    let mut wrong = Vec::new();
    for atom in &atoms {
        let name = format!("{} {}", atom.verb, atom.resource);
        if name.contains(&only) && !atom.is_covered(&atoms) {
            crate::support::process::complain(&format!("{side}: {name}"));
            wrong.extend(rounds.without(atom).await);
        }
    }
    assert!(wrong.is_empty(), "not one line that names it:\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn each_permission_at_the_hub_is_missed_and_picked_up() {
    Box::pin(each_in_turn("hub")).await;
}

#[tokio::test]
async fn each_permission_at_the_edge_is_missed_and_picked_up() {
    Box::pin(each_in_turn("edge")).await;
}
