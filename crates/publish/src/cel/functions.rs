//! The functions and operators of CEL.

use gotemplate::Pattern;

use super::budget::{Answer, Budget, no_overload};
use super::time::{Moment, checked, parse_duration, seconds};
use super::value::{List, Text, Val, general};

/// A function or an operator.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// How many arguments it takes, its target included.
    takes: std::ops::RangeInclusive<usize>,
    form: Form,
    pub(super) run: for<'c, 'a> fn(&Call<'c, 'a>) -> Answer<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Global,
    Method,
    Either,
}

/// A call with its arguments.
pub(super) struct Call<'c, 'a> {
    pub(super) name: &'static str,
    pub(super) values: &'c [Val<'a>],
    pub(super) budget: &'c Budget,
}

impl<'c, 'a> Call<'c, 'a> {
    pub(super) fn value(&self, index: usize) -> &'c Val<'a> {
        self.values.get(index).unwrap_or(&Val::Null)
    }

    /// Two texts.
    fn texts(&self) -> Result<(&str, &str), String> {
        match (self.value(0), self.value(1)) {
            (Val::Text(first), Val::Text(second)) => Ok((first.as_str(), second.as_str())),
            _ => Err(no_overload()),
        }
    }

    fn made(&self, text: &str) -> Answer<'a> {
        self.budget.room(text.len())?;
        Ok(Val::text(text))
    }
}

type Run = for<'c, 'a> fn(&Call<'c, 'a>) -> Answer<'a>;

const fn operator(name: &'static str, run: Run) -> Function {
    let (takes, form) = (2..=2, Form::Global);
    Function { name, takes, form, run }
}

const fn global(name: &'static str, run: Run) -> Function {
    let (takes, form) = (1..=1, Form::Global);
    Function { name, takes, form, run }
}

const fn text_method(name: &'static str, run: Run) -> Function {
    let (takes, form) = (2..=2, Form::Method);
    Function { name, takes, form, run }
}

const fn of_time(name: &'static str) -> Function {
    let (takes, form) = (1..=2, Form::Method);
    Function {
        name,
        takes,
        form,
        run: part,
    }
}

