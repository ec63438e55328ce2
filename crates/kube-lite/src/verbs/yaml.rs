//! API servers read an apply as YAML, but JSON is sent, which is nearly the same.
//!
//! In a string, YAML treats U+0085, U+2028 and U+2029 as line breaks and folds the blanks around them, refuses control
//! characters, and knows neither an escaped `/` nor characters that are escaped as two surrogates. A key has to be
//! short, and on one line with its colon. All of that is rewritten here, in the few bodies that have it; JSON allows
//! these characters only in strings, so the text is read byte by byte. What API servers escape only for browsers, `<`, `>`
//! and `&`, is one byte again: as six, an object of 600 kB that they have accepted would be too large for them. Newer servers read
//! `application/apply-patch+cbor` too, but none reads JSON.

use bytes::Bytes;

/// A key that is longer than this, in bytes, is marked by a `?` before it. YAML allows 1,024 characters without.
const LONG_KEY: usize = 500;

/// What Go escapes in JSON, so that browsers see no markup in it.
const FOR_BROWSERS: [&str; 3] = ["<", ">", "&"];

/// JSON text that means the same to a reader of YAML. It is not copied if nothing has to change.
pub(super) fn for_yaml(json: Bytes) -> Bytes {
    let mut copy = Copy {
        json: &json,
        done: 0,
        out: Vec::new(),
    };
    copy.whole();
    if copy.done == 0 {
        return json;
    }
    copy.keep(json.len());
    Bytes::from(copy.out)
}

struct Copy<'a> {
    json: &'a [u8],
    /// How much of it is in `out`.
    done: usize,
    out: Vec<u8>,
}

