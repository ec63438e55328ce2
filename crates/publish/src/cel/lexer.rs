//! The words of a CEL expression.

use super::CelError;

/// A word, and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub(super) at: usize,
    pub(super) token: Token,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Sign(&'static str),
    End,
}

/// Longer ones first.
const SIGNS: [&str; 26] = [
    "&&", "||", "==", "!=", "<=", ">=", "?.", "[?", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(",
    ")", "[", "]", "{", "}",
];

/// Takes an expression apart.
pub(super) fn words(text: &str) -> Result<Vec<Word>, CelError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut words = Vec::new();
    loop {
        lexer.skip_space();
        let at = lexer.at;
        let token = lexer.token()?;
        let is_end = token == Token::End;
        words.push(Word { at, token });
        if is_end {
            return Ok(words);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error<T>(&self, why: &str) -> Result<T, CelError> {
        Err(CelError::syntax(self.text, self.at, why))
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn token(&mut self) -> Result<Token, CelError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        if let Some(token) = self.quoted()? {
            return Ok(token);
        }
        let second_is_digit = rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if first.is_ascii_digit() || (first == '.' && second_is_digit) {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |next: char| next.is_ascii_alphanumeric() || next == '_';
            let end = rest.find(|next: char| !is_part(next)).unwrap_or(rest.len());
            self.at += end;
            return Ok(Token::Name(rest[..end].to_owned()));
        }
        match SIGNS.iter().find(|sign| rest.starts_with(*sign)) {
            Some(sign) => {
                self.at += sign.len();
                Ok(Token::Sign(sign))
            }
            None => self.error(&format!("unexpected character {first:?}")),
        }
    }

    fn digits(&mut self, is_digit: fn(&char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|next: char| !is_digit(&next)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Result<Token, CelError> {
        if let Some(hex) = self.rest().strip_prefix("0x")
            && hex.starts_with(|next: char| next.is_ascii_hexdigit())
        {
            self.at += 2;
            let digits = self.digits(char::is_ascii_hexdigit);
            return self.integer(u64::from_str_radix(digits, 16).ok());
        }
        let start = self.at;
        self.digits(char::is_ascii_digit);
        let mut is_float = false;
        let after_dot = self.rest().strip_prefix('.');
        if after_dot.is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit())) {
            is_float = true;
            self.at += 1;
            self.digits(char::is_ascii_digit);
        }
        if let Some(power) = self.rest().strip_prefix(['e', 'E']) {
            let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
            if digits.starts_with(|next: char| next.is_ascii_digit()) {
                is_float = true;
                self.at += 1 + power.len() - digits.len();
                self.digits(char::is_ascii_digit);
            }
        }
        let text = &self.text[start..self.at];
        if !is_float {
            return self.integer(text.parse().ok());
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Token::Double(number)),
            _ => self.error("invalid double literal"),
        }
    }

    fn integer(&mut self, number: Option<u64>) -> Result<Token, CelError> {
        let is_uint = self.rest().starts_with(['u', 'U']);
        self.at += usize::from(is_uint);
        match number {
            Some(number) if is_uint => Ok(Token::Uint(number)),
            Some(number) => Ok(Token::Int(number)),
            None => self.error("invalid int literal"),
        }
    }

    /// A text or bytes, if that is what begins here.
    fn quoted(&mut self) -> Result<Option<Token>, CelError> {
        let rest = self.rest();
        let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'');
        // At most two letters stand before it.
        let Some(quote) = rest.bytes().take(3).position(|byte| is_quote(&byte)) else {
            return Ok(None);
        };
        let prefix = rest[..quote].to_ascii_lowercase();
        if !["", "r", "b", "br"].contains(&prefix.as_str()) {
            return Ok(None);
        }
        let (is_raw, is_bytes) = (prefix.contains('r'), prefix.contains('b'));
        let quote_sign = &rest[quote..=quote];
        let triple = quote_sign.repeat(3);
        let is_long = rest[quote..].starts_with(&triple);
        let border = if is_long { triple.as_str() } else { quote_sign };
        let start = quote + border.len();
        let Some(length) = length(&rest[start..], border, is_raw, is_long) else {
            return self.error("a text without an end");
        };
        let inner = &rest[start..start + length];
        let resolved = if is_raw {
            Some(inner.as_bytes().to_vec())
        } else {
            unescaped(inner, is_bytes)
        };
        let Some(bytes) = resolved else {
            return self.error("an escape that is none");
        };
        self.at += start + length + border.len();
        if is_bytes {
            return Ok(Some(Token::Bytes(bytes)));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(Token::Text(text))),
            Err(_) => self.error("a text that is not UTF-8"),
        }
    }
}

/// How long the text is before its closing quote.
fn length(text: &str, border: &str, is_raw: bool, is_long: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        if text.is_char_boundary(index) && text[index..].starts_with(border) {
            return Some(index);
        }
        match bytes[index] {
            b'\\' if !is_raw => index += 1,
            b'\n' | b'\r' if !is_long => return None,
            _ => {}
        }
        index += 1;
    }
    None
}

/// A text with its escapes resolved. In bytes, `\x` and octal digits are bytes, not characters.
fn unescaped(text: &str, is_bytes: bool) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        let mut push = |next: char| out.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
        if next != '\\' {
            push(next);
            continue;
        }
        let (digits, radix, first) = match chars.next()? {
            'a' => (0, 0, Some('\u{7}')),
            'b' => (0, 0, Some('\u{8}')),
            'f' => (0, 0, Some('\u{c}')),
            'n' => (0, 0, Some('\n')),
            'r' => (0, 0, Some('\r')),
            't' => (0, 0, Some('\t')),
            'v' => (0, 0, Some('\u{b}')),
            plain @ ('\\' | '\'' | '"' | '`' | '?') => (0, 0, Some(plain)),
            'x' | 'X' => (2, 16, None),
            'u' if !is_bytes => (4, 16, None),
            'U' if !is_bytes => (8, 16, None),
            octal @ '0'..='3' => (2, 8, Some(octal)),
            _ => return None,
        };
        if digits == 0 {
            push(first?);
            continue;
        }
        let mut code = first.and_then(|first| first.to_digit(8)).unwrap_or(0);
        for _ in 0..digits {
            code = code * radix + chars.next()?.to_digit(radix)?;
        }
        if is_bytes {
            out.push(u8::try_from(code).ok()?);
        } else {
            push(char::from_u32(code)?);
        }
    }
    Some(out)
}
