//! Types that a side defines and does not serve yet: a server that has just started serves the types of CRDs late, but
//! their objects are there.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde::Deserialize;

use crate::meta::Meta;
use crate::{Cluster, Content, Error, ListRequest, ObjectName, ResourceType};

/// Names the objects of the first namespaced type that the side defines and that is not among those `shown`
/// (`resource.group`).
pub(crate) async fn first_hidden(cluster: &Rc<Cluster>, shown: &BTreeSet<String>) -> Result<Option<String>, Error> {
    let mut listing = cluster.list(ListRequest::of_all(ResourceType::definitions(), Content::Metadata));
    let mut hidden = Vec::new();
    loop {
        match listing.next().await {
            Ok(Some(object)) => {
                hidden.extend(Some(<Meta>::parse(&object)?.name).filter(|name| !shown.contains(&**name)));
            }
            Ok(None) => break,
            // A syncer that may not read the CRDs has to rely on what is shown.
            Err(error) if error.is_forbidden() || error.is_type_not_served() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    for name in hidden {
        if let Some(crd) = Crd::read(cluster, &name).await?
            && crd.is_in_use()
            && crd.spec.scope == "Namespaced"
        {
            return Ok(Some(Crd::words(&name)));
        }
    }
    Ok(None)
}

/// What a CRD says of its type.
#[derive(Deserialize)]
pub struct Crd {
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Spec {
    scope: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    served: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: String,
    status: String,
}

impl Crd {
    /// Reads the CRD of that name, `plural.group`; `None` if there is none.
    pub async fn read(cluster: &Cluster, name: &str) -> Result<Option<Self>, Error> {
        let object = ObjectName::new("", name);
        match cluster.get(&ResourceType::definitions(), &object, Content::Full).await {
            Ok(body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| Error::BadAnswer(format!("CustomResourceDefinition {name}: {error}"))),
            Err(error) if error.proves_absent(name) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// True if its objects can be used, so that there may be some: its names were accepted, which is final, and it says
    /// that it is served.
    pub fn is_in_use(&self) -> bool {
        let is_established = |one: &Condition| one.r#type == "Established" && one.status == "True";
        self.status.conditions.iter().any(is_established) && self.spec.versions.iter().any(|version| version.served)
    }

    /// Names the objects of the CRD `name`, if its type is not shown.
    pub fn words(name: &str) -> String {
        format!("objects of {name}, which is defined and not served at the moment")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Paths, RateLimit};

    const LIST: (&str, &str) = (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        r#"{"kind":"List","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"as.g.org"}},{"metadata":{"name":"bs.g.org"}}]}"#,
    );

    #[tokio::test]
    async fn a_type_that_is_in_use_and_not_shown_is_found() {
        let crd = |scope: &str, served: bool, established: &str| {
            format!(
                r#"{{"spec":{{"scope":"{scope}","versions":[{{"name":"v1","served":{served}}}]}},
                    "status":{{"conditions":[{{"type":"Established","status":"{established}"}}]}}}}"#
            )
        };
        for (body, shown, is_found) in [
            (crd("Namespaced", true, "True"), "as.g.org", true),
            (crd("Namespaced", true, "True"), "bs.g.org", false),
            (crd("Cluster", true, "True"), "as.g.org", false),
            (crd("Namespaced", false, "True"), "as.g.org", false),
            (crd("Namespaced", true, "False"), "as.g.org", false),
            (
                r#"{"spec":{"scope":"Namespaced","versions":[]}}"#.to_owned(),
                "as.g.org",
                false,
            ),
        ] {
            let body: &'static str = body.leak();
            let never = r#"{"spec":{"scope":"Namespaced","versions":[]}}"#;
            let paths = [
                LIST,
                (
                    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/as.g.org",
                    never,
                ),
                ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bs.g.org", body),
            ];
            let cluster = Cluster::new("edge", Box::new(Paths(paths.into())), RateLimit::new(None), "test");
            let found = first_hidden(&Rc::new(cluster), &BTreeSet::from([shown.to_owned()]))
                .await
                .unwrap();
            assert_eq!(
                found.is_some_and(|words| words.contains("bs.g.org")),
                is_found,
                "{shown} {body}"
            );
        }
    }

    #[tokio::test]
    async fn whoever_may_not_read_crds_believes_what_is_shown() {
        let cluster = Cluster::new("edge", Box::new(Paths([].into())), RateLimit::new(None), "test");
        assert_eq!(first_hidden(&Rc::new(cluster), &BTreeSet::new()).await.unwrap(), None);
    }
}
