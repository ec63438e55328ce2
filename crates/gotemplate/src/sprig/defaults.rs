//! Functions on any value: what is missing, and of which type it is.

use crate::template::function::{Answer, Args, Function, Type};
use crate::template::value::Value;

const ANY: &[Type] = &[Type::Any];
const TEXT_ANY: &[Type] = &[Type::Text, Type::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::with_more("default", ANY, Type::Any, |args| {
        let given = args.value(1);
        Ok(if given.is_empty() {
            args.value(0).clone()
        } else {
            given.clone()
        })
    }),
    Function::new("empty", ANY, |args| Ok(Value::Bool(args.value(0).is_empty()))),
    Function::with_more("coalesce", &[], Type::Any, |args| {
        let found = args.all().iter().find(|value| !value.is_empty());
        Ok(found.cloned().unwrap_or(Value::Nil))
    }),
    Function::with_more("all", &[], Type::Any, |args| {
        Ok(Value::Bool(!args.all().iter().any(Value::is_empty)))
    }),
    Function::with_more("any", &[], Type::Any, |args| {
        Ok(Value::Bool(args.all().iter().any(|value| !value.is_empty())))
    }),
    Function::new("ternary", &[Type::Any, Type::Any, Type::Bool], |args| {
        Ok(args.value(usize::from(!args.bool(2))).clone())
    }),
    Function::new("fail", &[Type::Text], |args| Err(args.str(0).into_owned())),
    Function::new("typeOf", ANY, |args| args.heap.text(args.value(0).type_name())),
    Function::new("typeIs", TEXT_ANY, |args| {
        Ok(Value::Bool(args.text(0) == args.value(1).type_name().as_bytes()))
    }),
    Function::new("typeIsLike", TEXT_ANY, is_like),
    Function::new("kindOf", ANY, |args| args.heap.text(args.value(0).kind_name())),
    Function::new("kindIs", TEXT_ANY, |args| {
        Ok(Value::Bool(args.text(0) == args.value(1).kind_name().as_bytes()))
    }),
    Function::new("deepEqual", &[Type::Any, Type::Any], |args| {
        args.value(0).equals(args.value(1), args.heap).map(Value::Bool)
    }),
];

fn is_like(args: &Args<'_>) -> Answer {
    let (wanted, name) = (args.str(0), args.value(1).type_name());
    Ok(Value::Bool(wanted == name || format!("*{wanted}") == name))
}
