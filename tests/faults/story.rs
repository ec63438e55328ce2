//! What all faults have in common: a syncer between two servers, work before, during and after the fault, and what has
//! to be true in the end.
//!
//! There is work in all three flows: `ConfigMap`s and a Deployment go down, Secrets go up, and the Deployment's status
//! returns.
//!
//! Several syncers share a pair of servers, each with a namespace, a config and links of its own, so that the tests, which
//! mostly wait, can run at the same time.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::fault_proxy::{FaultProxy, Link};
use crate::support::modes::Mode;
use crate::support::objects::{config_map, secret, syncer_config};
use crate::support::stage::{CONFIG_API, all_of, stock};
use crate::support::statuses::{deployment, web};
use crate::support::story::upsync_all;
use crate::support::{Objects, Pair, PairOptions, Server, Syncer, eventually, lines, unique_suffix};

/// How long it may take until everything is synced after a fault has gone: the longest back-off, 30 s, and much more,
/// so that a busy machine fails no test.
pub(crate) const RECOVERED: Duration = Duration::from_secs(180);

/// Lines of log that a whole story may cost, beside those that tell of an object.
const LOG_LINES: usize = 30;

/// What there is of each type that changes: `changed` in each round, and one of the others goes in each.
const NAMES: [&str; 5] = ["kept", "changed", "gone-1", "gone-2", "gone-3"];

const DOWNSYNCED: &str = "edge.kubestellar.io/downsynced=true";
const UPSYNCED: &str = "edge.kubestellar.io/upsynced=true";

/// The pair of the tests that leave the servers alone.
pub(crate) async fn common_pair() -> &'static Pair {
    static PAIR: OnceCell<Pair> = OnceCell::const_new();
    PAIR.get_or_init(|| Pair::start(PairOptions::default())).await
}

/// Something that is synced.
pub(crate) struct Story {
    pub(crate) shop: String,
    hub: Objects,
    edge: Objects,
    /// The copies that are never to be created again, when they had arrived.
    kept: [Value; 3],
    /// How many times the hub was changed, and the edge.
    rounds: [u32; 2],
    pub(crate) syncer: Syncer,
}

impl Story {
    /// Selects a namespace with some objects.
    pub(crate) async fn prepare(hub: &Server) -> String {
        let shop = format!("shop-{}", unique_suffix());
        let hub = hub.objects();
        stock(&hub, &shop, &NAMES, &json!({"round": "0"})).await;
        hub.create(&deployment(&shop, "web:1")).await;
        let mut spec = all_of(&shop, &[("", "configmaps"), ("apps", "deployments")]);
        spec["upsync"] = json!([upsync_all("", &["secrets"], &shop)]);
        hub.create(&syncer_config(&shop, spec)).await;
        shop
    }

    /// Starts a syncer that cares for one namespace only, and for a sync target of its own: what other stories delete while
    /// it hears nothing would count among its copies, and its deletes would be held.
    pub(crate) fn syncer(shop: &str, hub: &Path, edge: &Path, mode: Mode) -> Syncer {
        let only = format!("--allow-namespace={shop}");
        let sync_target = format!("--sync-target-uid={shop}");
        let mut flags = vec![only.as_str(), sync_target.as_str()];
        flags.extend(mode);
        Syncer::start(hub, edge, &flags)
    }

    /// Waits until what was prepared has arrived at the edge, and what the edge has then at the hub.
    pub(crate) async fn begin(hub: &Server, edge: &Server, shop: String, syncer: Syncer) -> Self {
        Self::begin_within(RECOVERED, hub, edge, shop, syncer).await
    }

    /// As [`Story::begin`], with a deadline.
    pub(crate) async fn begin_within(
        deadline: Duration,
        hub: &Server,
        edge: &Server,
        shop: String,
        syncer: Syncer,
    ) -> Self {
        let mut story = Self {
            shop,
            hub: hub.objects(),
            edge: edge.objects(),
            kept: Default::default(),
            rounds: [0, 0],
            syncer,
        };
        story.is_synced_within(deadline).await;
        for name in NAMES {
            story.edge.create(&secret(&story.shop, name, "0")).await;
        }
        story.return_status().await;
        story.is_synced_within(deadline).await;
        story.kept = story.kept_copies().await;
        story
    }

    /// All of it, with a syncer between two links.
    pub(crate) async fn between(pair: &Pair, links: &Links, mode: Mode) -> Self {
        let shop = Self::prepare(&pair.hub).await;
        let (hub, edge) = (links.hub.kubeconfig(&pair.hub), links.edge.kubeconfig(&pair.edge));
        let syncer = Self::syncer(&shop, &hub, &edge, mode);
        Self::begin(&pair.hub, &pair.edge, shop, syncer).await
    }

    /// Talks to the servers of `pair` again, which have other certificates now.
    pub(crate) fn meet_again(&mut self, pair: &Pair) {
        self.hub = pair.hub.objects();
        self.edge = pair.edge.objects();
    }

    /// Changes, creates and deletes what goes down, at the hub, which must answer.
    pub(crate) async fn change_hub(&mut self) {
        self.rounds[0] += 1;
        let round = self.rounds[0];
        let data = json!({"round": round.to_string()});
        self.hub.replace(&config_map(&self.shop, "changed", data.clone())).await;
        self.hub
            .create(&config_map(&self.shop, &format!("new-{round}"), data))
            .await;
        let gone = format!("gone-{round}");
        self.hub.delete("v1", "configmaps", &self.shop, &gone).await;
    }

