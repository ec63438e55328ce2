//! Takes a LIST answer apart while it arrives, so that memory is bounded by the largest item and not by the list.

use bytes::{Buf, Bytes};
use serde::Deserialize;

/// The largest object that is read, and the largest answer that is no list: an object is at most 1.5 MiB in etcd, and
/// larger as JSON, with escapes and `managedFields`. A compressed answer can be a thousand times what was received.
pub(crate) const OBJECT_LIMIT: usize = 8 << 20;
/// What a list may have beside its items: its version and a token. There may be a hundred lists at once.
const ENVELOPE_LIMIT: usize = 64 << 10;
/// No API server sends longer tokens, and they would make requests that no server accepts.
const LONGEST_TOKEN: usize = 16 << 10;
/// The same of resource versions, which are numbers, or short words.
pub const LONGEST_VERSION: usize = 253;

/// Splits `{"kind": …, "metadata": {…}, "items": [ITEM, …]}` into its items and the rest, the envelope.
///
/// It reads only structure (strings, brackets, commas); each item is checked when it is parsed, and the envelope in
/// [`ListSplitter::finish`], which also notices an answer that ends too early.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about the place in the text"
)]
pub(super) struct ListSplitter {
    /// Everything outside of the items, with the list left empty.
    envelope: Vec<u8>,
    /// The item that is arriving.
    item: Vec<u8>,
    /// Open brackets.
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// At depth 1: the latest string, which is a key if a colon follows.
    key: Vec<u8>,
    /// At depth 1: a colon has been seen since the key.
    after_colon: bool,
    in_items: bool,
    closed: bool,
}

/// The metadata of a list answer.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ListMeta {
    /// Version of the whole list, from which to watch.
    pub(super) resource_version: String,
    /// Token for the next page; empty on the last one.
    #[serde(rename = "continue")]
    pub(super) continue_token: String,
}

#[derive(Deserialize)]
struct Envelope {
    kind: String,
    metadata: ListMeta,
}

impl ListSplitter {
    /// Reads from a chunk what belongs to the next item, and returns the item if it is complete. There is never more
    /// than one item in memory beside the chunk.
    pub(super) fn next_item(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, String> {
        let mut item = None;
        let mut taken = 0;
        for &byte in chunk.iter() {
            taken += 1;
            if self.in_string {
                self.string_byte(byte);
            } else {
                item = self.structure_byte(byte);
            }
            if item.is_some() {
                break;
            }
        }
        chunk.advance(taken);
        if self.item.len() > OBJECT_LIMIT || self.envelope.len() > ENVELOPE_LIMIT {
            return Err(format!(
                "a list with an item of more than {OBJECT_LIMIT} bytes, or of more than {ENVELOPE_LIMIT} bytes beside them"
            ));
        }
        Ok(item)
    }

    /// Bytes of the item that is arriving.
    pub(super) fn held(&self) -> usize {
        self.item.len()
    }

    /// The end of the answer: gives the list's metadata, or says why this was no complete list.
    pub(super) fn finish(self) -> Result<ListMeta, String> {
        self.end().map(|(_, meta)| meta)
    }

    /// The same, with the kind of the list.
    pub(super) fn end(self) -> Result<(String, ListMeta), String> {
        if !self.closed {
            return Err(match self.envelope.is_empty() {
                true => "empty answer".into(),
                false if self.envelope.starts_with(b"{") => "the list ends too early".into(),
                false => super::error::first_line(&self.envelope),
            });
        }
        let envelope: Envelope = serde_json::from_slice(&self.envelope).map_err(|error| format!("no list: {error}"))?;
        if !envelope.kind.ends_with("List") {
            return Err(format!("a {} instead of a list", envelope.kind));
        }
        let ListMeta {
            resource_version,
            continue_token,
        } = &envelope.metadata;
        if resource_version.len() > LONGEST_VERSION || continue_token.len() > LONGEST_TOKEN {
            return Err("a list with an endless version or token".into());
        }
        Ok((envelope.kind, envelope.metadata))
    }

    fn out(&mut self) -> &mut Vec<u8> {
        if self.in_items && self.depth > 1 {
            &mut self.item
        } else {
            &mut self.envelope
        }
    }

    fn string_byte(&mut self, byte: u8) {
        self.out().push(byte);
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
            return;
        }
        if self.depth == 1 && !self.after_colon {
            self.key.push(byte);
        }
    }

