//! Restarts of pods: people ask for one by an annotation of the pod template (`kubectl rollout restart`) or a field of the
//! spec (Argo Rollouts), at the hub or at the edge. It is an operation, no content: the later one counts, wherever it was
//! asked for, and an earlier one must not be applied over it, which would restart the pods once more. One that we have
//! applied is the origin's own, which may set it back.

use kube_lite::since_1970_of;
use serde_json::Value;

use super::managed_fields::{RESTARTS, restarts_of_others};
use super::object::Desired;

impl Desired {
    /// True if it may ask for a restart.
    pub(super) fn restarts_pods(&self) -> bool {
        RESTARTS.iter().any(|name| self.fields.contains(&format!("{name:?}")))
    }

    /// The same without the restarts that are earlier than those that others have asked for in the copy; `None` if none is.
    pub(super) fn without_earlier_restarts(&self, copy: &[u8]) -> Option<Self> {
        let mut wanted = self.contents()?;
        let names = restarts_of_others(copy);
        let copy: Value = serde_json::from_slice(copy).ok()?;
        let mut is_any = false;
        leave_out_earlier(wanted.get_mut("spec")?, copy.get("spec")?, &names, &mut is_any);
        is_any.then(|| self.with_contents(&wanted))
    }
}

fn leave_out_earlier(wanted: &mut Value, found: &Value, names: &[&str], is_any: &mut bool) {
    let Value::Object(fields) = wanted else { return };
    for &name in names {
        let time = |value: Option<&Value>| value.and_then(Value::as_str).and_then(seconds);
        let times = time(fields.get(name)).zip(time(found.get(name)));
        if times.is_some_and(|(wanted, found)| wanted < found) {
            fields.remove(name);
            *is_any = true;
        }
    }
    for (name, value) in fields {
        if let Some(found) = found.get(name) {
            leave_out_earlier(value, found, names, is_any);
        }
    }
}

/// A time as kubectl writes it (RFC 3339, with the offset of where it ran), in seconds since 1970.
fn seconds(text: &str) -> Option<i64> {
    let (time, zone) = text.split_at_checked(19)?;
    let at = i64::try_from(since_1970_of(&format!("{time}Z"))?).ok()?;
    let zone = zone.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    if zone == "Z" {
        return Some(at);
    }
    let (sign, offset) = zone.split_at_checked(1)?;
    let (hours, minutes) = offset.split_once(':')?;
    let offset = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60;
    match sign {
        "+" => Some(at - offset),
        "-" => Some(at + offset),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use kube_lite::{ObjectName, ResourceType};

    use super::*;
    use crate::api::FIELD_MANAGER;
    use crate::plan::{Direction, Selection};
    use crate::sync::meta::Object;
    use crate::sync::object::Address;

    #[test]
    fn times_are_compared_wherever_they_were_written() {
        for (text, expected) in [
            ("1970-01-01T00:00:10Z", Some(10)),
            ("1970-01-01T02:00:10+02:00", Some(10)),
            ("1970-01-01T00:00:10.5Z", Some(10)),
            ("1970-01-02T00:00:00-01:30", Some(86_400 + 5_400)),
            ("now", None),
            ("1970-01-01T00:00:10", None),
            ("1970-01-01T00:00:10*00:00", None),
            ("1970-01-01T00:00:10+ä", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn an_earlier_restart_is_not_applied_over_a_later_one() {
        let workload = |name: &str, at: Option<&str>| {
            let mut spec = json!({"replicas": 2, "template": {"metadata": {"annotations": {"x": "1"}}}});
            if let Some(at) = at {
                let place = match name {
                    "restartAt" => &mut spec,
                    _ => &mut spec["template"]["metadata"]["annotations"],
                };
                place[name] = json!(at);
            }
            json!({"metadata": {"namespace": "shop", "name": "a"}, "spec": spec})
        };
        let by = |manager: &str, mut object: Value| {
            let of_spec = json!({"f:restartAt": {},
                "f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}});
            object["metadata"]["managedFields"] =
                json!([{"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": of_spec}}]);
            object.to_string()
        };
        let address = Address {
            resource: ResourceType::config_maps(),
            name: ObjectName::new("shop", "a"),
        };
        let (early, late) = ("2026-11-01T10:00:00Z", "2026-11-01T13:00:00+02:00");
        for (wanted, found, is_left_out) in [
            (Some(early), Some(late), true),
            (Some(late), Some(early), false),
            (Some(early), Some(early), false),
            (Some(early), None, false),
            (None, Some(late), false),
            (Some("when?"), Some(late), false),
        ] {
            for name in RESTARTS {
                let origin = Bytes::from(workload(name, wanted).to_string());
                let origin = Object::parse(origin).unwrap();
                let desired = Desired::from_origin(Direction::Down, &address, &address, Selection::Full, &origin);
                let desired = desired.unwrap().unwrap();
                assert_eq!(desired.restarts_pods(), wanted.is_some());
                let ours = by(FIELD_MANAGER, workload(name, found));
                assert!(
                    desired.without_earlier_restarts(ours.as_bytes()).is_none(),
                    "the origin sets it back"
                );
                let without = desired.without_earlier_restarts(by("kubectl", workload(name, found)).as_bytes());
                assert_eq!(without.is_some(), is_left_out, "{wanted:?} {found:?}");
                if let Some(without) = without {
                    let spec = without.fields.strip_prefix(",\"spec\":").unwrap();
                    let spec: Value = serde_json::from_str(spec).unwrap();
                    assert_eq!(spec, workload(name, None)["spec"]);
                    assert_eq!(without.hash, desired.hash, "what the hub wants is the same");
                }
            }
        }
    }
}
