//! A request as it goes out: to the address of its server, with our name and credentials, and for whom it is made.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Uri};
use kube::Config;
use kube::config::AuthInfo;
use secrecy::ExposeSecret as _;

use super::Error;
use super::access::BadField;
use super::pieces::Pieces;
use super::resource::encode;
use super::token::TokenFile;

/// What completes each request to one server.
pub(super) struct Outgoing {
    server: Uri,
    headers: HeaderMap,
    /// The token file, if that is the credential.
    pub(super) token_file: Option<TokenFile>,
}

impl Outgoing {
    pub(super) fn of(config: &Config, user_agent: &str) -> Result<Self, BadField> {
        let user_agent = HeaderValue::from_str(user_agent).map_err(|error| BadField::new("", error.to_string()))?;
        let user = &config.auth_info;
        let mut headers = acting_as(user)?;
        headers.insert(USER_AGENT, user_agent);
        let token_file = match credential(user)? {
            None => None,
            Some(Credential::File(file)) => Some(file),
            Some(Credential::Fixed(header)) => {
                headers.insert(AUTHORIZATION, header);
                None
            }
        };
        Ok(Self {
            server: config.cluster_url.clone(),
            headers,
            token_file,
        })
    }

    /// The request to the server. An error if no server could read it: its path and that of the server's URL are too
    /// long together.
    pub(super) fn complete(&self, request: Request<Bytes>) -> Result<Request<Pieces>, Error> {
        let (mut head, body) = request.into_parts();
        head.uri = below(&self.server, &head.uri)?;
        for (name, value) in &self.headers {
            head.headers.append(name, value.clone());
        }
        if let Some(file) = &self.token_file {
            head.headers.insert(AUTHORIZATION, file.header());
        }
        Ok(Request::from_parts(head, Pieces::of(body)))
    }
}

/// A path below the URL of a server, which may have one itself.
fn below(server: &Uri, path: &Uri) -> Result<Uri, Error> {
    let mut parts = server.clone().into_parts();
    let root = server.path().trim_end_matches('/');
    let path = path.path_and_query().map_or("/", PathAndQuery::as_str);
    let too_long = |error| Error::NotSent(format!("a path of {} bytes: {error}", root.len() + path.len()));
    let joined = PathAndQuery::try_from(format!("{root}{path}")).map_err(http::Error::from);
    let url = joined.and_then(|joined| {
        parts.path_and_query = Some(joined);
        Ok(Uri::from_parts(parts)?)
    });
    url.map_err(too_long)
}

/// What a user entry logs in with, apart from a client certificate.
enum Credential {
    Fixed(HeaderValue),
    File(TokenFile),
}

/// The credential of a user entry, in client-go's order.
fn credential(user: &AuthInfo) -> Result<Option<Credential>, BadField> {
    let fixed = |text: String| {
        let mut header = HeaderValue::try_from(text).map_err(|_| BadField::new("token", "it cannot be sent"))?;
        header.set_sensitive(true);
        Ok(Some(Credential::Fixed(header)))
    };
    if let (Some(name), Some(password)) = (&user.username, &user.password) {
        let pair = format!("{name}:{}", password.expose_secret());
        return fixed(format!("Basic {}", STANDARD.encode(pair)));
    }
    if let Some(token) = &user.token {
        return fixed(format!("Bearer {}", token.expose_secret()));
    }
    if let Some(path) = &user.token_file {
        let file = TokenFile::open(path.into())
            .map_err(|error| BadField::new("tokenFile", format!("cannot read it: {error}")))?;
        return Ok(Some(Credential::File(file)));
    }
    Ok(None)
}

/// The headers that say for whom requests are made, if the user entry says that somebody acts as somebody else.
fn acting_as(user: &AuthInfo) -> Result<HeaderMap, BadField> {
    let mut headers = HeaderMap::new();
    let mut add = |field: &str, name: HeaderName, text: &str| {
        let value = HeaderValue::from_str(text).map_err(|error| unsendable(field, &error.into()))?;
        headers.append(name, value);
        Ok(())
    };
    if let Some(name) = &user.impersonate {
        add("as", HeaderName::from_static("impersonate-user"), name)?;
    }
    if let Some(uid) = &user.impersonate_uid {
        add("as-uid", HeaderName::from_static("impersonate-uid"), uid)?;
    }
    for group in user.impersonate_groups.iter().flatten() {
        add("as-groups", HeaderName::from_static("impersonate-group"), group)?;
    }
    for (key, values) in user.impersonate_user_extra.iter().flatten() {
        for value in values {
            add("as-user-extra", extra(key)?, value)?;
        }
    }
    Ok(headers)
}

/// The header for one of the extra fields of a user.
fn extra(key: &str) -> Result<HeaderName, BadField> {
    let mut name = "impersonate-extra-".to_owned();
    encode(&mut name, key);
    // A path may have a colon as it is, the name of a header not.
    let name = name.replace(':', "%3A");
    HeaderName::try_from(name).map_err(|error| unsendable("as-user-extra", &error.into()))
}

