//! `OpenMetrics` 1.0.0 in text.

use super::family::{Family, Kind, go_number};
use super::text::write_sample;

/// The families in this format.
pub(super) fn write(families: &[Family]) -> String {
    let mut out = String::new();
    for Family { name, help, kind, samples } in families {
        let declared = if *kind == Kind::Counter { name.strip_suffix("_total").unwrap_or(name) } else { name };
        let sampled = if *kind == Kind::Counter { format!("{declared}_total") } else { name.clone() };
        let kind = if *kind == Kind::Untyped { "unknown" } else { kind.as_str() };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
        for line in [&format!("# HELP {declared} {help}\n"), &format!("# TYPE {declared} {kind}\n")] {
            out.push_str(line);
        }
        for sample in samples {
            write_sample(&mut out, &sampled, sample, number);
        }
    }
    out.push_str("# EOF\n");
    out
}

/// Bounds of buckets are floats here: `1.0`.
fn number(value: f64) -> String {
    let text = go_number(value);
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') { text + ".0" } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::family::{Sample, Value};
    use super::*;

    #[test]
    fn counters_are_declared_without_their_suffix_and_the_end_is_marked() {
        let sample = Sample { labels: Vec::new(), value: Value::Number(3.0) };
        let (name, help) = ("adds_total".to_owned(), "Adds".to_owned());
        let family = Family { name, help, kind: Kind::Counter, samples: vec![sample] };
        let page = "# HELP adds Adds\n# TYPE adds counter\nadds_total 3.0\n# EOF\n";
        assert_eq!(write(std::slice::from_ref(&family)), page);
        assert_eq!(write(&[Family { name: "adds".to_owned(), ..family }]), page, "whatever upstream's name is");
    }
}
