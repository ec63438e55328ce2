//! What a person can do about a failure: a table by the words of the server, or of the connection.

use std::borrow::Cow;

use kube_lite::{ApiStatus, Error, Place};

/// What a person can do about an error at that place, in one sentence.
pub fn advice(error: &Error, place: &Place) -> Cow<'static, str> {
    if let Some(namespace) = error.missing_namespace() {
        return format!("create the namespace {namespace} at that side, or name another one; it is tried again").into();
    }
    match error {
        Error::Unreachable(words) => about_the_way(words, place),
        Error::Outdated { .. } => {
            "everything is listed again; if it lasts, check for a cache before the server, or a restored backup".into()
        }
        Error::NotServedYet(_) => {
            "it ends by itself after a CRD was defined or deleted there; if it lasts, see what is to serve that group: kubectl get \
             apiservices"
                .into()
        }
        Error::WithoutEffect(_) => "apply the CRDs of this version at the server; it is tried again".into(),
        Error::Ending(_) => {
            "see why the controllers that set them do not remove them there; it continues by itself when they are gone"
                .into()
        }
        Error::NotSent(_) => "check the names in the configs and the objects of that type".into(),
        Error::BadAnswer(words) if is_about_size(words) => {
            "something there is larger than what is read of one object: make it smaller or delete it, or name the others in \
             the config instead of all of its type; it is tried again"
                .into()
        }
        Error::BadAnswer(_) => about_no_api("", place),
        Error::Unanswered(words) if words.ends_with("leads to another server now") => {
            "nothing has to be done: it is sent once that server has said which cluster it is".into()
        }
        Error::Unanswered(_) => {
            "the side answers others; see its log for what holds this up: a webhook, an aggregated API?".into()
        }
        Error::Unauthorized(_) => about_login(place).into(),
        error if is_about_path(error, place) => about_path(place.path().unwrap_or_default()).into(),
        Error::Status(status) => about_status(status).into(),
    }
}

/// What to do about credentials that a side does not accept.
fn about_login(place: &Place) -> String {
    let login = match &*place.login {
        "" => "the token or certificate in the kubeconfig",
        login => login,
    };
    let how = match &*place.side {
        "hub" => "; edge-syncer gen NAME --rotate makes another token",
        _ => "",
    };
    format!("the credentials are not accepted: renew {login}{how}")
}

/// True if an answer was not read to its end, since it has more bytes than is read of an object or of a list's item.
fn is_about_size(words: &str) -> bool {
    words.contains("more than ") && words.contains(" bytes")
}

/// True if a server refuses a request as such, and neither its words nor its code say what of it has to change.
pub fn is_refused_as_invalid(error: &Error) -> bool {
    let status = error.status().filter(|status| matches!(status.code, 400 | 422));
    status.is_some_and(|status| {
        let is_known = row(REFUSALS, &status.message)
            .or(row(STRANGERS, &status.message))
            .is_some();
        !is_known && !status.is_denial()
    })
}

/// True if the server does not allow to ask for anything below the path of its URL. It says so of paths that it does not
/// know; where a proxy or kcp takes the path from the URL, the server's words do not have it.
pub fn is_about_path(error: &Error, place: &Place) -> bool {
    let (Some(status), Some(path)) = (error.status(), place.path()) else {
        return false;
    };
    status.code == 403 && status.message.contains(&format!(" path \"{path}/"))
}

fn about_path(path: &str) -> String {
    format!(
        "the path {path} in the kubeconfig's server is probably wrong: an API server has none, only a proxy before it or a \
         workspace of kcp has"
    )
}

