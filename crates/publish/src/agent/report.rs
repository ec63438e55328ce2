//! What people are to see: which failures have a line, and what is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::rc::Rc;
use std::time::Duration;

use driver::budget::Budget;
use driver::failures::{Failing, Failures};
use driver::streak::{kind, kind_of_words};
use kube_lite::logging::log_line;
use kube_lite::{Error, ObjectName, Place};
use tokio::time::Instant;

use super::border::Feed;
use super::published::Misfit;
use crate::kinds::API_VERSION;
use crate::publishing::Exported;
use crate::route::Route;
use crate::sides::Primary;
use crate::trouble::{Cause, Trouble};
use driver::events::Record;

/// What fails.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// Something that is read.
    Feed(Feed),
    /// A PublishedResource.
    Published(Rc<str>),
    /// The export.
    Export,
    /// Nobody has bound the export.
    Unbound,
    /// An object.
    Object(Primary),
}

impl Failing for Subject {
    fn is_thing(&self) -> bool {
        true
    }

    fn side(&self) -> impl Hash {}

    fn tenant(&self) -> Option<u32> {
        match self {
            Self::Object(primary) => Some(primary.workspace),
            _ => None,
        }
    }
}

/// See the module's doc.
#[derive(Default)]
pub(super) struct Report {
    failures: Failures<Subject>,
    passes: u64,
    is_bound: Option<bool>,
    accepted: Budget<ACCEPTED, ANOTHER>,
    /// What fails, and its consumer has no Event yet that says so.
    unnoticed: BTreeSet<Primary>,
    /// Events about failures, of each workspace that had some lately.
    noticed: BTreeMap<Rc<str>, Budget<NOTICES, NOTICES_ANOTHER>>,
}

/// So many Events at once tell the consumers in a workspace that an object fails, and one more in so many seconds. Another
/// workspace has its own: nobody takes them from others by objects that fail.
const NOTICES: u32 = 30;
const NOTICES_ANOTHER: u64 = 20;
/// Of how many workspaces it is remembered.
const WORKSPACES: usize = 1000;

/// So many Events at once say that an object was accepted which is placed at once, and one more in so many seconds.
const ACCEPTED: u32 = 25;
const ANOTHER: u64 = 1;

/// For so long a type may be not served yet before that is worth a line.
const EARLY: Duration = Duration::from_secs(60);

impl Report {
    /// How many things fail now.
    pub(super) fn failing(&self) -> usize {
        self.failures.count()
    }

    /// Whether anybody has bound the export, if that is known.
    #[cfg(test)]
    pub(super) fn is_bound(&self) -> Option<bool> {
        self.is_bound
    }

    pub(super) fn passes(&self) -> u64 {
        self.passes
    }

    pub(super) fn counts_pass(&mut self) {
        self.passes += 1;
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.failures.due()
    }

    /// Logs what is due.
    pub(super) fn advance(&mut self, now: Instant) {
        if self.failures.are_to_be_summed_up(now) {
            log_line!(
                Warn,
                MoreFailing,
                "more fail than have lines",
                failing = self.failures.count()
            );
        }
        self.failures.steady(now);
    }

    /// Something cannot be read now.
    pub(super) fn is_unreadable(&mut self, feed: Feed, name: &str, error: &Error, place: &Place, now: Instant) {
        let is_of_all = error.is_unreachable() || error.is_unauthorized();
        let shared = is_of_all.then_some(&*place.address);
        let subject = Subject::Feed(feed);
        // A type that is new in an export is not served at once: it is not there, or its list has no version.
        let is_early = matches!(error, Error::BadAnswer(_)) || error.status().is_some_and(|status| status.code == 404);
        if is_early && matches!(feed, Feed::Primaries(..) | Feed::RelatedAt(..)) {
            self.failures.fails_for_now(&subject, now);
            if self.failures.lasts(&subject, now).is_none_or(|lasted| lasted < EARLY) {
                log_line!(Debug, WatchFailed, "not served yet", name = name, error = error);
                return;
            }
        }
        if self.failures.fails(&subject, kind(error), shared, now).is_none() {
            return;
        }
        log_line!(
            Warn,
            WatchFailed,
            "cannot be read, will try again",
            name = name,
            server = place.address,
            error = error,
            advice = advice(feed, error, place)
        );
    }

