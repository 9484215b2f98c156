//! The types of settings.

use super::parse::{
    parse_bool, parse_cert_keys, parse_csv, parse_int, parse_int32s, parse_ip, parse_map, parse_module_levels,
};
use super::{Value, WrittenQuantity};

/// The type of a setting. It has the name that upstream's help prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// True or false, in any of Go's spellings.
    Bool,
    /// A 32-bit whole number, in any of Go's bases.
    Int32,
    /// A 64-bit whole number, in any of Go's bases.
    Int,
    /// A 32-bit number; infinities and NaN are refused, unlike upstream.
    Float32,
    /// A 64-bit number; infinities and NaN are refused, unlike upstream.
    Float64,
    /// A duration in Go's notation.
    Duration,
    /// A string, without further rules.
    String,
    /// A list: comma separated, with quotes as in CSV; a repeated flag appends.
    Strings,
    /// A list of 32-bit whole numbers: comma separated; a repeated flag appends.
    Int32s,
    /// An IP address, version 4 or 6.
    Ip,
    /// `key=value` pairs: comma separated, with quotes as in CSV; a repeated flag adds pairs.
    Map,
    /// `CERT,KEY[:NAME,...]`: files of a certificate and its key, and the host names that it is for; a repeated flag
    /// appends.
    CertKeys,
    /// A Kubernetes quantity of bytes, such as 64Ki.
    Quantity,
    /// The verbosity of the log: a decimal 32-bit whole number.
    Level,
    /// `pattern=N` pairs, comma separated: the verbosity of modules; a repeated flag appends.
    ModuleLevels,
    /// `Gate=bool` pairs, comma separated; a repeated flag appends.
    FeatureGates,
    /// A list of structures of strings, which only a file can set.
    Objects,
}

