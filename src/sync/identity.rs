//! Which cluster answers: the proof that a delete needs beside the absence of an origin.
//!
//! Behind one URL there may be another workspace or cluster tomorrow. It answers, correctly, that our objects do not
//! exist. So each cluster is known by the UID of a namespace that lives as long as it does, and a copy is deleted only
//! if that UID is read again after the cluster has said that the origin does not exist: it may have been replaced just
//! before. Workers that ask at the same time share an answer.

use std::collections::BTreeSet;

use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType, is_word};

use super::ownership::Source;
use crate::sync::meta::Meta;

/// Namespaces whose UID identifies a cluster: the first one that exists. kcp workspaces have no `kube-system`, and some
/// not even `default`: those are identified by the UID of the object that represents the workspace itself.
const NAMESPACES: [&str; 2] = ["kube-system", "default"];
/// kcp's API group of what describes a workspace itself.
pub(super) const WORKSPACE: &str = "core.kcp.io";
const WORKSPACE_VERSION: &str = "v1alpha1";

/// What is known of the identity of one side. A worker has what was known when it began; what has become known since is
/// compared with what it found ([`Identity::confirms`]).
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The cluster that the copies are from.
    expected: Expected,
    /// The one that has answered last.
    found: Option<String>,
    /// Other clusters that copies are from, and of which people have confirmed that they do not come back.
    former: BTreeSet<String>,
    /// People have confirmed that it has gone back to older versions.
    may_be_older: bool,
}

/// The cluster that the copies are from, and how that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Expected {
    /// Nobody has said so yet.
    #[default]
    Unknown,
    /// The first that has answered. A copy may still say that it is from another one.
    Presumed(String),
    /// The same, and there are copies from others: all may be.
    Contested(String),
    /// The record, the copies or people say so. A copy from another one is an exception.
    Known(String),
}

/// What the copies say of the cluster that was presumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// Some are from it, and none from another.
    ForIt,
    /// Some are from another.
    ForAnother,
}

/// Who answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The expected cluster: its UID; `None` if it was not known which one is expected.
    Same(Option<String>),
    /// Another one: its UID.
    Other(String),
}

/// Why the mark of a copy does not let its origin's side prove anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unverified {
    /// The copy is from another cluster: its UID.
    MadeFrom(String),
    /// Its origin was there at a version that the side has not reached.
    Older {
        /// That version.
        from: u64,
        /// The one of the answer.
        to: u64,
    },
}

impl Identity {
    /// The cluster that the copies are from, if it is known.
    pub fn expected(&self) -> Option<&str> {
        match &self.expected {
            Expected::Unknown => None,
            Expected::Presumed(uid) | Expected::Contested(uid) | Expected::Known(uid) => Some(uid),
        }
    }

    /// The same, if more than its answer says so.
    pub fn known(&self) -> Option<&str> {
        self.expected().filter(|_| matches!(self.expected, Expected::Known(_)))
    }

    /// The same, if it has only answered, and the copies have not been asked.
    pub fn presumed(&self) -> Option<&str> {
        self.expected()
            .filter(|_| matches!(self.expected, Expected::Presumed(_)))
    }

    /// The cluster that answers, if there are copies from others and nothing says yet which is the right one.
    pub fn contested(&self) -> Option<&str> {
        self.expected()
            .filter(|_| matches!(self.expected, Expected::Contested(_)))
    }

    /// Sets the cluster that the copies are from.
    pub fn expect(&mut self, uid: String) {
        self.former.remove(&uid);
        self.expected = Expected::Known(uid);
    }

    /// The first that has answered is taken for it, until something contradicts.
    pub fn presume(&mut self, uid: String) {
        self.expected = Expected::Presumed(uid);
    }

    /// The copies were asked about the cluster that is presumed.
    pub fn compare(&mut self, witness: Witness) {
        if let Expected::Presumed(uid) = &mut self.expected {
            let uid = std::mem::take(uid);
            self.expected = match witness {
                Witness::ForIt => Expected::Known(uid),
                Witness::ForAnother => Expected::Contested(uid),
            };
        }
    }

    /// It has answered, or another one has.
    pub fn answers(&mut self, uid: &str) {
        self.found = Some(uid.to_owned());
    }

    /// The one that answers, as far as it is known.
    pub fn present(&self) -> Option<&str> {
        self.found.as_deref().or(self.expected())
    }

    /// True if another one than the expected has answered last.
    pub fn is_another(&self) -> bool {
        let expected = self.expected();
        expected.is_some() && self.present() != expected
    }

