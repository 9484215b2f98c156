//! Profiles in pprof's format, `profile.proto`. Pure.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::maps::Mapping;

/// A type of values with their unit, such as `cpu` in `nanoseconds`.
pub(super) type ValueType = (&'static str, &'static str);

/// A profile before it is encoded.
#[derive(Debug, Default)]
pub(super) struct Profile {
    /// The types of the values of each sample. Tools show the last type.
    pub(super) types: Vec<ValueType>,
    /// Unit and size of the period between two samples.
    pub(super) period: Option<(ValueType, i64)>,
    /// Time for which samples were taken.
    pub(super) duration_nanos: i64,
    /// The executable parts of the address space, sorted.
    pub(super) mappings: Vec<Mapping>,
    /// Values by thread, if it is known, and stack: addresses within the call instructions, the innermost function
    /// first.
    pub(super) samples: BTreeMap<(Option<String>, Vec<u64>), Vec<i64>>,
    /// Names and starts of functions, by address.
    pub(super) functions: BTreeMap<u64, Function>,
}

/// A function in the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function {
    /// The demangled name of the function.
    pub(super) name: String,
    pub(super) symbol: String,
}

impl Profile {
    /// Adds `values` to the values of the same stack.
    pub(super) fn add(&mut self, thread: Option<String>, stack: Vec<u64>, values: &[i64]) {
        let sums = self.samples.entry((thread, stack)).or_insert_with(|| vec![0; values.len()]);
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.saturating_add(*value);
        }
    }

    /// All addresses of all stacks.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.samples.keys().flat_map(|(_, stack)| stack.iter().copied())
    }

    /// The profile in protobuf, compressed by gzip.
    pub(super) fn encode(&self) -> std::io::Result<Vec<u8>> {
        let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
        zipped.write_all(&self.message().0)?;
        zipped.finish()
    }

    fn message(&self) -> Message {
        let mut strings = Strings::new();
        let mut profile = Message::default();
        let value_type = |strings: &mut Strings, (name, unit): ValueType| {
            let mut message = Message::default();
            message.number(1, strings.index(name));
            message.number(2, strings.index(unit));
            message
        };
        for one in &self.types {
            profile.message(1, &value_type(&mut strings, *one));
        }
        let mut locations = BTreeMap::new();
        for ((thread, stack), values) in &self.samples {
            let mut sample = Message::default();
            let ids: Vec<u64> = stack.iter().map(|address| id_of(&mut locations, *address)).collect();
            sample.packed(1, ids);
            sample.packed(2, values.iter().map(|value| value.cast_unsigned()));
            if let Some(thread) = thread {
                let mut label = Message::default();
                label.number(1, strings.index("thread"));
                label.number(2, strings.index(thread));
                sample.message(3, &label);
            }
            profile.message(2, &sample);
        }
        for (at, mapping) in self.mappings.iter().enumerate() {
            let has_functions = self.functions.keys().any(|address| mapping.range.contains(address));
            let mut message = Message::default();
            message.number(1, at as u64 + 1);
            message.number(2, mapping.range.start);
            message.number(3, mapping.range.end);
            message.number(4, mapping.offset);
            message.number(5, strings.index(&mapping.file));
            message.number(6, strings.index(&mapping.build_id));
            message.number(7, has_functions.into());
            profile.message(3, &message);
        }
        let mut functions = BTreeMap::new();
        for (address, id) in &locations {
            let mapping = self.mappings.iter().position(|mapping| mapping.range.contains(address));
            let mut location = Message::default();
            location.number(1, *id);
            location.number(2, mapping.map_or(0, |at| at as u64 + 1));
            location.number(3, *address);
            if let Some(function) = self.functions.get(address) {
                let mut line = Message::default();
                line.number(1, id_of(&mut functions, function));
                location.message(4, &line);
            }
            profile.message(4, &location);
        }
        for (function, id) in functions {
            let mut message = Message::default();
            message.number(1, id);
            message.number(2, strings.index(&function.name));
            message.number(3, strings.index(&function.symbol));
            profile.message(5, &message);
        }
        profile.number(10, self.duration_nanos.cast_unsigned());
        if let Some((of, amount)) = self.period {
            profile.message(11, &value_type(&mut strings, of));
            profile.number(12, amount.cast_unsigned());
        }
        let shown = self.types.last().map_or(0, |(name, _)| strings.index(name));
        profile.number(14, shown);
        for string in strings.0 {
            profile.bytes(6, string.as_bytes());
        }
        profile
    }
}

/// The identifier of `key`, from 1.
fn id_of<K: Ord>(ids: &mut BTreeMap<K, u64>, key: K) -> u64 {
    let next = ids.len() as u64 + 1;
    *ids.entry(key).or_insert(next)
}

/// The table of strings, whose first is empty.
struct Strings(Vec<String>);

impl Strings {
    fn new() -> Self {
        Self(vec![String::new()])
    }

    fn index(&mut self, string: &str) -> u64 {
        let found = self.0.iter().position(|one| one == string);
        let at = found.unwrap_or_else(|| {
            self.0.push(string.to_owned());
            self.0.len() - 1
        });
        at as u64
    }
}

/// A message of protobuf.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    /// A field that is a number; 0 is the default, and left out.
    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn packed(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.message(field, &packed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn numbers_and_strings_are_encoded_as_protobuf_does() {
        let mut message = Message::default();
        message.number(1, 150);
        message.bytes(2, b"testing");
        message.packed(4, [3, 270, 86942]);
        message.number(5, 0);
        // The examples of protobuf's own description.
        let expected = [
            0x08, 0x96, 0x01, 0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g', 0x22, 0x06, 0x03, 0x8e, 0x02, 0x9e,
            0xa7, 0x05,
        ];
        assert_eq!(message.0, expected);
    }

    #[test]
    fn samples_of_one_stack_are_one() {
        let mut profile = Profile { types: vec![("samples", "count"), ("cpu", "nanoseconds")], ..Profile::default() };
        profile.add(Some("serving".to_owned()), vec![16, 32], &[1, 10]);
        profile.add(Some("serving".to_owned()), vec![16, 32], &[1, 10]);
        profile.add(None, vec![16, 32], &[1, 10]);
        let values: Vec<&[i64]> = profile.samples.values().map(Vec::as_slice).collect();
        assert_eq!(values, [&[1, 10][..], &[2, 20]]);
        assert_eq!(profile.addresses().collect::<Vec<_>>(), [16, 32, 16, 32]);
    }

    #[test]
    fn a_profile_is_compressed_and_begins_with_its_types() {
        let profile = Profile { types: vec![("cpu", "nanoseconds")], ..Profile::default() };
        let mut plain = Vec::new();
        let zipped = profile.encode().expect("memory takes everything");
        flate2::read::GzDecoder::new(&zipped[..]).read_to_end(&mut plain).expect("it is gzip");
        assert_eq!(plain[..6], [0x0a, 0x04, 0x08, 0x01, 0x10, 0x02]);
        assert!(plain.ends_with(b"\x32\x00\x32\x03cpu\x32\x0bnanoseconds"), "{plain:?}");
    }
}
