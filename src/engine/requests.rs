//! Sending the requests that the model asks for.

use std::convert::Infallible;
use std::rc::Rc;

use driver::{Opened, Perform, Servers};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::dry_run::DryRun;
use super::{definitions, discover, events, heartbeat, hub_namespaces, left, record};
use crate::model::Model;
use crate::model::effect::{Answer, Done, Request};
use crate::side::Side;
use crate::sync::job::Policy;
use crate::sync::{identity, reconcile, status_return};

/// What sends them.
pub(super) struct Sender {
    pub(super) policy: Rc<Policy>,
    /// Nothing is changed at either side.
    pub(super) dry_run: Option<DryRun>,
}

impl Perform<Model> for Sender {
    fn open(&self, _side: Side, place: Infallible) -> Opened {
        match place {}
    }

    fn perform(&self, request: Request, servers: &mut Servers<'_, Side>) -> Option<LocalBoxFuture<'static, Answer>> {
        let request = match &self.dry_run {
            Some(dry_run) => match rehearse(dry_run, &self.policy, request, servers) {
                Ok(work) => return work,
                Err(request) => *request,
            },
            None => request,
        };
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
                let (hub, edge) = (at(Side::Hub)?, at(Side::Edge)?);
                async move { Answer::Heartbeat(heartbeat::write(&hub, &edge, beat).await) }.boxed_local()
            }
            Request::Statuses(statuses) => {
                let hub = at(Side::Hub)?;
                async move { Answer::Statuses(heartbeat::write_statuses(&hub, statuses).await) }.boxed_local()
            }
            Request::Events(side, all) => {
                let (server, policy) = (at(side)?, Rc::clone(&self.policy));
                async move { Answer::Events(side, events::write(&server, &policy.sync_target.uid, all).await) }
                    .boxed_local()
            }
            // Nobody has asked for a dry run.
            Request::Tried(_) => return None,
        })
    }
}

/// The work behind a request in a dry run; the request itself if it changes nothing in any case.
fn rehearse(
    dry_run: &DryRun,
    policy: &Rc<Policy>,
    request: Request,
    servers: &mut Servers<'_, Side>,
) -> Result<Option<LocalBoxFuture<'static, Answer>>, Box<Request>> {
    let dry_run = dry_run.clone();
    let (hub, edge) = (Side::Hub, Side::Edge);
    let work = match request {
        Request::Object(key, job) => servers.at(hub).zip(servers.at(edge)).map(|(hub, edge)| {
            async move { Answer::Worked(key, Done::Object(dry_run.object(&hub, &edge, *job).await)) }.boxed_local()
        }),
        Request::Status(key, job) => servers.at(hub).zip(servers.at(edge)).map(|(hub, edge)| {
            async move { Answer::Worked(key, Done::Status(dry_run.status(&hub, &edge, *job).await)) }.boxed_local()
        }),
        Request::Namespace(namespace, step) => servers.at(hub).map(|hub| {
            let we = policy.sync_target.clone();
            async move { Answer::Namespace(dry_run.namespace(&hub, (namespace, step), &we).await) }.boxed_local()
        }),
        // As if it had been written.
        Request::WriteRecord(_, kept) => Some(async move { Answer::Recorded(Ok(Box::new(kept)), false) }.boxed_local()),
        // They are not, and nothing waits for them.
        Request::Heartbeat(_) | Request::Statuses(_) | Request::Events(..) => None,
        Request::Tried(remaining) => {
            dry_run.tried(remaining);
            None
        }
        reads => return Err(Box::new(reads)),
    };
    Ok(work)
}
