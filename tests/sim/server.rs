//! One simulated API server: a store behind the border of [`ApiServer`], and the weather between.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use edge_syncer::side::Side;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use kube_lite::{ApiServer, Error, Response};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use super::conversions::origin_of;
use super::fields::Writer;
use super::ledger::{Errand, Ledger, Write, key_of};
use super::patch::json_patch;
use super::refusal::Refusal;
use super::request::{Ask, Verb};
use super::store::{Key, Store};
use super::takers;
use super::types::{self, Type};
use super::verbs::{self, Preconditions, Written, merging};
use super::watch::Watch;
use super::weather::{Early, Late, Moment, Weather};

/// See the module's doc.
pub struct Server {
    /// Which side it is.
    pub side: Side,
    /// What it holds.
    pub store: RefCell<Store>,
    /// What goes wrong.
    pub weather: RefCell<Weather>,
    /// What is recorded of it.
    pub ledger: Rc<RefCell<Ledger>>,
    /// Wakes watches.
    pub changed: Notify,
    /// Counts restarts: no connection survives one.
    pub epoch: Cell<u32>,
    /// The other side, which objects here are copies of.
    pub other: OnceCell<Weak<Server>>,
    /// The ledger knows every change up to this version.
    pub noted: Cell<u64>,
    /// Namespaces and CRDs that are being emptied.
    pub closing: RefCell<BTreeSet<Key>>,
    /// CRDs whose types are served, and which discovery does not tell of yet.
    pub unreported: RefCell<BTreeSet<Key>>,
    start: Instant,
}

/// An answer, before the way back.
pub enum Answer {
    /// A whole body.
    Body(u16, String),
    /// A watch.
    Watch(Box<Watch>),
}

/// The way of one syncer process to a server.
pub struct Port {
    /// The server.
    pub server: Rc<Server>,
    /// The process.
    pub process: u32,
}

impl ApiServer for Port {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        let ask = Ask::read(request);
        async move { self.server.serve(self.process, ask).await }.boxed_local()
    }
}

/// Takes note of the end of a request, also when nobody waits for it any more.
struct UnderWay<'a> {
    server: &'a Server,
    process: u32,
    errand: Option<Errand>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(errand) = self.errand {
            self.server.ledger.borrow_mut().ends(self.process, errand);
        }
    }
}

impl Server {
    /// A server that holds what every cluster holds.
    pub fn new(side: Side, weather: Weather, ledger: Rc<RefCell<Ledger>>) -> Rc<Self> {
        let server = Rc::new(Self {
            side,
            store: RefCell::new(Store::new(
                &format!("{side}"),
                if side == Side::Hub { 1000 } else { 100 },
            )),
            weather: RefCell::new(weather),
            ledger,
            changed: Notify::new(),
            epoch: Cell::new(0),
            other: OnceCell::new(),
            noted: Cell::new(0),
            closing: RefCell::default(),
            unreported: RefCell::default(),
            start: Instant::now(),
        });
        for name in ["default", "kube-system"] {
            server.create("kube-apiserver", "namespaces", "", name, json!({}));
        }
        server
    }

    /// A server on its own in fine weather, and the way of a process to it.
    pub fn alone() -> (Rc<Self>, Port) {
        let server = Self::new(Side::Hub, Weather::fine(), Rc::new(RefCell::new(Ledger::new())));
        let port = Port {
            server: Rc::clone(&server),
            process: 1,
        };
        (server, port)
    }

    /// Objects here are copies of what `other` has.
    pub fn faces(&self, other: &Rc<Self>) {
        let _ = self.other.set(Rc::downgrade(other));
    }

    /// The wall clock as this server sees it.
    pub fn now(&self) -> String {
        wall_clock(self.start.elapsed().as_secs())
    }

    fn trace(&self, process: u32, ask: &Ask, what: &str) {
        let line = format!("p{process} {} {ask} -> {what}", self.side);
        self.ledger.borrow_mut().trace.add(line);
    }

    async fn latency(&self) {
        let milliseconds = self.weather.borrow_mut().dice.u64(1..40);
        sleep(Duration::from_millis(milliseconds)).await;
    }

