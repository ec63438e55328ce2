//! Lists in pages, and watches.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;

use super::exchange::request as request_for;
use super::page::Sizes;
use super::{Cluster, Content, ListRequest};
use crate::lanes::Traffic;
use crate::logging::log_line;
use crate::resource::encode;
use crate::stream::{Listing, Watching};
use crate::{Body, Error};

/// How often pages are halved to begin with. At 64 kbit/s, one then takes half of the minute that API servers allow, should
/// nothing of it be compressible; and it still is large enough to be compressed.
pub(super) const HALVED_AT_FIRST: u32 = 2;
/// A page that came within this time does not have to be as small as it was.
const QUICK_PAGE: Duration = Duration::from_secs(5);
/// A page that was cut later than this was too large for the link: API servers end an answer that has not been sent after
/// a minute.
const SLOW_PAGE: Duration = Duration::from_secs(30);

impl Cluster {
    /// Starts a complete list in pages. Items arrive through [`Listing::next`].
    pub fn list(self: &Rc<Self>, request: ListRequest) -> Listing {
        Listing::new(Rc::clone(self), request)
    }

    /// Starts a watch from `resource_version`, or a streaming list followed by a watch if it is absent.
    ///
    /// The server ends it after `seconds`.
    pub async fn watch(
        &self,
        request: &ListRequest,
        resource_version: Option<&str>,
        seconds: u32,
    ) -> Result<Watching, Error> {
        let mut query = format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}");
        match resource_version {
            Some(version) => parameter(&mut query, "resourceVersion", version),
            None => query.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        }
        let mut read = self.read_for(request, query, request.content.accept(false))?;
        // A proxy before the server might compress it, and hold events back until there are enough.
        read.headers_mut().remove(http::header::ACCEPT_ENCODING);
        let response = self.answer(read).await?;
        Ok(Watching::new(
            response.body,
            Rc::clone(&self.contact),
            self.room.share(),
        ))
    }

    /// The next page of a list whose items have had these sizes so far.
    pub(crate) async fn page(&self, request: &ListRequest, sizes: Sizes, continue_token: &str) -> Result<Body, Error> {
        let limit = sizes.page(request.content, self.halved.get());
        let mut query = format!("limit={limit}");
        if !continue_token.is_empty() {
            parameter(&mut query, "continue", continue_token);
        }
        let read = self.read_for(request, query, request.content.accept(true))?;
        Ok(self.answer(read).await?.body)
    }

    /// The request for a list or watch of the collection, narrowed by its selectors.
    fn read_for(&self, request: &ListRequest, mut query: String, accept: &str) -> Result<http::Request<Bytes>, Error> {
        let scope = &request.scope;
        let name = scope.name.as_deref().map(named);
        let fields = [name.as_deref(), request.field_selector.as_deref()];
        let fields: Vec<&str> = fields.into_iter().flatten().collect();
        if !fields.is_empty() {
            parameter(&mut query, "fieldSelector", &fields.join(","));
        }
        if let Some(labels) = &request.label_selector {
            parameter(&mut query, "labelSelector", labels);
        }
        let namespace = scope.namespace.as_deref().unwrap_or_default();
        let collection = request.resource.collection_path(namespace)?;
        let path = format!("{}?{query}", self.workspaces.path_in_all(&collection));
        let mut read = request_for(Method::GET, &path, accept, None, Bytes::new())?;
        read.extensions_mut().insert(Traffic::Reading);
        Ok(read)
    }

    /// A page was cut `after` this time. True if it was too large for the link; later ones are a quarter as large.
    pub(crate) fn takes_smaller_pages(&self, content: Content, sizes: Sizes, after: Duration) -> bool {
        if after < SLOW_PAGE || sizes.page(content, self.halved.get()) == 1 {
            return false;
        }
        self.halved.set(self.halved.get() + 2);
        let objects = sizes.page(content, self.halved.get());
        log_line!(
            Debug,
            PageHalved,
            "a page broke off, smaller ones are read",
            side = self.name,
            objects = objects
        );
        true
    }

    /// A full page has arrived within `took`.
    pub(crate) fn full_page_came(&self, took: Duration) {
        if took < QUICK_PAGE {
            self.halved.set(self.halved.get().saturating_sub(1));
        }
    }
}

/// The field selector of one object. Names of RBAC objects may have characters in them that mean something in a selector,
/// and are escaped there by a backslash.
pub(super) fn named(name: &str) -> String {
    let mut selector = String::from("metadata.name=");
    for c in name.chars() {
        if matches!(c, '\\' | ',' | '=') {
            selector.push('\\');
        }
        selector.push(c);
    }
    selector
}

pub(super) fn parameter(query: &mut String, key: &str, value: &str) {
    query.push('&');
    query.push_str(key);
    query.push('=');
    encode(query, value);
}
