//! The text format of Prometheus, 0.0.4.

use super::family::{Family, Sample, Value, go_number, write_labels};

/// The families in this format.
pub(super) fn write(families: &[Family]) -> String {
    let mut out = String::new();
    for family in families {
        let Family { name, help, kind, samples } = family;
        out.push_str("# HELP ");
        out.push_str(name);
        out.push(' ');
        out.push_str(&help.replace('\\', "\\\\").replace('\n', "\\n"));
        out.push_str("\n# TYPE ");
        out.push_str(name);
        out.push(' ');
        out.push_str(kind.as_str());
        out.push('\n');
        for sample in samples {
            write_sample(&mut out, name, sample, go_number);
        }
    }
    out
}

/// Writes the lines of one sample; `number` formats values and bounds.
pub(super) fn write_sample(out: &mut String, name: &str, sample: &Sample, number: fn(f64) -> String) {
    match &sample.value {
        Value::Number(value) => write_line(out, [name, ""], sample.labels(), &number(*value)),
        Value::Histogram { sum, count, buckets } => {
            for (bound, cumulative) in buckets {
                let bound = number(*bound);
                let labels = sample.labels().chain([("le", bound.as_str())]);
                write_line(out, [name, "_bucket"], labels, &cumulative.to_string());
            }
            write_line(out, [name, "_sum"], sample.labels(), &number(*sum));
            write_line(out, [name, "_count"], sample.labels(), &count.to_string());
        }
    }
}

fn write_line<'a>(
    out: &mut String,
    name: [&str; 2],
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    value: &str,
) {
    for part in name {
        out.push_str(part);
    }
    write_labels(out, labels);
    out.push(' ');
    out.push_str(value);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::family::Kind;
    use super::*;

    #[test]
    fn families_are_written_with_the_names_of_their_samples() {
        let labels = vec![("verb".to_owned(), "a\"b".to_owned())];
        let families = [
            Family {
                name: "adds_total".to_owned(),
                help: "Adds".to_owned(),
                kind: Kind::Counter,
                samples: vec![Sample { labels: labels.clone(), value: Value::Number(3.0) }],
            },
            Family {
                name: "seconds".to_owned(),
                help: "Time".to_owned(),
                kind: Kind::Histogram,
                samples: vec![Sample {
                    labels,
                    value: Value::Histogram { sum: 0.25, count: 2, buckets: vec![(1e-8, 1), (f64::INFINITY, 2)] },
                }],
            },
        ];
        let expected = "\
# HELP adds_total Adds
# TYPE adds_total counter
adds_total{verb=\"a\\\"b\"} 3
# HELP seconds Time
# TYPE seconds histogram
seconds_bucket{verb=\"a\\\"b\",le=\"1e-08\"} 1
seconds_bucket{verb=\"a\\\"b\",le=\"+Inf\"} 2
seconds_sum{verb=\"a\\\"b\"} 0.25
seconds_count{verb=\"a\\\"b\"} 2
";
        assert_eq!(write(&families), expected);
    }
}