    async fn serve(self: &Rc<Self>, process: u32, ask: Ask) -> Result<Response, Error> {
        let errand = Errand::of(self.side, &ask);
        if !self.ledger.borrow_mut().begins(process, self.side, &ask) {
            return std::future::pending().await;
        }
        let _under_way = UnderWay {
            server: self,
            process,
            errand,
        };
        let trap = Rc::clone(&self.weather.borrow().trap);
        let killed = trap.count();
        if killed == Some(Moment::Before) {
            self.trace(process, &ask, "KILLED before");
            trap.sprung.notify_one();
            return std::future::pending().await;
        }
        self.latency().await;
        let early = self.weather.borrow_mut().before(&ask);
        if early.is_some() {
            self.ledger.borrow_mut().is_spoiled(&ask);
        }
        match early {
            Some(Early::Reset) => {
                self.trace(process, &ask, "lost");
                return Err(Error::Unreachable("connection reset by peer".into()));
            }
            Some(Early::Silence) => {
                self.trace(process, &ask, "lost in silence");
                return std::future::pending().await;
            }
            Some(Early::Refused(refusal)) => return Ok(self.refuse(process, &ask, &refusal)),
            Some(Early::Page) => {
                self.trace(process, &ask, "200 a page");
                return Ok(whole(200, None, "<html><body>log in</body></html>"));
            }
            None => {}
        }
        self.between(&ask, Moment::Before);
        let result = self.perform(process, &ask);
        self.between(&ask, Moment::After);
        let late = self.weather.borrow_mut().after(&ask);
        if killed == Some(Moment::After) {
            self.trace(process, &ask, "KILLED after it took effect");
            trap.sprung.notify_one();
            return std::future::pending().await;
        }
        self.latency().await;
        self.answer(process, &ask, result, late).await
    }

    fn refuse(&self, process: u32, ask: &Ask, refusal: &Refusal) -> Response {
        self.trace(process, ask, &refusal.code.to_string());
        whole(refusal.code, refusal.retry_after, &refusal.body)
    }

