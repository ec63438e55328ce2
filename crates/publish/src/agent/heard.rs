//! What the agent hears of its sources.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use driver::queue::{Class, Done};
use driver::source::{Reading, SourceEvent, Style};
use kube_lite::meta::Meta;
use kube_lite::{Error, ObjectName, ResourceType, Workspaces};

use super::Agent;
use super::border::{Feed, Request};
use super::known::Seen;
use super::published::{Change, Misfit};
use super::report::{self, Subject};
use super::shards::Bound;
use super::watched::{self, LeadsTo, Meant, Rule};
use crate::kcp::{self, Export, parsed};
use crate::keys;
use crate::kinds::Origin;
use crate::rivals::{self, May};
use crate::sides::{Key, Location, Primary, Side};
use crate::turn::{AtHand, Copied};

impl Agent {
    pub(super) fn reported(&mut self, feed: Feed, event: SourceEvent) {
        if let SourceEvent::Down(_) | SourceEvent::Up = event {
            let (name, place) = (self.named(feed), self.place_of(driver::Feed::side(feed)));
            match &event {
                SourceEvent::Down(error) if feed == Feed::Slice && self.endpoints.is_no_slice(error) => {}
                SourceEvent::Down(error) => {
                    self.report.is_unreadable(feed, &name, error, &place, self.now);
                    self.may_lack_schema(feed, error);
                }
                _ => self.report.is_readable(feed, &name, &place, self.now),
            }
        }
        match feed {
            Feed::Published => self.of_published(event),
            Feed::Definitions => self.of_definitions(&event),
            Feed::Slice => self.of_slice(&event),
            Feed::Export => self.of_export(&event),
            Feed::Bindings(shard) => self.of_bindings(shard, event),
            Feed::Primaries(route, shard) => self.of_primaries(route, Side::Shard(shard), event),
            Feed::Copies(route) => self.of_copies(route, event),
            Feed::Related(route, rule) => self.of_related(route, rule, None, event),
            Feed::RelatedAt(route, rule, shard) => self.of_related(route, rule, Some(Side::Shard(shard)), event),
        }
    }

    /// Workspaces do not serve a type: somebody may have deleted its schema, which is made again then.
    fn may_lack_schema(&mut self, feed: Feed, error: &Error) {
        let Feed::Primaries(route, _) = feed else { return };
        let is_bound = self.shards.bound().is_some_and(|bound| bound > 0);
        let route = self
            .published
            .route(route)
            .filter(|_| is_bound && error.status().is_some());
        if let Some(route) = route {
            let key = Key::Published(route.resource.name.as_str().into());
            self.queue.add(key, Class::First, None);
        }
    }

    fn of_published(&mut self, event: SourceEvent) {
        let change = match event {
            SourceEvent::Begin(_) => return self.published.begin(),
            SourceEvent::Object(object) | SourceEvent::Unchanged(object) => self.published.is_there(object.bytes()),
            SourceEvent::Gone(object) => Ok(self.published.is_gone(object.bytes())),
            SourceEvent::Complete(_) => {
                for change in self.published.is_complete() {
                    self.follow(change);
                }
                for name in self.published.names().collect::<Vec<_>>() {
                    self.queue.hurry(&Key::Published(name));
                }
                self.rivals_are();
                return self.export_is_due();
            }
            SourceEvent::Unreadable(_) | SourceEvent::Up | SourceEvent::Down(_) => return,
        };
        match change {
            Ok(change) => self.follow(change),
            Err(misfit) => self.is_misfit(&misfit),
        }
        self.rivals_are();
    }

    /// Which PublishedResources want the same may have changed: the younger one of two ends, or may begin.
    pub(super) fn rivals_are(&mut self) {
        for (name, may, was_refused) in self.published.allowed() {
            match may {
                May::NotBeside(by) if !was_refused => {
                    if let Some(route) = self.published.is_refused(&name) {
                        self.leave_route(&name, route);
                    }
                    let (subject, uid) = (Subject::Published(Rc::clone(&name)), self.published.uid(&name));
                    let trouble = rivals::trouble(&by);
                    let record = self.report.published_fails(&subject, &name, &uid, &trouble, self.now);
                    self.record_here(record);
                }
                May::Publish if was_refused => {
                    self.published.is_free(&name);
                    self.queue.add(Key::Published(name), Class::First, None);
                }
                May::NotBeside(_) | May::Publish | May::Wait => {}
            }
        }
    }

