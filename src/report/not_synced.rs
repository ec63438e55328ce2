//! What is reported of objects that are not synced though no request for them has failed: each is one more thing that fails,
//! for a reason that several may have in common.

use driver::failures;
use kube_lite::logging::{LogReason, log_line};

use super::{Report, Subject, Topic};
use crate::side::Side;

impl Report {
    /// Something is not as it should be, for this reason, which it may `share` with others of its side. `kind` is what makes
    /// two of these the same news, `words` are for people. True if that is to have a line.
    pub(super) fn is_not_synced(
        &mut self,
        subject: &Subject,
        (reason, kind, words): (LogReason, &str, &str),
        shared: Option<&str>,
    ) -> bool {
        let kind = failures::kind_of_words(kind);
        let line = self.failures.fails(subject, kind, shared, self.now);
        self.failures.note(subject, reason, ("", words), self.clock);
        line.is_some()
    }

    /// An object at the edge waits for a namespace that no config selects. That is logged once for each namespace.
    pub fn without_namespace(&mut self, object: &Subject, namespace: &str, config: &str, field: &str) {
        const WHAT: &str = "its namespace is not at the edge, and no config selects it";
        const ADVICE: &str = "add an entry of kind Namespace, or create it at the edge";
        let shared = ["without namespace ", namespace].concat();
        let words = format!("{WHAT}: {ADVICE}");
        if self.is_not_synced(object, (LogReason::NamespaceNotSelected, WHAT, &words), Some(&shared)) {
            log_line!(
                Warn,
                NamespaceNotSelected,
                "objects wait for a namespace that is not at the edge and that no config selects",
                side = "edge",
                namespace = namespace,
                config = config,
                field = format_args!("spec.{field}"),
                advice = ADVICE
            );
        }
    }

    /// An object at the edge waits for a namespace that the owner of the edge does not allow, which is logged.
    pub fn namespace_is_refused(&mut self, object: &Subject, namespace: &str, why: &str) {
        const WHAT: &str = "its namespace is not at the edge, and the owner of the edge does not allow it";
        self.refused(&["Namespace//", namespace].concat(), why);
        let shared = ["namespace refused ", namespace].concat();
        let words = format!("{WHAT}: {why}");
        self.is_not_synced(object, (LogReason::Denied, WHAT, &words), Some(&shared));
    }

    /// The copy of another object has the name that the copy of this one is to have: `copy`, which a former conversion has
    /// made; or without that, by a conversion that is in force.
    pub fn name_is_taken(&mut self, side: Side, origin: &str, copy: Option<&str>, others: &str) {
        let advice = match copy {
            Some(_) => "delete that copy, or what it is a copy of; then its name is free",
            None => "a conversion gives that copy its name: change it, or add one that gives this object another name",
        };
        let words = format!("not synced, because the copy of {others} has its name; {advice}");
        let subject = Subject::object(side, origin.to_owned());
        if self.is_not_synced(&subject, (LogReason::NameTaken, advice, &words), None) {
            log_line!(
                Warn,
                NameTaken,
                "not synced, because the copy of another object has its name",
                side = side.word(),
                object = origin,
                copy = copy.unwrap_or_default(),
                copy_of = others,
                advice = advice
            );
        }
    }

    /// A conversion gives an origin a name at which nothing is ever synced.
    pub fn name_is_never_synced(&mut self, side: Side, origin: &str, copy: &str) {
        let words = format!("not synced, because a conversion makes of it what is never synced: {copy}");
        let subject = Subject::object(side, origin.to_owned());
        if self.is_not_synced(&subject, (LogReason::Conflict, "never synced", &words), None) {
            log_line!(
                Warn,
                Conflict,
                "not synced, because a conversion makes of it an object that is never synced",
                side = side.word(),
                object = origin,
                copy = copy,
                advice = "change the conversion: what has this name, or this type or label, belongs to the other side (never-synced.md)"
            );
        }
    }

    /// A copy is preserved, since its origin was in another cluster than those of all others.
    pub fn is_stray(&mut self, side: Side, copy: &str, cluster: &str) {
        const WHAT: &str = "preserved, because it was made from another cluster than the one that answers";
        let subject = Subject::object(side, copy.to_owned());
        if self.is_not_synced(&subject, (LogReason::CopyOfAnotherCluster, WHAT, WHAT), None) {
            log_line!(
                Warn,
                CopyOfAnotherCluster,
                "a copy is preserved, because it was made from another cluster than the one that answers",
                side = side.word(),
                object = copy,
                cluster = cluster,
                advice = "if a syncer for that cluster has the same --sync-target-uid, give each its own: the copy is that \
                          one's; if the cluster was replaced for good, delete the copy by hand"
            );
        }
    }

    /// Hub and edge are one cluster, which has an error of its own in the log.
    pub fn is_one_cluster(&mut self, found: &str) {
        let words = format!("nothing is synced: {found}");
        self.is_not_synced(&clusters(), (LogReason::SameCluster, "one cluster", &words), None);
    }

    /// They are two again.
    pub fn are_two_clusters(&mut self) {
        self.clear(&clusters());
    }
}

/// Hub and edge. Which of their kubeconfigs is wrong is not known.
fn clusters() -> Subject {
    Subject::Thing(Side::Edge, Topic::Clusters, "hub and edge".to_owned())
}