static FUNCTIONS: &[Function] = &[
    operator("==", |call| Ok(Val::Bool(call.value(0).equals(call.value(1))))),
    operator("!=", |call| Ok(Val::Bool(!call.value(0).equals(call.value(1))))),
    operator("<", compare),
    operator("<=", compare),
    operator(">", compare),
    operator(">=", compare),
    operator("in", contained),
    operator("[]", index),
    operator("+", sum),
    operator("-", difference),
    operator("*", arithmetic),
    operator("/", arithmetic),
    operator("%", arithmetic),
    global("-_", |call| match call.value(0) {
        Val::Int(number) => number
            .checked_neg()
            .map(Val::Int)
            .ok_or_else(|| "integer overflow".to_owned()),
        Val::Double(number) => Ok(Val::Double(-number)),
        Val::Duration(nanoseconds) => nanoseconds
            .checked_neg()
            .map(Val::Duration)
            .ok_or_else(|| "duration overflow".to_owned()),
        _ => Err(no_overload()),
    }),
    global("!", |call| match call.value(0) {
        Val::Bool(value) => Ok(Val::Bool(!value)),
        _ => Err(no_overload()),
    }),
    Function {
        name: "size",
        takes: 1..=1,
        form: Form::Either,
        run: size,
    },
    global("type", |call| Ok(Val::Type(call.value(0).type_name()))),
    global("dyn", |call| Ok(call.value(0).clone())),
    global("int", int),
    global("uint", uint),
    global("double", double),
    global("string", string),
    global("bytes", |call| match call.value(0) {
        Val::Text(text) => {
            call.budget.room(text.as_str().len())?;
            Ok(Val::Bytes(text.as_str().as_bytes().into()))
        }
        bytes @ Val::Bytes(_) => Ok(bytes.clone()),
        _ => Err(no_overload()),
    }),
    global("bool", |call| match call.value(0) {
        Val::Text(text) => match text.as_str() {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Val::Bool(false)),
            _ => Err("type conversion error from 'string' to 'bool'".to_owned()),
        },
        value @ Val::Bool(_) => Ok(value.clone()),
        _ => Err(no_overload()),
    }),
    global("timestamp", |call| match call.value(0) {
        Val::Text(text) => Moment::parse(text.as_str())
            .map(Val::Timestamp)
            .ok_or_else(|| "type conversion error from 'string' to 'timestamp'".to_owned()),
        Val::Int(seconds) => checked(Moment::of_second(*seconds)).map(Val::Timestamp),
        moment @ Val::Timestamp(_) => Ok(moment.clone()),
        _ => Err(no_overload()),
    }),
    global("duration", |call| match call.value(0) {
        Val::Text(text) => parse_duration(text.as_str())
            .map(Val::Duration)
            .ok_or_else(|| "type conversion error from 'string' to 'duration'".to_owned()),
        Val::Int(nanoseconds) => Ok(Val::Duration(*nanoseconds)),
        duration @ Val::Duration(_) => Ok(duration.clone()),
        _ => Err(no_overload()),
    }),
    text_method("contains", |call| {
        call.texts().map(|(text, part)| Val::Bool(text.contains(part)))
    }),
    text_method("startsWith", |call| {
        call.texts().map(|(text, part)| Val::Bool(text.starts_with(part)))
    }),
    text_method("endsWith", |call| {
        call.texts().map(|(text, part)| Val::Bool(text.ends_with(part)))
    }),
    Function {
        name: "matches",
        takes: 2..=2,
        form: Form::Either,
        run: matches,
    },
    of_time("getFullYear"),
    of_time("getMonth"),
    of_time("getDate"),
    of_time("getDayOfMonth"),
    of_time("getDayOfWeek"),
    of_time("getDayOfYear"),
    of_time("getHours"),
    of_time("getMinutes"),
    of_time("getSeconds"),
    of_time("getMilliseconds"),
];

/// The function of this name that takes so many arguments.
pub(super) fn named(name: &str, count: usize, is_method: bool) -> Option<&'static Function> {
    let other = if is_method { Form::Global } else { Form::Method };
    let fits =
        |function: &&Function| function.name == name && function.takes.contains(&count) && function.form != other;
    FUNCTIONS.iter().find(fits)
}

/// A type by its name.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 10] = [
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
    ];
    NAMES.into_iter().find(|known| *known == name)
}

fn compare<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    let (first, second) = (call.value(0), call.value(1));
    let is_number = |value: &Val<'_>| matches!(value, Val::Int(_) | Val::Uint(_) | Val::Double(_));
    let is_ordered = !matches!(first, Val::Null | Val::List(_) | Val::Map(_) | Val::Type(_));
    let same = first.type_name() == second.type_name() || (is_number(first) && is_number(second));
    if !is_ordered || !same {
        return Err(no_overload());
    }
    // What is not a number is neither less nor greater.
    let order = first.compare(second);
    Ok(Val::Bool(order.is_some_and(|order| match call.name {
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })))
}

fn contained<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    let needle = call.value(0);
    match call.value(1) {
        Val::List(items) => Ok(Val::Bool(items.iter().any(|item| item.equals(needle)))),
        Val::Map(map) => Ok(Val::Bool(map.get(needle).is_some())),
        _ => Err(no_overload()),
    }
}

fn index<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    match (call.value(0), call.value(1)) {
        (Val::List(items), key) => {
            let index = match key {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole, and checked below")]
                Val::Double(number) if number.fract() == 0.0 => Some(*number as i128),
                key => key.whole(),
            };
            let index = index.ok_or_else(|| format!("unsupported index type '{}' in list", key.type_name()))?;
            let found = usize::try_from(index).ok().and_then(|index| items.get(index));
            found.ok_or_else(|| format!("index out of bounds: {index}"))
        }
        (Val::Map(map), key) => map.get(key).ok_or_else(|| match key {
            Val::Text(key) => format!("no such key: {}", key.as_str()),
            _ => "no such key".to_owned(),
        }),
        _ => Err(no_overload()),
    }
}

