//! Go's `fmt.Sprintf`.

use super::function::Answer;
use super::heap::{Heap, LONGEST_TEXT, Sink};
use super::print;
use super::value::{IntKind, List, Map, Of, Value};

/// The flags of a verb, its width and precision.
#[derive(Debug, Default, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "a verb has as many flags as Go gives it")]
struct Spec {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// Formats these values.
pub(crate) fn sprintf(format: &[u8], values: &[Value], heap: &Heap) -> Answer {
    let format = String::from_utf8_lossy(format);
    let mut printer = Printer {
        out: Sink::new(),
        values,
        next: 0,
        reordered: false,
        is_good: true,
        heap,
    };
    printer.all(&format)?;
    heap.text(printer.out.into_bytes())
}

/// Whether Go takes a character for printable.
pub(crate) fn is_printed(next: char) -> bool {
    match next {
        ' '..='~' => true,
        '\0'..='\u{a0}' | '\u{ad}' => false,
        next if next.is_whitespace() => false,
        // Rust escapes the same, but for marks at the beginning of a text.
        next => format!("{:?}", format!("a{next}")).chars().eq(['"', 'a', next, '"']),
    }
}

/// A text in quotes, as Go and most of JSON and YAML read it.
pub(crate) fn quote(text: &[u8], out: &mut Sink) -> Result<(), String> {
    quoted(text, out, false)
}

fn quoted(text: &[u8], out: &mut Sink, is_ascii: bool) -> Result<(), String> {
    out.push("\"")?;
    for chunk in text.utf8_chunks() {
        for next in chunk.valid().chars() {
            quote_char(next, '"', out, is_ascii)?;
        }
        for byte in chunk.invalid() {
            out.push(format!("\\x{byte:02x}"))?;
        }
    }
    out.push("\"")
}

fn quote_char(next: char, quote: char, out: &mut Sink, is_ascii: bool) -> Result<(), String> {
    match next {
        '\\' => out.push("\\\\"),
        _ if next == quote => {
            out.push("\\")?;
            out.char(next)
        }
        '\u{7}' => out.push("\\a"),
        '\u{8}' => out.push("\\b"),
        '\u{c}' => out.push("\\f"),
        '\n' => out.push("\\n"),
        '\r' => out.push("\\r"),
        '\t' => out.push("\\t"),
        '\u{b}' => out.push("\\v"),
        _ if is_printed(next) && (next.is_ascii() || !is_ascii) => out.char(next),
        '\0'..='\u{7f}' => out.push(format!("\\x{:02x}", u32::from(next))),
        '\u{80}'..='\u{ffff}' => out.push(format!("\\u{:04x}", u32::from(next))),
        _ => out.push(format!("\\U{:08x}", u32::from(next))),
    }
}

struct Printer<'a> {
    out: Sink,
    values: &'a [Value],
    next: usize,
    /// Whether the format named a value by its number: then some may be left over.
    reordered: bool,
    /// Whether the last such number was one of a value.
    is_good: bool,
    heap: &'a Heap,
}

