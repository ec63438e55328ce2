//! Functions of chance, from the machine's source for keys: people make passwords with them. They give something else
//! each time that a template is rendered.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::template::function::{Answer, Args, Function, Type};
use crate::template::value::Value;

const INT: &[Type] = &[Type::Int];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("randAlphaNum", INT, |args| {
        of(args, |byte| byte.is_ascii_alphanumeric())
    }),
    Function::new("randAlpha", INT, |args| of(args, |byte| byte.is_ascii_alphabetic())),
    Function::new("randNumeric", INT, |args| of(args, |byte| byte.is_ascii_digit())),
    Function::new("randAscii", INT, |args| of(args, |byte| matches!(byte, b' '..=b'~'))),
    Function::new("randBytes", INT, |args| {
        let bytes = bytes(count(args)?)?;
        args.heap.text(STANDARD.encode(bytes))
    }),
    Function::new("randInt", &[Type::Int, Type::Int], |args| {
        let (least, bound) = (args.int(0), args.int(1));
        let span = bound.checked_sub(least).filter(|span| *span > 0);
        let span = span.ok_or("invalid argument to Intn")?.unsigned_abs();
        let offset = below(span)?;
        Ok(Value::int(least.wrapping_add_unsigned(offset)))
    }),
    Function::new("shuffle", &[Type::Text], shuffled),
    Function::new("uuidv4", &[], |args| {
        let mut bytes = bytes(16)?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut uuid = String::new();
        for (index, byte) in bytes.iter().enumerate() {
            let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
            let _ = write!(uuid, "{dash}{byte:02x}");
        }
        args.heap.text(uuid)
    }),
];

fn count(args: &Args<'_>) -> Result<usize, String> {
    let count = usize::try_from(args.int(0)).map_err(|_| "the count must not be negative".to_owned())?;
    args.heap.room(count)?;
    args.heap.read(count * 4)?;
    Ok(count)
}

fn bytes(count: usize) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; count];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "the machine gives no random numbers".to_owned())?;
    Ok(bytes)
}

/// A number below this one, each as probable as any other.
fn below(bound: u64) -> Result<u64, String> {
    let largest = u64::MAX - u64::MAX % bound;
    loop {
        let bytes = bytes(8)?;
        let number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        if number < largest {
            return Ok(number % bound);
        }
    }
}

/// Characters of a set.
fn of(args: &Args<'_>, is_allowed: fn(u8) -> bool) -> Answer {
    let count = match args.int(0) {
        // Sprig drops the error of its library.
        ..0 => 0,
        _ => count(args)?,
    };
    let mut text = Vec::with_capacity(count);
    while text.len() < count {
        let allowed = bytes(256)?
            .into_iter()
            .map(|byte| byte & 0x7f)
            .filter(|byte| is_allowed(*byte));
        text.extend(allowed.take(count - text.len()));
    }
    args.heap.text(text)
}

fn shuffled(args: &Args<'_>) -> Answer {
    let mut chars: Vec<char> = args.str(0).chars().collect();
    args.heap.room(chars.len() * 4)?;
    args.heap.work(chars.len() as u64)?;
    for end in (1..chars.len()).rev() {
        let other = usize::try_from(below(end as u64 + 1)?).unwrap_or(0);
        chars.swap(end, other);
    }
    args.heap.text(chars.into_iter().collect::<String>())
}
