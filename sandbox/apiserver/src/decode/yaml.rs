//! YAML, read as the API server reads it: as another spelling of JSON, with the scalars of YAML 1.1.

use std::collections::{BTreeMap, HashMap};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::json::Json;

/// As deep as JSON is read.
const DEEPEST: usize = 250;
/// Aliases repeat what they stand for; more values than this are taken for an attack.
const MOST_VALUES: usize = 200_000;
/// A text that is repeated counts as a value for each so many bytes.
const BYTES_OF_VALUE: usize = 64;

/// A document, and the keys that repeat in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// Of keys that repeat only the last is left.
    pub(crate) json: Json,
    /// In the words of upstream's reader: `line 4: key "replicas" already set in map`.
    pub(crate) repetitions: Vec<String>,
}

/// Reads the first document of a text; an empty text is null.
///
/// # Errors
///
/// What is wrong, beginning with `yaml: ` as with upstream, the rest in the words of our reader.
pub(crate) fn parse(text: &[u8]) -> Result<Document, String> {
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
        repetitions: Vec::new(),
        values: 0,
    };
    let mut json = Json::Null;
    loop {
        let (event, line) = reader.next()?;
        if matches!(event, Event::StreamEnd | Event::DocumentEnd) {
            break;
        }
        if !matches!(event, Event::StreamStart | Event::DocumentStart(..)) {
            json = reader.node(event, line, 0)?;
        }
    }
    Ok(Document { json, repetitions: reader.repetitions })
}

struct Reader<'text, I: granit_parser::BorrowedInput<'text>> {
    events: Parser<'text, I>,
    anchors: BTreeMap<usize, Json>,
    repetitions: Vec<String>,
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
    fn node(&mut self, event: Event<'text>, line: usize, depth: usize) -> Result<Json, String> {
        self.values += 1;
        check_size(self.values, depth)?;
        #[allow(
            clippy::wildcard_enum_match_arm,
            reason = "the enum is not exhaustive, and a feature of the crate adds to it"
        )]
        let (anchor, json) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix() == "str");
                (anchor, if is_text { Json::String(text.into_owned()) } else { plain(&text) })
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.list(depth)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.map(depth)?),
            Event::Alias(anchor) => {
                let json = self.anchors.get(&anchor).ok_or_else(|| failure(line, "an anchor contains itself"))?;
                let size = size(json);
                self.values += size.values;
                check_size(self.values, depth + size.depth)?;
                return Ok(json.clone());
            }
            Event::UnresolvedAlias(name) => return Err(format!("yaml: unknown anchor '{name}' referenced")),
            other => return Err(failure(line, format!("unexpected {other:?}"))),
        };
        if anchor > 0 {
            // It is kept twice: within what has an anchor itself, too.
            self.values += size(&json).values;
            check_size(self.values, depth)?;
            self.anchors.insert(anchor, json.clone());
        }
        Ok(json)
    }

    fn list(&mut self, depth: usize) -> Result<Json, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Json::List(items)),
                (event, line) => items.push(self.node(event, line, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Json, String> {
        let mut entries: Vec<(String, Json)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut merged = Vec::new();
        loop {
            let (event, line) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key = match self.node(event, line, depth + 1)? {
                Json::String(text) | Json::Number(text) => text,
                Json::Bool(value) => value.to_string(),
                Json::Null => "null".to_owned(),
                Json::List(_) | Json::Map(_) => return Err(failure(line, "invalid map key")),
            };
            let (event, value_line) = self.next()?;
            let value = self.node(event, value_line, depth + 1)?;
            if is_merge {
                merged.push(value);
            } else if let Some(entry) = places.get(&key).and_then(|at| entries.get_mut(*at)) {
                self.repetitions.push(format!("line {line}: key {} already set in map", super::go::quote(&key)));
                entry.1 = value;
            } else {
                places.insert(key.clone(), entries.len());
                entries.push((key, value));
            }
        }
        for value in merged {
            let maps = if let Json::List(items) = value { items } else { vec![value] };
            for (key, value) in maps.into_iter().filter_map(entries_of).flatten() {
                // What a map says itself goes before what it takes over.
                if !places.contains_key(&key) {
                    places.insert(key.clone(), entries.len());
                    entries.push((key, value));
                }
            }
        }
        Ok(Json::Map(entries))
    }
}

fn entries_of(json: Json) -> Option<Vec<(String, Json)>> {
    if let Json::Map(entries) = json { Some(entries) } else { None }
}

fn check_size(values: usize, depth: usize) -> Result<(), String> {
    if depth > DEEPEST || values > MOST_VALUES {
        return Err("yaml: document contains excessive aliasing".to_owned());
    }
    Ok(())
}

/// What it takes to repeat a value.
struct Size {
    values: usize,
    depth: usize,
}

fn size(json: &Json) -> Size {
    let around = |sizes: &mut dyn Iterator<Item = Size>| {
        sizes.fold(Size { values: 1, depth: 1 }, |all, size| Size {
            values: all.values + size.values,
            depth: all.depth.max(size.depth + 1),
        })
    };
    match json {
        Json::List(items) => around(&mut items.iter().map(size)),
        Json::Map(entries) => around(&mut entries.iter().map(|(key, value)| {
            let value = size(value);
            Size { values: value.values + key.len() / BYTES_OF_VALUE, ..value }
        })),
        Json::Number(text) | Json::String(text) => Size { values: 1 + text.len() / BYTES_OF_VALUE, depth: 0 },
        Json::Null | Json::Bool(_) => Size { values: 1, depth: 0 },
    }
}

/// What text without quotes means.
///
/// # Upstream
/// `resolve` of `sigs.k8s.io/yaml/goyaml.v2`
fn plain(text: &str) -> Json {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => Json::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => Json::Bool(false),
        other => number(other).map_or_else(|| Json::String(other.to_owned()), Json::Number),
    }
}

