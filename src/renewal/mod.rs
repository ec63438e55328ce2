//! The credentials of both sides, over their life: the token of the hub is renewed before it ends, and the end of what
//! is not renewed is logged in time.
//!
//! [`plan`] and [`notice`] decide what is done when, without I/O; [`keep`] stores a renewed token; the requests are
//! made here.
//!
//! Promises: the old token stays in use until there is a new one; a new one is in use before it is kept, so that a full
//! disk or an unreachable edge costs only another try; what fails is logged once in a row; no token is in any line. Of
//! two syncers, only the leader runs this.

mod keep;
mod notice;
mod plan;

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::{Instant, sleep};

pub use keep::Keep;

use kube_lite::access::AccessSource;
use kube_lite::claims::Claims;
use kube_lite::logging::{Maybe, log_line};
use kube_lite::{Cluster, Credentials, Error};

use self::notice::{Notice, Notices};
use self::plan::{LOOK, Now, Plan, RenewalStep, Tries};
use crate::side::Side;

/// What is needed to renew and watch the credentials. Cheap to clone.
#[derive(Clone)]
pub struct Setup {
    /// The hub.
    pub hub: Rc<Cluster>,
    /// The edge.
    pub edge: Rc<Cluster>,
    /// Where the kubeconfig of the hub is.
    pub source: AccessSource,
    /// Where renewed tokens are kept; nothing is renewed without such a place.
    pub keep: Option<Keep>,
    /// The name that the edge was registered with, for the command that makes new credentials.
    pub sync_target_name: String,
    /// The wall clock: the time since 1970.
    pub clock: fn() -> Duration,
    /// Formats such a time for people and APIs.
    pub date: fn(Duration) -> String,
}

/// Renews and watches the credentials for as long as it is polled.
pub async fn run(setup: Setup) -> Infallible {
    let mut renewal = Renewal {
        setup,
        plan: Plan::default(),
        unkept: None,
        keeping: Tries::default(),
        notices: [Notices::default(), Notices::default()],
        is_reported: false,
    };
    loop {
        let wait = renewal.turn().await;
        sleep(wait).await;
    }
}

struct Renewal {
    setup: Setup,
    plan: Plan,
    /// The token in use, if it is not stored yet.
    unkept: Option<SecretString>,
    keeping: Tries,
    /// Of hub and edge.
    notices: [Notices; 2],
    /// It was logged that there is nothing to renew.
    is_reported: bool,
}

impl Renewal {
    /// Does what is due; returns how long nothing else is.
    async fn turn(&mut self) -> Duration {
        self.tell_of_ends();
        let Some(keep) = self.setup.keep.clone() else {
            return LOOK;
        };
        let in_force = self.setup.hub.in_force();
        let Credentials::Token(token, claims) = &*in_force else {
            self.tell_that_nothing_is_renewed();
            return LOOK;
        };
        self.is_reported = false;
        self.plan.meet(token, fastrand::f64());
        let wait = self.keep_token(&keep, claims).await;
        match self.plan.next(claims, &self.setup.hub.standing(), self.now()) {
            RenewalStep::Wait(other) => wait.min(other),
            RenewalStep::Renew => {
                self.renew(&keep, claims).await;
                Duration::ZERO
            }
        }
    }

    fn now(&self) -> Now {
        Now {
            wall: (self.setup.clock)(),
            at: Instant::now(),
        }
    }

    fn date(&self, since_1970: Option<u64>) -> Maybe<String> {
        Maybe(since_1970.map(|seconds| (self.setup.date)(Duration::from_secs(seconds))))
    }

    async fn renew(&mut self, keep: &Keep, old: &Claims) {
        let Some(account) = old.account() else { return };
        let request = Bytes::from(plan::request(old));
        let answer = self.setup.hub.request_token(&account, request).await;
        let failed = match answer {
            Ok(body) => match plan::answer(&body, old) {
                Ok((token, claims)) => {
                    self.setup.hub.use_token(token.clone());
                    self.unkept = Some(token.clone());
                    if !self.is_in_force(&token) {
                        // The kubeconfig cannot be read at the moment, which is logged elsewhere. The token is used
                        // once it can be.
                        self.plan.tries.fail(Instant::now(), fastrand::f64());
                        return;
                    }
                    self.plan.comes(&token, Instant::now(), fastrand::f64());
                    self.keeping.succeed();
                    log_line!(
                        Info,
                        TokenRenewed,
                        "the token of the hub was renewed",
                        side = Side::Hub,
                        ends = self.date(claims.ends),
                        kept = keep
                    );
                    return;
                }
                Err(why) => Error::BadAnswer(why.to_owned()),
            },
            Err(error) => error,
        };
        let is_first = self.plan.tries.fail(Instant::now(), fastrand::f64());
        // That a side is unreachable or refuses the token is logged for the side.
        if is_first && !failed.is_unreachable() && !failed.is_unauthorized() {
            log_line!(
                Warn,
                TokenNotRenewed,
                "the token of the hub cannot be renewed, it stays in use until it ends",
                side = Side::Hub,
                object = account.of_kind("ServiceAccount"),
                ends = self.date(old.ends),
                error = failed,
                advice = "allow this service account to create serviceaccounts/token of itself at the hub; it is tried again"
            );
        }
    }

