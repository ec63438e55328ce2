//! The order of versions, by Kubernetes' rules.

use std::cmp::Ordering;

/// How far a version has come: before it is stable there are two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Stable,
}

/// Which of two versions is the higher one: v1alpha1, v1beta1, v1, v2, v10. All others are lower than these, and the
/// higher the earlier they are in the alphabet.
pub fn compare(one: &str, other: &str) -> Ordering {
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (None, None) => other.cmp(one),
    }
}

fn parse(name: &str) -> Option<(Stage, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    for (word, stage) in [("alpha", Stage::Alpha), ("beta", Stage::Beta)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stage, number(major)?, number(minor)?));
        }
    }
    Some((Stage::Stable, number(rest)?, 0))
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_order_of_kubernetes() {
        let sorted = [
            "foo10",
            "foo1",
            "Bar",
            "v1alpha1",
            "v1alpha2",
            "v10alpha1",
            "v1beta1",
            "v2beta1",
            "v1",
            "v2",
            "v10",
        ];
        for (index, one) in sorted.iter().enumerate() {
            for (other_index, other) in sorted.iter().enumerate() {
                assert_eq!(compare(one, other), index.cmp(&other_index), "{one} {other}");
            }
        }
        for name in ["v", "v1alpha", "v1gamma1", "v+1", "1", "valpha1"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