/// A number as JSON spells it.
fn number(text: &str) -> Option<String> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return None;
    }
    let plain = text.replace('_', "");
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let in_base =
        |prefix: &str, base| digits.strip_prefix(prefix).and_then(|rest| u64::from_str_radix(rest, base).ok());
    let whole = in_base("0x", 16)
        .or_else(|| in_base("0b", 2))
        .or_else(|| in_base("0o", 8))
        .or_else(|| in_base("0", 8).filter(|_| digits.len() > 1));
    if let Some(whole) = whole {
        return Some(format!("{sign}{whole}"));
    }
    let mut bytes = digits.bytes();
    let is_number = digits.contains(|c: char| c.is_ascii_digit())
        && bytes.all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !is_number {
        return None;
    }
    if let Ok(whole) = digits.parse::<u64>() {
        return Some(format!("{sign}{whole}"));
    }
    let float = plain.parse::<f64>().ok().filter(|float| float.is_finite())?;
    serde_json::Number::from_f64(float).map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Json {
        parse(text.as_bytes()).expect("the text is YAML").json
    }

    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        for (text, expected) in [
            ("", Json::Null),
            ("~", Json::Null),
            ("yes", Json::Bool(true)),
            ("Off", Json::Bool(false)),
            ("'yes'", Json::String("yes".to_owned())),
            ("!!str 3", Json::String("3".to_owned())),
            ("2020-01-01", Json::String("2020-01-01".to_owned())),
            ("0x10", Json::Number("16".to_owned())),
            ("010", Json::Number("8".to_owned())),
            ("1_000", Json::Number("1000".to_owned())),
            ("-3", Json::Number("-3".to_owned())),
            ("1.50", Json::Number("1.5".to_owned())),
            ("25%", Json::String("25%".to_owned())),
            ("1.2.3", Json::String("1.2.3".to_owned())),
            ("-foo", Json::String("-foo".to_owned())),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn keys_that_repeat_are_told_with_their_line() {
        let document = parse(b"kind: A\nspec:\n  replicas: 3\n  replicas: 4\n").expect("the text is YAML");
        assert_eq!(document.repetitions, ["line 4: key \"replicas\" already set in map"]);
        assert_eq!(document.json.into_value(), serde_json::json!({ "kind": "A", "spec": { "replicas": 4 } }));
    }

    #[test]
    fn anchors_and_merge_keys_are_followed() {
        let json = read("a: &x {b: 1, c: 2}\nd: *x\ne: {<<: *x, c: 3}");
        let expected = serde_json::json!({ "a": { "b": 1, "c": 2 }, "d": { "b": 1, "c": 2 }, "e": { "b": 1, "c": 3 } });
        assert_eq!(json.into_value(), expected);
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]";
        assert_eq!(parse(bomb.as_bytes()), Err("yaml: document contains excessive aliasing".to_owned()));
    }

    #[test]
    fn only_the_first_document_counts() {
        assert_eq!(read("a: 1\n---\nb: 1").into_value(), serde_json::json!({ "a": 1 }));
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