    /// It can be read.
    pub(super) fn is_readable(&mut self, feed: Feed, name: &str, place: &Place, now: Instant) {
        let subject = Subject::Feed(feed);
        if self.failures.ends(&subject, now).is_some_and(|ended| ended.is_logged) {
            log_line!(
                Info,
                Recovered,
                "can be read again",
                name = name,
                server = place.address
            );
        }
    }

    /// A PublishedResource cannot be understood.
    pub(super) fn is_misfit(&mut self, misfit: &Misfit, now: Instant) -> Option<Record> {
        let trouble = Trouble {
            doing: "reading the PublishedResource",
            object: String::new(),
            words: misfit.words.clone(),
            advice: "correct it; it is tried at once then",
            cause: Cause::Rules,
            shared: None,
        };
        let subject = Subject::Published(Rc::clone(&misfit.name));
        self.published_fails(&subject, &misfit.name, &misfit.uid, &trouble, now)
    }

    /// A PublishedResource is not published.
    pub(super) fn published_fails(
        &mut self,
        subject: &Subject,
        name: &str,
        uid: &str,
        trouble: &Trouble,
        now: Instant,
    ) -> Option<Record> {
        let kind = kind_of_words(&format!("{} {}", trouble.object, trouble.words));
        self.failures.fails(subject, kind, None, now)?;
        log_line!(
            Warn,
            PublishFailed,
            "a PublishedResource is not published, will try again",
            published = name,
            doing = trouble.doing,
            object = trouble.object,
            error = trouble.words,
            advice = trouble.advice
        );
        Some(Record {
            object: ObjectName::new("", name),
            type_of: [API_VERSION.to_owned(), "PublishedResource".to_owned()],
            uid: uid.to_owned(),
            is_warning: true,
            reason: "ReconcilingError",
            message: trouble.to_string(),
            reporter: "syncagent-apiresourceschema",
        })
    }

    /// A PublishedResource is published.
    pub(super) fn is_published(&mut self, name: &Rc<str>, now: Instant) {
        self.failures.ends(&Subject::Published(Rc::clone(name)), now);
    }

    /// The export has what it should have. Gives what is to be written down.
    pub(super) fn is_exported(&mut self, name: &str, uid: &str, exported: &Exported, now: Instant) -> Vec<Record> {
        self.failures.ends(&Subject::Export, now);
        let Exported { added, removed, claims } = exported;
        if !(added.is_empty() && removed.is_empty() && claims.is_empty()) {
            log_line!(
                Info,
                ExportChanged,
                "the export has other schemas or claims",
                export = name,
                added = added.join(","),
                removed = removed.join(","),
                claims = claims.join(",")
            );
        }
        let record = |reason, is_warning, message: String| Record {
            object: ObjectName::new("", name),
            type_of: ["apis.kcp.io/v1alpha1".to_owned(), "APIExport".to_owned()],
            uid: uid.to_owned(),
            is_warning,
            reason,
            message,
            reporter: "syncagent-apiexport",
        };
        let mut records = Vec::new();
        if !added.is_empty() {
            let message = format!("Added new resource schemas: {}", added.join(", "));
            records.push(record("AddingResourceSchemas", false, message));
        }
        if !removed.is_empty() {
            let message = format!("Removed resource schemas: {}", removed.join(", "));
            records.push(record("RemovingResourceSchemas", true, message));
        }
        if !claims.is_empty() {
            let message = format!("Added new permission claims: {}", claims.join(", "));
            records.push(record("AddingPermissionClaims", false, message));
        }
        records
    }

