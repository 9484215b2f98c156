//! YAML, read as the API server reads it: as another form of JSON, with the scalars of YAML 1.1.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use serde_json::{Map, Value};

use super::json::Document;

/// As deep as JSON is read.
const DEEPEST: usize = 250;
/// Aliases repeat what they stand for; more values than this are taken for an attack.
const MOST_VALUES: usize = 200_000;
/// A text that is repeated counts as a value for each so many bytes.
const BYTES_OF_VALUE: usize = 64;

/// Reads the first document of a text; an empty text is null.
///
/// # Errors
///
/// The parser's message, after `yaml: ` and the line.
pub(super) fn parse(text: &[u8]) -> Result<Document, String> {
    let text = std::str::from_utf8(text).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
    };
    let mut reader = Reader {
        events: Parser::new_from_str_with_options(text, options),
        anchors: BTreeMap::new(),
        repeated: Vec::new(),
        values: 0,
    };
    let mut value = Value::Null;
    loop {
        let (event, line) = reader.next()?;
        if matches!(event, Event::StreamEnd | Event::DocumentEnd) {
            break;
        }
        if !matches!(event, Event::StreamStart | Event::DocumentStart(..)) {
            value = reader.node(event, line, 0)?;
        }
    }
    Ok(Document { value, repeated: reader.repeated })
}

struct Reader<'text, I: granit_parser::BorrowedInput<'text>> {
    events: Parser<'text, I>,
    anchors: BTreeMap<usize, Value>,
    repeated: Vec<String>,
    values: usize,
}

fn failure(line: usize, why: impl std::fmt::Display) -> String {
    format!("yaml: line {line}: {why}")
}

impl<'text, I: granit_parser::BorrowedInput<'text>> Reader<'text, I> {
    fn next(&mut self) -> Result<(Event<'text>, usize), String> {
        let next: Option<Result<(Event<'text>, Span), ScanError>> = self.events.next();
        match next {
            Some(Ok((event, span))) => Ok((event, span.start.line().max(1))),
            Some(Err(error)) => Err(failure(error.marker().line().max(1), error.info())),
            None => Err(failure(1, "the document does not end")),
        }
    }

    /// The value that begins with `event`.
    fn node(&mut self, event: Event<'text>, line: usize, depth: usize) -> Result<Value, String> {
        self.values += 1;
        check_size(self.values, depth)?;
        #[allow(
            clippy::wildcard_enum_match_arm,
            reason = "the enum is not exhaustive, and a feature of the crate adds to it"
        )]
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix() == "str");
                (anchor, if is_text { text.into_owned().into() } else { plain(&text) })
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.map(depth)?),
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).ok_or_else(|| failure(line, "an anchor contains itself"))?;
                let size = size(value);
                self.values += size.values;
                check_size(self.values, depth + size.depth)?;
                return Ok(value.clone());
            }
            Event::UnresolvedAlias(name) => return Err(format!("yaml: unknown anchor '{name}' referenced")),
            other => return Err(failure(line, format!("unexpected {other:?}"))),
        };
        if anchor > 0 {
            // It is kept twice: within what has an anchor itself, too.
            self.values += size(&value).values;
            check_size(self.values, depth)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, line) => items.push(self.node(event, line, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, String> {
        let mut entries = Map::new();
        let mut merged = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key = match self.node(event, line, depth + 1)? {
                Value::String(text) => text,
                scalar @ (Value::Number(_) | Value::Bool(_) | Value::Null) => scalar.to_string(),
                Value::Array(_) | Value::Object(_) => return Err(failure(line, "invalid map key")),
            };
            let (event, value_line) = self.next()?;
            let value = self.node(event, value_line, depth + 1)?;
            if is_merge {
                merged.push(value);
                continue;
            }
            if entries.contains_key(&key) {
                self.repeated.push(format!("line {line}: key {key:?} already set in map"));
            }
            entries.insert(key, value);
        }
        for value in merged {
            let maps = if let Value::Array(items) = value { items } else { vec![value] };
            for map in maps {
                let Value::Object(map) = map else { continue };
                for (key, value) in map {
                    // The entries of a map take precedence over those that it merges.
                    entries.entry(key).or_insert(value);
                }
            }
        }
        Ok(Value::Object(entries))
    }
}

fn check_size(values: usize, depth: usize) -> Result<(), String> {
    if depth > DEEPEST || values > MOST_VALUES {
        return Err("yaml: document contains excessive aliasing".to_owned());
    }
    Ok(())
}

