//! What can go wrong, as tests ask for it.

use std::time::Duration;

use super::request::{Answer, Request};

/// An answer in the place of the right one, for some requests.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) verb: &'static str,
    /// Part of the path.
    pub(crate) path: &'static str,
    pub(crate) code: u16,
    pub(crate) text: &'static str,
    /// How many requests are still refused.
    pub(crate) times: usize,
}

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Faults {
    pub(crate) refusals: Vec<Refusal>,
    /// Lists are as old as this.
    pub(crate) stale: Duration,
    /// An initializer that somebody takes off just before the next patch of a status.
    pub(crate) taken_between: Option<String>,
    /// How many initializers that are taken off come back a moment later, as a real kcp has it now and then.
    pub(crate) come_back: usize,
    /// What has the aggregated form of discovery: of a real kcp, `/api` has it and `/apis` has not.
    pub(crate) aggregates: &'static [&'static str],
    /// The types of URLs are named, as newer servers do.
    pub(crate) types_urls: bool,
    /// Shards whose URL is not served.
    pub(crate) unserved: Vec<usize>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            refusals: Vec::new(),
            stale: Duration::ZERO,
            taken_between: None,
            come_back: 0,
            aggregates: &["api"],
            types_urls: true,
            unserved: Vec::new(),
        }
    }
}

impl Faults {
    /// What a request gets in the place of its answer.
    pub(crate) fn refuse(&mut self, request: &Request) -> Option<Answer> {
        let found = self
            .refusals
            .iter_mut()
            .find(|one| one.times > 0 && one.verb == request.verb && request.path.contains(one.path))?;
        found.times -= 1;
        Some(Answer::Text(found.code, found.text.to_owned()))
    }
}
