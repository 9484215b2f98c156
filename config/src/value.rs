//! The types of settings, and the spelling of their values in flags and variables.

use std::fmt;
use std::time::Duration;

use crate::duration::GoDuration;

/// The type of a setting. Its name is the one that upstream's help prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// True or false, in any of Go's spellings.
    Bool,
    /// A 32-bit whole number, in any of Go's bases.
    Int32,
    /// A 32-bit number; infinities and NaN are refused, unlike upstream.
    Float32,
    /// A duration in Go's notation.
    Duration,
    /// Any string.
    String,
    /// A list: comma separated, with quotes as in CSV; a repeated flag appends.
    Strings,
    /// The verbosity of the log: a decimal 32-bit whole number.
    Level,
    /// `Gate=bool` pairs, comma separated; a repeated flag appends.
    FeatureGates,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of [`Kind::Bool`].
    Bool(bool),
    /// Of [`Kind::Int32`] and [`Kind::Level`].
    Int32(i32),
    /// Of [`Kind::Float32`].
    Float32(f32),
    /// Of [`Kind::Duration`].
    Duration(GoDuration),
    /// Of [`Kind::String`].
    String(String),
    /// Of [`Kind::Strings`], and of [`Kind::FeatureGates`] as one `Gate=bool` per item.
    Strings(Vec<String>),
}

impl Kind {
    /// The name of the type in upstream's help.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int32 => "int32",
            Self::Float32 => "float32",
            Self::Duration => "duration",
            Self::String => "string",
            Self::Strings => "strings",
            Self::Level => "Level",
            Self::FeatureGates => "colonSeparatedMultimapStringString",
        }
    }

    /// The expected form of a value, as the end of the sentence "expected …".
    #[must_use]
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Int32 | Self::Level => "a whole number from -2147483648 to 2147483647",
            Self::Float32 => "a number",
            Self::Duration => "a duration with units, such as 1m30s",
            Self::String => "text",
            Self::Strings => "a comma separated list",
            Self::FeatureGates => "a comma separated list of Gate=true or Gate=false",
        }
    }

    /// Parses a value as pflag does; `None` when the string is not of this type.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<Value> {
        match self {
            Self::Bool => parse_bool(text).map(Value::Bool),
            Self::Int32 => parse_int32(text).map(Value::Int32),
            Self::Float32 => parse_float32(text).map(Value::Float32),
            Self::Duration => text.parse().ok().map(Value::Duration),
            Self::String => Some(Value::String(text.to_owned())),
            Self::Strings => parse_csv(text).map(Value::Strings),
            Self::Level => text.parse().ok().map(Value::Int32),
            Self::FeatureGates => Some(Value::Strings(
                text.split(',').filter(|pair| !pair.is_empty()).map(|pair| pair.trim().to_owned()).collect(),
            )),
        }
    }
}

/// Parses what `strconv.ParseBool` accepts.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Parses what `strconv.ParseInt` accepts with base 0: a base prefix (`0x`, `0o`, `0b`, or `0` for octal) and
/// underscores between digits.
fn parse_int32(text: &str) -> Option<i32> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (base, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // A prefix counts as a digit, so `0x_ff` and `0_7` are numbers and `_7` is not.
    let prefixed = digits.len() < unsigned.len();
    if digits.ends_with('_') || digits.contains("__") || (digits.starts_with('_') && !prefixed) {
        return None;
    }
    let digits = digits.replace('_', "");
    // `from_str_radix` would take a second sign.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i64::from_str_radix(&digits, base).ok()?;
    i32::try_from(if negative { -magnitude } else { magnitude }).ok()
}

fn parse_float32(text: &str) -> Option<f32> {
    text.parse::<f32>().ok().filter(|number| number.is_finite())
}

/// One CSV record as Go's `encoding/csv` reads it. Nothing at all is an empty list.
fn parse_csv(text: &str) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut rest = text;
    while !text.is_empty() {
        let (field, after) = if rest.starts_with('"') { quoted_field(rest)? } else { bare_field(rest)? };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    Some(fields)
}

fn bare_field(text: &str) -> Option<(String, &str)> {
    let (field, after) = text.split_at(text.find(',').unwrap_or(text.len()));
    let is_plain = !field.contains(['"', '\n', '\r']);
    is_plain.then(|| (field.to_owned(), after))
}

fn quoted_field(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut rest = text.strip_prefix('"')?;
    loop {
        let (part, after) = rest.split_once('"')?;
        field.push_str(part);
        match after.strip_prefix('"') {
            Some(next) => {
                field.push('"');
                rest = next;
            }
            None if after.is_empty() || after.starts_with(',') => return Some((field, after)),
            None => return None,
        }
    }
}

