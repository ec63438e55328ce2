//! Histories of faults at both servers and of crashes, by seeds; `judge` says what must be so.

use std::collections::BTreeMap;
use std::sync::Mutex;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::front::Front;
use crate::judge::{self, History};
use crate::of_role::Agent;
use crate::simulated::{Chaos, Simulated};
use crate::stage::Stage;
use crate::support::objects::{namespace, secret};
use crate::support::process::complain;
use crate::world::{Consumer, World, create, place};

/// How many things happen in a history.
const STEPS: usize = 60;

struct Run {
    world: World,
    bound: Vec<Consumer>,
    stranger: Consumer,
    /// What stands before the service cluster.
    front: Front,
    /// The flag that leads there.
    flag: String,
    agent: Agent,
    rng: Rng,
    history: History,
    /// The names of copies, in whatever workspace, and of their objects.
    names: BTreeMap<String, String>,
}

/// A Secret that says whose it is.
fn key_of(tenant: &str, space: &str, name: &str) -> Value {
    let mut key = secret(space, name, tenant);
    key["metadata"]["annotations"] = json!({"tenant": tenant});
    key
}

async fn begin(seed: u64) -> Run {
    let world = World::on(Stage::Simulated(Simulated::start(2))).await;
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    world
        .allow(
            "keys",
            json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]),
        )
        .await;
    let related = json!([{"identifier": "keys", "origin": "kcp", "kind": "Secret",
        "object": {"reference": {"path": "spec.secret"}}}]);
    world.publish(&json!({"related": related})).await;
    let front = Front::of(world.service).await;
    let flag = format!("--kubeconfig={}", front.kubeconfig(world.service).display());
    let agent = world.agent(&[&flag]);
    world.exports(1, 3).await;
    let mut bound = Vec::new();
    for name in ["a", "b", "c"] {
        bound.push(world.consumer(name).await);
    }
    let stranger = world.visitor("stranger").await;
    stranger.objects.create(&namespace("shop")).await;
    for consumer in bound.iter().chain([&stranger]) {
        for at in 0..4 {
            let key = key_of(&consumer.id, "shop", &format!("key-{at}"));
            create(&consumer.objects, &key).await;
        }
    }
    Run {
        world,
        bound,
        stranger,
        front,
        flag,
        agent,
        rng: Rng::with_seed(seed),
        history: History::default(),
        names: BTreeMap::new(),
    }
}

impl Run {
    async fn step(&mut self) {
        let consumer = &self.bound[self.rng.usize(..self.bound.len())];
        let (world, id) = (&self.world, &consumer.id);
        let name = format!("s{}", self.rng.usize(..4));
        let size = self.rng.u32(..);
        let v1 = world.v1();
        match self.rng.u32(..20) {
            0..6 => {
                let mut spec = json!({"tenant": id, "size": size});
                if self.rng.bool() {
                    spec["secret"] = json!(format!("key-{}", &name[1..]));
                }
                // It may be there, or be on its way out.
                let _ = consumer.objects.try_create(&world.shop(&name, &spec)).await;
            }
            6..11 => {
                let edit = json!({"spec": {"size": size}});
                let path = crate::support::objects::path(&v1, "shops", "shop", &name);
                let patch_type = crate::support::objects::MERGE_PATCH;
                let _ = consumer
                    .objects
                    .send(http::Method::PATCH, &path, patch_type, Some(&edit))
                    .await;
            }
            11..13 => {
                self.history.deleted.insert((id.clone(), name.clone()));
                consumer.objects.delete(&v1, "shops", "shop", &name).await;
            }
            13..16 => self.operate(size).await,
            // Once in a while a shard leaves while it is worked on, and is back when nothing fails.
            16 if self.rng.bool() => {
                let shard = self.rng.usize(..2);
                self.world.stage.simulated().leaves_out(&[shard]);
            }
            16 => {
                self.world.stage.simulated().state().watches_cut += 1;
                let mut state = self.world.stage.simulated().state();
                state.changed.send_replace(0);
                if self.rng.bool() {
                    state.compacted = state.version;
                }
            }
            17 => {
                self.agent.0.kill();
                self.agent = self.world.agent(&[&self.flag]);
            }
            18 if self.rng.bool() => self.front_fails(),
            18 => {
                let chaos = Chaos::new(self.rng.u64(..), 25);
                self.world.stage.simulated().state().faults.chaos = Some(chaos);
            }
            _ => self.nothing_fails(),
        }
        self.learn().await;
        tokio::time::sleep(std::time::Duration::from_millis(self.rng.u64(..120))).await;
    }