impl Kind {
    /// The name of the type in upstream's help.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int32 => "int32",
            Self::Int => "int",
            Self::Float32 => "float32",
            Self::Float64 => "float",
            Self::Duration => "duration",
            Self::String => "string",
            Self::Strings => "strings",
            Self::Int32s => "int32Slice",
            Self::Ip => "ip",
            Self::Map => "stringToString",
            Self::CertKeys => "namedCertKey",
            Self::Quantity => "quantity",
            Self::Level => "Level",
            Self::ModuleLevels => "pattern=N,...",
            Self::FeatureGates => "colonSeparatedMultimapStringString",
            Self::Objects => "objects",
        }
    }

    /// The expected form of a value, as the end of the sentence "expected …".
    #[must_use]
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Int32 | Self::Level => "a whole number from -2147483648 to 2147483647",
            Self::Int => "a whole number",
            Self::Float32 | Self::Float64 => "a number",
            Self::Duration => "a duration with units, such as 1m30s",
            Self::String => "text",
            Self::Strings => "a comma separated list",
            Self::Int32s => "a comma separated list of whole numbers",
            Self::Ip => "an IP address",
            Self::Map => "a comma separated list of key=value",
            Self::CertKeys => "the files of a certificate and its key as CERT,KEY or CERT,KEY:NAME,NAME",
            Self::Quantity => "a quantity, such as 64Ki",
            Self::ModuleLevels => "a comma separated list of pattern=N",
            Self::FeatureGates => "a comma separated list of Gate=true or Gate=false",
            Self::Objects => "a list of maps",
        }
    }

    /// Parses a value like pflag. Returns `None` if the string is not of this type.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<Value> {
        match self {
            Self::Bool => parse_bool(text).map(Value::Bool),
            Self::Int32 => i32::try_from(parse_int(text)?).ok().map(Value::Int32),
            Self::Int => parse_int(text).map(Value::Int),
            Self::Float32 => text.parse::<f32>().ok().filter(|number| number.is_finite()).map(Value::Float32),
            Self::Float64 => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::Float64),
            Self::Duration => text.parse().ok().map(Value::Duration),
            Self::String => Some(Value::String(text.to_owned())),
            Self::Strings => parse_csv(text).map(Value::Strings),
            Self::Int32s => parse_int32s(text).map(Value::Int32s),
            Self::Ip => parse_ip(text).map(Value::Ip),
            Self::Map => parse_map(text).map(Value::Map),
            Self::CertKeys => parse_cert_keys(text).map(Value::CertKeys),
            Self::Quantity => text.parse::<WrittenQuantity>().ok().map(Value::Quantity),
            Self::Level => text.parse().ok().map(Value::Int32),
            Self::ModuleLevels => parse_module_levels(text).map(Value::ModuleLevels),
            Self::FeatureGates => Some(Value::Strings(
                text.split(',').filter(|pair| !pair.is_empty()).map(|pair| pair.trim().to_owned()).collect(),
            )),
            Self::Objects => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::{CertKey, ModuleLevel};

    const ALL: [Kind; 15] = [
        Kind::Bool,
        Kind::Int32,
        Kind::Int,
        Kind::Float32,
        Kind::Float64,
        Kind::Duration,
        Kind::String,
        Kind::Strings,
        Kind::Int32s,
        Kind::Ip,
        Kind::Map,
        Kind::CertKeys,
        Kind::Quantity,
        Kind::Level,
        Kind::ModuleLevels,
    ];

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

    #[test]
    fn lists_of_numbers_maps_and_addresses_are_read_as_pflag_reads_them() {
        assert_eq!(Kind::Int32s.parse("29,0x17"), Some(Value::Int32s(vec![29, 23])));
        assert_eq!(Kind::Int32s.parse("29,"), None);
        assert_eq!(Kind::Int.parse("4294967296"), Some(Value::Int(4_294_967_296)));
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
            Some(Value::Map(pairs.collect()))
        };
        assert_eq!(Kind::Map.parse("metric,label=a,b"), map(&[("metric,label", "a,b")]));
        assert_eq!(Kind::Map.parse("a=1,b=2"), map(&[("a", "1"), ("b", "2")]));
        assert_eq!(Kind::Map.parse("\"m,l=a,b\",n=2=3"), map(&[("m,l", "a,b"), ("n", "2=3")]));
        assert_eq!(Kind::Map.parse("a"), None);
        assert_eq!(Kind::Ip.parse(" ::1 "), Some(Value::Ip(std::net::Ipv6Addr::LOCALHOST.into())));
        assert_eq!(Kind::Ip.parse(""), Kind::Ip.parse("0.0.0.0"));
        assert_eq!(Kind::Ip.parse("256.0.0.1"), None);
    }

    #[test]
    fn certificates_are_pairs_of_files_with_names() {
        let pair = |cert: &str, key: &str, names: &[&str]| CertKey {
            cert: cert.to_owned(),
            key: key.to_owned(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        let cases = [
            ("a.crt,a.key", Some(vec![pair("a.crt", "a.key", &[])])),
            (" a , b : *.x, y ", Some(vec![pair("a", "b", &["*.x", "y"])])),
            ("a,b;c,d:x", Some(vec![pair("a", "b", &[]), pair("c", "d", &["x"])])),
            ("a,b:", None),
            ("a", None),
            ("a,b,c", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Kind::CertKeys.parse(text), expected.map(Value::CertKeys), "{text:?}");
        }
    }

    #[test]
    fn modules_have_levels() {
        let level = |pattern: &str, level| ModuleLevel { pattern: pattern.to_owned(), level };
        let cases = [
            ("", Some(vec![])),
            ("a=1,,b*=2147483647,", Some(vec![level("a", 1), level("b*", i32::MAX)])),
            ("a", None),
            ("=1", None),
            ("a=", None),
            ("a=-1", None),
            ("a=1=2", None),
            ("a=2147483648", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Kind::ModuleLevels.parse(text), expected.map(Value::ModuleLevels), "{text:?}");
        }
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
            for kind in ALL {
                let value = kind.parse(&text);
                prop_assert!(value.is_none_or(|value| kind.parse(&value.to_string()) == Some(value)));
            }
        }
    }
}
