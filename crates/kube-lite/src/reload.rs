//! A server whose kubeconfig may be replaced while we run: a token, a CA, a certificate or an address that is renewed in
//! a mounted Secret is picked up without a restart.
//!
//! Promises: the files are read when a connection fails or the server answers 401, and otherwise once a
//! minute: with a request if there is one, else by the program's own clock ([`MAX_AGE`]), without one. What is new is
//! used for every request from then on. Open watches continue until they end; if the address has changed, they end at
//! once with an error that makes a source begin again. Files that cannot be used are logged once and leave the last
//! ones in force. A request that was refused with 401 is sent once more if the credentials have been renewed; nothing
//! else is retried. As long as they are refused, the files are also read for requests that are then not sent
//! (`refused.rs`). If the address has changed before a write is sent, it is not sent: the server there has to be asked
//! first which cluster it is.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use http::{HeaderValue, Uri};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;
use tokio::time::Instant;

use super::access::{self, AccessError, AccessSource, AuthorityFile, Renewed};
use super::alive::Moved;
use super::claims::Claims;
use super::connect::{self, connect_in_place_of};
use super::files;
use super::real::RealServer;
use super::token::TokenFile;
use super::{ApiServer, ApiStatus, Credentials, Error, Place, Response, tls};
use crate::logging::log_line;

/// How old a read of the files may be, when a request is sent or nothing is asked.
pub const MAX_AGE: Duration = Duration::from_secs(60);

/// The same when something failed: many requests may fail at once.
const MAX_AGE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Has files checked again and again, for ever: each request checks those that it depends on; but there may be no request
/// for hours, or none to the right server.
pub async fn follow(check: impl Fn()) -> Infallible {
    loop {
        tokio::time::sleep(MAX_AGE).await;
        check();
    }
}

/// What counts in the place of what a kubeconfig says of its server.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// The address.
    pub address: Address,
    /// The file with the CA of the server.
    pub authority: Option<AuthorityFile>,
}

impl From<Address> for Reach {
    fn from(address: Address) -> Self {
        Self {
            address,
            authority: None,
        }
    }
}

/// Which address is used, of a kubeconfig that may be about one workspace of a server that has many.
#[derive(Clone, Debug, Default)]
pub enum Address {
    /// That of the kubeconfig.
    #[default]
    Given,
    /// That of the server as a whole: without `/clusters/…` at the end.
    Root,
    /// The scheme, host and port of another one, to which the same credentials belong.
    At(Uri),
}

impl Address {
    /// The address to use in the place of the one that is given.
    fn from(&self, given: &Uri) -> Option<Uri> {
        match self {
            Self::Given => None,
            Self::Root => {
                let path = given.path().trim_end_matches('/');
                let (rest, workspace) = path.rsplit_once('/')?;
                let root = rest.strip_suffix("/clusters")?;
                (!workspace.is_empty()).then(|| moved_to(given, given, root))?
            }
            Self::At(other) => moved_to(given, other, ""),
        }
    }
}