fn sum<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    match (call.value(0), call.value(1)) {
        (Val::Text(first), Val::Text(second)) => {
            call.budget.room(first.as_str().len() + second.as_str().len())?;
            Ok(Val::Text(Text::from(format!("{}{}", first.as_str(), second.as_str()))))
        }
        (Val::Bytes(first), Val::Bytes(second)) => {
            call.budget.room(first.len() + second.len())?;
            Ok(Val::Bytes([first.as_ref(), second.as_ref()].concat().into()))
        }
        (Val::List(first), Val::List(second)) => {
            call.budget.elements(first.len() + second.len())?;
            let items: Vec<_> = first.iter().chain(second.iter()).collect();
            Ok(Val::List(List::Made(items.into())))
        }
        (Val::Timestamp(moment), Val::Duration(duration)) | (Val::Duration(duration), Val::Timestamp(moment)) => {
            checked(moment.later(*duration)).map(Val::Timestamp)
        }
        (Val::Duration(first), Val::Duration(second)) => first
            .checked_add(*second)
            .map(Val::Duration)
            .ok_or_else(|| "duration overflow".to_owned()),
        _ => arithmetic(call),
    }
}

fn difference<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    match (call.value(0), call.value(1)) {
        (Val::Timestamp(moment), Val::Duration(duration)) => {
            let back = duration.checked_neg().ok_or_else(|| "duration overflow".to_owned())?;
            checked(moment.later(back)).map(Val::Timestamp)
        }
        (Val::Timestamp(first), Val::Timestamp(second)) => {
            let between = first.at.as_nanosecond() - second.at.as_nanosecond();
            i64::try_from(between)
                .map(Val::Duration)
                .map_err(|_| "duration overflow".to_owned())
        }
        (Val::Duration(first), Val::Duration(second)) => first
            .checked_sub(*second)
            .map(Val::Duration)
            .ok_or_else(|| "duration overflow".to_owned()),
        _ => arithmetic(call),
    }
}

/// Numbers of one type, or of several: whole ones stay whole, all others become doubles.
fn arithmetic<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    let (first, second) = (call.value(0), call.value(1));
    let (Some(left), Some(right)) = (first.whole(), second.whole()) else {
        let (left, right) = (as_double(first)?, as_double(second)?);
        return Ok(Val::Double(match call.name {
            "+" => left + right,
            "-" => left - right,
            "*" => left * right,
            "/" => left / right,
            _ => return Err(no_overload()),
        }));
    };
    let result = match call.name {
        "+" => left + right,
        "-" => left - right,
        "*" => left.saturating_mul(right),
        "/" if right == 0 => return Err("division by zero".to_owned()),
        "/" => left / right,
        _ if right == 0 => return Err("modulus by zero".to_owned()),
        _ => left % right,
    };
    if matches!((first, second), (Val::Uint(_), Val::Uint(_))) {
        return u64::try_from(result)
            .map(Val::Uint)
            .map_err(|_| "unsigned integer overflow".to_owned());
    }
    i64::try_from(result)
        .map(Val::Int)
        .map_err(|_| "integer overflow".to_owned())
}

#[expect(clippy::cast_precision_loss, reason = "that is what a double is")]
fn as_double(value: &Val<'_>) -> Result<f64, String> {
    match value {
        Val::Double(number) => Ok(*number),
        other => other.whole().map(|number| number as f64).ok_or_else(no_overload),
    }
}

