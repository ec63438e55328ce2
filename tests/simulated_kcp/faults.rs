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

/// Any request of anybody but the administrator may fail: before it is done, after that, or later than usual.
#[derive(Debug)]
pub(crate) struct Chaos {
    rng: fastrand::Rng,
    /// How many of a hundred.
    percent: u32,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing.
    Fine,
    /// It gets this answer, and nothing is done.
    Refused(u16),
    /// It is done, and gets this answer.
    Lost(u16),
    /// It is done, but late: so many milliseconds.
    Late(u64),
}

impl Chaos {
    pub(crate) fn new(seed: u64, percent: u32) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            percent,
        }
    }

    fn fate(&mut self) -> Fate {
        if self.rng.u32(..100) >= self.percent {
            return Fate::Fine;
        }
        let codes = [403, 404, 429, 500, 503];
        match self.rng.u32(..4) {
            0 => Fate::Lost(500),
            1 => Fate::Late(self.rng.u64(..400)),
            _ => Fate::Refused(codes[self.rng.usize(..codes.len())]),
        }
    }
}

/// An answer that is none: kcp's own are text, and so are those of what stands before it.
pub(crate) fn failure(code: u16) -> Answer {
    match code {
        403 => super::request::status(403, "Forbidden", "forbidden: access denied"),
        404 => super::request::not_served(),
        _ => Answer::Text(code, "something is wrong\n".to_owned()),
    }
}

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Faults {
    /// What may happen to any request.
    pub(crate) chaos: Option<Chaos>,
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
    /// A type that the virtual workspace of an export does not serve yet has an empty list without a version there, and
    /// watches that give nothing, as in newer versions of kcp; otherwise it is not there.
    pub(crate) empty_until_served: bool,
    /// Shards whose URL is not served.
    pub(crate) unserved: Vec<usize>,
    /// Shards that no slice names.
    pub(crate) unnamed: Vec<usize>,
    /// The virtual workspaces answer nobody who asks about a single workspace.
    pub(crate) hangs: bool,
    /// How many requests were left without an answer for that.
    pub(crate) hung: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            chaos: None,
            refusals: Vec::new(),
            stale: Duration::ZERO,
            taken_between: None,
            come_back: 0,
            aggregates: &["api"],
            types_urls: true,
            empty_until_served: true,
            unserved: Vec::new(),
            unnamed: Vec::new(),
            hangs: false,
            hung: 0,
        }
    }
}

impl Faults {
    /// What becomes of a request of this user.
    pub(crate) fn fate(&mut self, user: &str) -> Fate {
        let chaos = self.chaos.as_mut().filter(|_| user != super::rights::ADMIN);
        chaos.map_or(Fate::Fine, Chaos::fate)
    }

    /// True if a request to this path gets no answer.
    pub(crate) fn hangs(&mut self, path: &str) -> bool {
        let hangs = self.hangs && path.starts_with("/services/") && !path.contains("/clusters/*");
        self.hung += usize::from(hangs);
        hangs
    }

    /// What a request gets in the place of its answer.
    pub(crate) fn refuse(&mut self, request: &Request) -> Option<Answer> {
        let found = self
            .refusals
            .iter_mut()
            .find(|one| one.times > 0 && one.verb == request.verb && request.whole.contains(one.path))?;
        found.times -= 1;
        Some(Answer::Text(found.code, found.text.to_owned()))
    }
}
