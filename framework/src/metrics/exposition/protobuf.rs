//! The protobuf format of Prometheus: messages `io.prometheus.client.MetricFamily`, each after its length.
//!
//! The fields follow `metrics.proto` in `github.com/prometheus/client_model`.

use super::family::{Family, Kind, Sample, Value};

/// The families in this format.
pub(super) fn write(families: &[Family]) -> Vec<u8> {
    let mut out = Vec::new();
    for family in families {
        let mut message = Vec::new();
        text(&mut message, 1, &family.name);
        text(&mut message, 2, &family.help);
        let kind = match family.kind {
            Kind::Counter => 0,
            Kind::Gauge => 1,
            Kind::Untyped => 3,
            Kind::Histogram => 4,
        };
        number(&mut message, 3, kind);
        for sample in &family.samples {
            nested(&mut message, 4, &metric(sample, family.kind));
        }
        varint(&mut out, message.len() as u64);
        out.extend(message);
    }
    out
}

fn metric(sample: &Sample, kind: Kind) -> Vec<u8> {
    let mut message = Vec::new();
    for (name, value) in sample.labels() {
        let mut pair = Vec::new();
        text(&mut pair, 1, name);
        text(&mut pair, 2, value);
        nested(&mut message, 1, &pair);
    }
    let mut value = Vec::new();
    match &sample.value {
        Value::Number(number) => {
            double(&mut value, 1, *number);
            let field = match kind {
                Kind::Gauge => 2,
                Kind::Counter => 3,
                Kind::Untyped | Kind::Histogram => 5,
            };
            nested(&mut message, field, &value);
        }
        Value::Histogram { sum, count, buckets } => {
            number(&mut value, 1, *count);
            double(&mut value, 2, *sum);
            // As clients in Go, which leave infinity to the count.
            for (bound, cumulative) in buckets.iter().filter(|(bound, _)| bound.is_finite()) {
                let mut bucket = Vec::new();
                number(&mut bucket, 1, *cumulative);
                double(&mut bucket, 2, *bound);
                nested(&mut value, 3, &bucket);
            }
            nested(&mut message, 7, &value);
        }
    }
    message
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

fn tag(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    varint(out, field << 3 | wire_type);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    tag(out, field, 0);
    varint(out, value);
}

fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    tag(out, field, 1);
    out.extend(value.to_le_bytes());
}

fn nested(out: &mut Vec<u8>, field: u64, message: &[u8]) {
    tag(out, field, 2);
    varint(out, message.len() as u64);
    out.extend(message);
}

fn text(out: &mut Vec<u8>, field: u64, text: &str) {
    nested(out, field, text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_written_after_its_length_as_clients_in_go_write_it() {
        let labels = vec![("n".to_owned(), "v".to_owned())];
        let sample = Sample { labels, value: Value::Number(1.0) };
        let family = Family { name: "a".to_owned(), help: "h".to_owned(), kind: Kind::Gauge, samples: vec![sample] };
        let one = [0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
        let expected = [
            &[29, 0x0a, 1, b'a', 0x12, 1, b'h', 0x18, 1, 0x22, 19][..],
            &[0x0a, 6, 0x0a, 1, b'n', 0x12, 1, b'v', 0x12, 9, 0x09],
            &one,
        ];
        assert_eq!(write(&[family]), expected.concat());
    }

    #[test]
    fn a_histogram_has_its_finite_buckets() {
        let value = Value::Histogram { sum: 1.0, count: 300, buckets: vec![(1.0, 2), (f64::INFINITY, 300)] };
        let sample = Sample { labels: Vec::new(), value };
        let written = metric(&sample, Kind::Histogram);
        let one = [0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
        let expected = [&[0x3a, 25, 0x08, 0xac, 2, 0x11][..], &one, &[0x1a, 11, 0x08, 2, 0x11], &one].concat();
        assert_eq!(written, expected);
    }
}
