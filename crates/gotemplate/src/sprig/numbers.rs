//! Functions on numbers. What is no number counts as 0, as in sprig.

use super::cast;
use crate::template::function::{Answer, Args, Function, Type};
use crate::template::print;
use crate::template::value::{Of, Value};

const ANY: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("int", ANY, |args| Ok(Value::int(cast::int(args.value(0))))),
    Function::new("int64", ANY, |args| Ok(Value::int64(cast::int(args.value(0))))),
    Function::new("float64", ANY, |args| Ok(Value::Float(cast::float(args.value(0))))),
    Function::new("atoi", &[Type::Text], |args| {
        Ok(Value::int(cast::decimal(&args.str(0))))
    }),
    Function::new("toDecimal", ANY, to_decimal),
    Function::with_more("add", &[], Type::Any, |args| folded(args.all(), 0, i64::wrapping_add)),
    Function::new("add1", ANY, |args| folded(args.all(), 1, i64::wrapping_add)),
    Function::new("sub", TWO, |args| of_two(args, |a, b| Ok(a.wrapping_sub(b)))),
    Function::with_more("mul", ANY, Type::Any, |args| folded(args.all(), 1, i64::wrapping_mul)),
    Function::new("div", TWO, |args| {
        of_two(args, |a, b| divisible(a, b).map(|()| a.wrapping_div(b)))
    }),
    Function::new("mod", TWO, |args| {
        of_two(args, |a, b| divisible(a, b).map(|()| a.wrapping_rem(b)))
    }),
    Function::with_more("max", ANY, Type::Any, |args| folded(args.all(), i64::MIN, i64::max)),
    Function::with_more("biggest", ANY, Type::Any, |args| folded(args.all(), i64::MIN, i64::max)),
    Function::with_more("min", ANY, Type::Any, |args| folded(args.all(), i64::MAX, i64::min)),
    Function::with_more("addf", &[], Type::Any, |args| {
        decimal(0.0, args.all(), |a, b| Ok(a + b))
    }),
    Function::new("add1f", ANY, |args| decimal(1.0, args.all(), |a, b| Ok(a + b))),
    Function::with_more("subf", ANY, Type::Any, |args| {
        decimal(cast::float(args.value(0)), args.from(1), |a, b| Ok(a - b))
    }),
    Function::with_more("mulf", ANY, Type::Any, |args| {
        decimal(cast::float(args.value(0)), args.from(1), |a, b| Ok(a * b))
    }),
    Function::with_more("divf", ANY, Type::Any, |args| {
        decimal(cast::float(args.value(0)), args.from(1), |a, b| match b {
            0.0 => Err("decimal division by 0".to_owned()),
            b => Ok(a / b),
        })
    }),
    Function::with_more("maxf", ANY, Type::Any, |args| Ok(of_floats(args, larger))),
    Function::with_more("minf", ANY, Type::Any, |args| {
        Ok(of_floats(args, |a, b| -larger(-a, -b)))
    }),
    Function::new("floor", ANY, |args| {
        Ok(Value::Float(cast::float(args.value(0)).floor()))
    }),
    Function::new("ceil", ANY, |args| Ok(Value::Float(cast::float(args.value(0)).ceil()))),
    Function::with_more("round", &[Type::Any, Type::Int], Type::Float, round),
    Function::new("until", &[Type::Int], |args| {
        let count = args.int(0);
        numbers(args, 0, count, if count < 0 { -1 } else { 1 })
    }),
    Function::new("untilStep", &[Type::Int, Type::Int, Type::Int], |args| {
        numbers(args, args.int(0), args.int(1), args.int(2))
    }),
    Function::with_more("seq", &[], Type::Int, seq),
];

fn folded(values: &[Value], first: i64, fold: fn(i64, i64) -> i64) -> Answer {
    Ok(Value::int64(values.iter().map(cast::int).fold(first, fold)))
}

