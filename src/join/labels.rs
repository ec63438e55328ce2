//! What may be a label, or a name with the form of one.

/// The longest DNS label, and the longest value of a label.
const LONGEST: usize = 63;
/// The longest prefix of a label's key: a DNS name.
const LONGEST_PREFIX: usize = 253;

/// True for a DNS label (RFC 1123), which names of namespaces, services and the like are.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let has_ends = |text: &str| !text.starts_with('-') && !text.ends_with('-');
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_allowed) && has_ends(text)
}

/// What is wrong with `key=value` as a label, if anything.
pub(crate) fn check_label(text: &str) -> Result<(), String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("must be key=value".to_owned());
    };
    let (prefix, name) = key
        .rsplit_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_prefix = |prefix: &str| prefix.len() <= LONGEST_PREFIX && prefix.split('.').all(is_dns_label);
    if !is_word(name) || !prefix.is_none_or(is_prefix) {
        return Err(format!("{key:?} cannot be the key of a label"));
    }
    if !value.is_empty() && !is_word(value) {
        return Err(format!("{value:?} cannot be the value of a label"));
    }
    Ok(())
}

/// True for the name part of a label's key, and for a value.
fn is_word(text: &str) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.len() <= LONGEST
        && text.chars().all(is_allowed)
        && is_end(text.chars().next())
        && is_end(text.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_labels() {
        for text in ["a=b", "a=", "example.org/a=b", "A_b.c=1-2"] {
            assert_eq!(check_label(text), Ok(()), "{text}");
        }
        let long = format!("a={}", "b".repeat(64));
        for text in [
            "x",
            "",
            "=b",
            "a b=c",
            "a=b=c",
            "a/b/c=d",
            "Example.org/a=b",
            "a=-b",
            "/a=b",
            &long,
        ] {
            assert!(check_label(text).is_err(), "{text}");
        }
    }
}
