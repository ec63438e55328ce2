//! What all faults have in common: a syncer between two servers, work before, during and after the fault, and what has
//! to be true in the end.
//!
//! Several syncers share a pair of servers, each with a namespace, a config and links of its own, so that the tests, which
//! mostly wait, can run at the same time.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::fault_proxy::{FaultProxy, Link};
use crate::support::modes::Mode;
use crate::support::objects::{config_map, syncer_config};
use crate::support::stage::{CONFIG_API, config_maps, stock};
use crate::support::{Objects, Pair, PairOptions, Server, Syncer, eventually, unique_suffix};

/// How long it may take until everything is in step after a fault has gone: the longest back-off, 30 s, and much more,
/// so that a busy machine fails no test.
pub(crate) const RECOVERED: Duration = Duration::from_secs(180);

/// Lines of log that a whole story may cost, beside those that tell of an object.
const LOG_LINES: usize = 30;

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
    /// The copy of `kept`, when it arrived.
    kept: Value,
    round: u32,
    pub(crate) syncer: Syncer,
}

impl Story {
    /// Selects a namespace with some objects.
    pub(crate) async fn prepare(hub: &Server) -> String {
        let shop = format!("shop-{}", unique_suffix());
        let hub = hub.objects();
        stock(
            &hub,
            &shop,
            &["kept", "changed", "gone-1", "gone-2", "gone-3"],
            &json!({"round": "0"}),
        )
        .await;
        hub.create(&syncer_config(&shop, config_maps(&shop, &["*"]))).await;
        shop
    }

    /// Starts a syncer that cares for one namespace only.
    pub(crate) fn syncer(shop: &str, hub: &Path, edge: &Path, mode: Mode) -> Syncer {
        let only = format!("--allow-namespace={shop}");
        let mut flags = vec![only.as_str()];
        flags.extend(mode);
        Syncer::start(hub, edge, &flags)
    }

    /// Waits until what was prepared has arrived at the edge.
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
            kept: Value::Null,
            round: 0,
            syncer,
        };
        story.is_in_step_within(deadline).await;
        story.kept = story.copy("kept").await.expect("it is in step");
        story
    }

    /// All of it, with a syncer between two links.
    pub(crate) async fn between(pair: &Pair, links: &Links, mode: Mode) -> Self {
        let shop = Self::prepare(&pair.hub).await;
        let (hub, edge) = (links.hub.kubeconfig(&pair.hub), links.edge.kubeconfig(&pair.edge));
        let syncer = Self::syncer(&shop, &hub, &edge, mode);
        Self::begin(&pair.hub, &pair.edge, shop, syncer).await
    }

    /// Talks to the servers of `pair` anew, which have other certificates now.
    pub(crate) fn meet_again(&mut self, pair: &Pair) {
        self.hub = pair.hub.objects();
        self.edge = pair.edge.objects();
    }

    /// Changes, creates and deletes something at the hub, which must answer.
    pub(crate) async fn change_hub(&mut self) {
        self.round += 1;
        let data = json!({"round": self.round.to_string()});
        self.hub.replace(&config_map(&self.shop, "changed", data.clone())).await;
        self.hub
            .create(&config_map(&self.shop, &format!("new-{}", self.round), data))
            .await;
        let gone = format!("gone-{}", self.round);
        self.hub.delete("v1", "configmaps", &self.shop, &gone).await;
    }

    /// Takes away a copy at the edge, which must answer.
    pub(crate) async fn disturb_edge(&self) {
        let patch = json!({"data": {"round": "drifted"}});
        self.edge
            .merge_patch("v1", "configmaps", &self.shop, "kept", &patch)
            .await;
    }

    /// Waits until the edge is as the hub wants it.
    pub(crate) async fn is_in_step(&mut self) {
        self.is_in_step_within(RECOVERED).await;
    }

    pub(crate) async fn is_in_step_within(&mut self, deadline: Duration) {
        let mut wanted = Vec::new();
        eventually("the hub answers", deadline, async || {
            wanted = self.contents(&self.hub, "").await?;
            Ok::<_, String>(())
        })
        .await;
        let what = format!("the edge is in step after round {}", self.round);
        eventually(&what, deadline, async || {
            let found = self.contents(&self.edge, "edge.kubestellar.io/downsynced=true").await?;
            if found == wanted {
                Ok(())
            } else {
                let named: Vec<String> = found.iter().map(|(name, _)| name.to_string()).collect();
                Err(format!(
                    "it has {} of {}: {}",
                    found.len(),
                    wanted.len(),
                    named.join(" ")
                ))
            }
        })
        .await;
    }

    /// Waits for a line of log.
    pub(crate) async fn says(&mut self, text: &str, deadline: Duration) {
        self.syncer.wait_for_log(text, deadline).await;
    }

    /// Checks all that has to be true after any fault.
    pub(crate) async fn ends_well(&mut self) {
        self.change_hub().await;
        self.is_in_step().await;
        let kept = self.copy("kept").await.expect("it is in step");
        assert_eq!(
            kept["metadata"]["uid"], self.kept["metadata"]["uid"],
            "nothing may be created again"
        );
        assert!(self.syncer.is_running());
        let log = self.syncer.log();
        let lines = log.lines().filter(|line| !line.contains("at the edge object=")).count();
        assert!(lines <= LOG_LINES, "{lines} lines of log");
        let (status, _) = self.syncer.terminate().await;
        assert_eq!(status.code(), Some(0));
        // The syncers of other stories see all configs, and mark each of them.
        self.hub.delete(CONFIG_API, "syncerconfigs", "", &self.shop).await;
    }

    /// Checks that an outage of a side was told by one line when it began and one when it ended.
    pub(crate) async fn tells_of_one_outage(&mut self, side: &str) {
        self.says(&format!("the {side} answers again"), RECOVERED).await;
        let log = self.syncer.log();
        for text in [format!("cannot reach the {side}"), format!("the {side} answers again")] {
            let count = log.lines().filter(|line| line.contains(&text)).count();
            assert_eq!(count, 1, "{text}");
        }
    }

    async fn copy(&self, name: &str) -> Option<Value> {
        self.edge.get("v1", "configmaps", &self.shop, name).await
    }

    /// Names and data of the namespace's objects, in order.
    async fn contents(&self, at: &Objects, labels: &str) -> Result<Vec<(Value, Value)>, String> {
        let found = at.try_list("v1", "configmaps", &self.shop, labels).await;
        let found = found.map_err(|error| error.to_string())?;
        let short = |object: Value| (object["metadata"]["name"].clone(), object["data"].clone());
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
