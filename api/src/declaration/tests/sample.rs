//! Objects made up from a declaration, as the API server would serve them in both forms.

use serde_json::{Map, Value, json};

use super::schema::{Schema, Upstream, is_inlined};
use crate::protobuf::tests::encode::{field as bytes_field, number as number_field};
use crate::protobuf::{Kind, Message};

/// Numbers that follow from a seed: the generator `SplitMix64`.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("an index")]
    }
}

/// Values that decide something in some view, and others.
const STRINGS: [&str; 16] = [
    "",
    "a",
    "b",
    "10",
    "007",
    "Ünï\"\\\n",
    "Ready",
    "True",
    "False",
    "Running",
    "Failed",
    "Always",
    "In",
    "Exists",
    "RollingUpdate",
    "Terminating",
];

/// Makes objects of upstream's types from a schema.
pub(super) struct Sampler<'a> {
    pub(super) schema: &'a Schema,
    pub(super) random: Random,
    /// The annotations that the view keeps.
    pub(super) annotations: &'static [&'static str],
}

impl Sampler<'_> {
    /// Makes an object of upstream's type with the declared fields, some of them unset, and a field that is not
    /// declared.
    pub(super) fn object(&mut self, message: &Message, of: &str) -> (Map<String, Value>, Vec<u8>) {
        let mut json = Map::new();
        let message = self.fields(message, of, false, &mut json);
        (json, message)
    }

    fn fields(&mut self, message: &Message, of: &str, is_zero: bool, json: &mut Map<String, Value>) -> Vec<u8> {
        let mut encoded = vec![bytes_field(1 << 20, b"unknown")];
        json.insert("fieldOfAnotherRelease".to_owned(), json!({"a": [1, {}]}));
        for field in message {
            if let (true, Kind::One(message)) = (is_inlined(field), field.kind) {
                encoded.push(bytes_field(field.number, &self.fields(message, of, is_zero, json)));
                continue;
            }
            let upstream = self.schema.field(of, field.name);
            let is_unset = is_zero || self.random.one_in(4);
            let (value, bytes) = self.field(field.number, field.name, field.kind, upstream, is_unset);
            match value {
                Some(value) => drop(json.insert(field.name.to_owned(), value)),
                None if self.random.one_in(2) => drop(json.insert(field.name.to_owned(), Value::Null)),
                None => {}
            }
            encoded.push(bytes);
        }
        // Fields of protobuf may come in any order.
        for at in (1..encoded.len()).rev() {
            let other = usize::try_from(self.random.below(at as u64 + 1)).expect("an index");
            encoded.swap(at, other);
        }
        encoded.concat()
    }

    /// A field in both forms. JSON leaves out empty values that are not pointers; protobuf has them.
    fn field(
        &mut self,
        number: u32,
        name: &str,
        kind: Kind,
        upstream: Upstream,
        is_unset: bool,
    ) -> (Option<Value>, Vec<u8>) {
        if is_unset && upstream.is_pointer {
            return (None, Vec::new());
        }
        match kind {
            Kind::List(_) | Kind::Map(_) if is_unset => (None, Vec::new()),
            Kind::One(_) if is_unset && !upstream.is_embedded => (None, Vec::new()),
            Kind::List(element) => {
                let type_ = &upstream.type_[1..upstream.type_.len() - 1];
                let elements: Vec<_> =
                    (0..self.random.below(4)).map(|_| self.value(number, *element, type_, false)).collect();
                let (values, bytes): (Vec<_>, Vec<_>) = elements.into_iter().unzip();
                (Some(Value::from(values)), bytes.concat())
            }
            Kind::Map(value) => self.map(number, name, *value, upstream),
            Kind::Text
            | Kind::Integer
            | Kind::Flag
            | Kind::Time
            | Kind::Bytes
            | Kind::IntOrString
            | Kind::Quantity
            | Kind::One(_) => {
                let (value, bytes) = self.value(number, kind, upstream.type_, is_unset);
                let is_empty = [json!(""), json!(0), json!(false), Value::Null].contains(&value);
                ((upstream.is_pointer || upstream.is_always_written || !is_empty).then_some(value), bytes)
            }
        }
    }

    fn map(&mut self, number: u32, name: &str, kind: Kind, upstream: Upstream) -> (Option<Value>, Vec<u8>) {
        let type_ = &upstream.type_[1..upstream.type_.len() - 1];
        let mut keys: Vec<&str> = STRINGS.into_iter().filter(|_| self.random.one_in(5)).collect();
        if name == "annotations" {
            keys.extend(self.annotations);
        }
        let (mut json, mut bytes) = (Map::new(), Vec::new());
        for key in keys {
            let (value, encoded) = self.value(2, kind, type_, false);
            json.insert(key.to_owned(), value);
            bytes.extend(bytes_field(number, &[bytes_field(1, key.as_bytes()), encoded].concat()));
        }
        (Some(Value::Object(json)), bytes)
    }

    /// A value that is neither a list nor a map.
    fn value(&mut self, number: u32, kind: Kind, type_: &str, is_zero: bool) -> (Value, Vec<u8>) {
        let random = &mut self.random;
        match kind {
            Kind::Text => {
                let text = if is_zero { "" } else { random.pick(&STRINGS) };
                (text.into(), bytes_field(number, text.as_bytes()))
            }
            Kind::Integer => {
                let value = if is_zero { 0 } else { random.pick(&[0, 1, -1, 7, i64::from(i32::MAX)]) };
                (value.into(), number_field(number, value))
            }
            Kind::Flag => {
                let flag = !is_zero && random.one_in(2);
                (flag.into(), number_field(number, flag.into()))
            }
            Kind::Time if is_zero => (Value::Null, bytes_field(number, b"")),
            Kind::Time => {
                let seconds = i64::try_from(random.below(1 << 32)).expect("32 bits");
                let time = jiff::Timestamp::from_second(seconds).expect("a time of our century").to_string();
                (time.into(), bytes_field(number, &number_field(1, seconds)))
            }
            Kind::IntOrString => {
                let count = i64::try_from(random.below(3)).expect("small");
                let percent = format!("{count}0%");
                let is_string = !is_zero && random.one_in(2);
                let message = [
                    number_field(1, is_string.into()),
                    number_field(2, if is_string || is_zero { 0 } else { count }),
                    bytes_field(3, if is_string { percent.as_bytes() } else { b"" }),
                ];
                let value = if is_string { percent.into() } else { json!(if is_zero { 0 } else { count }) };
                (value, bytes_field(number, &message.concat()))
            }
            Kind::Quantity => {
                let text = if is_zero { "0" } else { random.pick(&["0", "100m", "1.5Gi", "1e3"]) };
                (text.into(), bytes_field(number, &bytes_field(1, text.as_bytes())))
            }
            Kind::One(message) => {
                let mut json = Map::new();
                let bytes = self.fields(message, type_, is_zero, &mut json);
                (json.into(), bytes_field(number, &bytes))
            }
            Kind::Bytes | Kind::List(_) | Kind::Map(_) => panic!("no declared field holds {kind:?} there"),
        }
    }
}