/// The reason that many failures have in common: a missing permission, by verb and type, affects all objects and
/// sources of the type. `None` for a failure of one thing alone.
pub fn shared_reason(error: &Error) -> Option<&str> {
    let status = error.status().filter(|status| status.code == 403)?;
    // `User "x" cannot list resource "secrets" in API group "" in the namespace "shop"`
    let (_, reason) = status.message.split_once(" is forbidden: ")?;
    // After that, roles that are bound but do not exist, in any order.
    let (reason, _) = reason.split_once(": RBAC: ").unwrap_or((reason, ""));
    // A permission that is missing in one namespace is mostly missing in all; if not, the next one is logged once the
    // first works.
    let (reason, _) = reason
        .split_once(" in the namespace ")
        .or_else(|| reason.split_once(" at the cluster scope"))
        .unwrap_or((reason, ""));
    (reason.starts_with("User \"") && reason.contains(" cannot ")).then_some(reason)
}

/// The first row with a word that is in the text.
fn row<T: Copy>(rows: &[(&[&str], T)], words: &str) -> Option<T> {
    let mut rows = rows.iter();
    rows.find(|(signs, _)| signs.iter().any(|sign| words.contains(sign)))
        .map(|(_, found)| *found)
}

/// What to do about an unreachable side, by what TCP, TLS and proxies say.
fn about_the_way(words: &str, place: &Place) -> Cow<'static, str> {
    let trust = if place.trust.is_empty() {
        "certificate-authority-data of the kubeconfig"
    } else {
        &place.trust
    };
    if words.contains("UnknownIssuer") {
        return format!(
            "the server's certificate is signed by a CA that is not trusted here: check that the address is that of the right \
             server; if it is, put its CA's certificate into {trust}"
        )
        .into();
    }
    if words.contains("BadSignature") {
        return format!(
            "the server's certificate is not signed by the CA of the kubeconfig, only by one of the same name, as after a \
             cluster was set up again: put the present CA's certificate into {trust}"
        )
        .into();
    }
    row(WAYS, words)
        .unwrap_or("check the address, the network and the certificates if it lasts")
        .into()
}

const WAYS: &[(&[&str], &str)] = &[
    (
        &["certificate expired"],
        "renew the server's certificate, unless the clock of this machine is wrong: compare both times",
    ),
    (
        &["certificate not valid yet"],
        "set the clock of this machine, unless the certificate is to be valid only later: compare both times; it continues by \
         itself then",
    ),
    (
        &["certificate not valid for name"],
        "use one of the names of the certificate in the kubeconfig's server, or set tls-server-name to it",
    ),
    (
        &["InvalidContentType"],
        "what listens there speaks no TLS: check the port, or write http:// in the kubeconfig's server if that is meant",
    ),
    (
        &["fatal alert: CertificateRequired", "fatal alert: HandshakeFailure"],
        "the server, or a proxy before it, wants a client certificate: add client-certificate and client-key to the user \
         entry",
    ),
    (
        &[
            "fatal alert: UnknownCA",
            "fatal alert: BadCertificate",
            "fatal alert: CertificateExpired",
            "fatal alert: CertificateUnknown",
        ],
        "the server refuses the client certificate of the user entry: renew it, and compare the clocks",
    ),
    (
        &["proxy authorization required"],
        "the proxy wants credentials (407): put user and password into proxy-url or HTTPS_PROXY",
    ),
    (
        &["tunnel error: unsuccessful"],
        "the proxy does not let this through: allow CONNECT to this host and port there, or name the host in NO_PROXY",
    ),
    (
        &["tunnel error", "through the proxy", "SOCKS", "socks"],
        "check the proxy: proxy-url of the kubeconfig, or HTTPS_PROXY and NO_PROXY",
    ),
    (
        &["HTTP 502", "HTTP 503", "HTTP 504"],
        "what is before the API server answers, and that itself does not: see whether it runs; behind kcp's front proxy, \
         that is the shard of the workspace",
    ),
    (
        &["Connection refused"],
        "nothing listens at this address and port: is the API server up, and is the port the right one?",
    ),
    (
        &["No route to host", "Network is unreachable", "Host is unreachable"],
        "this machine has no way to that address: check its network, the routes and the VPN",
    ),
    (
        &[
            "no name server has answered",
            "Temporary failure in name resolution",
            "Try again",
        ],
        "the name servers of this machine do not answer: check its network and its resolver",
    ),
    (
        &["dns error", "failed to lookup address"],
        "the name of the server is not known to the name servers of this machine: check how it is spelt, and the resolver",
    ),
    (
        &["no TCP connection"],
        "packets to that address get lost: check the network, and firewalls on the way",
    ),
    (
        &["no TLS handshake"],
        "something accepts connections there and sends nothing: check the port, and proxies before the server",
    ),
];