impl Printer<'_> {
    fn all(&mut self, format: &str) -> Result<(), String> {
        let mut rest = format;
        while let Some(percent) = rest.find('%') {
            self.out.push(&rest[..percent])?;
            rest = self.verb(&rest[percent + 1..])?;
        }
        self.out.push(rest)?;
        if !self.reordered && self.next < self.values.len() {
            self.out.push("%!(EXTRA ")?;
            for (index, value) in self.values[self.next..].iter().enumerate() {
                self.out.push(if index > 0 { ", " } else { "" })?;
                self.typed(value)?;
            }
            self.out.push(")")?;
        }
        Ok(())
    }

    /// A value with its type, in complaints.
    fn typed(&mut self, value: &Value) -> Result<(), String> {
        if matches!(value, Value::Nil) {
            return self.out.push("<nil>");
        }
        self.out.push(value.type_name())?;
        self.out.push("=")?;
        print::display(&mut self.out, value, self.heap)
    }

    /// What follows a percent sign. Gives what is after that.
    fn verb<'t>(&mut self, text: &'t str) -> Result<&'t str, String> {
        let mut spec = Spec::default();
        let mut rest = text;
        self.is_good = true;
        loop {
            match rest.as_bytes().first() {
                Some(b'#') => spec.sharp = true,
                Some(b'0') => spec.zero = true,
                Some(b'+') => spec.plus = true,
                Some(b'-') => spec.minus = true,
                Some(b' ') => spec.space = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        rest = self.argument_number(rest);
        if let Some(after) = rest.strip_prefix('*') {
            rest = after;
            match self.star() {
                Some(width) => {
                    spec.minus |= width < 0;
                    spec.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => self.out.push("%!(BADWIDTH)")?,
            }
        } else {
            (spec.width, rest) = number(rest);
        }
        if let Some(after) = rest.strip_prefix('.') {
            rest = self.argument_number(after);
            if let Some(after) = rest.strip_prefix('*') {
                rest = after;
                spec.precision = self.star().and_then(|precision| usize::try_from(precision).ok());
                if spec.precision.is_none() {
                    self.out.push("%!(BADPREC)")?;
                }
            } else {
                let (precision, after) = number(rest);
                spec.precision = Some(precision.unwrap_or(0));
                rest = after;
            }
        }
        rest = self.argument_number(rest);
        self.heap.room(spec.width.unwrap_or(0))?;
        self.heap.room(spec.precision.unwrap_or(0))?;
        if spec.minus {
            spec.zero = false;
        }
        // There the flag is about the names of fields.
        spec.plus &= !rest.starts_with('v');
        let Some(verb) = rest.chars().next() else {
            self.out.push("%!(NOVERB)")?;
            return Ok(rest);
        };
        let after = &rest[verb.len_utf8()..];
        match self.values.get(self.next) {
            _ if verb == '%' => self.out.push("%")?,
            _ if !self.is_good => self.out.push(format!("%!{verb}(BADINDEX)"))?,
            None => self.out.push(format!("%!{verb}(MISSING)"))?,
            Some(value) => {
                self.next += 1;
                self.value(value, verb, spec)?;
            }
        }
        Ok(after)
    }

    /// `[3]`: the value that comes next.
    fn argument_number<'t>(&mut self, text: &'t str) -> &'t str {
        let Some(inner) = text.strip_prefix('[') else {
            return text;
        };
        self.reordered = true;
        let Some((digits, after)) = inner.split_once(']') else {
            self.is_good = false;
            return inner;
        };
        match digits.parse::<usize>() {
            Ok(index) if (1..=self.values.len()).contains(&index) => self.next = index - 1,
            _ => self.is_good = false,
        }
        after
    }

    /// A width that is a value.
    fn star(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        match value {
            Value::Int(_, number) => Some(*number).filter(|number| number.unsigned_abs() <= 1_000_000),
            _ => None,
        }
    }

    fn value(&mut self, value: &Value, verb: char, spec: Spec) -> Result<(), String> {
        match (verb, value) {
            ('T', _) => self.padded(value.type_name().as_bytes(), spec),
            ('v', Value::Nil) => self.padded(b"<nil>", spec),
            (_, Value::Nil) => self.out.push(format!("%!{verb}(<nil>)")),
            ('v', _) if spec.sharp => {
                let text = self.syntax(value)?;
                self.padded(&text, spec)
            }
            (_, Value::List(list)) => self.list(list, verb, spec),
            (_, Value::Map(map)) => self.map(map, verb, spec),
            (_, Value::Bool(value)) if matches!(verb, 't' | 'v') => self.padded(value.to_string().as_bytes(), spec),
            (_, Value::Int(kind, number)) => self.int(*kind, *number, verb, spec),
            (_, Value::Float(number)) => self.float(*number, verb, spec),
            (_, Value::Text(text)) => self.text(text, verb, spec),
            (_, Value::Time(_) | Value::Version(_)) if matches!(verb, 'v' | 's' | 'q' | 'x' | 'X') => {
                let text = print::bytes(value, self.heap)?;
                self.text(&text, verb, spec)
            }
            ('v' | 's', Value::Data(_)) => {
                let text = print::bytes(value, self.heap)?;
                self.padded(&text, spec)
            }
            _ => self.bad(value, verb),
        }
    }

    fn bad(&mut self, value: &Value, verb: char) -> Result<(), String> {
        self.out.push(format!("%!{verb}("))?;
        self.typed(value)?;
        self.out.push(")")
    }

    /// Each element by the same verb.
    fn list(&mut self, list: &List, verb: char, spec: Spec) -> Result<(), String> {
        let heap = self.heap;
        heap.deeper(|| {
            self.out.push("[")?;
            for (index, item) in list.items.iter().enumerate() {
                heap.work(1)?;
                self.out.push(if index > 0 { " " } else { "" })?;
                self.value(item, verb, spec)?;
            }
            self.out.push("]")
        })
    }

    fn map(&mut self, map: &Map, verb: char, spec: Spec) -> Result<(), String> {
        let heap = self.heap;
        heap.deeper(|| {
            self.out.push("map[")?;
            for (index, (key, item)) in map.entries.borrow().iter().enumerate() {
                heap.work(1)?;
                self.out.push(if index > 0 { " " } else { "" })?;
                self.text(key, verb, spec)?;
                self.out.push(":")?;
                self.value(item, verb, spec)?;
            }
            self.out.push("]")
        })
    }

    fn text(&mut self, text: &[u8], verb: char, spec: Spec) -> Result<(), String> {
        match verb {
            'v' | 's' => self.padded(cut(text, spec), spec),
            'q' => {
                let text = cut(text, spec);
                let mut out = Sink::new();
                let raw = std::str::from_utf8(text).ok().filter(|text| {
                    let fits = |next: char| next == '\t' || next != '`' && is_printed(next) && next != '\u{feff}';
                    spec.sharp && text.chars().all(fits)
                });
                match raw {
                    Some(raw) => out.push(format!("`{raw}`"))?,
                    None => quoted(text, &mut out, spec.plus)?,
                }
                self.padded(out.as_bytes(), spec)
            }
            'x' | 'X' => {
                let limit = spec.precision.unwrap_or(text.len()).min(text.len());
                let mut hex = Sink::new();
                for (index, byte) in text[..limit].iter().enumerate() {
                    if index > 0 && spec.space {
                        hex.push(" ")?;
                    }
                    if spec.sharp && (index == 0 || spec.space) {
                        hex.push(format!("0{verb}"))?;
                    }
                    hex.push(if verb == 'x' {
                        format!("{byte:02x}")
                    } else {
                        format!("{byte:02X}")
                    })?;
                }
                self.padded(hex.as_bytes(), spec)
            }
            _ => {
                self.out.push(format!("%!{verb}(string="))?;
                self.out.push(text)?;
                self.out.push(")")
            }
        }
    }

    fn int(&mut self, kind: IntKind, number: i64, verb: char, spec: Spec) -> Result<(), String> {
        let magnitude = number.unsigned_abs();
        let (digits, prefix) = match verb {
            'v' | 'd' => (magnitude.to_string(), ""),
            'b' => (format!("{magnitude:b}"), if spec.sharp { "0b" } else { "" }),
            'o' => (format!("{magnitude:o}"), if spec.sharp { "0" } else { "" }),
            'O' => (format!("{magnitude:o}"), "0o"),
            'x' => (format!("{magnitude:x}"), if spec.sharp { "0x" } else { "" }),
            'X' => (format!("{magnitude:X}"), if spec.sharp { "0X" } else { "" }),
            'c' | 'q' | 'U' => return self.character(number, verb, spec),
            _ => return self.bad(&Value::Int(kind, number), verb),
        };
        if spec.precision == Some(0) && number == 0 {
            return self.padded(b"", Spec { zero: false, ..spec });
        }
        let sign = sign(number < 0, spec);
        let mut least = spec.precision.unwrap_or(0);
        if spec.zero && spec.precision.is_none() {
            // Zeros take the place of spaces, but for the sign. A prefix does not count, as in Go.
            least = spec.width.unwrap_or(0).saturating_sub(sign.len());
        }
        let prefix = if verb == 'o' && digits.starts_with('0') {
            ""
        } else {
            prefix
        };
        let zeros = "0".repeat(least.saturating_sub(digits.len()));
        let prefix = if verb == 'o' && !zeros.is_empty() { "" } else { prefix };
        let text = format!("{sign}{prefix}{zeros}{digits}");
        self.padded(text.as_bytes(), Spec { zero: false, ..spec })
    }

    fn character(&mut self, number: i64, verb: char, spec: Spec) -> Result<(), String> {
        let code = u32::try_from(number).unwrap_or(0xfffd);
        let next = char::from_u32(code).unwrap_or('\u{fffd}');
        let mut text = Sink::new();
        match verb {
            'c' => text.char(next)?,
            'q' => {
                text.push("'")?;
                quote_char(next, '\'', &mut text, spec.plus)?;
                text.push("'")?;
            }
            _ => {
                let least = spec.precision.unwrap_or(4).max(4);
                text.push(format!("U+{number:0least$X}"))?;
                if spec.sharp && is_printed(next) {
                    text.push(format!(" '{next}'"))?;
                }
            }
        }
        self.padded(text.as_bytes(), Spec { zero: false, ..spec })
    }

    fn float(&mut self, number: f64, verb: char, spec: Spec) -> Result<(), String> {
        let sign = sign(number.is_sign_negative() && !number.is_nan(), spec);
        if let Some(special) = print::special(number) {
            let name = special.trim_start_matches(['+', '-']);
            let sign = if number.is_nan() && sign == "-" { "" } else { sign };
            let sign = if number == f64::INFINITY && sign.is_empty() && spec.plus {
                "+"
            } else {
                sign
            };
            // Only `%v` and `%g` of plain infinity have its sign.
            let sign = if number == f64::INFINITY && sign.is_empty() {
                "+"
            } else {
                sign
            };
            let text = format!("{sign}{name}");
            return self.padded(text.as_bytes(), Spec { zero: false, ..spec });
        }
        let magnitude = number.abs();
        let text = match verb {
            'e' | 'E' => exponential(magnitude, spec.precision.unwrap_or(6)),
            'f' | 'F' => format!("{magnitude:.*}", spec.precision.unwrap_or(6)),
            'v' | 'g' | 'G' => match spec.precision {
                None => print::float(magnitude),
                Some(precision) => general(magnitude, precision),
            },
            _ => return self.bad(&Value::Float(number), verb),
        };
        let text = if matches!(verb, 'E' | 'G') {
            text.to_uppercase()
        } else {
            text
        };
        let width = spec.width.unwrap_or(0).saturating_sub(sign.len() + text.len());
        let zeros = if spec.zero { "0".repeat(width) } else { String::new() };
        let text = format!("{sign}{zeros}{text}");
        self.padded(text.as_bytes(), Spec { zero: false, ..spec })
    }

    /// A value as Go would write it.
    fn syntax(&mut self, value: &Value) -> Result<Vec<u8>, String> {
        let mut out = Sink::new();
        syntax(&mut out, value, self.heap)?;
        Ok(out.into_bytes())
    }

    fn padded(&mut self, text: &[u8], spec: Spec) -> Result<(), String> {
        let length = String::from_utf8_lossy(text).chars().count();
        let missing = spec.width.unwrap_or(0).saturating_sub(length).min(LONGEST_TEXT);
        let fill = if spec.zero { "0" } else { " " }.repeat(missing);
        if spec.minus {
            self.out.push(text)?;
            return self.out.push(fill);
        }
        self.out.push(fill)?;
        self.out.push(text)
    }
}

