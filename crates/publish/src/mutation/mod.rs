//! What a PublishedResource changes on the way: fields deleted, rewritten, or computed.
//!
//! Promises: rules run in their order, each on what the one before has left; all that can be known to be wrong with a rule
//! is said before any object meets it, with its place; whole numbers keep their digits; a rule ends soon and leaves an
//! object of bounded size; nothing here panics.
//!
//! What differs from the Go agent: templates give plain text and have all functions; CEL gives the JSON that it has
//! computed; `\1` in a replacement is a group too.

mod regex;
mod template;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::SystemTime;

use serde_json::Value;

use crate::cel::{Program, Variables};
use crate::kinds::{Mutation, ResourceMutation};
use crate::path::{self, PathError};

use regex::Rewrite;
pub(crate) use regex::Rewrite as Rewriting;
use template::Rendering;

/// The largest object that rules may leave, in bytes: about twice what a server takes.
const LARGEST: usize = 3 << 20;

/// So much of a path is said in an error, in characters.
const LONGEST_PATH_SAID: usize = 200;

/// What is wrong with a rule, or with what it met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// Which one it is, as in the spec: `mutation.spec[1].cel`.
    pub rule: String,
    /// The path that it writes to.
    pub path: String,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, path, why } = self;
        write!(f, "{rule} at {path:?}: {why}")
    }
}

impl std::error::Error for RuleError {}

/// The rules of a PublishedResource, or of a related resource, in both directions.
#[derive(Debug, Default)]
pub struct Rules {
    spec: Vec<Rule>,
    status: Vec<Rule>,
    /// What is wrong with them: then each object fails for it.
    wrong: Option<RuleError>,
}

#[derive(Debug)]
struct Rule {
    name: String,
    path: String,
    what: What,
}

#[derive(Debug)]
enum What {
    Delete,
    Regex(Rewrite),
    Template(Rendering),
    Cel(Program),
}

impl Rules {
    /// Reads all rules. Errors name them from this place on, such as `mutation`.
    pub fn new(mutation: &Mutation, place: &str) -> Result<Self, Vec<RuleError>> {
        let mut errors = Vec::new();
        let mut all = |steps: &[ResourceMutation], part: &str| {
            let with_index = steps.iter().enumerate();
            let rules = with_index.map(|(index, step)| Rule::new(step, &format!("{place}.{part}[{index}]")));
            let rules = rules.filter_map(|rule| rule.map_err(|error| errors.push(error)).ok());
            rules.collect()
        };
        let (spec, status) = (all(&mutation.spec, "spec"), all(&mutation.status, "status"));
        if errors.is_empty() {
            let wrong = None;
            Ok(Self { spec, status, wrong })
        } else {
            Err(errors)
        }
    }

    /// Rules that fail for each object, for this.
    pub(crate) fn broken(why: &str) -> Self {
        let wrong = RuleError {
            rule: "the PublishedResource".to_owned(),
            path: "spec".to_owned(),
            why: why.to_owned(),
        };
        Self {
            wrong: Some(wrong),
            ..Self::default()
        }
    }

    /// Whether there is a rule for statuses.
    pub fn has_status(&self) -> bool {
        !self.status.is_empty() || self.wrong.is_some()
    }

    /// The desired state of an object after its rules. Its copy is the counterpart, or what the copy would be.
    pub fn spec(&self, object: Value, copy: &Value, now: SystemTime) -> Result<Value, RuleError> {
        self.run(&self.spec, object, copy, now)
    }

    /// The status of a copy after the rules for statuses; its object, as the other rules have left it, is the counterpart.
    /// Whatever else these rules change is forgotten.
    pub fn status(&self, copy: &Value, object: &Value, now: SystemTime) -> Result<Option<Value>, RuleError> {
        if !self.has_status() {
            return Ok(copy.get("status").cloned());
        }
        let mut changed = self.run(&self.status, copy.clone(), object, now)?;
        Ok(changed.get_mut("status").map(Value::take))
    }

    fn run(&self, rules: &[Rule], object: Value, other: &Value, now: SystemTime) -> Result<Value, RuleError> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        let mut object = object;
        for rule in rules {
            rule.run(&mut object, other, now).map_err(|why| rule.error(why))?;
        }
        Ok(object)
    }
}

impl Rule {
    fn new(step: &ResourceMutation, place: &str) -> Result<Self, RuleError> {
        let checked = |path: &String| path::check(path).map_err(|error| error.to_string());
        let (kind, path, what) = match step {
            ResourceMutation::Delete { path } => {
                let what = checked(path).and_then(|()| path::check_delete(path));
                ("delete", path, what.map(|()| What::Delete))
            }
            ResourceMutation::Regex {
                path,
                pattern,
                replacement,
            } => ("regex", path, Rewrite::new(pattern, replacement).map(What::Regex)),
            ResourceMutation::Template { path, template } => {
                ("template", path, Rendering::new(template).map(What::Template))
            }
            ResourceMutation::Cel { path, expression } => {
                let program = Program::parse(expression).map_err(|error| error.to_string());
                ("cel", path, program.map(What::Cel))
            }
        };
        let (name, path) = (format!("{place}.{kind}"), path.clone());
        match checked(&path).and(what) {
            Ok(what) => Ok(Self { name, path, what }),
            Err(why) => {
                // One that is too long is said by its beginning.
                let path = path.chars().take(LONGEST_PATH_SAID).collect();
                Err(RuleError { rule: name, path, why })
            }
        }
    }

    fn error(&self, why: String) -> RuleError {
        let (rule, path) = (self.name.clone(), self.path.clone());
        RuleError { rule, path, why }
    }

    fn run(&self, object: &mut Value, other: &Value, now: SystemTime) -> Result<(), String> {
        let wrong = |error: PathError| error.to_string();
        let path = self.path.as_str();
        let value = match &self.what {
            What::Delete => return path::delete(object, path).map_err(wrong),
            What::Regex(rewrite) => {
                let found = path::read(object, path).map_err(wrong)?;
                let text = found.map_or(Ok(String::new()), |found| found.text()).map_err(wrong)?;
                Value::from(rewrite.apply(&text)?)
            }
            What::Template(rendering) => {
                let found = path::read(object, path).map_err(wrong)?;
                Value::from(rendering.render(found.as_ref(), object, other, now)?)
            }
            What::Cel(program) => {
                let found = path::read(object, path).map_err(wrong)?;
                let value = found.map_or(Ok(Value::Null), |found| found.value()).map_err(wrong)?;
                let variables = Variables {
                    this: object,
                    other,
                    value: &value,
                };
                program.run(variables).map_err(|error| error.to_string())?
            }
        };
        path::set(object, path, value).map_err(wrong)?;
        if path::is_deeper(object, path::DEEPEST_OBJECT) {
            let levels = path::DEEPEST_OBJECT;
            return Err(format!("the object becomes nested deeper than {levels} levels"));
        }
        if path::fits(object, LARGEST) {
            return Ok(());
        }
        Err(format!("the object becomes larger than {} MiB", LARGEST >> 20))
    }
}
