//! What templates of kcp's api-syncagent have beside sprig's functions: short hashes, of which names are made.

use ring::digest;
use sha3::{Digest as _, Sha3_256};

use super::encoding::hex;
use crate::template::function::{Answer, Args, Function, Type};

const TEXT: &[Type] = &[Type::Text];

/// How many characters a short hash has.
const SHORT: usize = 20;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("sha3sum", TEXT, |args| args.heap.text(sha3(args.text(0)))),
    Function::with_more("sha3short", TEXT, Type::Int, sha3_short),
    Function::new("shortHash", &[Type::Any], |args| match args.value(0) {
        crate::template::value::Value::Text(text) => {
            let hash = hex(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text).as_ref());
            args.heap.text(&hash[..SHORT])
        }
        other => Err(format!("needs a text, not {}", other.type_name())),
    }),
];

fn sha3(text: &[u8]) -> String {
    hex(Sha3_256::digest(text).as_slice())
}

fn sha3_short(args: &Args<'_>) -> Answer {
    let length = match args.all().len() {
        1 => SHORT,
        2 => usize::try_from(args.int(1))
            .ok()
            .filter(|length| *length > 0)
            .ok_or_else(|| format!("sha3short: invalid length {}", args.int(1)))?,
        count => {
            return Err(format!(
                "sha3short: expected at most one length argument, got {}",
                count - 1
            ));
        }
    };
    let hash = sha3(args.text(0));
    args.heap.text(&hash[..length.min(hash.len())])
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::json;

    use crate::{Data, SYNCAGENT, Template};

    fn check(text: &str) -> Result<String, String> {
        let data = Data::new("data").with("Object", json!({"metadata": {"name": "web"}}));
        let template = Template::parse("t", text, &SYNCAGENT).map_err(|error| error.message)?;
        let rendered = template.render(&data, SystemTime::UNIX_EPOCH);
        rendered.map_err(|error| error.message)
    }

    #[test]
    fn hashes_are_those_of_the_go_agent() {
        for (text, expected) in [
            ("{{ sha3short \"shop\" }}", "f39597dce3aed80bee3d"),
            ("{{ .Object.metadata.name | sha3short }}", "6a31816d04deed5f5bcd"),
            ("{{ sha3short \"web\" 4 }}", "6a31"),
            ("{{ len (sha3short \"web\" 100) }} {{ len (sha3sum \"web\") }}", "64 64"),
            ("{{ shortHash \"web\" }}", "ca84d1343b96baa8137c"),
        ] {
            assert_eq!(check(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_hash_is_an_error() {
        for (text, expected) in [
            (
                "{{ sha3short \"web\" 0 }}",
                "executing \"t\" at <sha3short \"web\" 0>: error calling sha3short: sha3short: invalid length 0",
            ),
            (
                "{{ sha3short \"web\" 1 2 }}",
                "executing \"t\" at <sha3short \"web\" 1 2>: error calling sha3short: sha3short: expected at most one length argument, got 2",
            ),
            (
                "{{ .Object.metadata.namespace | sha3short }}",
                "executing \"t\" at <sha3short>: invalid value; expected string",
            ),
        ] {
            assert_eq!(check(text), Err(expected.to_owned()), "{text}");
        }
    }
}
