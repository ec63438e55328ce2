//! Servers' words without what is known to be secret: an API server, a webhook or a policy may quote what it refuses.
//!
//! Promises: of the values of a Secret that was to be written, no eight bytes in a row are in the words that are kept,
//! as they are, in base64 or as a quoted text has them; nor is a shorter value of at least four as a whole. The values of
//! one that is there already, to be changed or deleted, are not known here, so what a webhook or a policy says of it is
//! hidden, and so is an object that a server quotes, since it has what others have written too. All else in the words
//! stays.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request};
use serde_json::Value;

use crate::resource::NOWHERE;

/// Bytes in a row that are hidden wherever they are, since words may hold a part of a value.
const WINDOW: usize = 8;
/// Of a shorter value nothing is hidden: it would be found in any sentence.
const SHORTEST: usize = 4;
/// What stands for what is hidden.
const MASK: &str = "***";
/// The fields that hold the values.
const FIELDS: [&str; 2] = ["data", "stringData"];
/// kubectl keeps the whole object in it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How those who admit objects begin what they say: a webhook, and a policy.
const DENIED: [&str; 2] = ["denied the request: ", "denied request: "];

/// The Secret that a request is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    /// A new one, with the values that are to be written.
    New(Bytes),
    /// The same, over values that are not known.
    Changed(Bytes),
    /// With values that are not known.
    Deleted,
}

impl Secret {
    /// That of a request, if it is about a Secret, or writes what is marked as made of one: it may be of any type then.
    pub(crate) fn of(request: &Request<Bytes>) -> Option<Self> {
        let is_of_secrets = request.uri().path().split('/').any(|part| part == "secrets");
        if request.method() == Method::DELETE {
            return is_of_secrets.then_some(Self::Deleted);
        }
        if request.method() == Method::GET || request.body().is_empty() {
            return None;
        }
        let is_marked = || std::str::from_utf8(request.body()).is_ok_and(|text| text.contains(":\"Secret/"));
        if !is_of_secrets && !is_marked() {
            return None;
        }
        let body = request.body().clone();
        let nowhere = format!("\"resourceVersion\":\"{NOWHERE}\"");
        let is_at = |version: &[u8]| body.windows(version.len()).any(|part| part == version);
        let is_new = request.method() == Method::POST || is_at(nowhere.as_bytes());
        Some(if is_new { Self::New(body) } else { Self::Changed(body) })
    }

    /// A server's words without its values.
    pub(crate) fn hidden_in(&self, words: &str) -> String {
        match self {
            Self::New(written) => without_quoted(&without_values(words, written)),
            Self::Changed(written) => without_denial(&without_quoted(&without_values(words, written))),
            Self::Deleted => without_denial(words),
        }
    }
}

/// The words without what a server finds invalid. It may have been made of a value, though it is none: a type, a label.
fn without_quoted(words: &str) -> String {
    const INVALID: &str = "Invalid value: \"";
    let words = without_objects(words);
    let mut parts = words.split(INVALID);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut is_escaped = false;
        let end = part.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        shown = shown + INVALID + MASK + end.map_or("", |end| &part[end..]);
    }
    shown
}

/// The words without objects in them: a server that refuses a patch quotes the whole that would come of it, and what others
/// have written is not known here.
fn without_objects(words: &str) -> String {
    let starts = ["{\"", "{\\\""].into_iter().filter_map(|start| words.find(start));
    let Some(start) = starts.min() else {
        return words.to_owned();
    };
    let rest = words[start..].rfind('}').map_or("", |end| &words[start + end + 1..]);
    format!("{}{{{MASK}}}{rest}", &words[..start])
}

/// The words as far as the server says them itself.
pub(crate) fn without_denial(words: &str) -> String {
    let ends = DENIED.iter().filter_map(|begin| Some(words.find(begin)? + begin.len()));
    ends.min()
        .map_or_else(|| words.to_owned(), |end| words[..end].to_owned() + MASK)
}