    fn structure_byte(&mut self, byte: u8) -> Option<Bytes> {
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && !self.after_colon {
                    self.key.clear();
                }
            }
            b':' if self.depth == 1 => self.after_colon = true,
            b',' if self.depth == 1 => self.after_colon = false,
            b'{' | b'[' => {
                self.open(byte);
                return None;
            }
            b'}' | b']' => return self.close(byte),
            // Between items: commas and white space.
            b',' | b' ' | b'\n' | b'\r' | b'\t' if self.in_items && self.depth == 2 => return None,
            _ => {}
        }
        self.out().push(byte);
        None
    }

    fn open(&mut self, byte: u8) {
        if self.depth == 1 && byte == b'[' && self.after_colon && self.key == b"items" {
            self.envelope.push(byte);
            self.in_items = true;
            self.depth += 1;
            return;
        }
        self.out().push(byte);
        self.depth += 1;
    }

    fn close(&mut self, byte: u8) -> Option<Bytes> {
        self.depth = self.depth.saturating_sub(1);
        if self.in_items && self.depth == 1 {
            self.in_items = false;
            self.item.clear();
        }
        self.out().push(byte);
        self.closed |= self.depth == 0;
        let complete = self.in_items && self.depth == 2;
        complete.then(|| Bytes::from(std::mem::take(&mut self.item)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits `text` in chunks of `size` bytes.
    fn split(text: &str, size: usize) -> (Vec<String>, Result<ListMeta, String>) {
        let mut splitter = ListSplitter::default();
        let mut items = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            let mut chunk = Bytes::copy_from_slice(chunk);
            while !chunk.is_empty() {
                match splitter.next_item(&mut chunk) {
                    Ok(item) => items.extend(item),
                    Err(error) => return (Vec::new(), Err(error)),
                }
            }
        }
        let items = items
            .into_iter()
            .map(|item| String::from_utf8(item.to_vec()).unwrap())
            .collect();
        (items, splitter.finish())
    }

    fn check(text: &str, expected: &[&str], meta: (&str, &str)) {
        for size in [1, 2, 3, 7, 1000] {
            let (items, end) = split(text, size);
            assert_eq!(items, expected, "chunks of {size}");
            let end = end.unwrap();
            assert_eq!((end.resource_version.as_str(), end.continue_token.as_str()), meta);
        }
    }

    #[test]
    fn splits_items_whatever_the_chunks_and_the_order_of_keys() {
        check(
            r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"abc"},"items":[{"a":1},{"b":{"items":[1,2]}}]}"#,
            &[r#"{"a":1}"#, r#"{"b":{"items":[1,2]}}"#],
            ("7", "abc"),
        );
        check(
            "{\"items\" : [ {\"x\":\"]}\\\"[{\"} ,\n {} ], \"kind\":\"List\", \"metadata\":{\"resourceVersion\":\"9\"} }\n",
            &[r#"{"x":"]}\"[{"}"#, "{}"],
            ("9", ""),
        );
    }

    #[test]
    fn nothing_in_a_list_grows_without_end() {
        let blanks = |megabytes: usize| " ".repeat(megabytes << 20);
        let list = |beside: usize, item: usize| {
            let (beside, item) = (blanks(beside), blanks(item));
            format!(r#"{{"kind":"PodList",{beside}"metadata":{{"resourceVersion":"3"}},"items":[{{{item}}}]}}"#)
        };
        for (text, expected) in [
            (list(0, 7), true),
            (list(0, 9), false),
            (list(2, 0), false),
            (
                format!(
                    r#"{{"kind":"PodList","metadata":{{"continue":"{}"}}}}"#,
                    "x".repeat(1 << 15)
                ),
                false,
            ),
        ] {
            assert_eq!(split(&text, 1 << 20).1.is_ok(), expected);
        }
    }

    #[test]
    fn a_list_without_items_is_a_complete_list() {
        for items in ["[]", "null"] {
            let text = format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"3"}},"items":{items}}}"#);
            check(&text, &[], ("3", ""));
        }
    }

    #[test]
    fn a_key_called_items_elsewhere_is_not_the_list() {
        check(
            r#"{"metadata":{"resourceVersion":"1","items":[{"no":1}]},"note":"items","kind":"XList","items":[{"yes":1}]}"#,
            &[r#"{"yes":1}"#],
            ("1", ""),
        );
    }

    #[test]
    fn what_is_no_complete_list_is_an_error() {
        let whole = r#"{"kind":"PodList","metadata":{"resourceVersion":"3"},"items":[{"a":1},{"b":2}]}"#;
        for end in 0..whole.len() {
            let (_, result) = split(&whole[..end], 5);
            assert!(result.is_err(), "{}", &whole[..end]);
        }
        for text in [
            "<html><body>log in</body></html>",
            r#"{"kind":"Status","metadata":{}}"#,
            "{}",
            "[]",
            "null",
        ] {
            assert!(split(text, 4).1.is_err(), "{text}");
        }
    }
}
