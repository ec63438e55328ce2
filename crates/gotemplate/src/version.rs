//! Semantic versions and what is asked of them, by the rules of Masterminds/semver, which sprig has.

use std::cmp::Ordering;
use std::fmt;

use regex::{Captures, Regex};

/// A version.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Version {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    pub(crate) prerelease: String,
    pub(crate) metadata: String,
    /// As it was written.
    pub(crate) original: String,
}

/// What a version may have after its numbers.
const TAIL: &str = r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";

/// The comparisons of a constraint.
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";

/// A version of a constraint, in which numbers may be left open.
fn open_version() -> String {
    format!(r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?{TAIL}")
}

fn pattern(pattern: &str) -> Result<Regex, String> {
    // The Unicode classes of the crate are not needed for ASCII.
    let ascii = pattern.replace(r"\s", r"[\t\n\f\r ]");
    Regex::new(&ascii).map_err(|error| error.to_string())
}

impl Version {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "Invalid Semantic Version".to_owned();
        let form = pattern(&format!(r"^v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?{TAIL}$"))?;
        let found = form.captures(text).ok_or_else(wrong)?;
        let number = |index: usize| match group(&found, index).trim_start_matches('.') {
            "" => Ok(0),
            digits => digits
                .parse::<u64>()
                .map_err(|error| format!("Error parsing version segment: {error}")),
        };
        let prerelease = group(&found, 5).to_owned();
        let leading_zero =
            |part: &str| part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit());
        if prerelease.split('.').any(leading_zero) {
            return Err("Version segment starts with 0".to_owned());
        }
        Ok(Self {
            major: number(1)?,
            minor: number(2)?,
            patch: number(3)?,
            prerelease,
            metadata: group(&found, 8).to_owned(),
            original: text.to_owned(),
        })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn group<'t>(found: &Captures<'t>, index: usize) -> &'t str {
    found.get(index).map_or("", |group| group.as_str())
}

/// A release comes after what was released before it.
fn compare_prereleases(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut left, mut right) = (a.split('.'), b.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Whether a version fits a constraint.
pub(crate) fn fits(constraint: &str, version: &str) -> Result<bool, String> {
    let alternatives = alternatives(constraint)?;
    let version = Version::parse(version)?;
    Ok(alternatives
        .iter()
        .any(|all| all.iter().all(|constraint| constraint.allows(&version))))
}

/// A comparison with a version.
struct Constraint {
    operator: String,
    version: Version,
    /// Which numbers are left open, all after the first of them too.
    is_open: bool,
    minor_is_open: bool,
    patch_is_open: bool,
}

fn alternatives(text: &str) -> Result<Vec<Vec<Constraint>>, String> {
    let open = open_version();
    let range = pattern(&format!(r"\s*({open})\s+-\s+({open})\s*"))?;
    let mut rewritten = text.to_owned();
    for found in range.captures_iter(text) {
        let between = format!(">= {}, <= {} ", group(&found, 1), group(&found, 11));
        rewritten = rewritten.replacen(group(&found, 0), &between, 1);
    }
    let one = format!(r"({OPERATORS})\s*({open})");
    let valid = pattern(&format!(r"^(\s*{one}\s*)((?:\s+|,\s*){one}\s*)*$"))?;
    let find = pattern(&one)?;
    let mut alternatives = Vec::new();
    for part in rewritten.split("||") {
        if !valid.is_match(part) {
            return Err(format!("improper constraint: {part}"));
        }
        let all = find.captures_iter(part).map(|found| Constraint::of(&found));
        alternatives.push(all.collect::<Result<_, _>>()?);
    }
    Ok(alternatives)
}

impl Constraint {
    /// From its operator and the parts of its version.
    fn of(found: &Captures<'_>) -> Result<Self, String> {
        let part = |index: usize| group(found, index).trim_start_matches('.');
        let is_x = |part: &str| matches!(part, "" | "x" | "X" | "*");
        let (major, minor, patch, tail) = (part(3), part(4), part(5), group(found, 6));
        let (minor_is_open, patch_is_open);
        let version = if is_x(major) {
            (minor_is_open, patch_is_open) = (false, false);
            format!("0.0.0{tail}")
        } else if is_x(minor) {
            (minor_is_open, patch_is_open) = (true, false);
            format!("{major}.0.0{tail}")
        } else if is_x(patch) {
            (minor_is_open, patch_is_open) = (false, true);
            format!("{major}.{minor}.0{tail}")
        } else {
            (minor_is_open, patch_is_open) = (false, false);
            group(found, 2).to_owned()
        };
        Ok(Self {
            operator: group(found, 1).to_owned(),
            version: Version::parse(&version).map_err(|_| "constraint Parser Error".to_owned())?,
            is_open: is_x(major) || minor_is_open || patch_is_open,
            minor_is_open,
            patch_is_open,
        })
    }

    fn allows(&self, version: &Version) -> bool {
        let own = &self.version;
        let skips_prereleases = !version.prerelease.is_empty() && own.prerelease.is_empty();
        if skips_prereleases && (self.operator != "!=" || self.is_open) {
            return false;
        }
        let order = version.compare(own);
        match self.operator.as_str() {
            "!=" => self.differs(version),
            ">" if !self.is_open => order.is_gt(),
            ">" => match version.major.cmp(&own.major) {
                Ordering::Equal if self.minor_is_open => false,
                Ordering::Equal if self.patch_is_open => version.minor > own.minor,
                Ordering::Equal => order.is_gt(),
                major => major.is_gt(),
            },
            "<" => order.is_lt(),
            ">=" | "=>" => order.is_ge(),
            "<=" | "=<" if !self.is_open => order.is_le(),
            "<=" | "=<" => match version.major.cmp(&own.major) {
                Ordering::Equal => version.minor <= own.minor || self.minor_is_open,
                major => major.is_lt(),
            },
            "~" | "~>" => self.allows_patches(version),
            "^" => self.allows_compatible(version),
            _ if self.is_open => self.allows_patches(version),
            _ => order.is_eq(),
        }
    }

    fn differs(&self, version: &Version) -> bool {
        let own = &self.version;
        if !self.is_open {
            return version.compare(own).is_ne();
        }
        if own.major != version.major {
            return true;
        }
        if self.minor_is_open {
            return false;
        }
        if own.minor != version.minor {
            return true;
        }
        if own.patch != version.patch && !self.patch_is_open {
            return true;
        }
        if self.patch_is_open {
            return compare_prereleases(&version.prerelease, &own.prerelease).is_ne();
        }
        version.compare(own).is_ne()
    }

    fn allows_patches(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.compare(own).is_lt() {
            return false;
        }
        let is_zero = own.major == 0 && own.minor == 0 && own.patch == 0;
        if is_zero && !self.minor_is_open && !self.patch_is_open {
            return true;
        }
        own.major == version.major && (own.minor == version.minor || self.minor_is_open)
    }

    fn allows_compatible(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.compare(own).is_lt() {
            return false;
        }
        if own.major > 0 || self.minor_is_open {
            return own.major == version.major;
        }
        if version.major > 0 {
            return false;
        }
        if own.minor > 0 || self.patch_is_open {
            return own.minor == version.minor;
        }
        version.minor == 0 && own.patch == version.patch
    }
}
