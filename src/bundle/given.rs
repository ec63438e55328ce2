//! The flags and the environment as they were given, without what may be secret in them: no flag takes a secret, but
//! people write one where it does not belong.

/// The variables that the program reads, beside those of the service manager.
const VARIABLES: [&str; 14] = [
    "EDGE_SYNCER_LOG",
    "RUST_LOG",
    "NAMESPACE",
    "HOSTNAME",
    "ENABLE_DENATURING",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
    "ALL_PROXY",
    "all_proxy",
    "SSL_CERT_FILE",
];
const MASK: &str = "***";
/// How a JWT begins: `{"` in base64.
const TOKEN: &str = "eyJ";

/// What was given, a line each.
pub(super) fn text(flags: &[String], variable: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    for flag in flags {
        text += &[&masked(flag), "\n"].concat();
    }
    for name in VARIABLES {
        if let Some(value) = variable(name) {
            text += &[name, "=", &masked(&value), "\n"].concat();
        }
    }
    text
}

/// A word without what may be a secret: user information and the query of a URL, and a token.
fn masked(word: &str) -> String {
    let word = word.replace(char::is_control, " ");
    let mut masked = word.clone();
    if let Some((_, address)) = word.rsplit_once('@') {
        // In a password there may be any character, and in what should be a URL the scheme may be missing.
        let start = word.find("://").map(|at| at + 3).or_else(|| Some(word.find('=')? + 1));
        masked = [&word[..start.unwrap_or_default()], MASK, "@", address].concat();
    }
    if word.contains("://") {
        let end = masked.find(['?', '#']).unwrap_or(masked.len());
        let is_cut = end < masked.len();
        masked.truncate(end + usize::from(is_cut));
        masked += if is_cut { MASK } else { "" };
    }
    match masked.find(TOKEN) {
        Some(at) => [&masked[..at], MASK].concat(),
        None => masked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_masked_and_all_else_is_as_given() {
        for (word, expected) in [
            (
                "--from-kubeconfig=/etc/hub.kubeconfig",
                "--from-kubeconfig=/etc/hub.kubeconfig",
            ),
            ("--sync-target-uid=site-7", "--sync-target-uid=site-7"),
            ("https://me:s3/c?r#et@h:1/x", "https://***@h:1/x"),
            ("--from-kubeconfig=https://s3cret@h", "--from-kubeconfig=https://***@h"),
            ("http://h/x?token=s3cret", "http://h/x?***"),
            ("http://me:s3cret@h/x#s3cret", "http://***@h/x#***"),
            ("me:s3cret@proxy:3128", "***@proxy:3128"),
            ("--sync-target-uid=me:s3cret@x", "--sync-target-uid=***@x"),
            ("--sync-target-uid=eyJhbGciOi.s3cret.x", "--sync-target-uid=***"),
            ("a\nb", "a b"),
        ] {
            assert_eq!(masked(word), expected);
            assert!(!masked(word).contains("s3"), "{word}");
        }
    }

    #[test]
    fn there_is_a_line_for_each() {
        let flags = ["--v=4".to_owned()];
        let variable = |name: &str| (name == "HTTPS_PROXY").then(|| "http://u:p@h:1".to_owned());
        assert_eq!(text(&flags, variable), "--v=4\nHTTPS_PROXY=http://***@h:1\n");
    }
}
