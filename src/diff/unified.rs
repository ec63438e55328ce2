//! The unified diff of two texts, by Myers' algorithm.

use std::ops::Range;

/// Lines around each change.
const CONTEXT: usize = 3;
/// More changes than that are shown as one: the time and memory grow with their square.
const MOST: usize = 1000;

/// The hunks of a unified diff; empty for equal texts.
pub(super) fn diff(before: &str, now: &str) -> String {
    let (before, now): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
    let changes = changes(&before, &now);
    let mut text = String::new();
    let mut rest = &*changes;
    while let Some((first, _)) = rest.split_first() {
        // Changes whose contexts touch are one hunk.
        let near = |pair: &[Change]| pair[1].before.start - pair[0].before.end <= 2 * CONTEXT;
        let count = 1 + rest.windows(2).take_while(|pair| near(pair)).count();
        let (hunk, others) = rest.split_at(count);
        rest = others;
        let Some(last) = hunk.last() else { break };
        let lead = first.before.start.min(CONTEXT);
        let tail = (before.len() - last.before.end).min(CONTEXT);
        let of_before = first.before.start - lead..last.before.end + tail;
        let of_now = first.now.start - lead..last.now.end + tail;
        text.extend(["@@ -", &span(&of_before), " +", &span(&of_now), " @@\n"]);
        let mut at = of_before.start;
        let mut put = |mark: &str, lines: &[&str]| {
            for line in lines {
                text.extend([mark, line, "\n"]);
            }
        };
        for change in hunk {
            put(" ", &before[at..change.before.start]);
            put("-", &before[change.before.clone()]);
            put("+", &now[change.now.clone()]);
            at = change.before.end;
        }
        put(" ", &before[at..of_before.end]);
    }
    text
}

/// Lines of a text, as a hunk counts them.
fn span(lines: &Range<usize>) -> String {
    let first = if lines.is_empty() { lines.start } else { lines.start + 1 };
    match lines.len() {
        1 => first.to_string(),
        count => format!("{first},{count}"),
    }
}

/// Lines in the place of others.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    before: Range<usize>,
    now: Range<usize>,
}

/// All changes, in order.
fn changes(before: &[&str], now: &[&str]) -> Vec<Change> {
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let start = same(&mut before.iter().zip(now));
    let end = same(&mut before[start..].iter().rev().zip(now[start..].iter().rev()));
    let (of_before, of_now) = (&before[start..before.len() - end], &now[start..now.len() - end]);
    let whole = || vec![(0..of_before.len(), 0..of_now.len())];
    let found = between(of_before, of_now).unwrap_or_else(whole);
    let moved = |range: Range<usize>| range.start + start..range.end + start;
    let changes = found.into_iter().map(|(before, now)| Change {
        before: moved(before),
        now: moved(now),
    });
    changes
        .filter(|change| !change.before.is_empty() || !change.now.is_empty())
        .collect()
}

type Edit = (Range<usize>, Range<usize>);

/// The shortest way from one to the other; `None` if it is too long.
fn between(before: &[&str], now: &[&str]) -> Option<Vec<Edit>> {
    let most = (before.len() + now.len()).min(MOST);
    // How far each diagonal has come, by the number of its lines that are added less those that go.
    let at =
        |diagonal: isize| usize::try_from(diagonal + isize::try_from(most).unwrap_or_default() + 1).unwrap_or_default();
    let mut reach = vec![0_usize; 2 * most + 3];
    let mut history = Vec::new();
    for step in 0..=most {
        let depth = isize::try_from(step).ok()?;
        history.push(reach.clone());
        for diagonal in (-depth..=depth).step_by(2) {
            let goes_down =
                diagonal == -depth || diagonal != depth && reach[at(diagonal - 1)] < reach[at(diagonal + 1)];
            let mut x = if goes_down {
                reach[at(diagonal + 1)]
            } else {
                reach[at(diagonal - 1)] + 1
            };
            let mut y = x.checked_add_signed(-diagonal)?;
            while x < before.len() && y < now.len() && before[x] == now[y] {
                (x, y) = (x + 1, y + 1);
            }
            reach[at(diagonal)] = x;
            if x >= before.len() && y >= now.len() {
                return back(&history, at, (x, y), step);
            }
        }
    }
    None
}