/// What to do where something else than a Kubernetes API answers, by its words.
pub fn about_no_api(words: &str, place: &Place) -> Cow<'static, str> {
    match (row(STRANGERS, words), place.path()) {
        (Some(found), _) => found.into(),
        (None, Some(path)) if words.contains("HTTP 404") => about_path(path).into(),
        (None, _) => "check the address, its port and its path: another service or a proxy answers there".into(),
    }
}

const STRANGERS: &[(&[&str], &str)] = &[
    (
        &[
            "HTTP request to an HTTPS server",
            "plain HTTP request was sent to HTTPS port",
        ],
        "the server speaks TLS at that port: write https:// instead of http:// in the kubeconfig's server",
    ),
    (
        &[
            "HTTP 302", "HTTP 303", "HTTP 307", "HTTP 308", "HTTP 301", "login", "Login", "Sign in", "sign in",
        ],
        "a login page or portal stands before it, which no token gets past: use the address of the API server itself, or \
         let the syncer pass there",
    ),
];

fn about_status(status: &ApiStatus) -> &'static str {
    let words = status.message.as_str();
    match status.code {
        // Also without a reason.
        _ if status.is_denial() || status.is_denied_by_policy() => row(REFUSALS, words).unwrap_or_default(),
        500 if words.contains("field not declared in schema") => {
            "the type at that side lacks this field: apply the same version of its CRD there"
        }
        _ if status.is_misfit() => {
            "the schema of that side does not take it: correct the object where it comes from; it is tried again when \
             either side changes"
        }
        401 => "the credentials are accepted for all else: see what serves this at the server",
        403 if status.reason.is_empty() => {
            "this is not the API server's answer: check proxies and firewalls before the server"
        }
        403 if is_terminating(status) => "it continues by itself when what is being deleted has gone",
        403 => {
            row(REFUSALS, words).unwrap_or("see the words: what refuses it there has to allow it; it is tried again")
        }
        400 if status.reason.is_empty() && row(STRANGERS, words).is_some() => row(STRANGERS, words).unwrap_or_default(),
        404 if !status.details_name.is_empty() => "it continues by itself when the named object appears",
        404 => "it continues by itself when the missing type appears",
        405 => "the server does not know this verb for the type, or the type is being deleted; it is tried again",
        409 => "it is tried again with the newer state",
        400 | 422 => row(REFUSALS, words)
            .unwrap_or("correct the object where it comes from; it is tried again when either side changes"),
        413 => "the object is too large for this side: make it smaller where it comes from",
        // An API server answers so too while it cannot read what it keeps.
        429 => row(BROKEN, words).unwrap_or("the server is busy; it is tried again"),
        500 => row(BROKEN, words).unwrap_or("it is tried again; see the server's log if it lasts"),
        502..=504 => row(BROKEN, words)
            .unwrap_or("the backend of this API is unavailable; it is tried again; check it if it lasts"),
        _ => "it is tried again; see the server's log if it lasts",
    }
}

/// True if a namespace is being deleted, in which nothing can be created.
pub fn is_terminating(status: &ApiStatus) -> bool {
    let has_cause = status.causes.iter().any(|cause| cause.reason == "NamespaceTerminating");
    has_cause || status.message.contains("is being terminated") || status.message.contains("is terminating")
}

