//! The functions of sprig 3.3.0 that templates have, by what they work on.
//!
//! Promises: a function gives what sprig's gives for the same arguments, and fails where that fails; what it makes is
//! bounded before it is made (`heap`).

use crate::template::function::Function;
use crate::template::library::Library;

mod cast;
mod dates;
mod defaults;
mod dicts;
mod encoding;
mod json;
mod lists;
mod numbers;
mod paths;
mod pattern;
mod random;
mod regexes;
mod rewrite;
mod semver;
mod strings;
mod syncagent;
mod urls;
mod words;

pub use pattern::Pattern;

/// All of them.
pub const LIBRARY: Library = Library {
    own: &[],
    tables: TABLES,
    refused,
};

/// All of them, and what kcp's api-syncagent has beside them.
pub const SYNCAGENT: Library = Library {
    own: syncagent::FUNCTIONS,
    ..LIBRARY
};

const TABLES: &[&[Function]] = &[
    strings::FUNCTIONS,
    words::FUNCTIONS,
    lists::FUNCTIONS,
    dicts::FUNCTIONS,
    defaults::FUNCTIONS,
    numbers::FUNCTIONS,
    dates::FUNCTIONS,
    regexes::FUNCTIONS,
    encoding::FUNCTIONS,
    json::FUNCTIONS,
    random::FUNCTIONS,
    semver::FUNCTIONS,
    urls::FUNCTIONS,
    paths::FUNCTIONS,
];

/// Functions of sprig that templates do not have.
const NEVER: [(&str, &str); 3] = [
    ("env", "the agent's environment"),
    ("expandenv", "the agent's environment"),
    ("getHostByName", "the agent's network"),
];

/// Functions of sprig that are not made yet.
const NOT_SUPPORTED: [&str; 13] = [
    "bcrypt",
    "htpasswd",
    "genPrivateKey",
    "derivePassword",
    "buildCustomCert",
    "genCA",
    "genCAWithKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "encryptAES",
    "decryptAES",
];

/// Functions that Helm has beside sprig's: who looks for them should know that they were never there.
const OF_HELM: [&str; 9] = [
    "include",
    "toYaml",
    "fromYaml",
    "fromYamlArray",
    "toToml",
    "fromToml",
    "tpl",
    "lookup",
    "required",
];

/// Why templates do not have a function that people may expect.
fn refused(name: &str) -> Option<String> {
    if let Some((_, what)) = NEVER.iter().find(|(refused, _)| *refused == name) {
        return Some(format!("is not allowed: it gives {what} to whoever writes templates"));
    }
    if OF_HELM.contains(&name) {
        return Some("not defined: it is a function of Helm, not of sprig".to_owned());
    }
    NOT_SUPPORTED
        .contains(&name)
        .then(|| "is not supported: certificates, keys and ciphers are left out".to_owned())
}