impl fmt::Display for Value {
    /// The value as a flag accepts it: parsing it returns an equal value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int32(value) => value.fmt(f),
            Self::Float32(value) => value.fmt(f),
            Self::Duration(value) => value.fmt(f),
            Self::String(value) => value.fmt(f),
            Self::Strings(items) => {
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        f.write_str(",")?;
                    }
                    let lone_empty = item.is_empty() && items.len() == 1;
                    if lone_empty || item.contains([',', '"', '\n', '\r']) {
                        write!(f, "\"{}\"", item.replace('"', "\"\""))?;
                    } else {
                        f.write_str(item)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// A Rust type for settings of one kind.
pub trait FromValue: Sized {
    /// The value as this type, `None` when the setting is of another type.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($variant:ident => $target:ty, $convert:expr;)*) => {$(
        impl FromValue for $target {
            fn from_value(value: &Value) -> Option<Self> {
                if let Value::$variant(inner) = value { Some($convert(inner)) } else { None }
            }
        }
    )*};
}

from_value! {
    Bool => bool, Clone::clone;
    Int32 => i32, Clone::clone;
    Float32 => f32, Clone::clone;
    Duration => GoDuration, Clone::clone;
    Duration => Duration, |duration: &GoDuration| duration.unsigned();
    String => String, Clone::clone;
    Strings => Vec<String>, Clone::clone;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(items: &[&str]) -> Value {
        Value::Strings(items.iter().map(|&item| item.to_owned()).collect())
    }

    #[test]
    fn booleans_take_every_spelling_of_go_and_no_other() {
        for text in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(Kind::Bool.parse(text), Some(Value::Bool(true)), "{text}");
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(Kind::Bool.parse(text), Some(Value::Bool(false)), "{text}");
        }
        for text in ["", "yes", "on", "tRUE", " true", "2"] {
            assert_eq!(Kind::Bool.parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn whole_numbers_take_the_bases_of_go() {
        let cases = [
            ("30", Some(30)),
            ("-1", Some(-1)),
            ("+7", Some(7)),
            ("0", Some(0)),
            ("0x1F", Some(31)),
            ("0X_1f", Some(31)),
            ("017", Some(15)),
            ("0o17", Some(15)),
            ("0b101", Some(5)),
            ("1_000", Some(1000)),
            ("0_7", Some(7)),
            ("2147483647", Some(i32::MAX)),
            ("-2147483648", Some(i32::MIN)),
            ("2147483648", None),
            ("08", None),
            ("0x", None),
            ("", None),
            ("-", None),
            ("--1", None),
            ("0x-1", None),
            ("_1", None),
            ("1_", None),
            ("1__0", None),
            ("1.0", None),
            ("1e3", None),
            (" 1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Kind::Int32.parse(text), expected.map(Value::Int32), "{text:?}");
        }
        assert_eq!(Kind::Level.parse("0x4"), None, "the verbosity is decimal");
        assert_eq!(Kind::Level.parse("4"), Some(Value::Int32(4)));
    }

    #[test]
    fn numbers_are_finite() {
        let cases = [("20", Some(20.0)), ("1e3", Some(1000.0)), ("-.5", Some(-0.5)), ("1e40", None), ("NaN", None)];
        for (text, expected) in cases {
            assert_eq!(Kind::Float32.parse(text), expected.map(Value::Float32), "{text:?}");
        }
    }

    #[test]
    fn lists_are_read_as_csv() {
        assert_eq!(Kind::Strings.parse(""), Some(strings(&[])));
        assert_eq!(Kind::Strings.parse("*,-foo"), Some(strings(&["*", "-foo"])));
        assert_eq!(Kind::Strings.parse("a, b"), Some(strings(&["a", " b"])));
        assert_eq!(Kind::Strings.parse("a,"), Some(strings(&["a", ""])));
        assert_eq!(Kind::Strings.parse("\"a,b\",\"say \"\"x\"\"\""), Some(strings(&["a,b", "say \"x\""])));
        for text in ["a\"b", "\"a", "\"a\"b", "a\nb"] {
            assert_eq!(Kind::Strings.parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn gates_are_pairs_without_empty_ones() {
        assert_eq!(Kind::FeatureGates.parse("A=true, B=false,,"), Some(strings(&["A=true", "B=false"])));
    }

    proptest! {
        #[test]
        fn a_printed_list_reads_back(items in prop::collection::vec("[a-z,\"\n *-]{0,6}", 0..5)) {
            let value = Value::Strings(items);
            prop_assert_eq!(Kind::Strings.parse(&value.to_string()), Some(value));
        }

        #[test]
        fn a_printed_number_reads_back(whole: i32, number in prop::num::f32::NORMAL) {
            prop_assert_eq!(Kind::Int32.parse(&whole.to_string()), Some(Value::Int32(whole)));
            prop_assert_eq!(Kind::Float32.parse(&Value::Float32(number).to_string()), Some(Value::Float32(number)));
        }

        #[test]
        fn what_is_read_prints_as_text_that_reads_back(text: String) {
            for kind in [Kind::Bool, Kind::Int32, Kind::Float32, Kind::Strings, Kind::Level] {
                let value = kind.parse(&text);
                prop_assert!(value.is_none_or(|value| kind.parse(&value.to_string()) == Some(value)));
            }
        }
    }
}
