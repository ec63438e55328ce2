//! Asking a side what it serves.

use std::collections::{BTreeMap, BTreeSet};

use kube_lite::discovery::{self, GroupVersion, Served};
use kube_lite::{Cluster, Error};

use crate::model::effect::{Answers, DiscoveryRequest, Groups, Lacking};

/// Asks all questions, one after the other.
pub(super) async fn ask(cluster: &Cluster, questions: DiscoveryRequest) -> Answers {
    let DiscoveryRequest {
        mut group_versions,
        of_groups,
        catalogue,
        open,
        elsewhere,
        to_confirm,
    } = questions;
    let groups = if of_groups {
        Some(discovery::groups(cluster).await)
    } else {
        None
    };
    if let Some(Ok(groups)) = &groups {
        group_versions.extend(versions_of(groups, &open));
    }
    let mut served = Vec::new();
    for group_version in group_versions {
        let answer = discovery::discover(cluster, &group_version).await;
        served.push((group_version, answer));
    }
    ask_other_versions(cluster, &elsewhere, &mut served).await;
    let lacking = confirm_lacking(cluster, to_confirm).await;
    let catalogue = if catalogue {
        Some(discovery::catalogue(cluster).await)
    } else {
        None
    };
    Answers {
        served,
        groups,
        catalogue,
        lacking,
    }
}

/// The versions of the groups of which everything is selected.
fn versions_of(groups: &Groups, open: &BTreeSet<String>) -> Vec<GroupVersion> {
    let open = open.iter().filter_map(|group| groups.get_key_value(group));
    open.flat_map(|(group, versions)| versions.iter().map(|version| (group.clone(), version.clone())))
        .collect()
}

/// For each of these groups whose asked version a side does not have, or has without these resources: what the other
/// versions of the group serve.
async fn ask_other_versions(
    cluster: &Cluster,
    groups: &BTreeMap<String, BTreeSet<String>>,
    answers: &mut Vec<(GroupVersion, Result<Served, Error>)>,
) {
    let lacks = |((group, _), answer): &&(GroupVersion, Result<Served, Error>)| match (groups.get(group), answer) {
        (Some(_), Ok(Served::NotServed)) => true,
        (Some(needed), Ok(Served::Resources(served))) => needed.iter().any(|resource| !served.contains_key(resource)),
        _ => false,
    };
    let lacking = answers.iter().filter(lacks);
    let lacking: BTreeSet<String> = lacking.map(|((group, _), _)| group.clone()).collect();
    if lacking.is_empty() {
        return;
    }
    let known = discovery::groups(cluster).await.unwrap_or_default();
    for group in lacking {
        for version in known.get(&group).into_iter().flatten() {
            let other = (group.clone(), version.clone());
            if !answers.iter().any(|(asked, _)| *asked == other) {
                let answer = discovery::discover(cluster, &other).await;
                answers.push((other, answer));
            }
        }
    }
}

/// Which of the types a side lacks, by what it does serve: it has listed its groups, and the type's is not among them, or
/// each of the group's versions has been read and lacks the type, or has it with another scope. A 404 alone may come
/// from a proxy before the side.
pub(super) async fn confirm_lacking(cluster: &Cluster, types: Lacking) -> BTreeSet<(String, String)> {
    if types.is_empty() {
        return BTreeSet::new();
    }
    let Ok(groups) = discovery::groups(cluster).await else {
        return BTreeSet::new();
    };
    let mut lacking = BTreeSet::new();
    for ((group, resource), absence) in types {
        let mut lacks = true;
        for version in groups.get(&group).into_iter().flatten() {
            let served = discovery::discover(cluster, &(group.clone(), version.clone())).await;
            lacks &= served.is_ok_and(|served| served.lacks(&resource, absence.scope()));
        }
        if lacks {
            lacking.insert((group, resource));
        }
    }
    lacking
}

#[cfg(test)]
mod tests {
    use kube_lite::{Paths, RateLimit};

    use super::*;
    use crate::api::FIELD_MANAGER;
    use crate::plan::Absence;
    use crate::side::Side;

    async fn lacks_gauges(paths: &[(&'static str, &'static str)], scope: Option<bool>) -> bool {
        let server = Paths(paths.iter().copied().collect());
        let cluster = Cluster::new(Side::Hub.word(), Box::new(server), RateLimit::new(None), FIELD_MANAGER);
        let gauges = ("g".to_owned(), "gauges".to_owned());
        let absence = scope.map_or(Absence::Side, |namespaced| Absence::Scope { namespaced });
        confirm_lacking(&cluster, Lacking::from([(gauges.clone(), absence)]))
            .await
            .contains(&gauges)
    }

    #[tokio::test]
    async fn only_a_hub_that_lists_what_it_serves_can_lack_a_type() {
        const NONE: &str = r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1"}]}]}"#;
        const GROUP: &str =
            r#"{"kind":"APIGroupList","groups":[{"name":"g","versions":[{"version":"v2"},{"version":"v1"}]}]}"#;
        const OTHERS: &str = r#"{"kind":"APIResourceList","resources":[{"name":"others","kind":"Other"}]}"#;
        const GAUGES: &str = r#"{"kind":"APIResourceList","resources":[{"name":"gauges","kind":"Gauge"}]}"#;
        for (lacks, row, paths) in [
            (true, "the group is not listed", vec![("/apis", NONE)]),
            (
                true,
                "no version has it",
                vec![("/apis", GROUP), ("/apis/g/v1", OTHERS), ("/apis/g/v2", OTHERS)],
            ),
            (
                false,
                "another version has it",
                vec![("/apis", GROUP), ("/apis/g/v1", OTHERS), ("/apis/g/v2", GAUGES)],
            ),
            (
                false,
                "one version does not answer",
                vec![("/apis", GROUP), ("/apis/g/v1", OTHERS)],
            ),
            (false, "nothing but 404s, as from a proxy", vec![]),
            (
                false,
                "a page instead of groups",
                vec![("/apis", "<html>log in</html>")],
            ),
            (
                false,
                "some other object",
                vec![("/apis", r#"{"kind":"Status","groups":[]}"#)],
            ),
        ] {
            assert_eq!(lacks_gauges(&paths, None).await, lacks, "{row}");
        }
    }

    #[tokio::test]
    async fn a_type_with_another_scope_is_lacking_where_the_scope_counts() {
        const GROUP: &str = r#"{"kind":"APIGroupList","groups":[{"name":"g","versions":[{"version":"v1"}]}]}"#;
        const GAUGES: &str =
            r#"{"kind":"APIResourceList","resources":[{"name":"gauges","kind":"Gauge","namespaced":true}]}"#;
        let paths = [("/apis", GROUP), ("/apis/g/v1", GAUGES)];
        for (scope, lacks) in [(None, false), (Some(true), false), (Some(false), true)] {
            assert_eq!(lacks_gauges(&paths, scope).await, lacks, "{scope:?}");
        }
    }
}
