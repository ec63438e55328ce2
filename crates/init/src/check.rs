//! `init check`: whether the role would work with these settings, point by point. It changes nothing.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::rc::Rc;

use driver::logger;
use driver::points::{Points, Verdict};
use kube_lite::read::list_all;
use kube_lite::{Cluster, Content, Error, ObjectName};
use serde_json::json;

use crate::agent::{NO_TYPE, Subject, TypeName, advice, type_of};
use crate::kcp::{self, LogicalCluster, WorkspaceType, parsed};
use crate::kinds::{InitTarget, InitTemplate};
use crate::objects::{self, Data};
use crate::run::{LEASE, Settings};
use crate::servers::Kcp;
use crate::sides::Location;

/// A workspace for which templates are rendered.
const EXAMPLE: (&str, &str) = ("2example", "root:example");

/// What a point is about.
#[derive(Clone, Debug)]
pub enum Where {
    /// The config workspace.
    Config,
    /// A target.
    Target(Rc<str>),
}

impl Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config => f.write_str("config workspace"),
            Self::Target(name) => write!(f, "InitTarget {name}"),
        }
    }
}

/// Checks whether the role would work with these settings.
pub async fn check(settings: &Settings) -> Points<Where> {
    let mut points = Points::default();
    let opened = Kcp::open(settings.source.clone(), settings.user_agent.clone(), logger::since_1970);
    let kcp = match opened {
        Ok(kcp) => kcp,
        Err(error) => {
            points.add(None, "kubeconfig", Verdict::Wrong, error.to_string(), "");
            return points;
        }
    };
    let config = Rc::new(kcp.config(&settings.config_workspace));
    let check = Check { kcp, config, settings };
    check.all(&mut points).await;
    points
}

struct Check<'a> {
    kcp: Kcp,
    config: Rc<Cluster>,
    settings: &'a Settings,
}

