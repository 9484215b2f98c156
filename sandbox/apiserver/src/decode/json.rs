//! JSON as it was written: keys that repeat and numbers in their own spelling survive, so that all of it can be told.

use std::str::Chars;

use serde_json::{Number, Value};

use super::go;

/// Far deeper than any object of the API, and shallow enough for recursion. Go stops at 10,000.
const DEEPEST: usize = 250;

/// A value of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// As it is spelled.
    Number(String),
    String(String),
    List(Vec<Json>),
    /// In the order of the text, with keys that repeat.
    Map(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text that is nothing but one value.
    ///
    /// # Errors
    ///
    /// What Go's decoder says of it.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.skip_space();
        match reader.peek() {
            None => Ok(value),
            Some(byte) => Err(unexpected(byte, "after top-level value")),
        }
    }

    /// The value without repetition: of a key that repeats the last one counts.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(text) => Value::Number(number(&text)),
            Self::String(text) => Value::String(text),
            Self::List(items) => Value::Array(items.into_iter().map(Self::into_value).collect()),
            Self::Map(entries) => {
                Value::Object(entries.into_iter().map(|(key, value)| (key, value.into_value())).collect())
            }
        }
    }

    /// What Go's decoder calls values of this type.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
        }
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::String(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(map) => Self::Map(map.into_iter().map(|(key, value)| (key, value.into())).collect()),
        }
    }
}

