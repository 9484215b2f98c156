//! JSON with the escapes of Go's `encoding/json`, in which the API server returns objects.
//!
//! They matter if a client compares bytes, such as the data of controller revisions.

use std::io::{self, Write};

use memchr::{memchr_iter, memchr3};
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Appends a value to JSON.
///
/// # Panics
/// If the value is none that JSON has; a [`serde_json::Value`] always is.
pub(crate) fn append(json: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    value.serialize(&mut Serializer::with_formatter(json, GoEscapes)).expect("values are written to memory");
}

/// Compact JSON in which `<`, `>`, `&`, U+2028 and U+2029 are escaped.
struct GoEscapes;

impl Formatter for GoEscapes {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = first_escaped(rest) {
            let (before, from) = rest.split_at(at);
            let mut after = from.chars();
            let escaped = after.next().map_or(0, u32::from);
            write!(writer, "{before}\\u{escaped:04x}")?;
            rest = after.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Returns the index of the first character that is escaped.
fn first_escaped(text: &str) -> Option<usize> {
    let text = text.as_bytes();
    let ascii = memchr3(b'<', b'>', b'&', text);
    let before = &text[..ascii.unwrap_or(text.len())];
    // U+2028 and U+2029.
    let is_separator = |at: &usize| matches!(before[*at..], [_, 0x80, 0xa8 | 0xa9, ..]);
    memchr_iter(0xe2, before).find(is_separator).or(ascii)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::append;

    #[test]
    fn what_go_escapes_is_escaped() {
        let value = json!({ "a<b": ["x && y > z", "\u{2028}\u{2029}\"\n", "plain — „plain“", "…<\u{2028}>", 1] });
        let mut json = Vec::new();
        append(&mut json, &value);
        let json = String::from_utf8(json).unwrap();
        assert_eq!(
            json,
            r#"{"a\u003cb":["x \u0026\u0026 y \u003e z","\u2028\u2029\"\n","plain — „plain“","…\u003c\u2028\u003e",1]}"#
        );
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
    }
}