/// What refuses an object, by its words. The sources that may say anything, such as webhooks, come first.
const REFUSALS: &[(&[&str], &str)] = &[
    (
        &["admission webhook "],
        "the named admission webhook of that side refuses it: change the object, or the webhook's rules; it is tried again",
    ),
    (
        &["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"],
        "the named admission policy of that side refuses it: change the object, or the policy; it is tried again",
    ),
    (
        &["violates PodSecurity"],
        "the namespace's Pod Security level refuses it: change the pod, or the label pod-security.kubernetes.io/enforce of \
         the namespace",
    ),
    (
        &["metadata.annotations: Too long"],
        "all annotations of an object together have at most 256 KiB, with the syncer's own, of some 300 bytes: shorten or \
         remove annotations where the object comes from; it is tried again when either side changes",
    ),
    (
        &["exceeded quota"],
        "raise the ResourceQuota, or free some of it; it is tried again",
    ),
    (
        &["failed quota", "insufficient quota", "status unknown for quota"],
        "the ResourceQuota of the namespace requires a value that the object does not set: add it to the object, or a \
         LimitRange",
    ),
    (
        &["usage per ", "limit to request ratio"],
        "the LimitRange of the namespace refuses it: change the object's requests and limits, or the LimitRange",
    ),
    (
        &["error looking up service account"],
        "it continues by itself when that service account is there",
    ),
    (
        &["attempting to grant RBAC permissions not currently held"],
        "a user cannot grant permissions beyond their own: give the syncer's user these permissions, or escalate and \
         bind on roles",
    ),
    (
        &["User \"system:anonymous\""],
        "no credentials have reached the server: give the user entry of the kubeconfig a token or certificate, and see \
         that no proxy drops them",
    ),
    (
        &["\" cannot "],
        "grant the syncer's user this permission: edge-syncer gen rbac prints all that it needs; for an edge of edge-syncer \
         gen, run that again and apply what it writes",
    ),
    (
        &["workspace access not permitted", "access denied"],
        "give the syncer's user access to this workspace",
    ),
    (
        // Of a ConfigMap or Secret; also where somebody at that side has set it, which only a new object can undo.
        &["field is immutable when `immutable` is set"],
        "the copy itself is immutable: delete it there, or, if the syncer has made it, let it be replaced by the annotation \
         edge.kubestellar.io/replace at its origin; it is tried again",
    ),
    (
        &[
            "immutable",
            "may not change",
            "may not be changed",
            "cannot change",
            "Forbidden: updates to",
        ],
        "change that field back where it comes from; or let the copy be recreated: by the annotation edge.kubestellar.io/replace \
         at its origin, if the syncer has made the copy, else by deleting it there, a CRD with all its objects; it is tried \
         again",
    ),
];

/// What has failed behind a server that itself answers.
const BROKEN: &[(&[&str], &str)] = &[
    (
        // It has no form of that type: the values of a Secret that are no base64, a list in the place of a map.
        &["failed to convert new object", "failed to create typed patch object"],
        "what it has is nothing that this type can hold: correct the object, or the conversion, where it comes from; it is tried \
         again",
    ),
    (
        &["failed calling webhook"],
        "the named webhook of that side does not answer: bring it back, or remove its configuration; it is tried again",
    ),
    (
        &["conversion webhook"],
        "the webhook that converts this type does not work: bring it back; it is tried again",
    ),
    (
        // Also without a webhook, while its CRD drops a version.
        &["request to convert CR"],
        "the server could not convert what it has of this type, which passes if its CRD is just being changed; it is tried \
         again; if it lasts, see its CRD, and whether the webhook that it may name works",
    ),
    (
        &["Too large resource version"],
        "what that server keeps of this type in memory is behind its storage; it is tried again; if it lasts, see the \
         server's log, and whether a webhook that converts the type works",
    ),
    (
        &["request is too large", "trying to send message larger than max"],
        "the object is too large for this side's storage: make it smaller where it comes from",
    ),
    (
        &["etcdserver", "etcd"],
        "the storage of that server is not well: see its etcd; it is tried again",
    ),
];

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
