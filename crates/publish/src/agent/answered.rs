//! What has come of the work, and what is done next because of that.

use std::rc::Rc;

use driver::queue::{Class, Done};

use super::Agent;
use super::border::{Answer, Request};
use super::namespaces;
use super::report::{self, Subject};
use crate::publishing::{self, Exported};
use crate::route::Served;
use crate::sides::{Key, Primary, Side};
use crate::sync::{Cleared, Settled, Synced};
use crate::trouble::{Stop, Trouble};

impl Agent {
    pub(super) fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Published(name, result) => self.is_published(&name, result),
            Answer::Exported(result) => self.is_exported(result),
            Answer::Synced(primary, synced) => self.is_synced(&primary, synced),
            Answer::Ended(primary, synced) => {
                self.namespaces.is_abandoned(&primary, self.now);
                self.is_synced(&primary, synced);
            }
            Answer::Cleared(name, result) => self.is_cleared(&name, result),
            Answer::Recorded(Ok(())) => {}
            Answer::Recorded(Err(error)) => report::is_unrecorded(&error),
        }
    }

    fn is_published(&mut self, name: &Rc<str>, result: Result<Served, Stop>) {
        let key = Key::Published(Rc::clone(name));
        let Some(resource) = self.publishing.remove(name) else {
            return self.is_done(&key, Done::Finished);
        };
        match result {
            Err(stop) => {
                let stop = self.bounded(&key, stop);
                if let Stop::Fails(trouble) = &stop {
                    self.publishing_fails(name, trouble);
                    // What no server has said is about the PublishedResource as it is now.
                    if stop.is_of_rules() {
                        let outcome = self.published.breaks(name, &resource, None, &trouble.words);
                        self.follow_routes(name, &outcome);
                    }
                    self.published.is_tried(name, &resource);
                    self.rivals_are();
                }
                self.is_done(&key, of_stop(&stop));
            }
            Ok(served) => {
                self.patience.ends(&key);
                self.is_done(&key, Done::Finished);
                let writes = self.settings.parts.schemas;
                let Some(outcome) = self.published.is_served(name, &resource, served, writes) else {
                    return self.queue.add(key, Class::First, None);
                };
                if let Some(words) = &outcome.wrong {
                    if let Stop::Fails(trouble) = publishing::wrong_rules(words.clone()) {
                        self.publishing_fails(name, &trouble);
                    }
                } else {
                    self.report.is_published(name, self.now);
                }
                let schema = self.published.get(name).and_then(|it| it.schema_name.clone());
                if let Some(schema) = schema.filter(|_| outcome.is_news) {
                    report::is_published(name, &schema);
                }
                // An older one may have been edited to what a younger one has: that ends first.
                self.rivals_are();
                self.follow_routes(name, &outcome);
                // It may need other claims, though it has the same schema.
                self.export_is_due();
            }
        }
    }

    fn publishing_fails(&mut self, name: &Rc<str>, trouble: &Trouble) {
        let (subject, uid) = (Subject::Published(Rc::clone(name)), self.published.uid(name));
        let record = self.report.published_fails(&subject, name, &uid, trouble, self.now);
        self.record_here(record);
    }

    fn is_exported(&mut self, result: Result<Exported, Stop>) {
        match result {
            Ok(exported) => {
                self.patience.ends(&Key::Export);
                self.is_done(&Key::Export, Done::Finished);
                let records = self
                    .report
                    .is_exported(&self.settings.export, &self.export_uid, &exported, self.now);
                for record in records {
                    self.outbox.request(Request::Record(Side::Export, record));
                }
            }
            Err(stop) => {
                let stop = self.bounded(&Key::Export, stop);
                if let Stop::Fails(trouble) = &stop {
                    self.report.export_fails(&self.settings.export, trouble, self.now);
                }
                self.is_done(&Key::Export, of_stop(&stop));
            }
        }
    }

    fn is_synced(&mut self, primary: &Primary, synced: Synced) {
        let shard = primary.shard();
        self.pass_ends(primary);
        // One that is gone by now has nothing.
        if let Some(found) = synced.uses.filter(|_| self.objects.has(primary)) {
            self.uses.are(primary, found);
        }
        for namespace in synced.left {
            self.has_left(namespace);
        }
        let route = self.published.route(primary.route);
        let has_related = route.is_some_and(|route| !route.resource.related.is_empty());
        if has_related && !synced.records.is_empty() {
            self.objects.looks_again(primary, self.now);
        }
        let again = self.objects.again(primary, self.now).filter(|_| synced.result.is_ok());
        for record in self.report.worth_writing(synced.records, self.now) {
            self.outbox.request(Request::Record(shard, record));
        }
        let key = Key::Object(primary.clone());
        let is_over = matches!(synced.result, Ok(Settled::Gone)) && self.objects.is_over(primary);
        match &synced.result {
            Ok(Settled::Gone | Settled::Filtered) => self.objects.is_free(primary, true),
            Ok(Settled::LeftToOthers) => {}
            _ => self.objects.is_free(primary, false),
        }
        let done = match synced.result {
            Ok(settled) => {
                self.report.object_works(primary, self.now);
                if !matches!(settled, Settled::Later) {
                    self.patience.ends(&key);
                }
                match settled {
                    Settled::Done(last, copy) => {
                        if self.objects.is_settled(primary, last, synced.version, copy) {
                            Done::Again
                        } else {
                            Done::Finished
                        }
                    }
                    Settled::Later if self.objects.has_untried(primary) => {
                        self.objects.holds(primary);
                        Done::Finished
                    }
                    Settled::Later => {
                        // It may lose its place in the queue.
                        self.objects.is_due(primary);
                        Done::NotYet(self.patience.waits(&key))
                    }
                    Settled::Gone | Settled::Filtered | Settled::LeftToOthers | Settled::Waits => Done::Finished,
                }
            }
            Err(stop) => {
                self.objects.has_failed(primary);
                let stop = self.bounded(&key, stop);
                if let Stop::Fails(trouble) = &stop
                    && let Some(route) = self.published.route(primary.route)
                {
                    let record = self
                        .report
                        .object_fails((primary, &synced.uid), route, trouble, self.now);
                    if let Some(record) = record {
                        self.outbox.request(Request::Record(shard, record));
                    }
                }
                of_stop(&stop)
            }
        };
        self.is_done(&key, done);
        if is_over {
            return self.primary_is_over(primary);
        }
        if let Some(again) = again {
            self.queue.add_after(key, Class::Normal, again, self.now);
        }
    }

    /// Why the work on a key has ended: what others overtake again and again has failed.
    fn bounded(&mut self, key: &Key, stop: Stop) -> Stop {
        match stop {
            Stop::Again(trouble) if !self.patience.is_overtaken(key) => Stop::Fails(trouble),
            other => other,
        }
    }

    fn is_cleared(&mut self, name: &Rc<str>, result: Result<Cleared, Stop>) {
        let key = Key::Namespace(Rc::clone(name));
        let result = result.map(|cleared| {
            namespaces::report(name, &cleared);
            self.namespaces.is_cleared(name, &cleared)
        });
        let done = match result {
            Ok(later) => {
                self.patience.ends(&key);
                later.map_or(Done::Finished, Done::NotYet)
            }
            Err(stop) => {
                self.namespaces.is_not_cleared();
                of_stop(&self.bounded(&key, stop))
            }
        };
        self.is_done(&key, done);
    }
}

/// What becomes of a key whose work has ended early.
fn of_stop(stop: &Stop) -> Done<Side> {
    match stop {
        Stop::Fails(_) => Done::Retry(None),
        Stop::Unreachable(side, _) => Done::Unreachable(*side),
        Stop::Again(_) => Done::Again,
    }
}
