//! What people are to see: which failures have a line, and what is counted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::rc::Rc;

use driver::events::Record;
use driver::failures::{Failing, Failures};
use driver::streak::{kind, kind_of_words};
use kube_lite::logging::log_line;
use kube_lite::{Error, ObjectName, Place};
use tokio::time::Instant;

use super::group::Ended;
use super::metrics::Counters;
use super::references::{Known, TypeName};
use crate::fill::Trouble;
use crate::kinds::{API_VERSION, InitTarget};
use crate::sides::Key;

/// What fails.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Subject {
    Targets,
    Templates,
    Type(TypeName),
    /// The list of those that wait for an initializer, at one shard.
    Clusters(Rc<str>, u32),
    Workspace(Key),
}

impl Failing for Subject {
    fn is_thing(&self) -> bool {
        true
    }

    fn side(&self) -> impl Hash {}
}

/// What there is to say of something that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// The target, if it is about one alone.
    pub(super) target: Option<ObjectName>,
    pub(super) reason: &'static str,
    pub(super) words: String,
}

/// See the module's doc.
#[derive(Default)]
pub(super) struct Report {
    failures: Failures<Subject>,
    /// The last words about each type, shard and workspace that fails.
    said: BTreeMap<Subject, Said>,
    counters: BTreeMap<Box<str>, Counters>,
}

impl Report {
    pub(super) fn counters(&self) -> &BTreeMap<Box<str>, Counters> {
        &self.counters
    }

    /// How many things fail now.
    pub(super) fn failing(&self) -> usize {
        self.failures.count()
    }

    /// What there is to say of something, if it fails.
    pub(super) fn said(&self, subject: &Subject) -> Option<&Said> {
        self.said.get(subject)
    }

    pub(super) fn all_said(&self) -> impl Iterator<Item = (&Subject, &Said)> {
        self.said.iter()
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
        // Those that have failed again and again, and work by now, have no line of their own here.
        self.failures.steady(now);
    }

    /// Something cannot be read now.
    pub(super) fn is_unreadable(&mut self, subject: &Subject, error: &Error, place: &Place, now: Instant) {
        let reason = match subject {
            Subject::Type(_) => "TypeUnreadable",
            Subject::Clusters(..) => "WorkspacesUnreadable",
            Subject::Targets | Subject::Templates | Subject::Workspace(_) => "",
        };
        if !reason.is_empty() {
            // There may be several shards.
            let words = match subject {
                Subject::Clusters(..) => format!("{}: {error}", server_of(&place.address)),
                _ => error.to_string(),
            };
            let target = None;
            self.said.insert(subject.clone(), Said { target, reason, words });
        }
        // All that is read at a server fails with it.
        let is_of_all = error.is_unreachable() || error.is_unauthorized();
        let shared = is_of_all.then(|| server_of(&place.address));
        if self.failures.fails(subject, kind(error), shared, now).is_none() {
            return;
        }
        let advice = advice(subject, error, place);
        log_line!(
            Warn,
            WatchFailed,
            "cannot be read, will try again",
            what = what(subject),
            name = named(subject),
            server = place.address,
            error = error,
            advice = advice
        );
    }

    /// It can be read, at this server.
    pub(super) fn is_readable(&mut self, subject: &Subject, server: &str, now: Instant) {
        self.said.remove(subject);
        if self.failures.ends(subject, now).is_some_and(|ended| ended.is_logged) {
            log_line!(
                Info,
                Recovered,
                "can be read again",
                what = what(subject),
                name = named(subject),
                server = server
            );
        }
    }

    /// Something new is known of a type.
    pub(super) fn type_is(&mut self, name: &TypeName, known: &Known, now: Instant) {
        let subject = Subject::Type(name.clone());
        let (words, advice) = match known {
            Known::Nothing | Known::Unreadable => return,
            Known::Absent => (NO_SUCH_TYPE, NO_TYPE),
            Known::Type(found) if !found.blocks => (
                NO_INITIALIZER,
                "set it: without it, workspaces of the type do not wait for anybody",
            ),
            Known::Type(_) => return self.is_readable(&subject, "", now),
        };
        if self.failures.fails(&subject, kind_of_words(words), None, now).is_some() {
            log_line!(
                Warn,
                WorkspaceTypeUnusable,
                "a target's type cannot be served",
                name = named(&subject),
                error = words,
                advice = advice
            );
        }
    }

    /// A run has failed.
    pub(super) fn counts_failure(&mut self, targets: &[Rc<InitTarget>]) {
        for target in targets {
            self.counter(target).failed_runs += 1;
        }
    }

    fn counter(&mut self, target: &InitTarget) -> &mut Counters {
        self.counters.entry(target.metadata.name.as_str().into()).or_default()
    }

    /// A workspace is not finished. What is early for that is not worth a line. Gives what is to be written down.
    pub(super) fn has_trouble(
        &mut self,
        key: &Key,
        path: &str,
        trouble: &Trouble,
        is_early: bool,
        now: Instant,
    ) -> Option<Record> {
        let (words, source) = (
            trouble.words(),
            trouble.source.map_or(String::new(), |index| index.to_string()),
        );
        let target = trouble.target.as_ref().map_or("", |name| &name.name);
        if is_early {
            waits_for_others(key, path, trouble);
            return None;
        }
        let message = message(path, trouble);
        let subject = Subject::Workspace(key.clone());
        let said = Said {
            target: trouble.target.clone(),
            reason: trouble.reason(),
            words: message.clone(),
        };
        self.said.insert(subject.clone(), said);
        let whole = format!("{target} {source} {} {words}", trouble.object);
        self.failures
            .fails(&subject, kind_of_words(&whole), trouble.shared().as_deref(), now)?;
        let advice = trouble.advice();
        log_line!(
            Warn,
            WorkspaceFailed,
            "a workspace cannot be initialized, will try again",
            workspace = path,
            cluster = key.cluster,
            target = target,
            source = source,
            object = trouble.object,
            error = words,
            advice = advice
        );
        Some(Record {
            object: trouble.target.clone()?,
            type_of: [API_VERSION.to_owned(), "InitTarget".to_owned()],
            uid: trouble.uid.clone(),
            is_warning: true,
            reason: "ReconcilingFailed",
            message: format!("{message}; {advice}"),
            reporter: "init-agent",
        })
    }