    async fn answer(
        &self,
        process: u32,
        ask: &Ask,
        result: Result<Answer, Refusal>,
        late: Late,
    ) -> Result<Response, Error> {
        match late {
            Late::Reset => {
                self.trace(process, ask, "took effect, answer lost");
                return Err(Error::Unreachable("connection reset by peer".into()));
            }
            Late::Silence => {
                self.trace(process, ask, "took effect, answer lost in silence");
                return std::future::pending().await;
            }
            Late::TimedOut => return Ok(self.refuse(process, ask, &Refusal::timed_out())),
            Late::Arrives | Late::Cut(_) | Late::Truncated(_) => {}
        }
        let (status, body) = match result {
            Err(refusal) => return Ok(self.refuse(process, ask, &refusal)),
            Ok(Answer::Watch(watch)) => {
                self.trace(process, ask, "watches");
                return Ok(Response {
                    status: 200,
                    retry_after: None,
                    is_fair: false,
                    body: watch.body(),
                });
            }
            Ok(Answer::Body(status, body)) => (status, body),
        };
        let (share, cut) = match late {
            Late::Cut(share) => (share, true),
            Late::Truncated(share) => (share, false),
            _ => {
                self.trace(process, ask, &status.to_string());
                return Ok(whole(status, None, &body));
            }
        };
        self.ledger.borrow_mut().is_spoiled(ask);
        self.trace(
            process,
            ask,
            &format!("{status}, {}", if cut { "cut" } else { "truncated" }),
        );
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a length"
        )]
        let end = (body.len() as f64 * share) as usize;
        let part = Ok(Bytes::copy_from_slice(&body.as_bytes()[..end]));
        let reset = cut.then(|| Err(Error::Unreachable("connection reset by peer".into())));
        Ok(Response {
            status,
            retry_after: None,
            is_fair: false,
            body: stream::iter([part].into_iter().chain(reset)).boxed_local(),
        })
    }

    fn perform(self: &Rc<Self>, process: u32, ask: &Ask) -> Result<Answer, Refusal> {
        self.ledger
            .borrow_mut()
            .answered(process, self.side, ask, &self.store.borrow());
        if !ask.verb.writes() {
            let answer = self.read(ask);
            if let Err(refusal) = &answer
                && ask.verb == Verb::Get
                && refusal.code == 404
                && self.type_of(ask).is_ok()
            {
                self.ledger.borrow_mut().proved_absent(process, self.side, key_of(ask));
            }
            return answer;
        }
        let ty = self.type_of(ask)?;
        let key = key_of(ask);
        if ask.target.subresource == "status" && !ty.status {
            // What serves custom types knows the object and not the subresource.
            return Err(if ty.custom {
                Refusal::not_found(&ty, &key.name)
            } else {
                Refusal::no_type()
            });
        }
        let before = self.store.borrow().get(&key).cloned();
        let version = self.store.borrow().version();
        let answer = self.write(ask, &ty, &key);
        if self.store.borrow().version() != version {
            self.note_write(process, ask, &ty, before.as_deref());
            self.flush();
        }
        answer
    }

    fn note_write(&self, process: u32, ask: &Ask, ty: &Type, before: Option<&Value>) {
        let key = key_of(ask);
        let qualified = before
            .map_or_else(|| key.clone(), |copy| origin_of(&key, copy))
            .resource;
        let (served, hidden) = self.other.get().and_then(Weak::upgrade).map_or((true, None), |other| {
            let other = other.store.borrow();
            (
                types::by_name(&other, &qualified).is_some(),
                other.hidden.get(&*qualified).map(Instant::elapsed),
            )
        });
        let store = self.store.borrow();
        let takes = if ask.verb == Verb::Delete && self.side == Side::Edge {
            let other = self.other.get().and_then(Weak::upgrade);
            other.map_or_else(Vec::new, |hub| {
                let choices = self.ledger.borrow().choices;
                takers::kept(&hub.store.borrow(), &store, &key, choices)
            })
        } else {
            Vec::new()
        };
        let after = store.get(&key).cloned();
        let write = Write {
            process,
            side: self.side,
            ask,
            ty,
            before,
            after: after.as_deref(),
            origin_type_served: served,
            origin_type_hidden: hidden,
            hidden: &store.hidden,
            takes: &takes,
        };
        self.ledger.borrow_mut().syncer_wrote(&write);
    }

    fn write(&self, ask: &Ask, ty: &Type, key: &Key) -> Result<Answer, Refusal> {
        if self.side == Side::Edge && ask.verb != Verb::Delete {
            refuse_poison(ty, key)?;
        }
        let now = self.now();
        let by = Writer {
            manager: ask.query.get("fieldManager").map_or("unknown", String::as_str),
            subresource: &ask.target.subresource,
            now: &now,
        };
        let read = || serde_json::from_slice(&ask.body).map_err(|error| Refusal::bad_request(&error.to_string()));
        let mut store = self.store.borrow_mut();
        let store = &mut *store;
        let Written { object, created } = match ask.verb {
            Verb::Apply => verbs::apply(store, ty, key, read()?, by, ask.asked("force") == "true")?,
            Verb::MergePatch => {
                let change: Value = read()?;
                verbs::patch(store, ty, key, merging(&change), by)?
            }
            Verb::JsonPatch => {
                let change: Value = read()?;
                verbs::patch(store, ty, key, |object| json_patch(object, &change), by)?
            }
            Verb::Replace => verbs::replace(store, ty, key, read()?, by)?,
            Verb::Create => {
                let object: Value = read()?;
                verbs::create(store, ty, key, object, by, ask.asked("dryRun") == "All")?
            }
            Verb::Delete => {
                let options: Value = serde_json::from_slice(&ask.body).unwrap_or_default();
                // Nothing here belongs to anything else, so that the three of them do the same.
                if let Some(policy) = options["propagationPolicy"].as_str()
                    && !["Background", "Foreground", "Orphan"].contains(&policy)
                {
                    return Err(Refusal::unknown_propagation(policy));
                }
                let text = |field: &str| options["preconditions"][field].as_str().map(str::to_owned);
                let only_if = Preconditions {
                    uid: text("uid"),
                    resource_version: text("resourceVersion"),
                };
                let object = verbs::delete(store, ty, key, &only_if, &now)?;
                if store.get(key).is_none() {
                    let details = ty.details(&key.name);
                    let success = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                        "details": details});
                    return Ok(Answer::Body(200, success.to_string()));
                }
                Written { object, created: false }
            }
            _ => return Err(Refusal::bad_request("what is this?")),
        };
        Ok(Answer::Body(if created { 201 } else { 200 }, object.to_string()))
    }

    /// Reports what has changed: to the ledger, to watches, and to the controllers that live in the server.
    pub fn flush(self: &Rc<Self>) {
        let changes = self.store.borrow().since(self.noted.get()).to_vec();
        for change in &changes {
            self.noted.set(change.version);
            self.ledger.borrow_mut().changed(self.side, change);
            let Some(after) = &change.after else {
                continue;
            };
            let closes = &*change.key.resource == "namespaces" || &*change.key.resource == types::DEFINITIONS;
            if closes && after["metadata"]["deletionTimestamp"].is_string() {
                if self.closing.borrow_mut().insert(change.key.clone()) {
                    spawn_local(Rc::clone(self).close(change.key.clone(), self.epoch.get()));
                }
            } else if change.before.is_none() && &*change.key.resource == types::DEFINITIONS {
                spawn_local(Rc::clone(self).establish(change.key.clone(), self.epoch.get()));
            }
        }
        if !changes.is_empty() {
            self.changed.notify_waiters();
        }
    }

    /// Serves a new CRD after a while, unless the server restarts before, and reports it in discovery later still: a real
    /// server reads its own CRDs for that.
    pub async fn establish(self: Rc<Self>, key: Key, epoch: u32) {
        let (until_served, until_reported) = {
            let dice = &mut self.weather.borrow_mut().dice;
            (dice.u64(50..1500), dice.u64(100..2000))
        };
        sleep(Duration::from_millis(until_served)).await;
        if self.epoch.get() != epoch {
            return;
        }
        self.unreported.borrow_mut().insert(key.clone());
        self.ledger.borrow_mut().serves(self.side, &key.name);
        let conditions = json!([{"type": "Established", "status": "True"}]);
        self.patch_status("kube-apiserver", &key, &json!({"status": {"conditions": conditions}}));
        let finalizer = json!({"metadata": {"finalizers": ["customresourcecleanup.apiextensions.k8s.io"]}});
        self.patch("kube-apiserver", &key, &finalizer);
        sleep(Duration::from_millis(until_reported)).await;
        if self.epoch.get() == epoch {
            self.unreported.borrow_mut().remove(&key);
        }
    }

    /// Empties a namespace or a type that is going, and takes it away when nothing is left, unless the server restarts
    /// before.
    pub async fn close(self: Rc<Self>, key: Key, epoch: u32) {
        loop {
            let milliseconds = self.weather.borrow_mut().dice.u64(200..4000);
            sleep(Duration::from_millis(milliseconds)).await;
            if self.epoch.get() != epoch {
                return;
            }
            let contents: Vec<Key> = {
                let store = self.store.borrow();
                let within = |inner: &Key| {
                    inner.home().as_ref() == Some(&key)
                        || &*key.resource == types::DEFINITIONS && inner.resource == key.name
                };
                store
                    .all()
                    .map(|(inner, _)| inner.clone())
                    .filter(|inner| within(inner))
                    .collect()
            };
            if contents.is_empty() {
                break;
            }
            if self.side == Side::Hub && &*key.resource == types::DEFINITIONS {
                self.ledger.borrow_mut().taken.take(&contents);
            }
            for inner in contents {
                self.delete(&inner);
            }
        }
        self.closing.borrow_mut().remove(&key);
        self.store.borrow_mut().remove(&key);
        self.ledger
            .borrow_mut()
            .trace
            .add(format!("{}: is gone {key}", self.side));
        self.flush();
    }
}

/// Objects that the edge refuses whatever is done, by their names.
fn refuse_poison(ty: &Type, key: &Key) -> Result<(), Refusal> {
    match key.name.strip_prefix("poison-") {
        Some("422") => Err(Refusal::invalid(ty, &key.name, "data", "must be something else")),
        Some("403") => Err(Refusal::forbidden(ty, &key.name)),
        Some("500") => Err(Refusal::new(500, "InternalError", "a webhook failed", &json!({}))),
        _ => Ok(()),
    }
}

fn whole(status: u16, retry_after: Option<Duration>, body: &str) -> Response {
    let half = body.len() / 2;
    let (first, rest) = body.as_bytes().split_at(half);
    let chunks = [first, rest].map(|chunk| Ok(Bytes::copy_from_slice(chunk)));
    Response {
        status,
        retry_after,
        is_fair: false,
        body: stream::iter(chunks).boxed_local(),
    }
}

/// RFC 3339 of so many seconds after the beginning of 2026, with months of 31 days: it only has to grow.
fn wall_clock(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = (2026 + days / 372, days % 372 / 31 + 1, days % 31 + 1);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