    /// What stands before the service cluster gives answers of its own to some requests.
    fn front_fails(&mut self) {
        let rng = Mutex::new(Rng::with_seed(self.rng.u64(..)));
        self.front.answers(move |_, _| {
            let mut rng = rng.lock().expect("nothing panics while it is locked");
            let codes = [403, 404, 429, 500, 502, 503];
            (rng.u32(..5) == 0).then(|| (codes[rng.usize(..codes.len())], "something is wrong"))
        });
    }

    fn nothing_fails(&self) {
        self.front.passes();
        self.world.stage.simulated().state().faults.chaos = None;
        self.world.stage.simulated().leaves_out(&[]);
    }

    /// An operator writes the status of copies, and deletes one now and then.
    async fn operate(&mut self, size: u32) {
        let world = &self.world;
        let copies = world.local.list(&world.v1(), "shops", "", "").await;
        let Some(copy) = (!copies.is_empty()).then(|| &copies[self.rng.usize(..copies.len())]) else {
            return;
        };
        let (space, name) = place(copy);
        if self.rng.u32(..5) == 0 {
            let of = &copy["metadata"]["annotations"]["syncagent.kcp.io/remote-object-name"];
            let of = of.as_str().unwrap_or_default().to_owned();
            self.history.copies.insert((space.clone(), of));
            world.local.delete(&world.v1(), "shops", &space, &name).await;
            return;
        }
        let path = crate::support::objects::path(&world.v1(), "shops", &space, &name) + "/status";
        let status = json!({"status": {"tenant": space, "size": size}});
        // It may be gone.
        let patch_type = crate::support::objects::MERGE_PATCH;
        let _ = world
            .local
            .send(http::Method::PATCH, &path, patch_type, Some(&status))
            .await;
    }

    async fn learn(&mut self) {
        for copy in self.world.local.list(&self.world.v1(), "shops", "", "").await {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let name = text(&copy["metadata"]["annotations"]["syncagent.kcp.io/remote-object-name"]);
            self.names.insert(place(&copy).1, name);
        }
    }
}

async fn history(seed: u64) {
    complain(&format!("seed {seed}"));
    let mut run = begin(seed).await;
    for _ in 0..STEPS {
        run.step().await;
    }
    run.nothing_fails();
    judge::all_is_in_sync(&run.world, &run.bound).await;
    let all: Vec<&Consumer> = run.bound.iter().chain([&run.stranger]).collect();
    judge::nothing_is_in_another_tenants_place(&run.world, &all).await;
    judge::no_copy_went_without_its_object(&run.world, &run.names, &run.history);
    judge::nothing_of_a_stranger_has_changed(&run.stranger).await;
    // And all of it ends well.
    for consumer in &run.bound {
        for origin in consumer.objects.list(&run.world.v1(), "shops", "", "").await {
            let (space, name) = place(&origin);
            consumer.objects.delete(&run.world.v1(), "shops", &space, &name).await;
        }
    }
    judge::all_is_in_sync(&run.world, &run.bound).await;
    for consumer in &run.bound {
        run.world.has_no_copies(consumer).await;
        for key in consumer.objects.list("v1", "secrets", "shop", "").await {
            assert!(key["metadata"]["finalizers"].is_null(), "{key:#}");
        }
    }
    assert!(run.agent.0.is_running());
}

/// Seeds as tests: each is one history.
macro_rules! seeds {
    ($($(#[$ignored:meta])? $name:ident: $seed:expr;)+) => {
        $(
            $(#[$ignored])?
            #[tokio::test]
            async fn $name() {
                history($seed).await;
            }
        )+
    };
}

seeds! {
    history_1: 1;
    history_2: 2;
    history_3: 3;
    #[ignore = "it may find what others have not"]
    history_of_any_seed: fastrand::u64(..);
}