/// The words without the values of the Secret, or the patch of one, that they are about.
pub fn without_values(words: &str, written: &[u8]) -> String {
    let mut values = Vec::new();
    let written: Value = serde_json::from_slice(written).unwrap_or_default();
    match &written {
        Value::Array(steps) => steps.iter().for_each(|step| of_patch(step, &mut values)),
        object => of_object(object, &mut values),
    }
    hide(words, &values)
}

/// The values in one step of a JSON patch.
fn of_patch(step: &Value, values: &mut Vec<String>) {
    let path = step["path"].as_str().unwrap_or_default();
    if FIELDS.contains(&path.split('/').nth(1).unwrap_or_default()) {
        leaves(&step["value"], values);
    }
    if path.starts_with("/metadata/annotations/kubectl") {
        of_last_applied(&step["value"], values);
    }
}

fn of_object(object: &Value, values: &mut Vec<String>) {
    for field in FIELDS {
        leaves(&object[field], values);
    }
    of_last_applied(&object["metadata"]["annotations"][LAST_APPLIED], values);
}

fn of_last_applied(text: &Value, values: &mut Vec<String>) {
    let Some(text) = text.as_str() else { return };
    match serde_json::from_str::<Value>(text) {
        Ok(object) => FIELDS.iter().for_each(|field| leaves(&object[*field], values)),
        Err(_) => values.push(text.to_owned()),
    }
}

fn leaves(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, values)),
        Value::Array(items) => items.iter().for_each(|value| leaves(value, values)),
        Value::String(text) => values.push(text.clone()),
        Value::Number(number) => values.push(number.to_string()),
        Value::Bool(_) | Value::Null => {}
    }
}

/// The forms in which words may quote a value.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![value.as_bytes().to_vec(), STANDARD.encode(value).into_bytes()];
    forms.extend(STANDARD.decode(value));
    let quoted: Vec<Vec<u8>> = forms.iter().filter_map(|form| quoted(form)).collect();
    let in_url: Vec<Vec<u8>> = forms.iter().map(|form| in_url(form)).collect();
    forms.extend(quoted);
    forms.extend(in_url);
    forms
}

/// As between quotes, with what is escaped there.
fn quoted(form: &[u8]) -> Option<Vec<u8>> {
    let text = serde_json::to_string(std::str::from_utf8(form).ok()?).ok()?;
    let inner = text.get(1..text.len() - 1)?;
    (inner.as_bytes() != form).then(|| inner.as_bytes().to_vec())
}

/// As in a URL.
fn in_url(form: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let mut text = Vec::new();
    for byte in form {
        if is_plain(byte) {
            text.push(*byte);
        } else {
            text.extend(format!("%{byte:02x}").bytes());
        }
    }
    text
}

