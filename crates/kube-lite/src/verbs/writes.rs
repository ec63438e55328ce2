//! Writes with which several may work on one object: each names what must still be true, or where its own place is.
//!
//! Promises: an object that was changed meanwhile is not overwritten; an answer that is not about what was written is an
//! error, after which it is not known whether it was.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::{Cluster, Content, answer};
use crate::meta::Meta;
use crate::resource::encode;
use crate::{Error, ObjectName, ResourceType, is_word};

const JSON: Option<&str> = Some("application/json");

/// One operation of a JSON patch (RFC 6902). A path is the names of the fields that lead to it, from the object on.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// The field must have this value.
    Test(&'a [&'a str], &'a Value),
    /// The field gets this value, whether or not it is there; the field that holds it must be.
    Add(&'a [&'a str], &'a Value),
    /// The field, which must be there, gets this value.
    Replace(&'a [&'a str], &'a Value),
    /// The field, which must be there, goes.
    Remove(&'a [&'a str]),
}

impl Operation<'_> {
    fn to_json(self) -> Value {
        match self {
            Self::Test(path, value) => json!({"op": "test", "path": pointer(path), "value": value}),
            Self::Add(path, value) => json!({"op": "add", "path": pointer(path), "value": value}),
            Self::Replace(path, value) => json!({"op": "replace", "path": pointer(path), "value": value}),
            Self::Remove(path) => json!({"op": "remove", "path": pointer(path)}),
        }
    }
}

/// A path as a JSON pointer (RFC 6901), in which `~` and `/` are escaped.
pub fn pointer(path: &[&str]) -> String {
    let escaped = path.iter().map(|field| field.replace('~', "~0").replace('/', "~1"));
    escaped.fold(String::new(), |path, field| path + "/" + &field)
}

impl Cluster {
    /// Does all of these operations, in this order, or none: the error has code 422 if the object does not fit one of them.
    /// Returns as much of the object as `content` says.
    pub async fn json_patch(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        operations: &[Operation<'_>],
        content: Content,
    ) -> Result<Bytes, Error> {
        self.json_patch_subresource(resource, name, "", operations, content)
            .await
    }

    /// The same through a subresource, such as `status`.
    pub async fn json_patch_subresource(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        subresource: &str,
        operations: &[Operation<'_>],
        content: Content,
    ) -> Result<Bytes, Error> {
        let at = if subresource.is_empty() {
            String::new()
        } else {
            format!("/{subresource}")
        };
        let operations: Value = operations.iter().map(|operation| operation.to_json()).collect();
        let body = Bytes::from(operations.to_string());
        self.patch_at(resource, name, &at, body, content).await
    }

    /// Puts a whole object in the place of the one that is there, if that still has the `resourceVersion` in `body`:
    /// otherwise it is a conflict. Returns as much of it as `content` says.
    pub async fn replace(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        body: Bytes,
        content: Content,
    ) -> Result<Bytes, Error> {
        check_versioned(name, &body)?;
        let path = format!("{}?fieldManager={}", self.object_path(resource, name)?, self.manager);
        let accept = content.accept(false);
        let answer = self.call(Method::PUT, &path, accept, JSON, body).await?;
        answer::about(answer, resource, name)
    }

    /// Creates an object whose name the server makes, from the `generateName` in `body`, which is the name in `like`.
    /// Returns its metadata.
    ///
    /// If no answer comes, there may be an object whose name nobody knows: what is made so has to be found in another way,
    /// such as by a label.
    pub async fn create_generated(
        &self,
        resource: &ResourceType,
        like: &ObjectName,
        body: Bytes,
    ) -> Result<Bytes, Error> {
        let path = self.collection_path(resource, like)?;
        let path = format!("{path}?fieldManager={}", self.manager);
        let accept = Content::Metadata.accept(false);
        let answer = self.call(Method::POST, &path, accept, JSON, body).await?;
        answer::about_generated(answer, resource, like)
    }

    /// Creates what belongs to an object: its `eviction`, `binding` or `token`. The answer is of a kind of its own.
    pub async fn create_subresource(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        subresource: &str,
        body: Bytes,
    ) -> Result<Bytes, Error> {
        let path = self.subresource_path(resource, name, subresource)?;
        let answer = self.call(Method::POST, &path, "application/json", JSON, body).await?;
        answer::has_kind(&answer)?;
        Ok(answer)
    }

    /// Replaces what belongs to an object, its `status`, `scale` or `approval`, if that object still has the
    /// `resourceVersion` in `body`: otherwise it is a conflict. The answer may be of a kind of its own.
    pub async fn replace_subresource(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        subresource: &str,
        body: Bytes,
    ) -> Result<Bytes, Error> {
        check_versioned(name, &body)?;
        let path = self.subresource_path(resource, name, subresource)?;
        let answer = self.call(Method::PUT, &path, "application/json", JSON, body).await?;
        <Meta>::of(name, &answer)?;
        Ok(answer)
    }

    fn subresource_path(&self, resource: &ResourceType, name: &ObjectName, subresource: &str) -> Result<String, Error> {
        let mut path = self.object_path(resource, name)?;
        if !is_word(subresource) {
            return Err(Error::NotSent(format!("{subresource:?} is no subresource")));
        }
        path.push('/');
        encode(&mut path, subresource);
        Ok(format!("{path}?fieldManager={}", self.manager))
    }
}

/// An error for a body that is not that object at a version: without one, a server overwrites whatever is there.
fn check_versioned(name: &ObjectName, body: &[u8]) -> Result<(), Error> {
    let why = match <Meta>::of(name, body) {
        Ok(meta) if !meta.resource_version.is_empty() => return Ok(()),
        Ok(_) => format!("{name:?} in the place of another, without a version"),
        Err(error) => error.to_string(),
    };
    Err(Error::NotSent(why))
}

#[cfg(test)]
#[path = "writes_tests.rs"]
mod tests;
