//! Two clusters without streaming lists, so that lists and watches are both asked for, and a site with the printed roles.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::objects::{JSON, MERGE_PATCH, namespace, path};
use crate::support::story::SOON;
use crate::support::{
    Credential, KubeconfigParts, Objects, PairLease, PairOptions, Printed, Server, ServerOptions, Syncer, eventually,
    shared_pair_with,
};

pub(crate) const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// The account, and the sync target.
pub(crate) const SITE: &str = "site-7";
/// The namespace of the account, and of the syncer itself at the edge.
pub(crate) const OWN: &str = "edge-syncer";
/// What the roles are called.
pub(crate) const ROLE: &str = "edge-syncer-site-7";

/// The pair that all tests of this file share.
pub(crate) async fn pair() -> PairLease {
    let side = ServerOptions {
        extra_args: vec!["--feature-gates=WatchList=false".into()],
        ..ServerOptions::default()
    };
    let options = PairOptions {
        hub: side.clone(),
        edge: side,
    };
    let pair = shared_pair_with(options).await;
    for side in [&pair.hub, &pair.edge] {
        let objects = side.objects();
        objects.remove_namespaces(&[OWN.to_owned()]).await;
        for plural in ["clusterrolebindings", "clusterroles"] {
            objects.delete(RBAC, plural, "", ROLE).await;
        }
        for plural in ["rolebindings", "roles"] {
            objects.delete(RBAC, plural, "default", ROLE).await;
        }
    }
    pair
}

/// Runs the binary to its end.
pub(crate) async fn edge_syncer(args: &[String]) -> Printed {
    let output = Command::new(Syncer::program())
        .args(args)
        .env("NAMESPACE", OWN)
        .output()
        .await
        .expect("the binary can be started");
    Printed::of(&output)
}

/// A command with the flags that lead to both sides.
pub(crate) fn between(command: &[&str], hub: &Path, edge: &Path, more: &[&str]) -> Vec<String> {
    let sides = [
        format!("--from-kubeconfig={}", hub.display()),
        format!("--to-kubeconfig={}", edge.display()),
        format!("--sync-target-uid={SITE}"),
    ];
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    [words(command), sides.to_vec(), words(more)].concat()
}

/// The roles that `gen rbac` prints for a side, by administrators, with these flags.
pub(crate) async fn roles(pair: &PairLease, side: &str, more: &[&str]) -> String {
    let side = format!("--side={side}");
    let args = between(
        &["gen", "rbac", &side],
        &pair.hub.kubeconfig(),
        &pair.edge.kubeconfig(),
        more,
    );
    let printed = edge_syncer(&args).await;
    assert_eq!(printed.code, Some(0), "{}", printed.err);
    assert_eq!(printed.err, "", "YAML alone, and nothing else");
    printed.out
}

/// The objects in a text of YAML documents.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n");
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")))
        .collect()
}

/// Creates all objects of a text at a server that takes no field that it does not know.
pub(crate) async fn create_all(side: &Objects, text: &str) {
    for object in documents(text) {
        let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = field(&object["metadata"]["namespace"]);
        let collection = path(&field(&object["apiVersion"]), &field(&object["kind"]), &namespace, "");
        let strictly = format!("{collection}?fieldValidation=Strict");
        let created = side.send(Method::POST, &strictly, JSON, Some(&object)).await;
        created.unwrap_or_else(|error| panic!("{}: {error}", object["metadata"]["name"]));
    }
}