    /// The export could not be written.
    pub(super) fn export_fails(&mut self, name: &str, trouble: &Trouble, now: Instant) {
        let kind = kind_of_words(&trouble.words);
        if self.failures.fails(&Subject::Export, kind, None, now).is_some() {
            log_line!(
                Warn,
                ExportFailed,
                "the export could not be updated, will try again",
                export = name,
                doing = trouble.doing,
                error = trouble.words,
                advice = trouble.advice
            );
        }
    }

    /// An object is not in sync. The provider's words are for the log alone.
    pub(super) fn object_fails(
        &mut self,
        (primary, uid): (&Primary, &str),
        route: &Route,
        trouble: &Trouble,
        now: Instant,
    ) -> Option<Record> {
        let kind = kind_of_words(&format!("{} {}", trouble.object, trouble.words));
        let subject = Subject::Object(primary.clone());
        let is_new = self.failures.lasts(&subject, now).is_none();
        let has_line = self.failures.fails(&subject, kind, trouble.shared, now).is_some();
        if has_line {
            log_line!(
                Warn,
                ObjectFailed,
                "an object is not in sync, will try again",
                cluster = primary.name.workspace(),
                object = shown(&route.remote().kind, &primary.name),
                published = route.resource.name,
                doing = trouble.doing,
                at = trouble.object,
                error = trouble.words,
                advice = trouble.advice
            );
        }
        if !self.is_to_be_noticed(primary, is_new || has_line, now) {
            return None;
        }
        let remote = route.remote();
        Some(Record {
            object: primary.name.clone(),
            type_of: [remote.api_version(), remote.kind.clone()],
            uid: uid.to_owned(),
            is_warning: true,
            reason: "ReconcilingError",
            message: "An error occurred while processing the object.".to_owned(),
            reporter: "syncagent-sync",
        })
    }

    /// True if the consumer is to have an Event now that says that an object fails; if there were too many, at a later try.
    fn is_to_be_noticed(&mut self, primary: &Primary, is_news: bool, now: Instant) -> bool {
        if is_news {
            self.unnoticed.insert(primary.clone());
        }
        if !self.unnoticed.contains(primary) {
            return false;
        }
        let workspace = primary.name.workspace();
        if self.noticed.len() >= WORKSPACES && !self.noticed.contains_key(workspace) {
            self.noticed.clear();
        }
        let of_workspace = self.noticed.entry(workspace.into()).or_default();
        let takes = of_workspace.takes(0, now);
        if takes {
            self.unnoticed.remove(primary);
        }
        takes
    }

    /// What is to be written down of what has happened to an object. Of many that are placed at once after they were
    /// accepted, the Events that say so are enough.
    pub(super) fn worth_writing(&mut self, mut records: Vec<Record>, now: Instant) -> Vec<Record> {
        let has = |reason| records.iter().any(|record: &Record| record.reason == reason);
        if has("ObjectAccepted") && has("ObjectPlaced") && !self.accepted.takes(0, now) {
            records.retain(|record| record.reason != "ObjectAccepted");
        }
        records
    }

    /// An object works.
    pub(super) fn object_works(&mut self, primary: &Primary, now: Instant) {
        let subject = Subject::Object(primary.clone());
        self.unnoticed.remove(primary);
        if self.failures.ends(&subject, now).is_some_and(|ended| ended.is_logged) {
            log_line!(
                Info,
                Recovered,
                "an object is in sync again",
                cluster = primary.name.workspace(),
                name = primary.name.name
            );
        }
    }

    /// So many workspaces have bound the export, if that is known.
    pub(super) fn are_bound(&mut self, bound: Option<usize>, now: Instant) {
        let Some(bound) = bound else { return };
        if self.is_bound.replace(bound > 0) == Some(bound > 0) {
            return;
        }
        if bound > 0 {
            self.failures.ends(&Subject::Unbound, now);
            log_line!(Info, ExportBound, "the export is bound", workspaces = bound);
        } else {
            log_line!(
                Info,
                ExportUnbound,
                "nobody has bound the export yet: nothing is synced until somebody does"
            );
        }
    }