fn unsendable(field: &str, error: &http::Error) -> BadField {
    BadField::new(field, format!("it cannot be sent: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn config(server: &str) -> Config {
        Config::new(server.parse().unwrap())
    }

    fn get(path: &str) -> Request<Bytes> {
        Request::get(path).body(Bytes::new()).unwrap()
    }

    fn sent(config: &Config, path: &str) -> Request<Pieces> {
        let outgoing = Outgoing::of(config, "edge-syncer/test").unwrap();
        outgoing.complete(get(path)).unwrap()
    }

    #[test]
    fn a_path_goes_below_that_of_the_servers_url() {
        for (server, path, expected) in [
            ("https://h:6443", "/api?watch=1", "https://h:6443/api?watch=1"),
            ("https://h/", "/version", "https://h/version"),
            ("https://h/clusters/x", "/api", "https://h/clusters/x/api"),
            ("https://h/clusters/x/", "/api?a=/", "https://h/clusters/x/api?a=/"),
            ("http://[::1]:80/a%2Fb//", "/", "http://[::1]:80/a%2Fb/"),
        ] {
            assert_eq!(sent(&config(server), path).uri(), expected);
        }
    }

    #[test]
    fn a_path_that_becomes_too_long_is_not_sent() {
        let outgoing = Outgoing::of(&config("https://h/clusters/x"), "edge-syncer/test").unwrap();
        let path = format!("/{}", "a".repeat(65_530));
        let error = outgoing.complete(get(&path)).err();
        let expected = "a path of 65542 bytes: ";
        assert!(
            matches!(&error, Some(Error::NotSent(words)) if words.starts_with(expected)),
            "{error:?}"
        );
    }

    #[test]
    fn what_the_request_says_itself_is_kept() {
        let request = Request::post("/api").header("accept", "application/json").extension(7);
        let outgoing = Outgoing::of(&config("https://h"), "edge-syncer/test").unwrap();
        let sent = outgoing.complete(request.body(Bytes::new()).unwrap()).unwrap();
        assert_eq!(sent.method(), http::Method::POST);
        assert_eq!(sent.headers()["accept"], "application/json");
        assert_eq!(sent.headers()[USER_AGENT], "edge-syncer/test");
        assert_eq!(sent.extensions().get(), Some(&7));
    }

    #[test]
    fn credentials_are_sent_in_the_order_of_client_go() {
        let mut all = config("https://h");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "from-file\n").unwrap();
        assert_eq!(sent(&all, "/").headers().get(AUTHORIZATION), None);
        all.auth_info.token_file = Some(file.display().to_string());
        assert_eq!(sent(&all, "/").headers()[AUTHORIZATION], "Bearer from-file");
        all.auth_info.token = Some("inline".to_owned().into());
        assert_eq!(sent(&all, "/").headers()[AUTHORIZATION], "Bearer inline");
        all.auth_info.username = Some("me".to_owned());
        assert_eq!(sent(&all, "/").headers()[AUTHORIZATION], "Bearer inline");
        all.auth_info.password = Some("secret".to_owned().into());
        let sent = sent(&all, "/");
        assert_eq!(sent.headers()[AUTHORIZATION], "Basic bWU6c2VjcmV0");
        assert!(sent.headers()[AUTHORIZATION].is_sensitive());
    }

    #[test]
    fn a_request_says_for_whom_it_is_made() {
        let mut config = config("https://h");
        let user = &mut config.auth_info;
        user.impersonate = Some("jane".to_owned());
        user.impersonate_uid = Some("7".to_owned());
        user.impersonate_groups = Some(vec!["a".to_owned(), "b:c".to_owned()]);
        let extra = [("acme.com/Scope:x%", ["view", "edit"].map(str::to_owned).to_vec())];
        user.impersonate_user_extra = Some(HashMap::from(extra.map(|(key, values)| (key.to_owned(), values))));
        let sent = sent(&config, "/");
        let of = |name: &str| -> Vec<&str> {
            let values = sent.headers().get_all(name).iter();
            values.map(|value| value.to_str().unwrap()).collect()
        };
        assert_eq!(of("impersonate-user"), ["jane"]);
        assert_eq!(of("impersonate-uid"), ["7"]);
        assert_eq!(of("impersonate-group"), ["a", "b:c"]);
        assert_eq!(of("impersonate-extra-acme.com%2fscope%3ax%25"), ["view", "edit"]);
    }

    #[test]
    fn what_cannot_be_sent_is_reported_with_its_field() {
        let cannot = "it cannot be sent: failed to parse header value";
        let check = |change: fn(&mut AuthInfo), expected: String| {
            let mut config = config("https://h");
            change(&mut config.auth_info);
            let error = Outgoing::of(&config, "edge-syncer/test").err();
            assert_eq!(error.map(|error| error.to_string()), Some(expected));
        };
        check(
            |user| user.impersonate = Some("a\nb".to_owned()),
            format!("as: {cannot}"),
        );
        check(
            |user| user.impersonate_uid = Some("a\nb".to_owned()),
            format!("as-uid: {cannot}"),
        );
        check(
            |user| user.impersonate_groups = Some(vec!["a".to_owned(), "a\nb".to_owned()]),
            format!("as-groups: {cannot}"),
        );
        check(
            |user| user.impersonate_user_extra = Some([("a".to_owned(), vec!["a\nb".to_owned()])].into()),
            format!("as-user-extra: {cannot}"),
        );
        check(
            |user| user.token = Some("a\nb".to_owned().into()),
            "token: it cannot be sent".to_owned(),
        );
    }
}
