//! Functions on semantic versions.

use crate::template::function::{Function, Type};
use crate::template::value::Value;
use crate::version::{self, Version};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", &[Type::Text], |args| {
        args.heap.read(args.text(0).len() * 64 + 8192)?;
        Version::parse(&args.str(0)).map(|version| Value::Version(version.into()))
    }),
    Function::new("semverCompare", &[Type::Text, Type::Text], |args| {
        args.heap
            .read((args.text(0).len() + args.text(1).len()) * 64 + 65_536)?;
        version::fits(&args.str(0), &args.str(1)).map(Value::Bool)
    }),
];