/// A number where any value may stand: whole where it is spelled so and fits.
fn number(text: &str) -> Number {
    if let Ok(whole) = text.parse::<i64>() {
        return whole.into();
    }
    let float = text.parse::<f64>().unwrap_or_default();
    Number::from_f64(float).unwrap_or_else(|| Number::from(if float > 0.0 { i64::MAX } else { i64::MIN }))
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

fn unexpected(byte: u8, context: &str) -> String {
    format!("invalid character {} {context}", go::quote_byte(byte))
}

fn ended() -> String {
    "unexpected end of JSON input".to_owned()
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte, which must be there.
    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or_else(ended)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn next_after_space(&mut self) -> Result<u8, String> {
        self.skip_space();
        self.next()
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > DEEPEST {
            return Err("exceeded max depth".to_owned());
        }
        match self.next_after_space()? {
            b'{' => self.map(depth),
            b'[' => self.list(depth),
            b'"' => Ok(Json::String(self.string()?)),
            b't' => self.literal("true", Json::Bool(true)),
            b'f' => self.literal("false", Json::Bool(false)),
            b'n' => self.literal("null", Json::Null),
            first @ (b'-' | b'0'..=b'9') => self.number(first),
            other => Err(unexpected(other, "looking for beginning of value")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, String> {
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.next_after_space()? {
                b',' => {}
                b']' => return Ok(Json::List(items)),
                other => return Err(unexpected(other, "after array element")),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Json, String> {
        let mut entries = Vec::new();
        loop {
            match self.next_after_space()? {
                b'"' => {}
                b'}' if entries.is_empty() => return Ok(Json::Map(entries)),
                other => return Err(unexpected(other, "looking for beginning of object key string")),
            }
            let key = self.string()?;
            match self.next_after_space()? {
                b':' => {}
                other => return Err(unexpected(other, "after object key")),
            }
            entries.push((key, self.value(depth + 1)?));
            match self.next_after_space()? {
                b',' => {}
                b'}' => return Ok(Json::Map(entries)),
                other => return Err(unexpected(other, "after object key:value pair")),
            }
        }
    }

    fn literal(&mut self, word: &str, value: Json) -> Result<Json, String> {
        for expected in word.bytes().skip(1) {
            let byte = self.next()?;
            if byte != expected {
                let context = format!("in literal {word} (expecting {})", go::quote_byte(expected));
                return Err(unexpected(byte, &context));
            }
        }
        Ok(value)
    }

    fn number(&mut self, first: u8) -> Result<Json, String> {
        let start = self.at - 1;
        let mut lead = first;
        if first == b'-' {
            lead = self.next()?;
            if !lead.is_ascii_digit() {
                return Err(unexpected(lead, "in numeric literal"));
            }
        }
        if lead != b'0' {
            self.skip_digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        Ok(Json::Number(String::from_utf8_lossy(text).into_owned()))
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        let byte = self.next()?;
        if !byte.is_ascii_digit() {
            return Err(unexpected(byte, context));
        }
        self.skip_digits();
        Ok(())
    }

    fn skip_digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// The rest of a string whose opening quote is read.
    fn string(&mut self) -> Result<String, String> {
        let start = self.at;
        let mut is_escaped = false;
        loop {
            match self.next()? {
                b'"' => break,
                b'\\' => {
                    is_escaped = true;
                    self.escape()?;
                }
                byte @ 0..=0x1f => return Err(unexpected(byte, "in string literal")),
                _ => {}
            }
        }
        let raw = String::from_utf8_lossy(self.text.get(start..self.at - 1).unwrap_or_default()).into_owned();
        Ok(if is_escaped { unescape(&raw) } else { raw })
    }

    fn escape(&mut self) -> Result<(), String> {
        match self.next()? {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    let byte = self.next()?;
                    if !byte.is_ascii_hexdigit() {
                        return Err(unexpected(byte, "in \\u hexadecimal character escape"));
                    }
                }
                Ok(())
            }
            other => Err(unexpected(other, "in string escape code")),
        }
    }
}

/// Replaces escapes that are known to be well formed; half of a surrogate pair becomes the replacement character.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next() {
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => text.push(unicode(&mut rest)),
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

fn unicode(rest: &mut Chars<'_>) -> char {
    let high = code_unit(rest);
    if (0xd800..0xdc00).contains(&high) {
        let mut ahead = rest.clone();
        if ahead.next() == Some('\\') && ahead.next() == Some('u') {
            let low = code_unit(&mut ahead);
            if (0xdc00..0xe000).contains(&low) {
                *rest = ahead;
                return char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                    .unwrap_or(char::REPLACEMENT_CHARACTER);
            }
        }
    }
    char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn code_unit(rest: &mut Chars<'_>) -> u32 {
    rest.by_ref().take(4).filter_map(|c| c.to_digit(16)).fold(0, |unit, digit| unit * 16 + digit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn broken_text_is_refused_in_the_words_of_go() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("  ", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            (r#"{"a":"b"#, "unexpected end of JSON input"),
            ("foo", "invalid character 'o' in literal false (expecting 'a')"),
            ("xx", "invalid character 'x' looking for beginning of value"),
            ("{} {}", "invalid character '{' after top-level value"),
            (r#"{"a":"\q"}"#, "invalid character 'q' in string escape code"),
            (r#"{"a":"\u12g4"}"#, "invalid character 'g' in \\u hexadecimal character escape"),
            ("{\"a\":\"\n\"}", r"invalid character '\n' in string literal"),
            (r#"{"a":01}"#, "invalid character '1' after object key:value pair"),
            (r#"{"a":1.}"#, "invalid character '}' after decimal point in numeric literal"),
            (r#"{"a":1e}"#, "invalid character '}' in exponent of numeric literal"),
            (r#"{"a":-}"#, "invalid character '}' in numeric literal"),
            (r#"{"a":tru}"#, "invalid character '}' in literal true (expecting 'e')"),
            (r#"{"a":1 "b":2}"#, "invalid character '\"' after object key:value pair"),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
            ("{\"a\":é}", "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(Json::parse(text.as_bytes()), Err(expected.to_owned()), "{text}");
        }
        assert_eq!(Json::parse("[".repeat(100_000).as_bytes()), Err("exceeded max depth".to_owned()));
    }

    #[test]
    fn keys_that_repeat_and_numbers_survive() {
        let json = Json::parse(br#"{"a":1.50,"a":1e2}"#).expect("the text is JSON");
        let number = |text: &str| Json::Number(text.to_owned());
        assert_eq!(json, Json::Map(vec![("a".to_owned(), number("1.50")), ("a".to_owned(), number("1e2"))]));
        assert_eq!(json.into_value(), serde_json::json!({ "a": 100.0 }));
    }

    #[test]
    fn escapes_are_replaced() {
        let text = br#""\u00e9\/\n\ud83d\ude00\ud83dx""#;
        assert_eq!(Json::parse(text), Ok(Json::String("é/\n😀\u{fffd}x".to_owned())));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            drop(Json::parse(&bytes));
        }

        #[test]
        fn what_serde_reads_is_read_alike(text in "[\\[\\]{},:\"a1\\-.e\\\\un ]{0,24}") {
            let ours = Json::parse(text.as_bytes()).map(Json::into_value).ok();
            let theirs: Option<Value> = serde_json::from_str(&text).ok();
            // Beyond what a float can hold serde refuses numbers.
            if theirs.is_some() {
                prop_assert_eq!(ours, theirs);
            }
        }
    }
}
