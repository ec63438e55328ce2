//! What is written down of what belongs to an object, found again where somebody has deleted that: by the labels of what
//! has come to the service cluster.

use std::collections::BTreeSet;

use kube_lite::ObjectName;
use serde_json::Value;

use super::locating::{Pair, RelatedEnd};
use super::{Pass, name_of};
use crate::kinds::{Origin, Related};
use crate::labels::Selector;
use crate::lifecycle;
use crate::trouble::Stop;

impl Pass<'_> {
    /// What has come to the service cluster with the object, as far as the agent may look for that.
    pub(super) async fn labelled(&self) -> Result<Vec<([RelatedEnd<'_>; 2], Vec<Pair>)>, Stop> {
        let (mut all, mut types) = (Vec::new(), BTreeSet::new());
        let of_kcp = |related: &&Related| related.origin == Origin::Kcp;
        for related in self.route.resource.related.iter().filter(of_kcp) {
            if !types.insert([Origin::Kcp, Origin::Service].map(|side| related.type_on(side))) {
                continue;
            }
            let found = async {
                let ends = self.ends(related).await?;
                let selector = Selector {
                    labels: [(self.label.clone(), "true".to_owned())].into(),
                    ..Selector::default()
                };
                let of_all = (&ends[1].served.resource, "");
                let pairs = |found: &Value| self.pair_of(&ends[0], found);
                let found = self.list_related(&ends[1], of_all, &selector, pairs).await?;
                Ok((ends, found))
            };
            match found.await {
                Ok((ends, found)) => all.push((ends, found.into_iter().flatten().collect())),
                Err(Stop::Fails(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
        Ok(all)
    }

    /// What has come from which object of this workspace.
    fn pair_of(&self, origin: &RelatedEnd<'_>, found: &Value) -> Option<Pair> {
        let (cluster, agent) = (&self.key.cluster, &self.job.agent);
        let is_from_here = lifecycle::belongs_to_another(found, cluster, agent, false).is_none();
        let (namespace, name) = lifecycle::origin_of(found).filter(|_| is_from_here)?;
        let to: ObjectName = name_of(found);
        Some((origin.name(namespace, name), to))
    }
}