    /// People have confirmed that copies of what was in that cluster may be deleted.
    pub fn give_up(&mut self, uid: String) {
        self.former.insert(uid);
    }

    /// Those clusters.
    pub fn former(&self) -> &BTreeSet<String> {
        &self.former
    }

    /// People have confirmed that it has gone back to older versions.
    pub fn accept_older(&mut self) {
        self.may_be_older = true;
    }

    /// What in the mark of a copy contradicts an answer of this cluster at `version` (0 if unknown).
    pub fn unverified(&self, source: Source<'_>, cluster: &str, version: u64) -> Option<Unverified> {
        if cluster != source.cluster {
            let found = Unverified::MadeFrom(source.cluster.to_owned());
            return (!self.confirms(&found)).then_some(found);
        }
        let found = Unverified::Older {
            from: source.version,
            to: version,
        };
        (version != 0 && version < source.version && !self.confirms(&found)).then_some(found)
    }

    /// True if people have confirmed what it is about.
    pub fn confirms(&self, unverified: &Unverified) -> bool {
        match unverified {
            Unverified::MadeFrom(cluster) => self.former.contains(cluster),
            Unverified::Older { .. } => self.may_be_older,
        }
    }

    /// Asks the side which cluster it is. The request is sent after the call. An error proves nothing.
    pub async fn verify(&self, cluster: &Cluster) -> Result<Verdict, Error> {
        let Some(expected) = self.expected() else {
            return Ok(Verdict::Same(None));
        };
        Ok(match read(cluster, Some(expected)).await? {
            Some(found) if found == expected => Verdict::Same(Some(found)),
            Some(found) => Verdict::Other(found),
            // Nobody deletes these namespaces and leaves the cluster as it is.
            None => Verdict::Other("unknown".to_owned()),
        })
    }
}