    /// Changes, creates and deletes what goes up, writes a status that returns, and tampers with a copy, all at the edge,
    /// which must answer.
    pub(crate) async fn change_edge(&mut self) {
        self.rounds[1] += 1;
        let round = self.rounds[1].to_string();
        self.edge.replace(&secret(&self.shop, "changed", &round)).await;
        self.edge
            .create(&secret(&self.shop, &format!("new-{round}"), &round))
            .await;
        let gone = format!("gone-{round}");
        self.edge.delete("v1", "secrets", &self.shop, &gone).await;
        self.return_status().await;
        let patch = json!({"data": {"round": "drifted"}});
        self.edge
            .merge_patch("v1", "configmaps", &self.shop, "kept", &patch)
            .await;
    }

    /// Writes a status at the edge.
    async fn return_status(&self) {
        let [api_version, plural, namespace, name] = web(&self.shop);
        let status = json!({"observedGeneration": self.rounds[1] + 1});
        self.edge
            .patch_status(api_version, plural, namespace, name, &status)
            .await;
    }

    /// Waits until both sides are as they have to be, in all three flows.
    pub(crate) async fn is_synced(&mut self) {
        self.is_synced_within(RECOVERED).await;
    }

    pub(crate) async fn is_synced_within(&mut self, deadline: Duration) {
        let what = format!("both sides are synced after rounds {:?}", self.rounds);
        eventually(&what, deadline, async || {
            let (hub, edge) = (&self.hub, &self.edge);
            self.are_equal("configmaps", "data", (hub, ""), (edge, DOWNSYNCED))
                .await?;
            self.are_equal("secrets", "data", (edge, ""), (hub, UPSYNCED)).await?;
            // These are few, and at both sides from the first time on.
            self.are_equal("deployments", "status", (edge, DOWNSYNCED), (hub, ""))
                .await
        })
        .await;
    }

    /// An error if copies differ from their origins in a field, or if one has no other.
    async fn are_equal(
        &self,
        plural: &str,
        field: &str,
        origins: (&Objects, &str),
        copies: (&Objects, &str),
    ) -> Result<(), String> {
        let wanted = self.contents(plural, field, origins).await?;
        let found = self.contents(plural, field, copies).await?;
        if found == wanted {
            return Ok(());
        }
        let named: Vec<String> = found.iter().map(|(name, _)| name.to_string()).collect();
        let (found, wanted, named) = (found.len(), wanted.len(), named.join(" "));
        Err(format!("{plural} by {field}: {found} of {wanted}: {named}"))
    }

    /// Waits for a line of log.
    pub(crate) async fn says(&mut self, text: &str, deadline: Duration) {
        self.syncer.wait_for_log(text, deadline).await;
    }

    /// Checks all that has to be true after any fault.
    pub(crate) async fn ends_well(&mut self) {
        self.change_hub().await;
        self.change_edge().await;
        self.is_synced().await;
        assert_eq!(self.kept_copies().await, self.kept, "nothing may be created again");
        assert!(self.syncer.is_running());
        let log = self.syncer.log();
        let of_object = |line: &&str| line.contains(" reason=Object");
        let lines = log.lines().filter(|line| !of_object(line)).count();
        assert!(lines <= LOG_LINES, "{lines} lines of log");
        let (status, _) = self.syncer.terminate().await;
        assert_eq!(status.code(), Some(0));
        // The syncers of other stories see all configs, and mark each of them.
        self.hub.delete(CONFIG_API, "syncerconfigs", "", &self.shop).await;
    }

    /// Checks that an outage of a side was reported by one line when it began and one when it ended.
    pub(crate) async fn reports_one_outage(&mut self, side: &str) {
        self.says(&lines::reachable(side), RECOVERED).await;
        let log = self.syncer.log();
        for text in [lines::unreachable(side), lines::reachable(side)] {
            let count = log.lines().filter(|line| line.contains(&text)).count();
            assert_eq!(count, 1, "{text}");
        }
    }

    /// The uids of one copy in each flow.
    async fn kept_copies(&self) -> [Value; 3] {
        let [api_version, plural, namespace, name] = web(&self.shop);
        let copies = [
            self.edge.get("v1", "configmaps", &self.shop, "kept").await,
            self.hub.get("v1", "secrets", &self.shop, "kept").await,
            self.edge.get(api_version, plural, namespace, name).await,
        ];
        copies.map(|copy| copy.expect("it is synced")["metadata"]["uid"].clone())
    }

    /// Names of the namespace's objects of a type at a side and with a label, in order, each with one field.
    async fn contents(
        &self,
        plural: &str,
        field: &str,
        (side, label): (&Objects, &str),
    ) -> Result<Vec<(Value, Value)>, String> {
        let version = if plural == "deployments" { "apps/v1" } else { "v1" };
        let found = side.try_list(version, plural, &self.shop, label).await;
        let found = found.map_err(|error| error.to_string())?;
        let short = |object: Value| (object["metadata"]["name"].clone(), object[field].clone());
        Ok(found.into_iter().map(short).collect())
    }
}

/// Links to both sides of a pair.
pub(crate) struct Links {
    pub(crate) hub: Link,
    pub(crate) edge: Link,
    _proxy: FaultProxy,
}

impl Links {
    pub(crate) async fn to(pair: &Pair) -> Self {
        let proxy = FaultProxy::start().await;
        Self {
            hub: proxy.link(&pair.hub).await,
            edge: proxy.link(&pair.edge).await,
            _proxy: proxy,
        }
    }

    /// The link to `hub` or `edge`.
    pub(crate) fn at(&self, side: &str) -> &Link {
        match side {
            "hub" => &self.hub,
            _ => &self.edge,
        }
    }
}