/// A path at the scheme, host and port of a server.
fn moved_to(given: &Uri, server: &Uri, path: &str) -> Option<Uri> {
    let mut parts = server.clone().into_parts();
    parts.scheme = parts.scheme.or_else(|| given.scheme().cloned());
    parts.path_and_query = Some(format!("{path}/").parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// The API server of one side, at the address and with the credentials that the files give now.
pub struct Reloading {
    /// Its name.
    side: Rc<str>,
    source: AccessSource,
    reach: Reach,
    user_agent: String,
    /// Tokens that the kubeconfig does not have yet.
    renewed: RefCell<Renewed>,
    current: RefCell<Rc<Current>>,
    read_at: Cell<Instant>,
    /// The fingerprint of files that could not be used, which was logged.
    unusable: Cell<Option<u64>>,
    /// How often the address has changed.
    moves: Cell<u64>,
}

struct Current {
    server: RealServer,
    /// The address, with the proxy on the way to it.
    place: Rc<Place>,
    address: String,
    url: Uri,
    credentials: Rc<Credentials>,
    files: Vec<PathBuf>,
    /// The fingerprint of the files, from before they were read for this.
    fingerprint: u64,
    /// Notified when the address is replaced by another one; replacements at the same address share it.
    left: watch::Sender<()>,
}

impl Reloading {
    /// Loads the access data for the first time. Connects at the first request, not here.
    pub fn open(side: &str, source: AccessSource, user_agent: String) -> Result<Self, AccessError> {
        Self::open_with(side, source, Renewed::default(), user_agent)
    }

    /// The same at another address than the kubeconfig has, or with another CA.
    pub fn open_at(
        side: &str,
        source: AccessSource,
        reach: impl Into<Reach>,
        user_agent: String,
    ) -> Result<Self, AccessError> {
        Self::new(side, source, reach.into(), Renewed::default(), user_agent)
    }

    /// The same with tokens that were renewed after the kubeconfig was written.
    pub fn open_with(
        side: &str,
        source: AccessSource,
        renewed: Renewed,
        user_agent: String,
    ) -> Result<Self, AccessError> {
        Self::new(side, source, Reach::default(), renewed, user_agent)
    }

    fn new(
        side: &str,
        source: AccessSource,
        reach: Reach,
        renewed: Renewed,
        user_agent: String,
    ) -> Result<Self, AccessError> {
        let current = load(side, &source, &reach, &renewed, &user_agent, Moved::default())?;
        Ok(Self {
            side: side.into(),
            source,
            reach,
            user_agent,
            renewed: RefCell::new(renewed),
            current: RefCell::new(Rc::new(current)),
            read_at: Cell::new(Instant::now()),
            unusable: Cell::new(None),
            moves: Cell::new(0),
        })
    }

    fn current(&self) -> Rc<Current> {
        Rc::clone(&self.current.borrow())
    }

    /// Reads the files unless that was done less than `max_age` ago, and puts into force what is new in them.
    fn reread_files(&self, max_age: Duration) {
        let current = self.current();
        if current.files.is_empty() || self.read_at.get().elapsed() < max_age {
            return;
        }
        self.read_at.set(Instant::now());
        let found = fingerprint(&current.files);
        if found == current.fingerprint {
            self.unusable.set(None);
        } else {
            self.replace(&current, found);
        }
    }

    /// Puts into force what the files hold now, whose fingerprint is `found`.
    fn replace(&self, old: &Current, found: u64) {
        let side = &self.side;
        let renewed = self.renewed.borrow().clone();
        match self.load(&renewed) {
            Ok(mut new) => {
                if new.address == old.address {
                    log_line!(
                        Info,
                        KubeconfigReplaced,
                        "the kubeconfig was replaced, using the new one",
                        side = side
                    );
                    new.left = old.left.clone();
                } else {
                    let address = &new.address;
                    log_line!(
                        Info,
                        KubeconfigReplaced,
                        "the kubeconfig was replaced, using another server",
                        side = side,
                        server = address
                    );
                    old.left.send_replace(());
                    self.moves.set(self.moves.get() + 1);
                }
                self.unusable.set(None);
                *self.current.borrow_mut() = Rc::new(new);
            }
            // Tried again at each read: a file that the new kubeconfig names may only be late.
            Err(_) if self.unusable.get() == Some(found) => {}
            Err(error) => {
                log_line!(
                    Warn,
                    KubeconfigUnusable,
                    "the kubeconfig was replaced and cannot be used, the last one remains in force",
                    side = side,
                    error = error
                );
                self.unusable.set(Some(found));
            }
        }
    }

    async fn send_and_look(&self, request: http::Request<Bytes>) -> Result<Response, Error> {
        let moves = self.moves.get();
        self.reread_files(MAX_AGE);
        let again = request.clone();
        let is_read = request.method() == http::Method::GET;
        // What answers there may be another cluster, and the caller of this write has not asked which one it is.
        let may_go = || is_read || self.moves.get() == moves;
        if !may_go() {
            return Err(Error::Unanswered(
                "not sent, since the kubeconfig leads to another server now".into(),
            ));
        }
        let used = self.current();
        let token = used.token();
        let answer = used.send(request).await;
        match &answer {
            Ok(response) if response.status != 401 => return answer,
            Ok(_) => {}
            Err(_) => {
                self.reread_files(MAX_AGE_AFTER_FAILURE);
                return answer;
            }
        }
        self.reread_files(MAX_AGE_AFTER_FAILURE);
        if may_go() && (self.has_left(&used) || used.has_other_token_than(token.as_ref())) {
            log_line!(
                Debug,
                CredentialsRenewed,
                "credentials were renewed, asking again",
                side = self.side
            );
            return self.current().send(again).await;
        }
        answer
    }

    fn load(&self, renewed: &Renewed) -> Result<Current, AccessError> {
        let moved = self.current.borrow().server.0.moved.clone();
        load(&self.side, &self.source, &self.reach, renewed, &self.user_agent, moved)
    }

    /// True if a URL is one of this server: it has the scheme, the host and the port.
    pub fn is_at(&self, url: &Uri) -> bool {
        let current = self.current();
        let own = &current.url;
        let port = |url: &Uri| {
            url.port_u16()
                .unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 })
        };
        let host = |url: &Uri| url.host().map(str::to_ascii_lowercase);
        own.scheme() == url.scheme() && host(own) == host(url) && port(own) == port(url)
    }

    /// True if something else than `used` is in force by now.
    fn has_left(&self, used: &Rc<Current>) -> bool {
        !Rc::ptr_eq(used, &self.current.borrow())
    }
}