    fn follow(&mut self, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Publish(name) => self.queue.add(Key::Published(name), Class::First, None),
            Change::Left(name, route) => {
                if let Some(route) = route {
                    self.leave_route(&name, route);
                }
                self.report.is_over(&Subject::Published(name), self.now);
            }
        }
    }

    fn is_misfit(&mut self, misfit: &Misfit) {
        self.follow_routes(&misfit.name, &misfit.outcome);
        let record = self.report.is_misfit(misfit, self.now);
        self.record_here(record);
    }

    /// A CRD is there or gone: whatever is published of its group may have changed.
    fn of_definitions(&mut self, event: &SourceEvent) {
        let (SourceEvent::Object(object) | SourceEvent::Gone(object)) = event else {
            return;
        };
        let group = object.meta.name.split_once('.').map_or("", |(_, group)| group);
        for name in self.published.of_group(group) {
            self.queue.add(Key::Published(name), Class::First, None);
        }
    }

    fn of_slice(&mut self, event: &SourceEvent) {
        self.endpoints.of_slice(event);
        self.endpoints_are();
    }

    fn of_export(&mut self, event: &SourceEvent) {
        self.endpoints.of_export(event);
        self.endpoints_are();
        let SourceEvent::Object(object) = event else { return };
        let Ok(export) = parsed::<Export>(object.bytes()) else {
            return;
        };
        self.export_uid = export.metadata.uid.as_str().into();
        self.export_is_due();
    }

    fn endpoints_are(&mut self) {
        if let Some(urls) = self.endpoints.urls() {
            self.shards_are(&urls);
        }
    }

    /// These are the virtual workspaces from now on.
    fn shards_are(&mut self, urls: &BTreeSet<Rc<str>>) {
        let [over, new] = self.shards.are(urls);
        let has_left = !over.is_empty();
        for (number, url) in over {
            let side = Side::Shard(number);
            self.leave(|_, shard, _| shard == side);
            self.end_feeds(|feed| driver::Feed::side(feed) == side);
            self.outbox.close(side);
            // What is under way there gets no answer.
            for primary in self.taken.of_shard(side) {
                self.namespaces.is_abandoned(&primary, self.now);
                self.pass_ends(&primary);
                self.is_done(&Key::Object(primary), Done::Finished);
            }
            report::shard_ends(&url);
        }
        for (number, url) in new {
            report::shard_begins(&url);
            self.outbox.open(Side::Shard(number), Location(url));
            let bindings = Reading::of_all(kcp::bindings(), Style::Whole);
            self.outbox.read(Feed::Bindings(number), bindings);
            for route in self.routes() {
                self.read_at(route, number);
            }
        }
        if has_left {
            self.forget_workspaces();
        }
        // Where there is no URL, nobody has bound the export.
        self.report.are_bound(self.shards.bound(), self.now);
    }

    fn of_bindings(&mut self, shard: u32, event: SourceEvent) {
        let is_complete = matches!(event, SourceEvent::Complete(_));
        let bound = match event {
            SourceEvent::Begin(_) => return self.shards.begins(shard),
            SourceEvent::Object(object) | SourceEvent::Unchanged(object) => self.shards.is_there(shard, object.bytes()),
            SourceEvent::Gone(object) => self.shards.is_gone(shard, object.bytes()),
            SourceEvent::Complete(_) => {
                let bound = self.shards.is_complete(shard);
                self.report.are_bound(self.shards.bound(), self.now);
                bound
            }
            SourceEvent::Unreadable(_) | SourceEvent::Up | SourceEvent::Down(_) => return,
        };
        self.is_bound(shard, &bound);
        for route in self.routes().into_iter().filter(|_| is_complete) {
            self.unseen_are_lost(route);
        }
    }

    fn routes(&self) -> Vec<u32> {
        self.published.routes().map(|(number, _)| number).collect()
    }

    fn is_bound(&mut self, shard: u32, bound: &Bound) {
        for workspace in &bound.left {
            let number = self.workspace(workspace);
            let side = Side::Shard(shard);
            self.leave(|_, shown, of| shown == side && of == number);
            report::is_unbound(workspace);
        }
        if !bound.left.is_empty() {
            self.forget_workspaces();
        }
        if bound.begins {
            // What was read of a type before somebody had bound it may have been an empty page without a version, and a
            // watch of that hears nothing.
            for route in self.routes() {
                self.end_feeds(|feed| feed.route() == Some(route) && driver::Feed::side(feed) == Side::Shard(shard));
                self.read_at(route, shard);
            }
        }
        if bound.begins || !bound.left.is_empty() {
            self.report.are_bound(self.shards.bound(), self.now);
        }
    }

    /// The number of a workspace.
    fn workspace(&mut self, name: &str) -> u32 {
        if let Some(number) = self.workspaces.get(name) {
            return *number;
        }
        let number = self.next_workspace;
        self.next_workspace += 1;
        self.workspaces.insert(name.into(), number);
        number
    }

    /// Workspaces that no shard shows any more are forgotten, once nothing of them is worked on.
    fn forget_workspaces(&mut self) {
        let (bound, shown) = (self.shards.workspaces(), self.objects.workspaces());
        let taken = &self.taken;
        let is_there =
            |name: &str, number: u32| bound.contains(name) || shown.contains(&number) || taken.has_any_of(number);
        let outbox = &mut self.outbox;
        self.workspaces.retain(|name, number| {
            let stays = is_there(name, *number);
            if !stays {
                outbox.request(Request::Forget(name.as_ref().into()));
            }
            stays
        });
    }

    fn of_primaries(&mut self, route: u32, shard: Side, event: SourceEvent) {
        match event {
            SourceEvent::Begin(_) => self.objects.begins(route, shard),
            SourceEvent::Object(object) | SourceEvent::Unchanged(object) => {
                let at_hand = AtHand::Primary(object.bytes().clone());
                if let Some((primary, seen)) = self.primary(route, shard, object.meta) {
                    self.objects.is_there(&primary, seen);
                    self.is_next(primary, Some(at_hand));
                }
            }
            SourceEvent::Gone(object) => {
                if let Some((primary, _)) = self.primary(route, shard, object.meta) {
                    self.primary_is_gone(&primary);
                }
            }
            SourceEvent::Complete(_) => {
                for primary in self.objects.is_complete(route, shard) {
                    self.primary_is_gone(&primary);
                }
                self.unseen_are_lost(route);
            }
            SourceEvent::Unreadable(_) | SourceEvent::Up | SourceEvent::Down(_) => {}
        }
    }

    fn primary(&mut self, route: u32, shard: Side, meta: Meta) -> Option<(Primary, Seen)> {
        let meta = meta.at(Workspaces::Many);
        let workspace = self.workspace(&meta.workspace);
        let primary = Primary {
            route,
            workspace,
            sides: [Side::Service, shard],
            name: meta.object_name(),
        };
        let seen = Seen {
            version: meta.version_number(),
            meant: watched::meant_by(self.published.route(route)?, Origin::Kcp, &meta.labels),
            is_ending: meta.deletion_timestamp.is_some(),
        };
        Some((primary, seen))
    }

    fn primary_is_gone(&mut self, primary: &Primary) {
        if self.objects.is_lost(primary) {
            return self.is_next(primary.clone(), None);
        }
        self.primary_is_over(primary);
    }

    fn of_copies(&mut self, route: u32, event: SourceEvent) {
        match event {
            SourceEvent::Begin(_) => self.objects.copies_begin(route),
            SourceEvent::Object(object) => {
                let due = self.copy_is_there(route, &object.meta);
                self.copy_makes_due(due, Some(AtHand::Copy(object.bytes().clone())));
            }
            SourceEvent::Unchanged(object) => {
                let due = self.copy_is_there(route, &object.meta);
                self.copy_makes_due(due, None);
            }
            SourceEvent::Gone(object) => {
                let of = self.of_copy(route, &object.meta);
                let due = of.and_then(|(of, ..)| self.copy_is_gone(route, &of));
                self.copy_makes_due(due, None);
            }
            SourceEvent::Complete(_) => {
                for of in self.objects.copies_are_complete(route) {
                    let due = self.copy_is_gone(route, &of);
                    self.copy_makes_due(due, None);
                }
                self.unseen_are_lost(route);
            }
            SourceEvent::Unreadable(_) | SourceEvent::Up | SourceEvent::Down(_) => {}
        }
    }

    /// Objects may have gone while nobody looked. What their workspaces say decides what becomes of their copies.
    fn unseen_are_lost(&mut self, route: u32) {
        let at = self.shards.at();
        let at: BTreeMap<Rc<str>, (Side, u32)> = at
            .into_iter()
            .map(|(name, shard)| (Rc::clone(&name), (Side::Shard(shard), self.workspace(&name))))
            .collect();
        for primary in self.objects.lose_unseen(route, |workspace| at.get(workspace).copied()) {
            self.is_next(primary, None);
        }
    }

    fn copy_makes_due(&mut self, primary: Option<Primary>, at_hand: Option<AtHand>) {
        if let Some(primary) = primary {
            self.is_next(primary, at_hand);
        }
    }

    fn copy_is_there(&mut self, route: u32, meta: &Meta) -> Option<Primary> {
        let (of, copy, meant) = self.of_copy(route, meta)?;
        self.objects.copy_is_there(route, &of, copy, meant)
    }

    fn copy_is_gone(&mut self, route: u32, of: &ObjectName) -> Option<Primary> {
        let namespace = self.objects.namespace_of_copy(route, of);
        let due = self.objects.copy_is_gone(route, of);
        if let Some(namespace) = namespace {
            self.has_left(namespace);
        }
        due
    }

    /// Something of the agent's is no longer in a namespace of the service cluster.
    pub(super) fn has_left(&mut self, namespace: Rc<str>) {
        if !self.objects.has_copy_in(&namespace) && self.namespaces.is_left(&namespace) {
            self.queue.add(Key::Namespace(namespace), Class::Last, None);
        }
    }

    /// Of which primary an object is the copy, and by which rules that is meant.
    fn of_copy(&self, route: u32, meta: &Meta) -> Option<(ObjectName, Copied, Meant)> {
        let copy = Copied {
            name: meta.object_name(),
            version: meta.version_number(),
        };
        let of = primary_of(meta).or_else(|| self.objects.whose(route, &copy.name))?;
        let meant = watched::meant_by(self.published.route(route)?, Origin::Service, &meta.labels);
        Some((of, copy, meant))
    }

    /// Something related has changed: the primaries that it belongs to are due. `shard` is where it is, if not on the
    /// service cluster.
    fn of_related(&mut self, route: u32, rule: Rule, shard: Option<Side>, event: SourceEvent) {
        let (SourceEvent::Object(mut object) | SourceEvent::Unchanged(mut object) | SourceEvent::Gone(mut object)) =
            event
        else {
            return;
        };
        let workspaces = shard.map_or(Workspaces::One, |_| Workspaces::Many);
        let Some(known) = self.published.route(route) else {
            return;
        };
        object.is_at(workspaces);
        let meta = &object.meta;
        // What belongs to an object may be seen before its copy is.
        let mut unseen = Vec::new();
        let due = match watched::leads_to(known, rule, meta, object.bytes()) {
            LeadsTo::Nobody => return,
            LeadsTo::Meant(namespace) => {
                let workspace = shard.map(|_| &*meta.workspace);
                self.objects.meant(route, rule, workspace, namespace.as_deref())
            }
            LeadsTo::Owners(names) => {
                let at = |of: &ResourceType| if of.namespaced { &*meta.namespace } else { "" };
                let mut of = |name: String| {
                    if shard.is_some() {
                        let namespace = at(known.remote());
                        Some(ObjectName::in_workspace(&meta.workspace, namespace, &name))
                    } else {
                        let of = self.objects.whose(route, &ObjectName::new(at(known.local()), &name));
                        if of.is_none() {
                            unseen = self.objects.being_placed(route);
                        }
                        of
                    }
                };
                let names: Vec<ObjectName> = names.into_iter().filter_map(&mut of).collect();
                names
                    .iter()
                    .filter_map(|name| self.objects.primary(route, name))
                    .collect()
            }
        };
        for primary in due.into_iter().chain(unseen) {
            self.objects.is_due(&primary);
            self.is_next(primary, None);
        }
    }
}

/// The object in a workspace of which this is the copy, if it says so.
fn primary_of(copy: &Meta) -> Option<ObjectName> {
    let cluster = copy.labels.get(keys::CLUSTER)?;
    let name = copy.annotations.get(keys::NAME)?;
    let namespace = copy.annotations.get(keys::NAMESPACE).map_or("", String::as_str);
    Some(ObjectName::in_workspace(cluster, namespace, name))
}
