//! Label selectors as objects have them: `matchLabels` and `matchExpressions`.

use std::collections::BTreeMap;

use kube_lite::selector::{check_key, check_value};
use serde_json::{Map, Value};

use crate::fields::Fields;

/// Which objects are meant. An empty one means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// Labels that an object must have.
    pub labels: BTreeMap<String, String>,
    /// What else must be true of its labels.
    pub expressions: Vec<Expression>,
}

/// A condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The key of the label.
    pub key: String,
    /// What must be true of it.
    pub operator: Operator,
    /// The values that it is compared with.
    pub values: Vec<String>,
}

/// What must be true of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// It has one of the values.
    In,
    /// It is not there, or has another value.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}

impl Operator {
    const ALL: [(&str, Self); 4] = [
        ("In", Self::In),
        ("NotIn", Self::NotIn),
        ("Exists", Self::Exists),
        ("DoesNotExist", Self::DoesNotExist),
    ];

    fn needs_values(self) -> bool {
        matches!(self, Self::In | Self::NotIn)
    }
}

impl Selector {
    /// Reads a selector.
    pub(crate) fn read(fields: &Fields<'_>) -> Self {
        let found = Self::read_templates(fields);
        for (key, value) in &found.labels {
            check(fields, "matchLabels", key, Some(value));
        }
        found
    }

    /// Reads a selector whose `matchLabels` may be templates.
    pub(crate) fn read_templates(fields: &Fields<'_>) -> Self {
        Self {
            labels: fields.text_map("matchLabels"),
            expressions: fields.list("matchExpressions").iter().filter_map(expression).collect(),
        }
    }

    /// Whether all objects are meant.
    pub(crate) fn is_of_all(&self) -> bool {
        self.labels.is_empty() && self.expressions.is_empty()
    }

    /// What is wrong with its labels once templates in them are rendered.
    pub fn check(&self) -> Result<(), String> {
        self.labels
            .iter()
            .try_for_each(|(key, value)| check_key(key).and_then(|()| check_value(value)))
    }

    /// Whether an object with these labels is meant.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.holds(|key| labels?.get(key)?.as_str())
    }

    /// The same, with what finds the value of a label.
    pub fn holds<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let has_labels = self
            .labels
            .iter()
            .all(|(key, value)| label(key) == Some(value.as_str()));
        has_labels
            && self.expressions.iter().all(|expression| {
                let found = label(&expression.key);
                let is_listed = found.is_some_and(|found| expression.values.iter().any(|value| value == found));
                match expression.operator {
                    Operator::In => is_listed,
                    Operator::NotIn => !is_listed,
                    Operator::Exists => found.is_some(),
                    Operator::DoesNotExist => found.is_none(),
                }
            })
    }
}

impl std::fmt::Display for Selector {
    /// As a request has it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let expressions = self.expressions.iter().map(|Expression { key, operator, values }| {
            let values = values.join(",");
            match operator {
                Operator::In => format!("{key} in ({values})"),
                Operator::NotIn => format!("{key} notin ({values})"),
                Operator::Exists => key.clone(),
                Operator::DoesNotExist => format!("!{key}"),
            }
        });
        f.write_str(&labels.chain(expressions).collect::<Vec<_>>().join(","))
    }
}

fn check(fields: &Fields<'_>, at: &str, key: &str, value: Option<&String>) {
    let found = check_key(key).and_then(|()| value.map_or(Ok(()), |value| check_value(value)));
    if let Err(why) = found {
        fields.error(at, &why);
    }
}

fn expression(fields: &Fields<'_>) -> Option<Expression> {
    let key = fields.required("key", true);
    if !key.is_empty() {
        check(fields, "key", &key, None);
    }
    let name = fields.required("operator", true);
    let operator = Operator::ALL.into_iter().find(|(known, _)| *known == name);
    let Some((_, operator)) = operator else {
        fields.error(
            "operator",
            &format!("{name:?} must be In, NotIn, Exists or DoesNotExist"),
        );
        return None;
    };
    let values = fields.texts("values").unwrap_or_default();
    match (operator.needs_values(), values.is_empty()) {
        (true, true) => fields.error("values", &format!("must not be empty with {name}")),
        (false, false) => fields.error("values", &format!("must be empty with {name}")),
        _ => {}
    }
    for why in values.iter().filter_map(|value| check_value(value).err()) {
        fields.error("values", &why);
    }
    Some(Expression { key, operator, values })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::Errors;

    fn read(selector: &Value) -> Result<Selector, Vec<String>> {
        let errors = Errors::default();
        let found = Selector::read(&Fields::new("s", selector, &errors));
        let errors = errors.into_list();
        if errors.is_empty() { Ok(found) } else { Err(errors) }
    }

    #[test]
    fn labels_match_by_the_rules_of_kubernetes() {
        let labels = json!({"a": "1", "b": ""});
        let with = |expression: Value| json!({"matchExpressions": [expression]});
        for (selector, expected, text) in [
            (json!({}), true, ""),
            (json!({"matchLabels": {"a": "1"}}), true, "a=1"),
            (json!({"matchLabels": {"a": "1", "c": "2"}}), false, "a=1,c=2"),
            (json!({"matchLabels": {"b": ""}}), true, "b="),
            (json!({"matchLabels": {"c": ""}}), false, "c="),
            (
                with(json!({"key": "a", "operator": "In", "values": ["0", "1"]})),
                true,
                "a in (0,1)",
            ),
            (
                with(json!({"key": "c", "operator": "In", "values": ["0"]})),
                false,
                "c in (0)",
            ),
            (
                with(json!({"key": "a", "operator": "NotIn", "values": ["1"]})),
                false,
                "a notin (1)",
            ),
            (
                with(json!({"key": "c", "operator": "NotIn", "values": ["1"]})),
                true,
                "c notin (1)",
            ),
            (with(json!({"key": "b", "operator": "Exists"})), true, "b"),
            (with(json!({"key": "b", "operator": "DoesNotExist"})), false, "!b"),
        ] {
            let found = read(&selector).unwrap();
            assert_eq!(found.matches(labels.as_object()), expected, "{selector}");
            assert_eq!(found.to_string(), text);
        }
        assert!(read(&json!({})).unwrap().matches(None));
        assert!(!read(&json!({"matchLabels": {"a": "1"}})).unwrap().matches(None));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let selector = json!({
            "matchLabels": {"-a": "1", "b": "x y"},
            "matchExpressions": [
                {"key": "a", "operator": "in"},
                {"key": "a", "operator": "In", "values": []},
                {"key": "a", "operator": "Exists", "values": ["x"]},
                {"operator": "Exists"},
            ],
        });
        let expected = [
            "s.matchExpressions[0].operator: \"in\" must be In, NotIn, Exists or DoesNotExist",
            "s.matchExpressions[1].values: must not be empty with In",
            "s.matchExpressions[2].values: must be empty with Exists",
            "s.matchExpressions[3].key: is missing",
            "s.matchLabels: \"-a\" is no key of a label",
            "s.matchLabels: \"x y\" is no value of a label",
        ];
        assert_eq!(read(&selector).unwrap_err(), expected);
    }
}
