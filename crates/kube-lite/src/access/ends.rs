//! The ends of what a kubeconfig logs in with, for messages about credentials that a server refuses: it answers the same
//! to those that have ended and to forged ones.

use kube::Config;
use secrecy::ExposeSecret as _;

use super::Access;
use crate::{claims, files, tls};

/// A form of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A token, in the kubeconfig or in a file.
    Token,
    /// A client certificate.
    Certificate,
}

impl Access {
    /// What has ended at that time, and when it did, both in seconds since 1970. Reads a token file again.
    pub fn ended(&self, now: u64) -> Option<(Form, u64)> {
        let token = token(&self.config).and_then(|token| claims::expiry(&token));
        let certificate = tls::end_of_identity(&self.config);
        let both = [(Form::Token, token), (Form::Certificate, certificate)];
        let mut ended = both.into_iter().filter_map(|(form, end)| Some((form, end?)));
        ended.find(|(_, end)| *end <= now)
    }

    /// The token with which it logs in.
    pub fn token(&self) -> Option<String> {
        token(&self.config)
    }
}

fn token(config: &Config) -> Option<String> {
    let user = &config.auth_info;
    match &user.token {
        Some(token) => Some(token.expose_secret().to_owned()),
        None => files::read_text(user.token_file.as_ref()?).ok(),
    }
}
