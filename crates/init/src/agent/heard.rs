//! What the agent hears of its sources.

use std::rc::Rc;

use driver::source::SourceEvent;
use kube_lite::Object;
use kube_lite::meta::Meta;

use super::border::Feed;
use super::group::Shown;
use super::references::Known;
use super::report::Subject;
use super::status::Stored;
use super::{Agent, lines, targets};
use crate::kcp::{CLUSTER, LogicalCluster, WorkspaceType, parsed};
use crate::kinds::InitTarget;
use crate::sides::{Key, Side};

impl Agent {
    pub(super) fn reported(&mut self, feed: Feed, event: SourceEvent) {
        if let SourceEvent::Down(_) | SourceEvent::Up = event
            && let Some(subject) = self.subject(feed)
        {
            let place = self.place_of(feed);
            match &event {
                SourceEvent::Down(error) => self.report.is_unreadable(&subject, error, &place, self.now),
                _ => self.report.is_readable(&subject, &place.address, self.now),
            }
        }
        match feed {
            Feed::Targets => self.of_targets(event),
            Feed::Templates => self.of_templates(&event),
            Feed::Type(number) => self.of_type(number, event),
            Feed::Clusters(number) => self.of_clusters(Side::Shard(number), event),
        }
    }

    /// What is read by a feed, for messages.
    fn subject(&self, feed: Feed) -> Option<Subject> {
        Some(match feed {
            Feed::Targets => Subject::Targets,
            Feed::Templates => Subject::Templates,
            Feed::Type(number) => Subject::Type(self.references.named(number)?.clone()),
            Feed::Clusters(number) => {
                let (initializer, _) = self.groups.iter().find(|(_, group)| group.has(Side::Shard(number)))?;
                Subject::Clusters(Rc::clone(initializer), number)
            }
        })
    }

    fn place_of(&self, feed: Feed) -> Rc<kube_lite::Place> {
        let side = driver::Feed::side(feed);
        let found = self.contacts.iter().find(|(other, _)| *other == side);
        found
            .map(|(_, standing)| Rc::clone(&standing.place))
            .unwrap_or_default()
    }

    fn of_targets(&mut self, event: SourceEvent) {
        let has_changed = match event {
            SourceEvent::Begin(_) => self.targets.begin(),
            SourceEvent::Object(object) => match self.targets.is_there(object.bytes()) {
                Ok(has_changed) => {
                    self.tells(object.bytes(), has_changed);
                    has_changed
                }
                Err(error) => {
                    lines::is_no_target(&error);
                    false
                }
            },
            SourceEvent::Gone(object) => self.targets.is_gone(object.bytes()),
            SourceEvent::Complete(_) => self.targets.is_complete(),
            SourceEvent::Unchanged(_) | SourceEvent::Unreadable(_) | SourceEvent::Up | SourceEvent::Down(_) => false,
        };
        if has_changed && self.targets.are_read() {
            self.follow_types();
        }
    }

    /// A target is there, perhaps another than before, and has a status.
    fn tells(&mut self, object: &[u8], has_changed: bool) {
        let (Ok(meta), Ok(stored)) = (<Meta>::parse(object), parsed::<Stored>(object)) else {
            return;
        };
        let name = targets::name_of(&meta);
        if has_changed {
            self.statuses.changes(|other| *other == name);
        }
        self.statuses.is_there(name, stored);
    }

    fn of_type(&mut self, number: u32, event: SourceEvent) {
        let has_changed = match event {
            SourceEvent::Begin(_) => {
                self.references.begins(number);
                false
            }
            SourceEvent::Object(object) => match parsed::<WorkspaceType>(object.bytes()) {
                Ok(found) => {
                    self.renew_types(number);
                    self.references.is_there(number, &found)
                }
                Err(_) => self.references.is_unreadable(number),
            },
            SourceEvent::Unreadable(_) => self.references.is_unreadable(number),
            SourceEvent::Gone(_) => self.references.is_gone(number),
            SourceEvent::Complete(_) => self.references.is_complete(number),
            // Anything else passes, and what the target wants is not known until then.
            SourceEvent::Down(error) => {
                let lasts = error.status().is_some_and(|status| matches!(status.code, 403 | 404));
                lasts && self.references.is_unreadable(number)
            }
            SourceEvent::Unchanged(_) | SourceEvent::Up => false,
        };
        if has_changed {
            if let Some(name) = self.references.named(number) {
                self.report.type_is(name, self.references.known(name), self.now);
            }
            self.regroup();
        }
    }

    /// The type has changed, and so perhaps what is allowed in its workspaces: what has failed is tried at once.
    fn renew_types(&mut self, number: u32) {
        let name = self.references.named(number);
        let Some(Known::Type(known)) = name.map(|name| self.references.known(name)) else {
            return;
        };
        if let Some(group) = self.groups.get_mut(&known.initializer) {
            group.renews();
        }
    }

    /// A template is there, or not any more: whoever uses it is tried at once.
    fn of_templates(&mut self, event: &SourceEvent) {
        let (SourceEvent::Object(object) | SourceEvent::Gone(object)) = event else {
            return;
        };
        let meta = &object.meta;
        let workspace = meta.annotations.get(CLUSTER).map(String::as_str);
        for group in self.groups.values_mut() {
            let mut targets = group.targets.iter();
            if targets.any(|target| targets::uses(target, workspace, &meta.name)) {
                group.renews();
            }
        }
        let all = &self.targets;
        let uses = |target: &InitTarget| targets::uses(target, workspace, &meta.name);
        self.statuses
            .changes(|name| all.named(name).is_some_and(|target| uses(target)));
    }

    fn of_clusters(&mut self, shard: Side, event: SourceEvent) {
        let Some((initializer, group)) = self.groups.iter_mut().find(|(_, group)| group.has(shard)) else {
            return;
        };
        let gone = match event {
            SourceEvent::Begin(_) => {
                group.begins(shard);
                Vec::new()
            }
            SourceEvent::Object(object) | SourceEvent::Unchanged(object) => match seen(&object, shard, initializer) {
                Some((key, Some(shown))) => {
                    group.is_there(key, shown, self.now);
                    Vec::new()
                }
                // It is shown until kcp has seen, too, that the initializer is off.
                Some((key, None)) => {
                    group.is_gone(&key);
                    vec![key]
                }
                None => Vec::new(),
            },
            SourceEvent::Gone(object) => {
                let key = seen(&object, shard, initializer).map(|(key, _)| key);
                key.into_iter().inspect(|key| group.is_gone(key)).collect()
            }
            SourceEvent::Complete(_) => group.is_complete(shard),
            SourceEvent::Unreadable(_) | SourceEvent::Up | SourceEvent::Down(_) => Vec::new(),
        };
        for key in gone {
            self.report.is_over(&Subject::Workspace(key), self.now);
        }
    }
}

/// Which workspace an object is, and as what it is shown, if it waits for the initializer.
fn seen(object: &Object, shard: Side, initializer: &str) -> Option<(Key, Option<Shown>)> {
    let meta = &object.meta;
    let cluster = meta.annotations.get(CLUSTER)?.as_str().into();
    let place = parsed::<LogicalCluster>(object.bytes()).ok()?.waits_for(initializer);
    let shown = place.map(|place| Shown {
        version: meta.version_number(),
        uid: meta.uid.as_str().into(),
        place,
    });
    Some((Key { shard, cluster }, shown))
}