fn of_two(args: &Args<'_>, compute: fn(i64, i64) -> Result<i64, String>) -> Answer {
    compute(cast::int(args.value(0)), cast::int(args.value(1))).map(Value::int64)
}

fn divisible(_: i64, by: i64) -> Result<(), String> {
    match by {
        0 => Err("runtime error: integer divide by zero".to_owned()),
        _ => Ok(()),
    }
}

/// Computes as with decimal numbers, which sprig has a library for: to 15 digits, so that 0.1 and 0.2 are 0.3.
fn decimal(first: f64, values: &[Value], compute: fn(f64, f64) -> Result<f64, String>) -> Answer {
    let mut result = first;
    for value in values {
        result = compute(result, cast::float(value))?;
    }
    if first.is_nan() || first.is_infinite() || result.is_nan() {
        return Err(format!("Cannot create a Decimal from {}", print::float(first)));
    }
    let rounded: f64 = format!("{result:.14e}").parse().unwrap_or(result);
    let is_close = (rounded - result).abs() <= result.abs() * 4e-16;
    Ok(Value::Float(if is_close { rounded } else { result }))
}

fn of_floats(args: &Args<'_>, fold: fn(f64, f64) -> f64) -> Value {
    let mut floats = args.all().iter().map(cast::float);
    let first = floats.next().unwrap_or_default();
    Value::Float(floats.fold(first, fold))
}

/// The larger of two, as Go has it: what is not a number makes all so.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

fn round(args: &Args<'_>) -> Answer {
    let number = cast::float(args.value(0));
    let on = if args.all().len() > 2 { args.float(2) } else { 0.5 };
    let places = i32::try_from(args.int(1)).unwrap_or(i32::MAX);
    let power = 10_f64.powi(places);
    let shifted = power * number;
    let rounded = if shifted.fract() >= on {
        shifted.ceil()
    } else {
        shifted.floor()
    };
    Ok(Value::Float(rounded / power))
}

fn to_decimal(args: &Args<'_>) -> Answer {
    let digits = print::bytes(args.value(0), args.heap)?;
    let digits = String::from_utf8_lossy(&digits);
    Ok(Value::int64(i64::from_str_radix(&digits, 8).unwrap_or_default()))
}

/// How many numbers there are from one to before another.
fn count(start: i64, bound: i64, step: i64) -> usize {
    let distance = i128::from(bound) - i128::from(start);
    let is_backwards = distance < 0;
    if distance == 0 || step == 0 || is_backwards != (step < 0) {
        return 0;
    }
    let step = i128::from(step).unsigned_abs();
    usize::try_from(distance.unsigned_abs().div_ceil(step)).unwrap_or(usize::MAX)
}

fn range(args: &Args<'_>, start: i64, bound: i64, step: i64) -> Result<Vec<i64>, String> {
    let count = count(start, bound, step);
    args.heap.elements(count)?;
    // The steps may be too far apart for their sum, which lies between the ends.
    let number = |index: i64| start.wrapping_add(index.wrapping_mul(step));
    Ok((0..).take(count).map(number).collect())
}

fn numbers(args: &Args<'_>, start: i64, bound: i64, step: i64) -> Answer {
    let numbers = range(args, start, bound, step)?;
    args.heap.list(Of::Int, numbers.into_iter().map(Value::int).collect())
}

fn seq(args: &Args<'_>) -> Answer {
    let (start, step, end) = match args.all().len() {
        1 => (1, if args.int(0) < 1 { -1 } else { 1 }, args.int(0)),
        2 => (args.int(0), if args.int(1) < args.int(0) { -1 } else { 1 }, args.int(1)),
        3 => (args.int(0), args.int(1), args.int(2)),
        _ => return args.heap.text(""),
    };
    if end < start && step > 0 {
        return args.heap.text("");
    }
    // To the end, which counts.
    let bound = end.saturating_add(if end < start { -1 } else { 1 });
    let numbers = range(args, start, bound, step)?;
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    args.heap.text(texts.join(" "))
}
