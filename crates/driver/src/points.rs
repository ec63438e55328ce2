//! What a check has found: points, each with a verdict, and how they are written.

use std::fmt::{self, Display, Write as _};

use kube_lite::logging::LogFormat;
use serde_json::{Value, json};

/// The result of a point, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it has to be.
    Good,
    /// It works, and there is something to know.
    Note,
    /// It is not known.
    Unknown,
    /// It will not work.
    Wrong,
}

impl Verdict {
    fn mark(self) -> char {
        match self {
            Self::Good => '✔',
            Self::Note => '!',
            Self::Unknown => '?',
            Self::Wrong => '✗',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
        }
    }
}

/// One point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point<S> {
    /// Whether it is as it has to be.
    pub verdict: Verdict,
    /// The side; absent if it is about all of them.
    pub side: Option<S>,
    /// What it is about, in a word or two.
    pub about: &'static str,
    /// What was found.
    pub found: String,
    /// What to do, if anything.
    pub advice: String,
}

impl<S: Display> Display for Point<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, found, .. } = self;
        write!(f, "{} ", self.verdict.mark())?;
        if let Some(side) = &self.side {
            write!(f, "{side}: ")?;
        }
        write!(f, "{about}: {}", found.replace(['\n', '\r'], " "))?;
        if !self.advice.is_empty() {
            write!(f, "; to do: {}", self.advice)?;
        }
        Ok(())
    }
}

/// The points that were found so far.
#[derive(Debug)]
pub struct Points<S>(pub Vec<Point<S>>);

impl<S> Default for Points<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: Display> Points<S> {
    /// Adds one: the side, what it is about, what was found, and what to do.
    pub fn add(
        &mut self,
        side: impl Into<Option<S>>,
        about: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.0.push(Point {
            verdict,
            side: side.into(),
            about,
            found: found.into(),
            advice: advice.into(),
        });
    }

    /// The worst of all verdicts.
    pub fn worst(&self) -> Verdict {
        self.0.iter().map(|point| point.verdict).max().unwrap_or(Verdict::Good)
    }

    /// All points as text: a line each, or one JSON object.
    pub fn text(&self, format: LogFormat) -> String {
        if format == LogFormat::Json {
            return format!("{}\n", self.json());
        }
        let mut text = String::new();
        for point in &self.0 {
            let _ = writeln!(text, "{point}");
        }
        text
    }

    fn json(&self) -> Value {
        let points = self.0.iter().map(|point| {
            json!({
                "result": point.verdict.word(),
                "side": point.side.as_ref().map(ToString::to_string),
                "point": point.about,
                "found": point.found,
                "advice": point.advice,
            })
        });
        json!({"result": self.worst().word(), "points": points.collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Points<&'static str> {
        let mut points = Points::default();
        points.add("hub", "reached", Verdict::Good, "https://h", "");
        points.add(None, "two clusters", Verdict::Wrong, "one\ncluster", "correct it");
        points
    }

    #[test]
    fn a_point_is_a_line_with_what_to_do() {
        let expected = "✔ hub: reached: https://h\n✗ two clusters: one cluster; to do: correct it\n";
        assert_eq!(points().text(LogFormat::Text), expected);
    }

    #[test]
    fn json_has_the_same() {
        let found: Value = serde_json::from_str(&points().text(LogFormat::Json)).unwrap();
        assert_eq!(found["result"], "wrong");
        assert_eq!(found["points"][0]["side"], "hub");
        assert_eq!(found["points"][1]["side"], Value::Null);
        assert_eq!(found["points"][1]["advice"], "correct it");
    }

    #[test]
    fn the_worst_point_counts() {
        assert_eq!(Points::<&str>::default().worst(), Verdict::Good);
        for (verdicts, worst) in [
            ([Verdict::Good, Verdict::Note], Verdict::Note),
            ([Verdict::Unknown, Verdict::Note], Verdict::Unknown),
            ([Verdict::Wrong, Verdict::Unknown], Verdict::Wrong),
        ] {
            let mut points = Points::<&str>::default();
            for verdict in verdicts {
                points.add(None, "x", verdict, "", "");
            }
            assert_eq!(points.worst(), worst);
        }
    }
}