    fn is_in_force(&self, token: &SecretString) -> bool {
        let in_force = self.setup.hub.in_force();
        matches!(&*in_force, Credentials::Token(other, _) if other.expose_secret() == token.expose_secret())
    }

    /// Stores a new token, if that has to be done; returns how long nothing else has to be.
    async fn keep_token(&mut self, keep: &Keep, in_force: &Claims) -> Duration {
        let Some(token) = self.unkept.take() else { return LOOK };
        if !self.is_in_force(&token) {
            // It is kept unless another token was written into the kubeconfig meanwhile.
            let claims = Claims::of(token.expose_secret());
            self.unkept = claims
                .is_some_and(|claims| claims.is_newer_than(in_force))
                .then_some(token);
            return LOOK;
        }
        let wait = self.keeping.wait(Instant::now());
        if !wait.is_zero() {
            self.unkept = Some(token);
            return wait;
        }
        match keep.keep(&token, &self.setup.source, &self.setup.edge).await {
            Ok(is_written) => {
                self.keeping.succeed();
                log_line!(
                    Debug,
                    TokenKept,
                    "the renewed token is kept",
                    kept = keep,
                    written = is_written
                );
                LOOK
            }
            Err(why) => {
                self.unkept = Some(token);
                if why.is_passing() {
                    self.keeping.fail(Instant::now(), fastrand::f64());
                } else if self.keeping.fail(Instant::now(), fastrand::f64()) {
                    log_line!(
                        Warn,
                        TokenNotKept,
                        "the renewed token of the hub is in use, and cannot be kept for a restart",
                        kept = keep,
                        error = why,
                        advice = "let the syncer write there (a Secret: get and patch it, with the key kubeconfig); it is tried again"
                    );
                }
                self.keeping.wait(Instant::now())
            }
        }
    }

    fn tell_that_nothing_is_renewed(&mut self) {
        if !std::mem::replace(&mut self.is_reported, true) {
            log_line!(
                Warn,
                NothingToRenew,
                "the kubeconfig of the hub has no token of a service account, so nothing is renewed",
                side = Side::Hub,
                advice = "put one into it, or omit --credentials-secret and --credentials-file"
            );
        }
    }

    fn tell_of_ends(&mut self) {
        let now = (self.setup.clock)();
        let sides = [Rc::clone(&self.setup.hub), Rc::clone(&self.setup.edge)];
        for (index, cluster) in sides.iter().enumerate() {
            let credentials = cluster.in_force();
            let side = Side::of(cluster);
            let are_renewed =
                side == Side::Hub && self.setup.keep.is_some() && matches!(&*credentials, Credentials::Token(..));
            let notice = self.notices[index].due(&credentials, are_renewed, now);
            if notice.is_some() {
                cluster.end_is_logged();
            }
            match notice {
                None => {}
                Some(Notice::Ending(end)) => log_line!(
                    Warn,
                    CredentialsEnding,
                    "the credentials for a side will end",
                    side = side,
                    ends = self.date(Some(end)),
                    advice = self.advice(cluster, &credentials)
                ),
                Some(Notice::Ended(end)) => log_line!(
                    Warn,
                    CredentialsEnded,
                    "the credentials for a side have ended, by the clock of this machine",
                    side = side,
                    ends = self.date(Some(end)),
                    advice = self.advice(cluster, &credentials)
                ),
            }
        }
    }

    /// What to do about credentials that end. A token of the hub can be one of `gen`; a service has another kubeconfig
    /// than a pod.
    fn advice(&self, cluster: &Cluster, credentials: &Credentials) -> String {
        if Side::of(cluster) == Side::Edge || !matches!(credentials, Credentials::Token(..)) {
            return format!("renew {}; no restart is needed", cluster.standing().place.login);
        }
        let keep = self.setup.keep.as_ref();
        let command = rotate_command(&self.setup.sync_target_name, keep);
        match keep {
            Some(Keep::File(_)) => {
                format!("{command} makes another kubeconfig: put it in the place of the hub's; no restart is needed")
            }
            Some(Keep::Secret(_)) => {
                format!("{command} makes another token at the hub: apply what it prints; no restart is needed")
            }
            None => format!(
                "{command} makes another token at the hub: apply what it prints, or for a service add --format=systemd -o \
                 FOLDER; no restart is needed"
            ),
        }
    }
}

/// The command that makes another token of a sync target, whose name may be empty: for a service, in another kubeconfig.
pub(crate) fn rotate_command(sync_target: &str, keep: Option<&Keep>) -> String {
    let name = if sync_target.is_empty() { "NAME" } else { sync_target };
    let form = match keep {
        Some(Keep::File(_)) => " --format=systemd -o FOLDER",
        _ => "",
    };
    format!("edge-syncer gen {name} --rotate{form}")
}