/// The UID that identifies a cluster; `None` if it has none. A cluster that is known by the UID `expected` may since
/// have got another one that would come first.
pub async fn read(cluster: &Cluster, expected: Option<&str>) -> Result<Option<String>, Error> {
    let mut first = None;
    let workspace = (logical_clusters(WORKSPACE_VERSION), "cluster");
    let namespaces = NAMESPACES.map(|name| (ResourceType::namespaces(), name));
    for (resource, name) in namespaces.into_iter().chain([workspace]) {
        let at = ObjectName::new("", name);
        let uid = match cluster.get_shared(&resource, &at, Content::Metadata).await {
            Ok(object) => uid_of(&object)?,
            Err(error) if error.proves_absent(name) => continue,
            // An ordinary cluster, or one that does not let it be read.
            Err(error) if resource.group == WORKSPACE && (error.is_type_not_served() || error.is_forbidden()) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        if expected.is_none_or(|expected| *expected == *uid) {
            return Ok(Some(uid));
        }
        first = first.or(Some(uid));
    }
    Ok(first)
}

/// The UID of an object, which the record has to hold in one word.
fn uid_of(object: &[u8]) -> Result<String, Error> {
    let uid = Meta::parse(object)?.uid;
    if is_word(&uid) {
        Ok(uid)
    } else {
        Err(Error::BadAnswer(format!("{uid:?} is no UID")))
    }
}

/// The type of the object, called `cluster`, that represents a kcp workspace in itself.
pub(super) fn logical_clusters(version: &str) -> ResourceType {
    ResourceType::new([WORKSPACE, version, "logicalclusters", "LogicalCluster"], false)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use bytes::Bytes;
    use futures_util::FutureExt;
    use futures_util::future::LocalBoxFuture;
    use kube_lite::{ApiServer, RateLimit, Response};

    use super::*;
    use crate::api::FIELD_MANAGER;
    use crate::side::Side;
    use crate::sync::scripted::scripted;

    /// A cluster with one namespace, and a count of what it was asked.
    struct Named(&'static str, &'static str, Rc<Cell<u32>>);

    impl ApiServer for Named {
        fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            self.2.set(self.2.get() + 1);
            let path = request.uri().path().to_owned();
            let answer = match path.strip_prefix("/api/v1/namespaces/") {
                Some(name) if name == self.0 => Response::whole(200, self.1),
                Some("kube-system") => Response::whole(
                    404,
                    r#"{"kind":"Status","reason":"NotFound","details":{"name":"kube-system"}}"#,
                ),
                _ => Response::whole(404, "no page"),
            };
            async move {
                tokio::task::yield_now().await;
                Ok(answer)
            }
            .boxed_local()
        }
    }

    fn cluster(name: &'static str, object: &'static str) -> (Cluster, Rc<Cell<u32>>) {
        let asked = Rc::new(Cell::new(0));
        let server = Named(name, object, Rc::clone(&asked));
        (
            Cluster::new(Side::Hub.word(), Box::new(server), RateLimit::new(None), FIELD_MANAGER),
            asked,
        )
    }

    #[tokio::test]
    async fn a_cluster_is_known_from_another_one_and_those_who_ask_at_once_share_an_answer() {
        let (hub, asked) = cluster("default", r#"{"metadata":{"name":"default","uid":"u1"}}"#);
        assert_eq!(read(&hub, None).await, Ok(Some("u1".to_owned())));
        let mut identity = Identity::default();
        assert_eq!(
            identity.verify(&hub).await,
            Ok(Verdict::Same(None)),
            "nothing is expected yet"
        );
        identity.expect("u1".into());
        asked.set(0);
        let at_once = futures_util::future::join_all((0..3).map(|_| identity.verify(&hub))).await;
        assert_eq!(at_once, vec![Ok(Verdict::Same(Some("u1".into()))); 3]);
        assert_eq!(
            asked.get(),
            5,
            "kube-system once for the first and once for the others, and default once more for who is in between"
        );
        identity.verify(&hub).await.unwrap();
        assert_eq!(asked.get(), 7, "an answer says nothing of later");
        identity.expect("u2".into());
        assert_eq!(identity.verify(&hub).await, Ok(Verdict::Other("u1".into())));
        let (nobody, _) = cluster("x", "");
        assert!(
            identity.verify(&nobody).await.is_err(),
            "a 404 of something else proves nothing"
        );
    }
    #[tokio::test]
    async fn a_workspace_without_namespaces_is_known_by_itself_and_stays_so_when_it_gets_one() {
        const NO_SYSTEM: &str = r#"{"kind":"Status","reason":"NotFound","details":{"name":"kube-system"}}"#;
        const NO_DEFAULT: &str = r#"{"kind":"Status","reason":"NotFound","details":{"name":"default"}}"#;
        const NO_GROUP: &str = "404 page not found";
        const CLUSTER: &str = r#"{"metadata":{"name":"cluster","uid":"w1"}}"#;
        const DEFAULT: &str = r#"{"metadata":{"name":"default","uid":"n1"}}"#;
        for (row, expected, answers, found) in [
            (
                "kcp",
                None,
                [(404, NO_SYSTEM), (404, NO_DEFAULT), (200, CLUSTER)],
                Ok(Some("w1")),
            ),
            (
                "with a namespace since",
                Some("w1"),
                [(404, NO_SYSTEM), (200, DEFAULT), (200, CLUSTER)],
                Ok(Some("w1")),
            ),
            (
                "another one",
                Some("w0"),
                [(404, NO_SYSTEM), (200, DEFAULT), (200, CLUSTER)],
                Ok(Some("n1")),
            ),
            (
                "no kcp",
                None,
                [(404, NO_SYSTEM), (404, NO_DEFAULT), (404, NO_GROUP)],
                Ok(None),
            ),
            (
                "it may not be read",
                None,
                [(404, NO_SYSTEM), (404, NO_DEFAULT), (403, "")],
                Ok(None),
            ),
            (
                "it does not answer",
                None,
                [(404, NO_SYSTEM), (404, NO_DEFAULT), (503, "")],
                Err(503),
            ),
        ] {
            let (hub, _) = scripted(Side::Hub, &answers);
            let uid = read(&hub, expected).await;
            let uid = uid.map_err(|error| error.status().map_or(0, |status| status.code));
            assert_eq!(uid, found.map(|uid: Option<&str>| uid.map(str::to_owned)), "{row}");
        }
    }

    #[test]
    fn copies_tell_of_another_cluster_and_of_one_that_has_gone_back() {
        let source = |cluster, version| Source { cluster, version };
        let mut identity = Identity::default();
        for (found, version, expected) in [
            (source("a", 7), 7, None),
            (source("a", 7), 0, None),
            (source("a", 7), 6, Some(Unverified::Older { from: 7, to: 6 })),
            (source("b", 1), 6, Some(Unverified::MadeFrom("b".into()))),
        ] {
            assert_eq!(
                identity.unverified(found, "a", version),
                expected,
                "{found:?} {version}"
            );
        }
        // People confirm both.
        identity.give_up("b".into());
        identity.accept_older();
        for found in [source("a", 7), source("b", 7)] {
            assert_eq!(identity.unverified(found, "a", 6), None, "{found:?}");
        }
        assert!(identity.unverified(source("c", 1), "a", 6).is_some());
    }
}