impl Copy<'_> {
    fn whole(&mut self) {
        let mut at = 0;
        while let Some(&byte) = self.json.get(at) {
            match byte {
                b'"' => at = self.string(at),
                // A line may not end between a key and its colon.
                b'\n' | b'\r' => {
                    self.replace(at, 1, "");
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Handles the string that begins at `start`; returns where it ends.
    fn string(&mut self, start: usize) -> usize {
        let out_start = self.out.len() + start - self.done;
        let mut at = start + 1;
        while let Some(&byte) = self.json.get(at) {
            match byte {
                b'"' => {
                    at += 1;
                    break;
                }
                b'\\' => at += self.escape(at),
                0x7f | 0xc2 | 0xe2 | 0xef => at += self.character(at),
                _ => at += 1,
            }
        }
        let length = self.out.len() + at - self.done - out_start;
        if length > LONG_KEY && self.is_key(at) {
            self.keep(at);
            self.out.splice(out_start..out_start, *b"? ");
        }
        at
    }

    /// True if a colon follows.
    fn is_key(&self, end: usize) -> bool {
        let rest = self.json.get(end..).unwrap_or_default();
        rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
    }

    /// Handles what begins with a backslash; returns its length.
    fn escape(&mut self, at: usize) -> usize {
        match self.json.get(at + 1) {
            Some(b'/') => self.replace(at, 2, "/"),
            Some(b'u') => {
                let Some(high) = self.unit(at) else { return 2 };
                if let Some(text) = FOR_BROWSERS.iter().find(|text| text.encode_utf16().eq([high])) {
                    return self.replace(at, 6, text);
                }
                if !(0xd800..0xe000).contains(&high) {
                    return 6;
                }
                let low = self.unit(at + 6).unwrap_or_default();
                let pair = char::decode_utf16([high, low]).next();
                let Some(Ok(character)) = pair else {
                    // API servers replace half a surrogate pair with this.
                    return self.replace(at, 6, "\u{fffd}");
                };
                self.replace(at, 12, character.encode_utf8(&mut [0; 4]))
            }
            _ => 2,
        }
    }

    /// The UTF-16 unit that is escaped at `at`.
    fn unit(&self, at: usize) -> Option<u16> {
        let digits = self.json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    /// Handles a character that YAML may not accept as it is; returns its length.
    fn character(&mut self, at: usize) -> usize {
        let rest = self.json.get(at..).unwrap_or_default();
        let (length, escaped) = match *rest {
            [0x7f, ..] => (1, 0x7f),
            [0xc2, low @ 0x80..=0x9f, ..] => (2, u16::from(low)),
            [0xe2, 0x80, low @ 0xa8..=0xa9, ..] => (3, 0x2000 + u16::from(low & 0x3f)),
            [0xef, 0xbb, 0xbf, ..] => (3, 0xfeff),
            [0xef, 0xbf, low @ 0xbe..=0xbf, ..] => (3, 0xffc0 + u16::from(low & 0x3f)),
            _ => return 1,
        };
        self.replace(at, length, &format!("\\u{escaped:04x}"))
    }

    /// Replaces so many bytes with `text`; returns their number.
    fn replace(&mut self, at: usize, length: usize, text: &str) -> usize {
        self.keep(at);
        self.out.extend_from_slice(text.as_bytes());
        self.done = at + length;
        length
    }

    /// Copies what was not copied yet, up to there.
    fn keep(&mut self, end: usize) {
        self.out
            .extend_from_slice(self.json.get(self.done..end).unwrap_or_default());
        self.done = end;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rewritten(text: &str) -> String {
        String::from_utf8(for_yaml(Bytes::copy_from_slice(text.as_bytes())).to_vec()).unwrap()
    }

    #[test]
    fn what_yaml_reads_otherwise_is_written_otherwise() {
        for (json, expected) in [
            ("\"a \u{85} b\"", r#""a \u0085 b""#),
            ("\"\u{7f}\u{80}\u{9f}\u{a0}\"", "\"\\u007f\\u0080\\u009f\u{a0}\""),
            (
                "\"\u{2027}\u{2028}\u{2029}\u{202a}\"",
                "\"\u{2027}\\u2028\\u2029\u{202a}\"",
            ),
            (
                "\"\u{feff}\u{fffd}\u{fffe}\u{ffff}\"",
                "\"\\ufeff\u{fffd}\\ufffe\\uffff\"",
            ),
            (r#""\/\\/\"/""#, r#""/\\/\"/""#),
            (r#""\ud83d\ude00\u00e9""#, "\"\u{1f600}\\u00e9\""),
            (r#""\u003cb a=\u0026\u003E\\u003c\u003d""#, r#""<b a=&>\\u003c\u003d""#),
            (r#""\ud83dx\ude00""#, "\"\u{fffd}x\u{fffd}\""),
            (r#""\ud83d\u0041""#, "\"\u{fffd}\\u0041\""),
            ("{\"a\"\n:\r\n 1}", "{\"a\": 1}"),
        ] {
            assert_eq!(rewritten(json), expected, "{json:?}");
        }
    }

    #[test]
    fn what_yaml_reads_alike_is_not_copied() {
        for text in [
            r#"{"a":"b","c":[1,2.5e3,true,null,{}],"d":"\u0085\n\t\" \\ ü € 😀 \u0000"}"#,
            "\"\u{1fffe}\u{10ffff}\u{e000}\u{fdd0}\"",
            "{}",
        ] {
            let json = Bytes::copy_from_slice(text.as_bytes());
            assert_eq!(for_yaml(json.clone()).as_ptr(), json.as_ptr(), "{text}");
        }
    }

    #[test]
    fn a_long_key_is_reported_and_a_long_value_is_not() {
        let long = "k".repeat(LONG_KEY);
        let special = "\u{85}".repeat(LONG_KEY);
        let escaped = "\\u0085".repeat(LONG_KEY);
        for (json, expected) in [
            (format!(r#"{{"{long}":1}}"#), format!(r#"{{? "{long}":1}}"#)),
            (format!(r#"{{"{special}" :1}}"#), format!(r#"{{? "{escaped}" :1}}"#)),
            (
                format!(r#"{{"a":"\/","{long}":{{"{special}":"{special}"}}}}"#),
                format!(r#"{{"a":"/",? "{long}":{{? "{escaped}":"{escaped}"}}}}"#),
            ),
            (format!(r#"["{long}","{long}"]"#), format!(r#"["{long}","{long}"]"#)),
        ] {
            assert_eq!(rewritten(&json), expected);
        }
    }

    #[test]
    fn every_character_means_the_same_afterwards() {
        let all: String = ('\0'..=char::MAX).collect();
        let value = json!({"value": all});
        let json = value.to_string();
        let text = rewritten(&json);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        let taken = |c: char| {
            !matches!(
                c,
                '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
        };
        assert!(text.chars().all(taken));
    }

    #[test]
    fn text_that_ends_too_early_is_no_harm() {
        let text = "{\"\\ud83d\\ude00\u{85}\u{2028}\\/\":\"\u{ffff}\"}";
        for end in 0..=text.len() {
            let _ = for_yaml(Bytes::copy_from_slice(&text.as_bytes()[..end]));
        }
    }

    #[test]
    fn fuzz_yaml() {
        let sample = "{\"a\u{85}\":[\"\\/ \\ud83d\\ude00 \\ud83d \u{2028}\u{7f}\u{ffff}\",1],\r\n\"b\" : {\"c\":null}}";
        crate::fuzz::fuzz("yaml", &[sample.as_bytes()], |text, _| {
            let after = for_yaml(Bytes::copy_from_slice(text));
            // With a `?` before a long key it is no JSON any more.
            if let Ok(value) = serde_json::from_slice::<Value>(text)
                && text.len() < LONG_KEY
            {
                assert_eq!(serde_json::from_slice::<Value>(&after).unwrap(), value);
            }
        });
    }
}