/// A kubeconfig of the account.
pub(crate) async fn kubeconfig(server: &Server) -> PathBuf {
    let path = format!("/api/v1/namespaces/{OWN}/serviceaccounts/{SITE}/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = server.objects().send(Method::POST, &path, JSON, Some(&request)).await;
    let answer = answer.expect("the account gets a token");
    let parts = KubeconfigParts::with(|parts| parts.credential = Credential::TokenFile);
    let file = server.write_kubeconfig(SITE, &parts);
    let token = answer["status"]["token"].as_str().expect("a token is text");
    std::fs::write(file.with_extension("token"), token).expect("the folder can be written");
    file
}

/// One permission of a role: a verb for one resource, in one of its rules.
#[derive(Clone, Debug)]
pub(crate) struct Atom {
    /// `hub` or `edge`.
    pub(crate) side: &'static str,
    /// `clusterroles` or `roles`.
    pub(crate) of: &'static str,
    /// The namespace of that role.
    namespace: String,
    /// All rules of that role.
    pub(crate) rules: Value,
    /// The rule that it is in.
    rule: usize,
    pub(crate) verb: String,
    pub(crate) resource: String,
}

impl Atom {
    /// All permissions that a text of roles gives.
    pub(crate) fn all(side: &'static str, text: &str) -> Vec<Self> {
        let mut atoms = Vec::new();
        let words = |list: &Value| -> Vec<String> {
            let words = list.as_array().into_iter().flatten();
            words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
        };
        for document in documents(text) {
            let of = match document["kind"].as_str() {
                Some("ClusterRole") => "clusterroles",
                Some("Role") => "roles",
                _ => continue,
            };
            for (rule, parts) in document["rules"].as_array().into_iter().flatten().enumerate() {
                for (resource, verb) in words(&parts["resources"]).into_iter().flat_map(|resource| {
                    words(&parts["verbs"])
                        .into_iter()
                        .map(move |verb| (resource.clone(), verb))
                }) {
                    atoms.push(Self {
                        side,
                        of,
                        namespace: document["metadata"]["namespace"]
                            .as_str()
                            .unwrap_or_default()
                            .to_owned(),
                        rules: document["rules"].clone(),
                        rule,
                        verb,
                        resource,
                    });
                }
            }
        }
        atoms
    }

    /// True if another rule gives it for all objects too, so that nobody misses it: the rules for the syncer's own objects
    /// and for telling clusters apart stand alone.
    pub(crate) fn is_covered(&self, all: &[Self]) -> bool {
        let group = |atom: &Self| atom.rules[atom.rule]["apiGroups"].clone();
        all.iter().any(|other| {
            let is_same = (&other.verb, &other.resource, group(other)) == (&self.verb, &self.resource, group(self));
            let is_wide = other.of == "clusterroles" && other.rules[other.rule]["resourceNames"].is_null();
            is_same && is_wide && (other.of, other.rule) != (self.of, self.rule)
        })
    }

    /// The rules of its role without it, also where a rule for single objects gives it again.
    fn rules_without(&self) -> Value {
        let words = |list: &Value, is_left: &dyn Fn(&Value) -> bool| -> Vec<Value> {
            let words = list.as_array().into_iter().flatten();
            words.filter(|word| is_left(word)).cloned().collect()
        };
        let of_rule = |(at, whole): (usize, &Value)| {
            let has = |key: &str, word: &str| whole[key].as_array().is_some_and(|all| all.contains(&json!(word)));
            let is_same_group = whole["apiGroups"] == self.rules[self.rule]["apiGroups"];
            let gives = is_same_group && has("resources", &self.resource) && has("verbs", &self.verb);
            if at != self.rule && (!gives || whole["resourceNames"].is_null()) {
                return vec![whole.clone()];
            }
            let mut others = whole.clone();
            others["resources"] = words(&whole["resources"], &|word| *word != self.resource).into();
            let mut rest = whole.clone();
            rest["resources"] = json!([self.resource]);
            rest["verbs"] = words(&whole["verbs"], &|word| *word != self.verb).into();
            vec![others, rest]
        };
        let rules = self.rules.as_array().expect("a role has rules").iter().enumerate();
        let is_empty = |rule: &Value, key: &str| rule[key].as_array().is_none_or(Vec::is_empty);
        let left = rules.flat_map(of_rule);
        left.filter(|rule| !is_empty(rule, "resources") && !is_empty(rule, "verbs"))
            .collect()
    }

    fn path(&self) -> String {
        path(RBAC, self.of, &self.namespace, ROLE)
    }

    /// Takes it out of its role, and waits until the server no longer allows it to the account.
    pub(crate) async fn take_out(&self, at: &Objects, account: &Objects) {
        self.set(at, self.rules_without()).await;
        self.becomes(account, false).await;
    }

    /// Gives it back.
    pub(crate) async fn give_back(&self, at: &Objects, account: &Objects) {
        self.set(at, self.rules.clone()).await;
        self.becomes(account, true).await;
    }

    async fn set(&self, at: &Objects, rules: Value) {
        let patched = at
            .send(Method::PATCH, &self.path(), MERGE_PATCH, Some(&json!({"rules": rules})))
            .await;
        patched.unwrap_or_else(|error| panic!("{self:?}: {error}"));
    }

    async fn becomes(&self, account: &Objects, is_allowed: bool) {
        let rule = &self.rules[self.rule];
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        let spec = json!({"resourceAttributes": {"verb": self.verb, "group": rule["apiGroups"][0], "resource": resource,
            "subresource": subresource, "namespace": self.namespace, "name": rule["resourceNames"][0]}});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        eventually(&format!("{self:?} is allowed: {is_allowed}"), SOON, async || {
            let answer = account.send(Method::POST, path, JSON, Some(&review)).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let found = answer["status"]["allowed"] == true;
            if found == is_allowed {
                Ok(())
            } else {
                Err(answer.to_string())
            }
        })
        .await;
    }
}

/// A site: both sides, and an account at each that has the printed roles and no others.
pub(crate) struct Site {
    pub(crate) pair: PairLease,
    pub(crate) hub: Objects,
    pub(crate) edge: Objects,
    /// The roles of hub and edge, as they were printed.
    pub(crate) printed: [String; 2],
    /// The kubeconfigs of the account.
    pub(crate) files: [PathBuf; 2],
    /// The sides as the account has them.
    pub(crate) accounts: [Objects; 2],
}

impl Site {
    /// Makes the account with the roles that these flags and the configs that are there need.
    pub(crate) async fn prepare(pair: PairLease, flags: &[&str]) -> Self {
        let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
        let printed = [roles(&pair, "hub", flags).await, roles(&pair, "edge", flags).await];
        create_all(&hub, &printed[0]).await;
        create_all(&edge, &printed[1]).await;
        let files = [kubeconfig(&pair.hub).await, kubeconfig(&pair.edge).await];
        let accounts = [
            Objects::by_kubeconfig(&files[0], None).await,
            Objects::by_kubeconfig(&files[1], None).await,
        ];
        Self {
            pair,
            hub,
            edge,
            printed,
            files,
            accounts,
        }
    }

    /// Starts a syncer as that account.
    pub(crate) fn syncer(&self, flags: &[&str]) -> Syncer {
        let flags = [&["--sync-target-uid=site-7"], flags].concat();
        Syncer::start_with_env(&self.files[0], &self.files[1], &flags, &[("NAMESPACE", OWN)])
    }
}

/// Creates a namespace, unless it is there.
pub(crate) async fn ensure_namespace(at: &Objects, name: &str) {
    if at.get("v1", "namespaces", "", name).await.is_none() {
        at.create(&namespace(name)).await;
    }
}