impl Check<'_> {
    async fn all(&self, points: &mut Points<Where>) {
        let selector = self.settings.selector.as_deref().map(Rc::from);
        let listed = list_all::<InitTarget>(&self.config, kcp::init_targets(), selector).await;
        let Some(targets) = self.read("InitTargets", &Subject::Targets, listed, points) else {
            return;
        };
        let listed = list_all::<InitTemplate>(&self.config, kcp::init_templates(), None).await;
        let templates = self
            .read("InitTemplates", &Subject::Templates, listed, points)
            .unwrap_or_default();
        self.rights(points).await;
        let mut types: BTreeMap<TypeName, Vec<(Verdict, String, String)>> = BTreeMap::new();
        for target in targets {
            let here = || Where::Target(target.metadata.name.as_str().into());
            let name = type_of(&target, &self.settings.config_workspace.name.as_str().into());
            if !types.contains_key(&name) {
                let found = self.type_named(&name).await;
                types.insert(name.clone(), found);
            }
            for (verdict, found, advice) in types.get(&name).into_iter().flatten() {
                points.add(here(), "type", *verdict, found.clone(), advice.clone());
            }
            sources(&target, &templates, here, points);
        }
    }

    /// What a list of the config workspace gives, and the point for that.
    fn read<T>(
        &self,
        about: &'static str,
        subject: &Subject,
        listed: Result<Vec<T>, Error>,
        points: &mut Points<Where>,
    ) -> Option<Vec<T>> {
        match listed {
            Ok(found) => {
                let verdict = if found.is_empty() { Verdict::Note } else { Verdict::Good };
                points.add(
                    Where::Config,
                    about,
                    verdict,
                    format!("{} can be read", found.len()),
                    "",
                );
                Some(found)
            }
            Err(error) => {
                let advice = advice(subject, &error, &self.config.standing().place);
                points.add(Where::Config, about, Verdict::Wrong, error.to_string(), advice);
                None
            }
        }
    }

    /// What else is needed there.
    async fn rights(&self, points: &mut Points<Where>) {
        let of_status = json!({"group": "initialization.kcp.io", "resource": "inittargets", "subresource": "status", "verb": "patch"});
        let mut rows = vec![
            (
                json!({"resource": "events", "verb": "create", "namespace": "default"}),
                "Events",
                Verdict::Note,
                "allow create and patch of events there: failures are then shown at the InitTargets",
            ),
            (
                of_status,
                "conditions",
                Verdict::Note,
                "allow patch of inittargets/status there: with the CRDs of manifests/init, InitTargets then have conditions",
            ),
        ];
        if let Some(namespace) = &self.settings.election {
            let lease = |verb: &str| json!({"group": "coordination.k8s.io", "resource": "leases", "verb": verb, "namespace": namespace, "name": LEASE});
            let advice = "allow get, create and patch of leases of coordination.k8s.io in the namespace of \
                          --leader-election-namespace";
            rows.extend(["get", "create", "patch"].map(|verb| (lease(verb), "Lease", Verdict::Wrong, advice)));
        }
        for (attributes, about, refused, advice) in rows {
            let verb = attributes["verb"].as_str().unwrap_or_default().to_owned();
            match self.config.allows(&attributes).await {
                Ok(true) => points.add(Where::Config, about, Verdict::Good, format!("{verb} is allowed"), ""),
                Ok(false) => points.add(Where::Config, about, refused, format!("{verb} is not allowed"), advice),
                Err(error) => points.add(Where::Config, about, Verdict::Unknown, error.to_string(), ""),
            }
        }
    }

    /// What there is to say of a type.
    async fn type_named(&self, name: &TypeName) -> Vec<(Verdict, String, String)> {
        let server = self.kcp.at(&Location::Workspace(Rc::clone(&name.workspace)));
        let subject = Subject::Type(name.clone());
        let place = server.standing().place;
        let read = server
            .get(&kcp::workspace_types(), &ObjectName::new("", &name.name), Content::Full)
            .await;
        let object = match read {
            Ok(object) => object,
            Err(error) => {
                let advice = if error.proves_absent(&name.name) {
                    NO_TYPE.into()
                } else {
                    advice(&subject, &error, &place)
                };
                return vec![(
                    Verdict::Wrong,
                    format!("{}:{}: {error}", name.workspace, name.name),
                    advice.into_owned(),
                )];
            }
        };
        let Ok(found) = parsed::<WorkspaceType>(&object) else {
            return vec![(Verdict::Wrong, "it is no WorkspaceType".to_owned(), String::new())];
        };
        let mut rows = Vec::new();
        if !found.spec.initializer {
            let advice = "set spec.initializer to true: without it, workspaces of the type do not wait for anybody";
            rows.push((
                Verdict::Wrong,
                "its workspaces have no initializer".to_owned(),
                advice.to_owned(),
            ));
        }
        let Some(initializer) = found.initializer() else {
            rows.push((
                Verdict::Wrong,
                "it has no annotation kcp.io/cluster".to_owned(),
                String::new(),
            ));
            return rows;
        };
        let urls: Vec<Rc<str>> = found.urls().map(Rc::from).collect();
        if urls.is_empty() {
            let found = "kcp has not said yet where workspaces wait".to_owned();
            rows.push((Verdict::Unknown, found, "check again in some seconds".to_owned()));
        }
        for url in urls {
            rows.push(self.shard(&initializer, &url).await);
        }
        rows
    }

    /// Whether those who wait are shown at a URL.
    async fn shard(&self, initializer: &str, url: &Rc<str>) -> (Verdict, String, String) {
        let server = Rc::new(self.kcp.at(&Location::Url(Rc::clone(url))));
        match list_all::<LogicalCluster>(&server, kcp::logical_clusters(), None).await {
            Ok(all) => {
                let waiting = all.iter().filter(|it| it.waits_for(initializer).is_some()).count();
                (
                    Verdict::Good,
                    format!("{initializer}: waiting at {url}: {waiting}"),
                    String::new(),
                )
            }
            Err(error) => {
                let subject = Subject::Clusters(initializer.into(), 0);
                let advice = advice(&subject, &error, &server.standing().place);
                (Verdict::Wrong, format!("{url}: {error}"), advice.into_owned())
            }
        }
    }
}

/// Whether the sources of a target give objects.
fn sources(target: &InitTarget, templates: &[InitTemplate], here: impl Fn() -> Where, points: &mut Points<Where>) {
    let data = Data {
        cluster_name: EXAMPLE.0.to_owned(),
        cluster_path: EXAMPLE.1.to_owned(),
    };
    let named = |name: &str| {
        let is_it = |template: &&InitTemplate| {
            template.metadata.name == name && template.metadata.cluster() == target.metadata.cluster()
        };
        templates.iter().find(is_it)
    };
    for index in 0..target.spec.sources.len() {
        match objects::of_source(target, index, named, &data, logger::now()) {
            Ok(objects) => {
                let found = format!(
                    "sources[{index}] gives {} objects in a workspace {}",
                    objects.len(),
                    EXAMPLE.1
                );
                points.add(here(), "template", Verdict::Good, found, "");
            }
            Err(error) => {
                let found = format!("sources[{index}]: {error}");
                points.add(
                    here(),
                    "template",
                    Verdict::Wrong,
                    found,
                    "correct the template or the target",
                );
            }
        }
    }
}
