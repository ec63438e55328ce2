//! Patterns of keys and texts: `*` is any number of characters, `?` is one, and `\` takes the next as it is.

/// Whether a text matches. It takes as many steps as both together have characters, multiplied.
pub(super) fn matches(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let Some(pattern) = parse(pattern) else { return false };
    let (mut at, mut next) = (0, 0);
    // Where the last star is, and what it has taken so far.
    let mut star = None;
    while at < text.len() {
        match pattern.get(next) {
            Some(Part::Any) => {
                star = Some((next, at));
                next += 1;
                continue;
            }
            Some(Part::One) => {
                at += 1;
                next += 1;
                continue;
            }
            Some(Part::Char(wanted)) if *wanted == text[at] => {
                at += 1;
                next += 1;
                continue;
            }
            _ => {}
        }
        let Some((part, taken)) = star else { return false };
        star = Some((part, taken + 1));
        at = taken + 1;
        next = part + 1;
    }
    pattern[next..].iter().all(|part| matches!(part, Part::Any))
}

enum Part {
    Any,
    One,
    Char(char),
}

/// A pattern that ends with `\` matches nothing.
fn parse(pattern: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(next) = chars.next() {
        parts.push(match next {
            '*' => Part::Any,
            '?' => Part::One,
            '\\' => Part::Char(chars.next()?),
            next => Part::Char(next),
        });
    }
    Some(parts)
}
