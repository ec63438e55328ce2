//! Label selectors, as people write them.

/// What is wrong with a selector, if anything is. It goes to the server as it is; the syntax is that of Kubernetes
/// (apimachinery, `labels.Parse`).
pub fn check(selector: &str) -> Result<(), String> {
    if selector.trim().is_empty() {
        return Ok(());
    }
    split(selector)
        .into_iter()
        .try_for_each(|part| requirement(part.trim()))
}

/// The parts between commas that are not in parentheses.
fn split(selector: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in selector.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&selector[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&selector[begin..]);
    parts
}

fn requirement(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("there is nothing between two commas".to_owned());
    }
    if let Some(key) = text.strip_prefix('!') {
        return check_key(key.trim());
    }
    let end = text
        .find(|c: char| c.is_whitespace() || "=!<>(".contains(c))
        .unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    check_key(key)?;
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(());
    }
    for operator in ["==", "!=", "="] {
        if let Some(value) = rest.strip_prefix(operator) {
            return check_value(value.trim());
        }
    }
    if let Some(number) = rest.strip_prefix(['<', '>']) {
        let number = number.trim();
        return match number.parse::<i64>() {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("{number:?} after {key} is no whole number")),
        };
    }
    let list = rest.strip_prefix("notin").or_else(|| rest.strip_prefix("in"));
    let list = list
        .map(str::trim)
        .and_then(|list| list.strip_prefix('(')?.strip_suffix(')'));
    match list {
        Some(list) => list.split(',').try_for_each(|value| check_value(value.trim())),
        None => Err(format!(
            "{rest:?} after {key} must be one of =, ==, !=, <, >, in (...) and notin (...)"
        )),
    }
}

/// What is wrong with the key of a label, if anything is: it is a name of 63 characters, and before a slash a domain.
pub fn check_key(key: &str) -> Result<(), String> {
    let (domain, name) = key
        .split_once('/')
        .map_or((None, key), |(domain, name)| (Some(domain), name));
    let is_domain = |domain: &str| {
        let mut labels = domain.split('.');
        let is_label = |label: &str| is_name(label, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        domain.len() <= 253 && labels.all(is_label)
    };
    if domain.is_none_or(is_domain) && is_name(name, is_of_name) {
        return Ok(());
    }
    Err(format!("{key:?} is no key of a label"))
}

/// What is wrong with the value of a label, if anything is: it is empty, or a name of 63 characters.
pub fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_name(value, is_of_name) {
        return Ok(());
    }
    Err(format!("{value:?} is no value of a label"))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// True for what has these characters alone, begins and ends with a letter or a digit, and is not too long.
fn is_name(text: &str, may_have: impl Fn(char) -> bool) -> bool {
    let ends =
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(|c: char| c.is_ascii_alphanumeric());
    ends && text.len() <= 63 && text.chars().all(may_have)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_takes_is_taken() {
        for selector in [
            "",
            " ",
            "a",
            "!a",
            "! a",
            "a=b",
            "a==b",
            "a!=b",
            "a=",
            "a = b , c",
            "example.com/a.b_c-d in (x, y,z),!b",
            "a notin (x)",
            "a in ()",
            "a>1,b<20",
        ] {
            assert_eq!(check(selector), Ok(()), "{selector}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (selector, expected) in [
            ("a,,b", "there is nothing between two commas"),
            ("a,", "there is nothing between two commas"),
            ("=b", "\"\" is no key of a label"),
            ("a=b=c", "\"b=c\" is no value of a label"),
            ("-a", "\"-a\" is no key of a label"),
            ("Ex_ample/a", "\"Ex_ample/a\" is no key of a label"),
            (
                "a b",
                "\"b\" after a must be one of =, ==, !=, <, >, in (...) and notin (...)",
            ),
            (
                "a in b",
                "\"in b\" after a must be one of =, ==, !=, <, >, in (...) and notin (...)",
            ),
            (
                "a in (b",
                "\"in (b\" after a must be one of =, ==, !=, <, >, in (...) and notin (...)",
            ),
            ("a in (b c)", "\"b c\" is no value of a label"),
            ("a>b", "\"b\" after a is no whole number"),
            ("!", "\"\" is no key of a label"),
        ] {
            assert_eq!(check(selector), Err(expected.to_owned()), "{selector}");
        }
    }
}
