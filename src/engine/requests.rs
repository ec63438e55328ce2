//! Sending the requests that the model asks for.

use std::convert::Infallible;
use std::rc::Rc;

use driver::{Opened, Perform, Servers};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::{definitions, discover, heartbeat, hub_namespaces, left, record};
use crate::model::Model;
use crate::model::effect::{Answer, Done, Request};
use crate::side::Side;
use crate::sync::job::Policy;
use crate::sync::{identity, reconcile, status_return};

/// What sends them.
pub(super) struct Sender {
    pub(super) policy: Rc<Policy>,
}

impl Perform<Model> for Sender {
    fn open(&self, _side: Side, place: Infallible) -> Opened {
        match place {}
    }

    fn perform(&self, request: Request, servers: &mut Servers<'_, Side>) -> Option<LocalBoxFuture<'static, Answer>> {
        let mut at = |side| servers.at(side);
        Some(match request {
            Request::Object(key, job) => {
                let (hub, edge) = (at(Side::Hub)?, at(Side::Edge)?);
                async move { Answer::Worked(key, Done::Object(reconcile::reconcile(&hub, &edge, *job).await)) }
                    .boxed_local()
            }
            Request::Status(key, job) => {
                let (hub, edge) = (at(Side::Hub)?, at(Side::Edge)?);
                async move { Answer::Worked(key, Done::Status(status_return::reconcile(&hub, &edge, *job).await)) }
                    .boxed_local()
            }
            Request::Discover(side, questions) => {
                let cluster = at(side)?;
                async move { Answer::Discovered(side, discover::ask(&cluster, questions).await) }.boxed_local()
            }
            Request::ReadRecord(names) => {
                let edge = at(Side::Edge)?;
                async move { Answer::Recorded(record::read(&edge, &names).await.map(Box::new), true) }.boxed_local()
            }
            Request::WriteRecord(name, kept) => {
                let edge = at(Side::Edge)?;
                async move {
                    let result = record::write(&edge, &name, &kept).await;
                    Answer::Recorded(result.map(|()| Box::new(kept)), false)
                }
                .boxed_local()
            }
            Request::Identify(side, expected) => {
                let cluster = at(side)?;
                async move { Answer::Identified(side, identity::read(&cluster, expected.as_deref()).await) }
                    .boxed_local()
            }
            Request::SearchForLeft(resource, copies, definitions) => {
                let (hub, edge) = (at(Side::Hub)?, at(Side::Edge)?);
                let policy = Rc::clone(&self.policy);
                async move {
                    let left = left::count(&hub, &edge, &definitions, &resource, &copies, &policy.sync_target).await;
                    Answer::Vanished(resource, left)
                }
                .boxed_local()
            }
            Request::Define(types, definitions) => {
                let hub = at(Side::Hub)?;
                async move { Answer::Defined(definitions::read(&hub, types, Rc::unwrap_or_clone(definitions)).await) }
                    .boxed_local()
            }
            Request::Verify(resource, gone, definitions) => {
                let hub = at(Side::Hub)?;
                async move { Answer::Withdrawal(resource.qualified(), definitions.verify(&hub, &resource, gone).await) }
                    .boxed_local()
            }
            Request::VerifyConfigs(kinds, definitions) => {
                let hub = at(Side::Hub)?;
                async move {
                    let mut answers = Vec::new();
                    for kind in kinds {
                        answers.push((kind, definitions.verify(&hub, &kind.resource_type(), false).await));
                    }
                    Answer::ConfigKinds(answers)
                }
                .boxed_local()
            }
            Request::Namespace(namespace, step) => {
                let (hub, policy) = (at(Side::Hub)?, Rc::clone(&self.policy));
                async move { Answer::Namespace(hub_namespaces::take(&hub, namespace, step, &policy.sync_target).await) }
                    .boxed_local()
            }
            Request::FindNamespaces(names) => {
                let hub = at(Side::Hub)?;
                async move { Answer::NamespacesFound(hub_namespaces::find(&hub, names).await) }.boxed_local()
            }
            Request::Heartbeat(beat) => {
                let hub = at(Side::Hub)?;
                async move { Answer::Heartbeat(heartbeat::write(&hub, beat).await) }.boxed_local()
            }
            Request::Statuses(statuses) => {
                let hub = at(Side::Hub)?;
                async move { Answer::Statuses(heartbeat::write_statuses(&hub, statuses).await) }.boxed_local()
            }
        })
    }
}