    /// Something is there no longer, or is finished.
    pub(super) fn is_over(&mut self, subject: &Subject, now: Instant) {
        if let Subject::Object(primary) = subject {
            self.unnoticed.remove(primary);
        }
        self.failures.clear(subject, now);
    }
}

/// A PublishedResource has got this schema.
pub(super) fn is_published(name: &str, schema: &str) {
    log_line!(
        Info,
        Published,
        "a type is published",
        published = name,
        schema = schema
    );
}

/// An object as log lines have it.
fn shown(kind: &str, name: &ObjectName) -> String {
    format!("{kind}/{}/{}", name.namespace(), name.name)
}

pub(super) fn is_unbound(workspace: &str) {
    log_line!(
        Info,
        WorkspaceUnbound,
        "a workspace has bound the export no longer: its objects are left as they are",
        cluster = workspace
    );
}

/// So many objects with copies are synced no longer by this PublishedResource.
pub(super) fn are_left(published: &str, objects: usize) {
    if objects == 0 {
        return;
    }
    log_line!(
        Warn,
        ObjectsLeft,
        "objects are synced no longer: they and their copies stay as they are, and whoever deletes one waits for the agent",
        published = published,
        objects = objects,
        advice = "let the PublishedResource be as it was until they are deleted; or take the finalizer of the agent off them"
    );
}

pub(super) fn shard_begins(url: &str) {
    log_line!(Info, ShardServed, "the objects of a shard are synced", server = url);
}

pub(super) fn shard_ends(url: &str) {
    log_line!(
        Info,
        ShardLeft,
        "a shard is not one of the export any more",
        server = url
    );
}

pub(super) fn is_unrecorded(error: &Error) {
    log_line!(Debug, EventFailed, "an Event could not be written", error = error);
}

/// What to do about something that cannot be read.
fn advice(feed: Feed, error: &Error, place: &Place) -> String {
    let code = error.status().map_or(0, |status| status.code);
    let words = match (code, feed) {
        (403, Feed::Published | Feed::Definitions | Feed::Copies(_) | Feed::Related(..)) => {
            "allow the agent's user get, list and watch of it on the service cluster"
        }
        (403, Feed::Slice | Feed::Export) => {
            "allow the agent's user get, list and watch of this one object in its workspace"
        }
        (403, Feed::Bindings(_) | Feed::Primaries(..) | Feed::RelatedAt(..)) => {
            "allow the agent's user all verbs of apiexports/content in the workspace of the export"
        }
        (404, Feed::Published) => "apply the CRD of manifests/publish on the service cluster",
        (404, Feed::Slice | Feed::Export) => "create it, or correct the flag that names it",
        (404, _) => "it continues by itself when it is served",
        _ => return driver::advice::advice(error, place).into_owned(),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_objects_that_are_placed_at_once_few_events_say_that_they_were_accepted() {
        let mut report = Report::default();
        let mut now = Instant::now();
        let record = |reason| Record {
            object: ObjectName::new("shop", "web"),
            type_of: ["v1".to_owned(), "Shop".to_owned()],
            uid: "u".to_owned(),
            is_warning: false,
            reason,
            message: String::new(),
            reporter: "syncagent-sync",
        };
        let mut written = |reasons: &[&'static str], now| {
            let records = reasons.iter().map(|reason| record(reason)).collect();
            report.worth_writing(records, now).len()
        };
        let both = ["ObjectAccepted", "ObjectPlaced"];
        let counts: Vec<usize> = (0..27).map(|_| written(&both, now)).collect();
        assert_eq!(counts, [vec![2; 25], vec![1; 2]].concat());
        // One that is accepted and not placed says so in any case.
        assert_eq!(written(&both[..1], now), 1);
        now += 2 * Duration::from_secs(ANOTHER);
        let counts: Vec<usize> = (0..3).map(|_| written(&both, now)).collect();
        assert_eq!(counts, [2, 2, 1]);
        now += 100 * Duration::from_secs(ANOTHER);
        let counts: usize = (0..30).map(|_| written(&both, now)).sum();
        assert_eq!(counts, 30 + 25);
    }
}
