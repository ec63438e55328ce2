//! The credentials for the side: those in force, and new ones.

use std::rc::Rc;

use bytes::Bytes;
use http::Method;
use secrecy::SecretString;

use super::Cluster;
use crate::{Credentials, Error, ObjectName, ResourceType};

impl Cluster {
    /// The credentials in force.
    pub fn in_force(&self) -> Rc<Credentials> {
        self.server.in_force()
    }

    /// Uses this token from now on, until the files have a newer one.
    pub fn use_token(&self, token: SecretString) {
        self.server.use_token(token);
    }

    /// Asks for a token of a service account: `request` is a `TokenRequest`, and so is the answer.
    pub async fn request_token(&self, account: &ObjectName, request: Bytes) -> Result<Bytes, Error> {
        let path = format!(
            "{}/token",
            self.object_path(&ResourceType::service_accounts(), account)?
        );
        let json = "application/json";
        self.call(Method::POST, &path, json, Some(json), request).await
    }
}