/// The size of a repeated value.
struct Size {
    values: usize,
    depth: usize,
}

fn size(value: &Value) -> Size {
    let around = |sizes: &mut dyn Iterator<Item = Size>| {
        sizes.fold(Size { values: 1, depth: 1 }, |all, size| Size {
            values: all.values + size.values,
            depth: all.depth.max(size.depth + 1),
        })
    };
    match value {
        Value::Array(items) => around(&mut items.iter().map(size)),
        Value::Object(entries) => around(&mut entries.iter().map(|(key, value)| {
            let value = size(value);
            Size { values: value.values + key.len() / BYTES_OF_VALUE, ..value }
        })),
        Value::String(text) => Size { values: 1 + text.len() / BYTES_OF_VALUE, depth: 0 },
        Value::Null | Value::Bool(_) | Value::Number(_) => Size { values: 1, depth: 0 },
    }
}

/// Returns the value of a text without quotes.
///
/// # Upstream
/// `resolve` of `sigs.k8s.io/yaml/goyaml.v2`
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => true.into(),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => false.into(),
        other => number(other).unwrap_or_else(|| other.into()),
    }
}

fn number(text: &str) -> Option<Value> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return None;
    }
    let plain = text.replace('_', "");
    let (is_negative, digits) = match plain.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let in_base = |prefix: &str, base| {
        let rest = digits.strip_prefix(prefix)?;
        if rest.starts_with(['+', '-']) { None } else { i64::from_str_radix(rest, base).ok() }
    };
    let whole = in_base("0x", 16)
        .or_else(|| in_base("0b", 2))
        .or_else(|| in_base("0o", 8))
        .or_else(|| in_base("0", 8).filter(|_| digits.len() > 1))
        .or_else(|| digits.parse().ok())
        .filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()));
    if let Some(whole) = whole {
        return Some(if is_negative { -whole } else { whole }.into());
    }
    let is_number = digits.contains(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !is_number {
        return None;
    }
    let float = plain.parse::<f64>().ok().filter(|float| float.is_finite())?;
    serde_json::Number::from_f64(float).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        parse(text.as_bytes()).expect("the text is YAML").value
    }

    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        for (text, expected) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("'yes'", json!("yes")),
            ("!!str 3", json!("3")),
            ("2020-01-01", json!("2020-01-01")),
            ("0x10", json!(16)),
            ("010", json!(8)),
            ("1_000", json!(1000)),
            ("-3", json!(-3)),
            ("1.50", json!(1.5)),
            ("25%", json!("25%")),
            ("1.2.3", json!("1.2.3")),
            ("-foo", json!("-foo")),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn keys_that_repeat_are_told_with_their_line() {
        let document = parse(b"kind: A\nspec:\n  replicas: 3\n  replicas: 4\n").expect("the text is YAML");
        assert_eq!(document.repeated, ["line 4: key \"replicas\" already set in map"]);
        assert_eq!(document.value, json!({ "kind": "A", "spec": { "replicas": 4 } }));
    }

    #[test]
    fn anchors_and_merge_keys_are_followed() {
        let json = read("a: &x {b: 1, c: 2}\nd: *x\ne: {<<: *x, c: 3}");
        let expected = json!({ "a": { "b": 1, "c": 2 }, "d": { "b": 1, "c": 2 }, "e": { "b": 1, "c": 3 } });
        assert_eq!(json, expected);
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]";
        assert_eq!(parse(bomb.as_bytes()), Err("yaml: document contains excessive aliasing".to_owned()));
    }

    #[test]
    fn only_the_first_document_counts() {
        assert_eq!(read("a: 1\n---\nb: 1"), json!({ "a": 1 }));
    }

    #[test]
    fn what_is_not_yaml_is_refused() {
        for text in ["a: [", "a: b: c", "a: *b", "? [a]\n: 3"] {
            let why = parse(text.as_bytes()).expect_err("the text is not YAML that JSON can spell");
            assert!(why.starts_with("yaml: "), "{text:?}: {why}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            drop(parse(&bytes));
        }

        #[test]
        fn no_yaml_like_text_panics(text in "[-a1:?\\[\\]{},&*!|>'\"%@#~< \n\t]{0,60}") {
            drop(parse(text.as_bytes()));
        }
    }
}
