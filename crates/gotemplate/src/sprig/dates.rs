//! Functions on times. Where sprig takes the machine's zone, this takes UTC: what a template renders does not depend on
//! where it is rendered.

use super::cast;
use crate::moment::{Moment, duration, read};
use crate::template::function::{Answer, Args, Function, Type};
use crate::template::value::{IntKind, Value};

const ANY: &[Type] = &[Type::Any];
const TEXT_ANY: &[Type] = &[Type::Text, Type::Any];
const IN_ZONE: &[Type] = &[Type::Text, Type::Any, Type::Text];
const TEXT_TIME: &[Type] = &[Type::Text, Type::Time];
const TEXTS: &[Type] = &[Type::Text, Type::Text];
const DAY: &str = "2006-01-02";

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("now", &[], |args| Ok(time(now(args)))),
    Function::new("date", TEXT_ANY, |args| date(args, &args.str(0), 1, "UTC")),
    Function::new("dateInZone", IN_ZONE, |args| date(args, &args.str(0), 1, &args.str(2))),
    Function::new("date_in_zone", IN_ZONE, |args| {
        date(args, &args.str(0), 1, &args.str(2))
    }),
    Function::new("htmlDate", ANY, |args| date(args, DAY, 0, "UTC")),
    Function::new("htmlDateInZone", &[Type::Any, Type::Text], |args| {
        date(args, DAY, 0, &args.str(1))
    }),
    Function::new("dateModify", TEXT_TIME, modified),
    Function::new("date_modify", TEXT_TIME, modified),
    Function::new("mustDateModify", TEXT_TIME, must_modified),
    Function::new("must_date_modify", TEXT_TIME, must_modified),
    Function::new("toDate", TEXTS, |args| {
        Ok(time(
            read(&args.str(0), &args.str(1)).unwrap_or_else(|_| Moment::zero()),
        ))
    }),
    Function::new("mustToDate", TEXTS, |args| read(&args.str(0), &args.str(1)).map(time)),
    Function::new("unixEpoch", &[Type::Time], |args| {
        args.heap.text(moment(args, 0).unix().to_string())
    }),
    Function::new("ago", ANY, ago),
    Function::new("duration", ANY, |args| {
        args.heap.text(duration::written(seconds(args.value(0))))
    }),
    Function::new("durationRound", ANY, rounded),
];

fn now(args: &Args<'_>) -> Moment {
    Moment::of(args.heap.now())
}

fn time(moment: Moment) -> Value {
    Value::Time(moment.into())
}

/// A time, or the number of seconds since 1970; for anything else, now.
fn moment(args: &Args<'_>, index: usize) -> Moment {
    match args.value(index) {
        Value::Time(moment) => (**moment).clone(),
        Value::Int(IntKind::Int | IntKind::Int64, seconds) => Moment::at(*seconds, 0),
        _ => now(args),
    }
}

fn date(args: &Args<'_>, layout: &str, index: usize, zone: &str) -> Answer {
    args.heap.text(moment(args, index).within(zone).format(layout))
}

fn must_modified(args: &Args<'_>) -> Answer {
    let nanos = duration::read(&args.str(0))?;
    Ok(time(moment(args, 1).plus(nanos)))
}

fn modified(args: &Args<'_>) -> Answer {
    Ok(must_modified(args).unwrap_or_else(|_| args.value(1).clone()))
}

fn ago(args: &Args<'_>) -> Answer {
    let nanos = now(args).since(&moment(args, 0));
    let second = 1_000_000_000;
    let half = if nanos < 0 { -second / 2 } else { second / 2 };
    let whole = nanos.saturating_add(half) / second * second;
    args.heap.text(duration::written(whole))
}

/// Seconds, as nanoseconds. Only a text or a 64-bit integer has any, as in sprig.
fn seconds(value: &Value) -> i64 {
    let seconds = match value {
        Value::Text(text) => cast::decimal(&String::from_utf8_lossy(text)),
        Value::Int(IntKind::Int64, seconds) => *seconds,
        _ => 0,
    };
    seconds.wrapping_mul(1_000_000_000)
}

fn rounded(args: &Args<'_>) -> Answer {
    let nanos = match args.value(0) {
        Value::Text(text) => duration::read(&String::from_utf8_lossy(text)).unwrap_or(0),
        Value::Int(IntKind::Int64, nanos) => *nanos,
        Value::Time(moment) => now(args).since(moment),
        _ => 0,
    };
    args.heap.text(duration::rounded(nanos))
}
