//! Watches: what a side reports of its changes, as a stream of lines.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use kube_lite::{Body, Error};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::reading::{Filter, shown};
use super::refusal::Refusal;
use super::server::Server;
use super::store::{Change, Object};
use super::types;

/// How often an API server sends a bookmark.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// How late watches tell of a change while they are slow.
const LATE: Duration = Duration::from_secs(20);

/// An open watch.
pub struct Watch {
    server: Rc<Server>,
    filter: Filter,
    /// Everything up to here has been reported.
    position: u64,
    /// Lines that wait to be sent.
    lines: VecDeque<Bytes>,
    /// How many of them are of the list that it begins with, and how long each of those takes.
    listing: (usize, Duration),
    /// After how many of those it is cut.
    cut_in_list: Option<usize>,
    ends: Instant,
    bookmark: Option<Instant>,
    /// When it is to be cut.
    cut: Option<Instant>,
    /// The restart of the server that it belongs to.
    epoch: u32,
    over: bool,
}

impl Watch {
    /// A watch of what `filter` picks from `position` on.
    pub fn new(server: &Rc<Server>, filter: Filter, position: u64, seconds: u64) -> Self {
        let mut weather = server.weather.borrow_mut();
        let now = Instant::now();
        let cut = weather
            .cuts()
            .then(|| now + Duration::from_secs_f64(weather.dice.f64() * 30.0));
        let bookmark = (!weather.without_bookmarks()).then(|| now + BOOKMARKS);
        drop(weather);
        Self {
            server: Rc::clone(server),
            filter,
            position,
            lines: VecDeque::new(),
            listing: (0, Duration::ZERO),
            cut_in_list: None,
            ends: now + Duration::from_secs(seconds),
            bookmark,
            cut,
            epoch: server.epoch.get(),
            over: false,
        }
    }

    /// Begins with everything that there is, and the bookmark that says so.
    pub fn list_first(&mut self, objects: &[Object], version: u64, end: bool) {
        for object in objects {
            let line = line("ADDED", &shown(object, self.filter.metadata_only, false));
            self.lines.push_back(line);
        }
        if end {
            let bookmark = self.bookmark_line(version, true);
            self.lines.push_back(bookmark);
        }
        let lines = self.lines.len();
        let dice = &mut self.server.weather.borrow_mut().dice;
        let slow = if dice.bool() { dice.u64(1..40) } else { 0 };
        self.listing = (lines, Duration::from_millis(slow));
        if self.cut.is_some() && dice.bool() {
            self.cut_in_list = Some(dice.usize(0..=lines));
        }
    }

    /// A watch that says no more than that it failed.
    pub fn fail(&mut self, refusal: &Refusal) {
        let status: Value = serde_json::from_str(&refusal.body).expect("refusals of a watch are Status objects");
        self.lines.push_back(line("ERROR", &status));
        self.over = true;
    }

    /// The stream of its lines.
    pub fn body(self) -> Body {
        stream::unfold(Some(self), async |watch| {
            let mut watch = watch?;
            let item = watch.next().await?;
            let next = item.is_ok().then_some(watch);
            Some((item, next))
        })
        .boxed_local()
    }

    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        let server = Rc::clone(&self.server);
        loop {
            if self.listing.0 > 0 && !self.listing.1.is_zero() {
                sleep(self.listing.1).await;
            }
            let changed = server.changed.notified();
            let now = Instant::now();
            let down = server.weather.borrow().down();
            match down {
                // The connection is dead from here on, whatever becomes of the side.
                Some(true) => return std::future::pending().await,
                Some(false) => return Some(Err(reset())),
                None => {}
            }
            if server.epoch.get() != self.epoch {
                return Some(Err(reset()));
            }
            if self.cut_in_list == Some(0) {
                self.lines.clear();
                return Some(self.break_off());
            }
            if let Some(line) = self.lines.pop_front() {
                self.listing.0 = self.listing.0.saturating_sub(1);
                self.cut_in_list = self.cut_in_list.map(|left| left - 1);
                return Some(Ok(line));
            }
            if self.over {
                return None;
            }
            if self.cut.is_some_and(|cut| cut <= now) {
                self.cut = None;
                return Some(self.break_off());
            }
            if self.ends <= now || !self.is_served() {
                return None;
            }
            let wait = match self.advance(now) {
                Step::Reported => continue,
                Step::Due(due) => Some(due),
                Step::Nothing => self.send_bookmark(now),
            };
            if !self.lines.is_empty() {
                continue;
            }
            let until = [Some(self.ends), self.cut, wait]
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(self.ends);
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(until) => {}
            }
        }
    }

    fn is_served(&self) -> bool {
        let ty = &self.filter.ty;
        !ty.custom || types::find(&self.server.store.borrow(), &ty.group, &ty.version, &ty.resource).is_some()
    }

    /// Cut, half of the time in the middle of a line.
    fn break_off(&mut self) -> Result<Bytes, Error> {
        if self.server.weather.borrow_mut().dice.bool() {
            return Err(reset());
        }
        self.over = true;
        Ok(Bytes::from_static(b"{\"type\":\"MODIFIED\",\"object\":{\"metada"))
    }

    /// Looks at the next change that is due.
    fn advance(&mut self, now: Instant) -> Step {
        let store = self.server.store.borrow();
        let late = self.server.weather.borrow().is_late();
        let mut position = self.position;
        let mut reported = None;
        for change in store.since(self.position) {
            let due = change.at + LATE;
            if late && due > now && self.filter.is_about(&change.key) {
                self.position = position;
                return Step::Due(due);
            }
            position = change.version;
            reported = self.event(change);
            if reported.is_some() {
                break;
            }
        }
        self.position = position;
        drop(store);
        match reported {
            Some(line) => {
                self.lines.push_back(line);
                Step::Reported
            }
            None => Step::Nothing,
        }
    }

    fn event(&self, change: &Change) -> Option<Bytes> {
        if !self.filter.is_about(&change.key) {
            return None;
        }
        let fits = |object: &Option<Object>| object.as_ref().is_some_and(|object| self.filter.fits(object));
        let metadata_only = self.filter.metadata_only;
        let kind = match (fits(&change.before), fits(&change.after)) {
            (false, false) => return None,
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => {
                let before = change.before.as_ref().expect("it fits");
                let mut last = shown(before, metadata_only, false);
                last["metadata"]["resourceVersion"] = json!(change.version.to_string());
                return Some(line("DELETED", &last));
            }
        };
        let after = change.after.as_ref().expect("it fits");
        Some(line(kind, &shown(after, metadata_only, false)))
    }

    fn send_bookmark(&mut self, now: Instant) -> Option<Instant> {
        let due = self.bookmark?;
        if due > now {
            return Some(due);
        }
        self.bookmark = Some(now + BOOKMARKS);
        let version = self.server.store.borrow().version();
        if version >= self.position {
            let bookmark = self.bookmark_line(version, false);
            self.lines.push_back(bookmark);
        }
        self.bookmark
    }

    fn bookmark_line(&self, version: u64, end: bool) -> Bytes {
        let ty = &self.filter.ty;
        let mut metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        line(
            "BOOKMARK",
            &json!({"kind": ty.kind, "apiVersion": ty.api_version(), "metadata": metadata}),
        )
    }
}

enum Step {
    /// There is a line to send.
    Reported,
    /// There will be one then.
    Due(Instant),
    /// There is nothing to tell.
    Nothing,
}

fn reset() -> Error {
    Error::Unreachable("connection reset by peer".into())
}

fn line(kind: &str, object: &Value) -> Bytes {
    Bytes::from(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"))
}