/// The way back from the end, as what changes on it.
fn back(
    history: &[Vec<usize>],
    at: impl Fn(isize) -> usize,
    (mut x, mut y): (usize, usize),
    steps: usize,
) -> Option<Vec<Edit>> {
    let mut found: Vec<Edit> = Vec::new();
    for step in (1..=steps).rev() {
        let reach = &history[step];
        let (depth, diagonal) = (
            isize::try_from(step).ok()?,
            isize::try_from(x).ok()? - isize::try_from(y).ok()?,
        );
        let goes_down = diagonal == -depth || diagonal != depth && reach[at(diagonal - 1)] < reach[at(diagonal + 1)];
        let from = if goes_down { diagonal + 1 } else { diagonal - 1 };
        let (from_x, from_y) = (reach[at(from)], reach[at(from)].checked_add_signed(-from)?);
        let place = if goes_down {
            (from_x..from_x, from_y..from_y + 1)
        } else {
            (from_x..from_x + 1, from_y..from_y)
        };
        match found.last_mut() {
            Some(last) if last.0.start == place.0.end && last.1.start == place.1.end => {
                *last = (place.0.start..last.0.end, place.1.start..last.1.end);
            }
            _ => found.push(place),
        }
        (x, y) = (from_x, from_y);
    }
    found.reverse();
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number a line.
    fn numbered(numbers: impl Iterator<Item = u32>) -> String {
        numbers.fold(String::new(), |text, number| text + &number.to_string() + "\n")
    }

    #[test]
    fn hunks_are_those_of_diff() {
        let numbers = |skip: &[u32]| numbered((1..=20).filter(|number| !skip.contains(number)));
        for (before, now, expected) in [
            ("a\nb\n", "a\nb\n", ""),
            ("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
            ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
            ("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"),
            (
                &numbers(&[]),
                &numbers(&[2, 19]),
                "@@ -1,5 +1,4 @@\n 1\n-2\n 3\n 4\n 5\n@@ -16,5 +15,4 @@\n 16\n 17\n 18\n-19\n 20\n",
            ),
            (
                &numbers(&[]),
                &numbers(&[2, 8]),
                "@@ -1,11 +1,9 @@\n 1\n-2\n 3\n 4\n 5\n 6\n 7\n-8\n 9\n 10\n 11\n",
            ),
        ] {
            assert_eq!(diff(before, now), expected, "{before:?} {now:?}");
        }
    }

    /// What a diff makes of the text before.
    fn patched(before: &str, hunks: &str) -> Vec<String> {
        let before: Vec<&str> = before.lines().collect();
        let (mut found, mut at) = (Vec::new(), 0);
        for line in hunks.lines() {
            match line.split_at(1) {
                ("@", rest) => {
                    let from = rest
                        .split(['-', ',', ' '])
                        .find_map(|word| word.parse::<usize>().ok())
                        .unwrap();
                    let begin = if rest.contains(&format!("-{from},0 ")) {
                        from
                    } else {
                        from - 1
                    };
                    found.extend(before[at..begin].iter().map(ToString::to_string));
                    at = begin;
                }
                ("+", text) => found.push(text.to_owned()),
                (mark, text) => {
                    assert_eq!(before[at], text);
                    at += 1;
                    if mark == " " {
                        found.push(text.to_owned());
                    }
                }
            }
        }
        found.extend(before[at..].iter().map(ToString::to_string));
        found
    }

    #[test]
    fn every_diff_leads_from_one_text_to_the_other() {
        let mut chance = fastrand::Rng::with_seed(7);
        for run in 0..500 {
            let mut text = |most: usize| {
                let count = chance.usize(..most);
                numbered((0..count).map(|_| chance.u32(..4)))
            };
            let (before, now) = (text(30), text(30));
            let expected: Vec<&str> = now.lines().collect();
            assert_eq!(
                patched(&before, &diff(&before, &now)),
                expected,
                "{run}: {before:?} {now:?}"
            );
        }
        let long = |by: u32| numbered((0..2000).map(|line| line * by));
        assert_eq!(patched(&long(2), &diff(&long(2), &long(3))).len(), 2000);
    }
}
