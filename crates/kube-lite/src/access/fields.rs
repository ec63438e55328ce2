//! The fields of the entries of a kubeconfig, and the form of each value.

/// The form of the value of a field.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Text,
    /// A path, relative to the folder of the kubeconfig.
    File,
    Switch,
    List,
    /// A list of text.
    Texts,
    /// Names with a list of text each.
    TextsByName,
    /// Any value: it is not read here, or it is refused.
    Any,
}

pub(super) type Fields = [(&'static str, Form)];

pub(super) const CONTEXT_FIELDS: &Fields = &[
    ("cluster", Form::Text),
    ("user", Form::Text),
    ("namespace", Form::Text),
    ("extensions", Form::Any),
];

pub(super) const CLUSTER_FIELDS: &Fields = &[
    ("server", Form::Text),
    ("tls-server-name", Form::Text),
    ("insecure-skip-tls-verify", Form::Switch),
    ("certificate-authority", Form::File),
    ("certificate-authority-data", Form::Text),
    ("proxy-url", Form::Text),
    ("disable-compression", Form::Switch),
    ("extensions", Form::List),
];

pub(super) const USER_FIELDS: &Fields = &[
    ("client-certificate", Form::File),
    ("client-certificate-data", Form::Text),
    ("client-key", Form::File),
    ("client-key-data", Form::Text),
    ("token", Form::Text),
    ("tokenFile", Form::File),
    ("as", Form::Text),
    ("as-uid", Form::Text),
    ("as-groups", Form::Texts),
    ("as-user-extra", Form::TextsByName),
    ("username", Form::Text),
    ("password", Form::Text),
    ("auth-provider", Form::Any),
    ("exec", Form::Any),
    ("extensions", Form::List),
];
