//! A path of a server as a server of its own: kcp has all workspaces below one address, and what it shows of them below
//! others. All of them share the connections, the credentials and what is noticed of files that are replaced.

use std::rc::Rc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use http::uri::PathAndQuery;
use http::{Request, Uri};
use secrecy::SecretString;

use crate::access::{AccessError, AccessSource};
use crate::reload::{Address, Reloading};
use crate::{ApiServer, Credentials, Error, Place, Response};

/// What is below the address of a kubeconfig, and at addresses that its server gives: all of kcp.
#[derive(Clone)]
pub struct Host {
    source: AccessSource,
    user_agent: String,
    root: Rc<Reloading>,
}

impl Host {
    /// The server of a kubeconfig, without the workspace at the end of its URL. `name` is that of the side in messages.
    pub fn open(name: &'static str, source: AccessSource, user_agent: String) -> Result<Self, AccessError> {
        let root = Reloading::open_at(name, source.clone(), Address::Root, user_agent.clone())?;
        Ok(Self {
            source,
            user_agent,
            root: Rc::new(root),
        })
    }

    /// Checks whether the files with address and credentials were replaced.
    pub fn check_files(&self) {
        self.root.check_files();
    }

    /// What is below this path.
    pub fn below(&self, path: &str) -> Below {
        Below::new(Rc::clone(&self.root) as Rc<dyn ApiServer>, path)
    }

    /// What a URL leads to, with the credentials of the kubeconfig: through the same connections where it is at the same
    /// address.
    pub fn at(&self, url: &str) -> Below {
        let Ok(url) = url.parse::<Uri>() else {
            return Below::nothing(format!("{url:?} is no URL"));
        };
        if self.root.is_at(&url) {
            return self.below(url.path());
        }
        let path = url.path().to_owned();
        let other = Reloading::open_at("shard", self.source.clone(), Address::At(url), self.user_agent.clone());
        match other {
            Ok(server) => Below::new(Rc::new(server), &path),
            Err(error) => Below::nothing(error.to_string()),
        }
    }
}

/// What is below a path of another server.
pub struct Below {
    server: Result<Rc<dyn ApiServer>, String>,
    /// Without a slash at the end.
    path: String,
}

impl Below {
    /// What is below this path.
    pub fn new(server: Rc<dyn ApiServer>, path: &str) -> Self {
        Self {
            server: Ok(server),
            path: path.trim_end_matches('/').to_owned(),
        }
    }

    /// A server that cannot be there, and why: no request to it is sent.
    pub fn nothing(why: String) -> Self {
        Self {
            server: Err(why),
            path: String::new(),
        }
    }

    fn below(&self, mut request: Request<Bytes>) -> Result<Request<Bytes>, Error> {
        let rest = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let whole = format!("{}{rest}", self.path);
        *request.uri_mut() = Uri::try_from(whole)
            .map_err(|error| Error::NotSent(format!("a path of {} bytes below {}: {error}", rest.len(), self.path)))?;
        Ok(request)
    }

    fn of<T: Default>(&self, what: impl FnOnce(&Rc<dyn ApiServer>) -> T) -> T {
        self.server.as_ref().map(what).unwrap_or_default()
    }
}

impl ApiServer for Below {
    fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        match (&self.server, self.below(request)) {
            (Ok(server), Ok(request)) => server.send(request),
            (Ok(_), Err(error)) => async { Err(error) }.boxed_local(),
            (Err(why), _) => async { Err(Error::Unreachable(why.clone())) }.boxed_local(),
        }
    }

    fn link_bytes(&self) -> [u64; 2] {
        self.of(|server| server.link_bytes())
    }

    fn time(&self) -> Option<u64> {
        self.of(|server| server.time())
    }

    fn place(&self) -> Rc<Place> {
        let place = self.of(|server| server.place());
        let address = match place.address.split_once(' ') {
            Some((address, proxy)) => format!("{address}{} {proxy}", self.path),
            None => format!("{}{}", place.address, self.path),
        };
        Rc::new(Place {
            address,
            ..Place::clone(&place)
        })
    }

    fn moves(&self) -> u64 {
        self.of(|server| server.moves())
    }

    fn credentials(&self) -> u64 {
        self.of(|server| server.credentials())
    }

    fn in_force(&self) -> Rc<Credentials> {
        self.of(|server| server.in_force())
    }

    fn credentials_end(&self) -> Option<u64> {
        self.of(|server| server.credentials_end())
    }

    fn use_token(&self, token: SecretString) {
        self.of(|server| server.use_token(token));
    }

    fn check_files(&self) {
        self.of(|server| server.check_files());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with the path that it is asked for.
    struct Echo;

    impl ApiServer for Echo {
        fn send(&self, request: Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            let words = request.uri().to_string();
            async move { Err(Error::Unanswered(words)) }.boxed_local()
        }

        fn place(&self) -> Rc<Place> {
            Rc::new(Place {
                address: "https://kcp:6443 (through a proxy)".to_owned(),
                ..Place::default()
            })
        }
    }

    async fn asked(server: &Below, path: &str) -> Result<Response, Error> {
        let request = Request::get(path).body(Bytes::new()).unwrap();
        server.send(request).await
    }

    #[tokio::test]
    async fn requests_go_below_the_path_and_messages_name_it() {
        for path in ["/clusters/root:a", "/clusters/root:a/"] {
            let server = Below::new(Rc::new(Echo), path);
            let answer = asked(&server, "/api/v1/configmaps?limit=1").await.err();
            let expected = "/clusters/root:a/api/v1/configmaps?limit=1";
            assert_eq!(answer, Some(Error::Unanswered(expected.to_owned())));
            let expected = "https://kcp:6443/clusters/root:a (through a proxy)";
            assert_eq!(server.place().address, expected);
        }
    }

    #[tokio::test]
    async fn what_is_no_server_is_unreachable_and_says_why() {
        let server = Below::nothing("\"x\" is no URL".to_owned());
        let answer = asked(&server, "/api").await.err();
        assert_eq!(answer, Some(Error::Unreachable("\"x\" is no URL".to_owned())));
    }
}