impl ApiServer for Reloading {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        self.send_and_look(request).boxed_local()
    }

    fn link_bytes(&self) -> [u64; 2] {
        self.current.borrow().server.link_bytes()
    }

    fn time(&self) -> Option<u64> {
        self.current.borrow().server.time()
    }

    fn place(&self) -> Rc<Place> {
        Rc::clone(&self.current.borrow().place)
    }

    fn moves(&self) -> u64 {
        self.moves.get()
    }

    fn credentials(&self) -> u64 {
        let current = self.current();
        let mut hasher = DefaultHasher::new();
        (current.fingerprint, current.token()).hash(&mut hasher);
        if let Credentials::Token(token, _) = &*current.credentials {
            token.expose_secret().hash(&mut hasher);
        }
        hasher.finish()
    }

    fn in_force(&self) -> Rc<Credentials> {
        Rc::clone(&self.current.borrow().credentials)
    }

    fn credentials_end(&self) -> Option<u64> {
        let current = self.current.borrow();
        match &current.server.0.outgoing.token_file {
            Some(file) => file.end(),
            None => current.credentials.end(),
        }
    }

    fn use_token(&self, token: SecretString) {
        self.renewed.borrow_mut().token = Some(token);
        let old = self.current();
        let renewed = self.renewed.borrow().clone();
        // The files themselves are checked at the next read; with an error in them, the old token stays in use until
        // then.
        if let Ok(mut new) = self.load(&renewed)
            && new.address == old.address
        {
            new.left = old.left.clone();
            *self.current.borrow_mut() = Rc::new(new);
        }
    }

    fn check_files(&self) {
        self.reread_files(MAX_AGE_AFTER_FAILURE);
        if let Some(file) = &self.current().server.0.outgoing.token_file {
            file.is_renewed_since(&file.header());
        }
    }
}

impl Current {
    async fn send(&self, request: http::Request<Bytes>) -> Result<Response, Error> {
        let left = self.left.subscribe();
        let mut response = self.server.send(request).await?;
        response.body = stream::unfold(Some((response.body, left)), |state| async move {
            let (mut body, mut left) = state?;
            tokio::select! {
                biased;
                Ok(()) = left.changed() => Some((Err(moved()), None)),
                chunk = body.next() => chunk.map(|chunk| (chunk, Some((body, left)))),
            }
        })
        .boxed_local();
        Ok(response)
    }

    fn token(&self) -> Option<HeaderValue> {
        self.server.0.outgoing.token_file.as_ref().map(TokenFile::header)
    }

    fn has_other_token_than(&self, used: Option<&HeaderValue>) -> bool {
        let file = self.server.0.outgoing.token_file.as_ref();
        file.zip(used).is_some_and(|(file, used)| file.is_renewed_since(used))
    }
}

fn load(
    side: &str,
    source: &AccessSource,
    reach: &Reach,
    renewed: &Renewed,
    user_agent: &str,
    moved: Moved,
) -> Result<Current, AccessError> {
    let kubeconfig = match source {
        AccessSource::Kubeconfig { path, .. } => std::slice::from_ref(path),
        AccessSource::InCluster { .. } => &[],
    };
    let before = fingerprint(kubeconfig);
    let mut loaded = access::load(side, source, renewed)?;
    if let Some(authority) = &reach.authority {
        loaded.trust(authority)?;
    }
    let (mut config, files) = (loaded.config, loaded.files);
    if let Some(url) = reach.address.from(&config.cluster_url) {
        config.cluster_url = url;
    }
    // A change between this and what was read above shows at the next read.
    let fingerprint = if fingerprint(kubeconfig) == before {
        fingerprint(&files)
    } else {
        before
    };
    let address = access::server_for_people(&config);
    let connection = connect_in_place_of(moved, &config, user_agent).map_err(|fault| loaded.place.error(fault))?;
    if access::shows_credentials(&config) {
        log_line!(
            Warn,
            CredentialsUnencrypted,
            "credentials go over the network unencrypted",
            side = side,
            server = address,
            advice = "use an https:// URL, and renew what was sent"
        );
    }
    Ok(Current {
        server: RealServer(connection),
        place: Rc::new(Place {
            side: side.into(),
            address: format!("{address}{}", connect::proxy_for_people(&config)),
            trust: loaded.trust,
            login: loaded.login,
        }),
        address,
        url: config.cluster_url.clone(),
        credentials: Rc::new(credentials(&config)),
        files,
        fingerprint,
        left: watch::Sender::new(()),
    })
}

/// The credentials in a configuration.
fn credentials(config: &kube::Config) -> Credentials {
    let user = &config.auth_info;
    if let Some(token) = &user.token {
        let claims = Claims::of(token.expose_secret()).filter(|claims| claims.account().is_some());
        claims.map_or(Credentials::Other, |claims| Credentials::Token(token.clone(), claims))
    } else if user.token_file.is_some() {
        Credentials::TokenFile
    } else if user.client_certificate.is_some() || user.client_certificate_data.is_some() {
        Credentials::Certificate(tls::end_of_identity(config))
    } else {
        Credentials::Other
    }
}

/// A number that changes with what is in the files; a file that cannot be read counts as what is in it.
fn fingerprint(files: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        files::read(file).map_err(|error| error.kind()).hash(&mut hasher);
    }
    hasher.finish()
}

/// The error after a change of the address: what was known at one address does not apply to another one, so everything
/// begins again.
fn moved() -> Error {
    Error::Status(Box::new(ApiStatus {
        code: 410,
        reason: "Expired".into(),
        message: "the kubeconfig names another server now".into(),
        ..ApiStatus::default()
    }))
}

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
