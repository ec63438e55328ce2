//! What an unknown word may have been meant to be.

/// The known word that is nearest to `word`, if it is so near that it may have been meant. Capitals do not matter; in
/// short words fewer letters may differ.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let near = |known: &'a str| {
        let distance = distance(&word, &known.to_ascii_lowercase());
        (distance <= ((known.len() + 1) / 4).min(3)).then_some((distance, known))
    };
    let (_, best) = known
        .into_iter()
        .filter_map(near)
        .min_by_key(|(distance, _)| *distance)?;
    Some(best)
}

/// `, did you mean X?`, or nothing.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |known| format!(", did you mean {known}?"))
}

/// Letters that are added, left out, changed, or swapped with their neighbour to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    // Longer words are never near, and need not be compared.
    if one.len().abs_diff(other.len()) > 3 {
        return usize::MAX;
    }
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                let swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                let swapped = if swapped { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                changed.min(swapped).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1)
            };
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant_and_nothing_far_from_it() {
        let known = [
            "run",
            "version",
            "token",
            "tokenFile",
            "secrets",
            "as",
            "--qps",
            "--mode",
        ];
        for (word, expected) in [
            ("rnu", Some("run")),
            ("Run", Some("run")),
            ("runn", Some("run")),
            ("tokn", Some("token")),
            ("tokenfile", Some("tokenFile")),
            ("secret", Some("secrets")),
            ("versoin", Some("version")),
            ("--qp", Some("--qps")),
            ("--mdoe", Some("--mode")),
            ("AS", Some("as")),
            ("nonsense", None),
            ("", None),
            ("r", None),
            ("tok", None),
            ("e\u{301}", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
        assert_eq!(hint("tokn", known), ", did you mean token?");
        assert_eq!(hint("nonsense", known), "");
    }
}
