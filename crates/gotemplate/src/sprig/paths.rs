//! Functions on paths, which have slashes whatever the machine has.

use crate::template::function::{Answer, Args, Function, Type};
use crate::template::value::Value;

const TEXT: &[Type] = &[Type::Text];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base", TEXT, base),
    Function::new("osBase", TEXT, base),
    Function::new("dir", TEXT, dir),
    Function::new("osDir", TEXT, dir),
    Function::new("clean", TEXT, |args| args.heap.text(clean(args.text(0)))),
    Function::new("osClean", TEXT, |args| args.heap.text(clean(args.text(0)))),
    Function::new("ext", TEXT, ext),
    Function::new("osExt", TEXT, ext),
    Function::new("isAbs", TEXT, is_absolute),
    Function::new("osIsAbs", TEXT, is_absolute),
];

fn base(args: &Args<'_>) -> Answer {
    let path = args.text(0);
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let trimmed = &path[..end];
    let name = trimmed.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    args.heap.text(match (path, name) {
        ([], _) => b".",
        (_, []) => b"/",
        (_, name) => name,
    })
}

fn dir(args: &Args<'_>) -> Answer {
    let path = args.text(0);
    let length = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    args.heap.text(clean(&path[..length]))
}

fn ext(args: &Args<'_>) -> Answer {
    let path = args.text(0);
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let dot = name.iter().rposition(|byte| *byte == b'.');
    args.heap.text(dot.map_or(&b""[..], |dot| &name[dot..]))
}

fn is_absolute(args: &Args<'_>) -> Answer {
    Ok(Value::Bool(args.text(0).starts_with(b"/")))
}

/// The shortest path of the same place.
fn clean(path: &[u8]) -> Vec<u8> {
    let is_absolute = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => match parts.last() {
                Some(&last) if last != b".." => {
                    parts.pop();
                }
                _ if is_absolute => {}
                _ => parts.push(part),
            },
            _ => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    match (is_absolute, joined.is_empty()) {
        (true, _) => [b"/", joined.as_slice()].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}