fn hide(words: &str, values: &[String]) -> String {
    // A webhook may quote in small letters.
    let text = &words.as_bytes().to_ascii_lowercase()[..];
    let mut places: Vec<(&[u8], usize)> = text.windows(WINDOW).zip(0..).collect();
    places.sort_unstable();
    let mut hidden = vec![false; text.len()];
    for form in values.iter().flat_map(|value| forms(value)) {
        let form = form.to_ascii_lowercase();
        if form.len() < WINDOW {
            let short = if form.len() < SHORTEST {
                text.len() + 1
            } else {
                form.len()
            };
            for (at, _) in text.windows(short).enumerate().filter(|(_, found)| *found == form) {
                hidden[at..at + short].fill(true);
            }
        }
        for window in form.windows(WINDOW) {
            let first = places.partition_point(|(known, _)| *known < window);
            for (_, at) in places[first..].iter().take_while(|(known, _)| *known == window) {
                hidden[*at..*at + WINDOW].fill(true);
            }
        }
    }
    let mut shown = String::new();
    for (at, c) in words.char_indices() {
        if !hidden[at..at + c.len_utf8()].contains(&true) {
            shown.push(c);
        } else if !shown.ends_with(MASK) {
            shown += MASK;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PIN: &str = "4711";
    const KEY: &str = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n";
    const LOGIN: &str = r#"{"auths":{"r.example":{"user":"bob","pass":"x1y2z3"}}}"#;

    fn covered(words: &str, written: &Value) -> String {
        without_values(words, written.to_string().as_bytes())
    }

    #[test]
    fn no_form_of_a_value_is_left_in_words_whole_or_cut() {
        let data = json!({"pin": STANDARD.encode(PIN), "key": STANDARD.encode(KEY), "login": STANDARD.encode(LOGIN)});
        let texts = json!({"pin": PIN, "key": KEY, "login": LOGIN});
        let last = json!({"metadata": {"annotations": {LAST_APPLIED: json!({"data": data}).to_string()}}});
        let patch = json!([{"op": "add", "path": "/data/pin", "value": STANDARD.encode(PIN)},
            {"op": "add", "path": "/data", "value": data}]);
        let annotation = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
        let annotated = json!([{"op": "add", "path": annotation, "value": json!({"stringData": texts}).to_string()}]);
        for written in [
            json!({"data": data}),
            json!({"stringData": texts}),
            last,
            patch,
            annotated,
        ] {
            for value in [PIN, KEY, LOGIN] {
                let base64 = STANDARD.encode(value);
                let cut = &base64[..base64.len() / 2];
                let mut forms = vec![value.to_owned(), format!("{value:?}"), base64.clone()];
                let of_url = [&base64, value].map(|form| String::from_utf8(in_url(form.as_bytes())).unwrap());
                forms.extend([value.to_ascii_lowercase(), base64.to_ascii_uppercase()]);
                forms.extend(of_url);
                forms.extend((cut.len() >= WINDOW).then(|| cut.to_owned()));
                for form in forms {
                    let words = format!("admission webhook \"x\" denied the request: {form} is weak");
                    let found = covered(&words, &written);
                    let rest = found
                        .strip_prefix("admission webhook \"x\" denied the request: ")
                        .unwrap();
                    let rest = rest.strip_suffix(" is weak").unwrap();
                    for part in ["4711", "MIIEvQ", "BEGIN", "x1y2z3", "bob", "r.example", &base64] {
                        assert!(!rest.contains(part), "{part} in {rest}, of {words}");
                    }
                    assert!(rest.contains(MASK), "{rest} of {words}");
                }
            }
        }
    }

    #[test]
    fn an_object_that_a_server_quotes_is_hidden_with_what_others_have_written() {
        let hidden = |words: &str| Secret::New(Bytes::from_static(b"{\"immutable\":\"yes\"}")).hidden_in(words);
        let object =
            json!({"apiVersion": "v1", "data": {"p": STANDARD.encode("SECRET")}, "immutable": "yes"}).to_string();
        let why = "json: cannot unmarshal string into Go struct field";
        for quoted in [
            object.clone(),
            format!("{object:?}"),
            format!("map[string]interface {{}}{object}"),
        ] {
            let found = hidden(&format!("\"\" is invalid: patch: Invalid value: {quoted}: {why}"));
            assert!(
                found.starts_with("\"\" is invalid: patch: Invalid value: ") && found.ends_with(why),
                "{found}"
            );
            assert!(!found.contains("apiVersion") && found.contains(MASK), "{found}");
        }
        assert_eq!(hidden("cut: {\"data\":{\"p\":\"U0V"), "cut: {***}");
    }

    #[test]
    fn what_is_invalid_of_a_secret_is_not_quoted() {
        let hidden = |words: &str| Secret::New(Bytes::from_static(b"{\"type\":\"x\"}")).hidden_in(words);
        for (words, expected) in [
            (
                "Secret \"a\" is invalid: [type: Invalid value: \"LEAK\\\"ED\": field is immutable, metadata.labels: Invalid \
                 value: \"LEAK=!\": a valid label must be an empty string]",
                "Secret \"a\" is invalid: [type: Invalid value: \"***\": field is immutable, metadata.labels: Invalid \
                 value: \"***\": a valid label must be an empty string]",
            ),
            ("x: Invalid value: \"LEAK", "x: Invalid value: \"***"),
            ("x: Required value", "x: Required value"),
        ] {
            assert_eq!(hidden(words), expected);
        }
    }

    #[test]
    fn all_other_words_stay() {
        let secret = json!({"kind": "Secret", "type": "Opaque", "data": {"a": STANDARD.encode("pass"), "n": "bg=="},
            "metadata": {"name": "login", "annotations": {"note": "seen by all"}}});
        for words in [
            "Secret \"login\" is invalid: type: Invalid value: \"Opaque\": field is immutable",
            "no, seen by all: n",
            "",
            "\u{f6}\u{202e}",
        ] {
            assert_eq!(covered(words, &secret), words);
        }
        assert_eq!(covered("a pass\u{f6}x", &secret), "a ***\u{f6}x");
        assert_eq!(without_values("as it is", b"no JSON"), "as it is");
    }

    #[test]
    fn what_is_about_a_secret_is_so_by_its_path_or_by_what_it_was_made_of() {
        let of = |method: Method, path: &str, body: &'static str| {
            let request = Request::builder().method(method).uri(path);
            Secret::of(&request.body(Bytes::from_static(body.as_bytes())).unwrap())
        };
        let new = |body: &'static str| Some(Secret::New(Bytes::from_static(body.as_bytes())));
        let changed = |body: &'static str| Some(Secret::Changed(Bytes::from_static(body.as_bytes())));
        let nowhere = r#"{"metadata":{"name":"b","resourceVersion":"1"}}"#;
        let made = r#"{"metadata":{"annotations":{"edge.kubestellar.io/renamed-from":"Secret/a"}}}"#;
        let one = "/api/v1/namespaces/a/secrets/b";
        for (method, path, body, expected) in [
            (Method::PATCH, "/api/v1/namespaces/a/secrets/b?x=y", "{}", changed("{}")),
            (Method::PUT, one, "{}", changed("{}")),
            (Method::PATCH, one, nowhere, new(nowhere)),
            (Method::POST, "/clusters/c/api/v1/namespaces/a/secrets", "{}", new("{}")),
            (Method::PATCH, "/api/v1/namespaces/a/configmaps/b", made, changed(made)),
            (Method::PATCH, "/api/v1/namespaces/a/configmaps/secrets-b", "{}", None),
            (Method::GET, one, "", None),
            (Method::DELETE, one, "", Some(Secret::Deleted)),
            (Method::DELETE, one, r#"{"preconditions":{}}"#, Some(Secret::Deleted)),
            (Method::DELETE, "/api/v1/namespaces/a/configmaps/b", "", None),
        ] {
            assert_eq!(of(method, path, body), expected, "{path}");
        }
    }

    #[test]
    fn who_denies_what_is_done_to_a_secret_that_is_there_is_said_and_not_what_that_one_says() {
        for (words, expected) in [
            (
                "admission webhook \"w.example\" denied the request: x1y2z3 denied request: 4711",
                "admission webhook \"w.example\" denied the request: ***",
            ),
            (
                "secrets \"b\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'q' denied request: 4711",
                "secrets \"b\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'q' denied request: ***",
            ),
            (
                "secrets \"b\" is forbidden: User \"u\" cannot delete resource \"secrets\"",
                "secrets \"b\" is forbidden: User \"u\" cannot delete resource \"secrets\"",
            ),
            (
                "admission webhook \"w\" denied the request without explanation",
                "admission webhook \"w\" denied the request without explanation",
            ),
        ] {
            for there in [Secret::Deleted, Secret::Changed(Bytes::from_static(b"{}"))] {
                assert_eq!(there.hidden_in(words), expected);
            }
            assert_eq!(Secret::New(Bytes::from_static(b"{}")).hidden_in(words), words);
        }
    }
}