/// The digits that a text begins with, and what follows them.
fn number(text: &str) -> (Option<usize>, &str) {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(length);
    match digits.parse::<usize>() {
        Ok(number) => (Some(number), rest),
        // Too many digits are no number, but no verb either.
        Err(_) if length > 0 => (Some(usize::MAX), rest),
        Err(_) => (None, rest),
    }
}

fn sign(is_negative: bool, spec: Spec) -> &'static str {
    if is_negative {
        "-"
    } else if spec.plus {
        "+"
    } else if spec.space {
        " "
    } else {
        ""
    }
}

/// At most as many characters as the precision says.
fn cut(text: &[u8], spec: Spec) -> &[u8] {
    let Some(limit) = spec.precision else { return text };
    let mut length = 0;
    let mut count = 0;
    for chunk in text.utf8_chunks() {
        for width in chunk
            .valid()
            .chars()
            .map(char::len_utf8)
            .chain(chunk.invalid().iter().map(|_| 1))
        {
            if count == limit {
                return &text[..length];
            }
            count += 1;
            length += width;
        }
    }
    text
}

/// With an exponent and this many digits after the point.
fn exponential(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// With this many digits, and an exponent where it has more.
fn general(number: f64, precision: usize) -> String {
    let precision = precision.max(1);
    let text = exponential(number, precision - 1);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i64 = exponent.parse().unwrap_or(0);
    let trim = |digits: &str| {
        if digits.contains('.') {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            digits.to_owned()
        }
    };
    let most = i64::try_from(precision).unwrap_or(i64::MAX);
    let shortest = i64::try_from(print::shortest(number).0.len()).unwrap_or(i64::MAX);
    // Go takes fewer digits for the bound if the number has no more.
    let bound = if most > shortest && shortest > power {
        shortest
    } else {
        most
    };
    if power < -4 || power >= bound {
        return format!("{}e{exponent}", trim(digits));
    }
    let decimals = usize::try_from(most - 1 - power).unwrap_or(0);
    trim(&format!("{number:.decimals$}"))
}

fn syntax(out: &mut Sink, value: &Value, heap: &Heap) -> Result<(), String> {
    match value {
        Value::Text(text) => quote(text, out),
        Value::Int(IntKind::Uint8 | IntKind::Uint64, number) => out.push(format!("{number:#x}")),
        Value::List(list) if list.is_nil => out.push(format!("{}(nil)", value.type_name())),
        Value::List(list) => heap.deeper(|| {
            out.push(value.type_name())?;
            out.push("{")?;
            for (index, item) in list.items.iter().enumerate() {
                heap.work(1)?;
                out.push(if index > 0 { ", " } else { "" })?;
                match item {
                    Value::Nil if list.of == Of::Any => out.push("interface {}(nil)")?,
                    item => syntax(out, item, heap)?,
                }
            }
            out.push("}")
        }),
        Value::Map(map) => heap.deeper(|| {
            out.push(value.type_name())?;
            out.push("{")?;
            for (index, (key, item)) in map.entries.borrow().iter().enumerate() {
                heap.work(1)?;
                out.push(if index > 0 { ", " } else { "" })?;
                quote(key, out)?;
                out.push(":")?;
                match item {
                    Value::Nil => out.push("interface {}(nil)")?,
                    item => syntax(out, item, heap)?,
                }
            }
            out.push("}")
        }),
        other => print::display(out, other, heap),
    }
}