fn size<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    let size = match call.value(0) {
        Val::Text(text) => text.as_str().chars().count(),
        Val::Bytes(bytes) => bytes.len(),
        Val::List(items) => items.len(),
        Val::Map(map) => map.len(),
        _ => return Err(no_overload()),
    };
    Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn int<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    const RANGE: &str = "integer overflow";
    match call.value(0) {
        #[expect(clippy::cast_possible_truncation, reason = "it is checked to be in range")]
        Val::Double(number) if number.abs() < 9.223_372_036_854_775e18 => Ok(Val::Int(*number as i64)),
        Val::Double(_) => Err(RANGE.to_owned()),
        Val::Text(text) => {
            let number = text.as_str().parse().map(Val::Int);
            number.map_err(|_| "type conversion error from 'string' to 'int'".to_owned())
        }
        Val::Timestamp(moment) => Ok(Val::Int(moment.at.as_second())),
        Val::Duration(nanoseconds) => Ok(Val::Int(*nanoseconds)),
        other => {
            let number = i64::try_from(other.whole().ok_or_else(no_overload)?);
            number.map(Val::Int).map_err(|_| RANGE.to_owned())
        }
    }
}

fn uint<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    const RANGE: &str = "unsigned integer overflow";
    match call.value(0) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is checked to be in range"
        )]
        Val::Double(number) if (0.0..1.844_674_407_370_955e19).contains(number) => Ok(Val::Uint(*number as u64)),
        Val::Double(_) => Err(RANGE.to_owned()),
        Val::Text(text) => {
            let number = text.as_str().parse().map(Val::Uint);
            number.map_err(|_| "type conversion error from 'string' to 'uint'".to_owned())
        }
        other => {
            let number = u64::try_from(other.whole().ok_or_else(no_overload)?);
            number.map(Val::Uint).map_err(|_| RANGE.to_owned())
        }
    }
}

fn double<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    match call.value(0) {
        Val::Text(text) => {
            let number = text.as_str().parse().map(Val::Double);
            number.map_err(|_| "type conversion error from 'string' to 'double'".to_owned())
        }
        other => as_double(other).map(Val::Double),
    }
}

fn string<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    match call.value(0) {
        text @ Val::Text(_) => Ok(text.clone()),
        Val::Bool(value) => call.made(if *value { "true" } else { "false" }),
        Val::Double(number) => call.made(&general(*number)),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => call.made(text),
            Err(_) => Err("invalid UTF-8 in bytes, cannot convert to string".to_owned()),
        },
        Val::Timestamp(moment) => call.made(&moment.to_string()),
        Val::Duration(nanoseconds) => call.made(&seconds(*nanoseconds)),
        other => call.made(&other.whole().ok_or_else(no_overload)?.to_string()),
    }
}

fn matches<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    let (text, pattern) = call.texts()?;
    // A pattern may come from an object. What compiling and searching costs:
    call.budget.work((pattern.len() + 64) * 8)?;
    call.budget
        .read(text.len().saturating_mul(pattern.len().clamp(4, 64) * 2))?;
    Pattern::new(pattern).map(|pattern| Val::Bool(pattern.is_match(text)))
}

/// A part of a timestamp, in a time zone, or of a duration.
fn part<'a>(call: &Call<'_, 'a>) -> Answer<'a> {
    let number = match (call.value(0), call.values.get(1)) {
        (Val::Duration(nanoseconds), None) => match call.name {
            "getHours" => nanoseconds / 3_600_000_000_000,
            "getMinutes" => nanoseconds / 60_000_000_000,
            "getSeconds" => nanoseconds / 1_000_000_000,
            "getMilliseconds" => nanoseconds / 1_000_000,
            _ => return Err(no_overload()),
        },
        (Val::Timestamp(moment), None) => moment.part(call.name, None)?,
        (Val::Timestamp(moment), Some(Val::Text(zone))) => moment.part(call.name, Some(zone.as_str()))?,
        _ => return Err(no_overload()),
    };
    Ok(Val::Int(number))
}