    /// An initializer is off a workspace.
    pub(super) fn is_initialized(&mut self, key: &Key, initializer: &str, targets: &[Rc<InitTarget>], ended: &Ended) {
        if ended.is_again {
            log_line!(
                Info,
                InitializerBack,
                "an initializer that somebody had put back is off again",
                workspace = ended.path,
                cluster = key.cluster,
                initializer = initializer
            );
            return;
        }
        for target in targets {
            self.counter(target).initialized(ended.lasted);
        }
        log_line!(
            Info,
            WorkspaceInitialized,
            "a workspace is initialized",
            workspace = ended.path,
            cluster = key.cluster,
            initializer = initializer,
            created = ended.created,
            lasted = format_args!("{:.3}s", ended.lasted.as_secs_f64())
        );
    }

    /// Something is there no longer, or is finished.
    pub(super) fn is_over(&mut self, subject: &Subject, now: Instant) {
        self.said.remove(subject);
        self.failures.clear(subject, now);
    }
}

/// What is wrong, for people who do not see the other fields of a line.
fn message(path: &str, trouble: &Trouble) -> String {
    let Some(source) = trouble.source else {
        return format!("workspace {path}: {}", trouble.words());
    };
    let about = match &*trouble.object {
        "" => String::new(),
        object => format!(", {object}"),
    };
    format!("workspace {path}, sources[{source}]{about}: {}", trouble.words())
}

/// A workspace waits, and has not done so for long.
fn waits_for_others(key: &Key, path: &str, trouble: &Trouble) {
    log_line!(
        Debug,
        WorkspaceFailed,
        "a workspace waits for what others make",
        workspace = path,
        cluster = key.cluster,
        target = trouble.target.as_ref().map_or("", |name| &name.name),
        source = trouble.source.map_or(String::new(), |index| index.to_string()),
        object = trouble.object,
        error = trouble.words()
    );
}

/// What to do about something that cannot be read.
pub(crate) fn advice(subject: &Subject, error: &Error, place: &Place) -> Cow<'static, str> {
    let is_config = matches!(subject, Subject::Targets | Subject::Templates);
    let words = match error {
        error if error.is_forbidden() && is_config => CONFIG_RULE,
        error if error.is_forbidden() => TYPE_RULE,
        // The type, or the workspace.
        error if error.status().is_some_and(|status| status.code == 404) => match subject {
            Subject::Targets | Subject::Templates => CRDS,
            Subject::Type(_) => "check the path in the target's workspaceTypeRef",
            Subject::Clusters(..) | Subject::Workspace(_) => "it continues by itself when kcp serves this URL",
        },
        error => return driver::advice::advice(error, place),
    };
    words.into()
}

/// The server of an address, without the path and the proxy.
fn server_of(address: &str) -> &str {
    let begin = address.find("://").map_or(0, |at| at + 3);
    let end = address[begin..].find(['/', ' ']).map_or(address.len(), |at| begin + at);
    &address[..end]
}

pub(super) const NO_SUCH_TYPE: &str = "there is no such WorkspaceType";
pub(super) const NO_INITIALIZER: &str = "spec.initializer of the WorkspaceType is not true";

/// What to do about a type that is not there.
pub(crate) const NO_TYPE: &str = "create it, or correct the target's workspaceTypeRef";

const CONFIG_RULE: &str = "allow the agent's user, in the config workspace, access to / and get, list and watch of inittargets and \
                           inittemplates of initialization.kcp.io";
const TYPE_RULE: &str = "allow the agent's user, in the workspace of the type, access to / and get, list, watch and initialize of \
                         workspacetypes of tenancy.kcp.io; a grant counts within some seconds";
const CRDS: &str = "apply the CRDs of manifests/init in the config workspace, and check --config-workspace";

/// What is read of a subject, for people.
fn what(subject: &Subject) -> &'static str {
    match subject {
        Subject::Targets => "InitTargets",
        Subject::Templates => "InitTemplates",
        Subject::Type(_) => "WorkspaceType",
        Subject::Clusters(..) | Subject::Workspace(_) => "workspaces that wait",
    }
}

/// The name of a subject, for people.
fn named(subject: &Subject) -> String {
    match subject {
        Subject::Targets | Subject::Templates => String::new(),
        Subject::Type(TypeName { workspace, name }) => format!("{workspace}:{name}"),
        Subject::Clusters(initializer, _) => initializer.to_string(),
        Subject::Workspace(key) => key.cluster.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_says_which_shard_cannot_be_read() {
        let (mut report, now) = (Report::default(), Instant::now());
        let place = Place {
            address: "https://s2:6443/services/initializingworkspaces/root:dev".into(),
            ..Place::default()
        };
        let subject = Subject::Clusters("root:dev".into(), 1);
        report.is_unreadable(&subject, &Error::Unreachable("refused".into()), &place, now);
        let said = report.said(&subject).expect("it fails");
        assert_eq!(said.words, "https://s2:6443: refused");
        report.is_readable(&subject, &place.address, now);
        assert_eq!(report.said(&subject), None);
    }
}
