//! Families of metrics as values, read from what `prometheus_client` writes.

use std::fmt::Write as _;

/// The counters whose upstream name has no `_total`. `OpenMetrics` wants it: there they have it.
const WITHOUT_TOTAL: &[&str] = &[
    "attach_detach_controller_attachdetach_controller_forced_detaches",
    "authenticated_user_requests",
    "authentication_attempts",
    "endpoint_slice_controller_changes",
    "endpoint_slice_controller_syncs",
    "endpoint_slice_mirroring_controller_changes",
];

/// The type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Untyped,
}

/// A family of metrics.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Family {
    /// The name under which Prometheus keeps the samples. The name of a counter ends in `_total`, unless upstream's
    /// does not.
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) kind: Kind,
    pub(crate) samples: Vec<Sample>,
}

/// Names and values of labels.
pub(super) type Labels = Vec<(String, String)>;

/// A metric of a family: its labels and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) labels: Labels,
    pub(crate) value: Value,
}

/// The value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Histogram {
        sum: f64,
        count: u64,
        /// Upper bounds and cumulative counts, the last of infinity.
        buckets: Vec<(f64, u64)>,
    },
}

impl Value {
    /// Adds another value of the same family.
    pub(super) fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Number(number), Self::Number(more)) => *number += more,
            (
                Self::Histogram { sum, count, buckets },
                Self::Histogram { sum: more_sum, count: more_count, buckets: more },
            ) => {
                *sum += more_sum;
                *count += more_count;
                for ((_, cumulative), (_, more)) in buckets.iter_mut().zip(more) {
                    *cumulative += more;
                }
            }
            (Self::Number(_), Self::Histogram { .. }) | (Self::Histogram { .. }, Self::Number(_)) => {}
        }
    }

    /// Number of observations that it counts.
    pub(super) fn observations(&self, kind: Kind) -> f64 {
        match self {
            Self::Number(number) if kind == Kind::Counter => *number,
            Self::Number(_) => 1.0,
            #[expect(clippy::cast_precision_loss, reason = "Prometheus has doubles alone")]
            Self::Histogram { count, .. } => *count as f64,
        }
    }
}

impl Kind {
    /// The name in `# TYPE`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Untyped => "untyped",
        }
    }
}

impl Family {
    /// The families that `prometheus_client` wrote, in its order; families without samples are left out.
    pub(crate) fn read(exposition: &str) -> Vec<Self> {
        let mut families = Vec::new();
        let mut current: Option<Self> = None;
        let mut help = String::new();
        for line in exposition.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                families.extend(current.take());
                let text = rest.split_once(' ').map_or("", |(_, text)| text);
                // The encoder ends each with a full stop.
                text.strip_suffix('.').unwrap_or(text).clone_into(&mut help);
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                families.extend(current.take());
                current =
                    rest.split_once(' ').map(|(name, kind)| Self::declared(name, kind, std::mem::take(&mut help)));
            } else if !line.starts_with('#')
                && let Some(family) = &mut current
            {
                family.read_sample(line);
            }
        }
        families.extend(current);
        families.retain(|family| !family.samples.is_empty());
        families
    }

    fn declared(name: &str, kind: &str, help: String) -> Self {
        let (name, kind) = match kind {
            "counter" if WITHOUT_TOTAL.contains(&name) => (name.to_owned(), Kind::Counter),
            "counter" => (format!("{name}_total"), Kind::Counter),
            "gauge" => (name.to_owned(), Kind::Gauge),
            "info" => (format!("{name}_info"), Kind::Gauge),
            "histogram" => (name.to_owned(), Kind::Histogram),
            _unknown => (name.to_owned(), Kind::Untyped),
        };
        Self { name, help, kind, samples: Vec::new() }
    }

    fn read_sample(&mut self, line: &str) {
        let Some((name, mut labels, number)) = split_sample(line) else { return };
        if self.kind != Kind::Histogram {
            self.samples.push(Sample { labels, value: Value::Number(number) });
            return;
        }
        let Some(part) = name.strip_prefix(self.name.as_str()) else { return };
        let bound = (part == "_bucket").then(|| take_bound(&mut labels)).flatten();
        if self.samples.last().is_none_or(|last| last.labels != labels) {
            self.samples.push(Sample { labels, value: Value::Histogram { sum: 0.0, count: 0, buckets: Vec::new() } });
        }
        let Some(Sample { value: Value::Histogram { sum, count, buckets }, .. }) = self.samples.last_mut() else {
            return;
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are whole numbers")]
        let whole = number as u64;
        match (part, bound) {
            ("_sum", _) => *sum = number,
            ("_count", _) => *count = whole,
            ("_bucket", Some(bound)) => buckets.push((bound, whole)),
            _unknown => {}
        }
    }
}

/// Name, labels and value of the line of a sample.
fn split_sample(line: &str) -> Option<(&str, Labels, f64)> {
    let (series, number) = line.rsplit_once(' ')?;
    let number = number.parse().ok()?;
    let Some((name, labels)) = series.split_once('{') else { return Some((series, Vec::new(), number)) };
    Some((name, split_labels(labels.strip_suffix('}')?), number))
}

/// The labels between the braces, unescaped.
fn split_labels(mut rest: &str) -> Labels {
    let mut labels = Vec::new();
    while let Some((name, after)) = rest.split_once("=\"") {
        let mut value = String::new();
        let mut characters = after.char_indices();
        let mut end = after.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => value.extend(characters.next().map(|(_, escaped)| if escaped == 'n' { '\n' } else { escaped })),
                other => value.push(other),
            }
        }
        labels.push((name.to_owned(), value));
        rest = after.get(end..).unwrap_or_default().trim_start_matches(',');
    }
    labels
}

fn take_bound(labels: &mut Labels) -> Option<f64> {
    let at = labels.iter().position(|(name, _)| name == "le")?;
    let (_, bound) = labels.remove(at);
    if bound == "+Inf" { Some(f64::INFINITY) } else { bound.parse().ok() }
}

/// Writes labels between braces, and nothing without any.
pub(super) fn write_labels<'a>(out: &mut String, labels: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let mut separator = '{';
    for (name, value) in labels {
        out.push(separator);
        out.push_str(name);
        out.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                other => out.push(other),
            }
        }
        out.push('"');
        separator = ',';
    }
    if separator == ',' {
        out.push('}');
    }
}

impl Sample {
    pub(super) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// A number as Go prints it in an exposition: the shortest digits, with an exponent from 1e-05 down and 1e+06 up (upstream:
/// `strconv.FormatFloat(value, 'g', -1, 64)`), so that bounds of buckets are equal as strings.
pub(super) fn go_number(value: f64) -> String {
    const LEAST: i32 = -4;
    const MOST: i32 = 6;
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (LEAST..MOST).contains(&exponent) {
        return value.to_string();
    }
    let mut text = digits.to_owned();
    let sign = if exponent < 0 { '-' } else { '+' };
    let written = write!(text, "e{sign}{:02}", exponent.unsigned_abs());
    debug_assert!(written.is_ok(), "writing to a string never fails");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPOSITION: &str = "\
# HELP adds Total number of adds.
# TYPE adds counter
adds_total{name=\"a\\\"b\\\\c\\nd,e}\",verb=\"GET\"} 3
# HELP depth Depth.
# TYPE depth gauge
depth -2
# HELP empty Nothing.
# TYPE empty gauge
# HELP seconds Time.
# TYPE seconds histogram
seconds_sum{verb=\"GET\"} 0.25
seconds_count{verb=\"GET\"} 2
seconds_bucket{le=\"0.1\",verb=\"GET\"} 1
seconds_bucket{le=\"+Inf\",verb=\"GET\"} 2
seconds_sum{verb=\"PUT\"} 0
seconds_count{verb=\"PUT\"} 0
seconds_bucket{le=\"0.1\",verb=\"PUT\"} 0
seconds_bucket{le=\"+Inf\",verb=\"PUT\"} 0
# EOF
";

    #[test]
    fn families_are_read_with_their_labels_and_values() {
        let families = Family::read(EXPOSITION);
        let [adds, depth, seconds] = &families[..] else { panic!("{families:?}") };
        assert_eq!(
            (adds.name.as_str(), adds.help.as_str(), adds.kind),
            ("adds_total", "Total number of adds", Kind::Counter)
        );
        let labels = vec![("name".to_owned(), "a\"b\\c\nd,e}".to_owned()), ("verb".to_owned(), "GET".to_owned())];
        assert_eq!(adds.samples, [Sample { labels, value: Value::Number(3.0) }]);
        assert_eq!((depth.kind, &depth.samples[0].value), (Kind::Gauge, &Value::Number(-2.0)));
        assert_eq!(seconds.samples.len(), 2);
        let buckets = vec![(0.1, 1), (f64::INFINITY, 2)];
        assert_eq!(seconds.samples[0].value, Value::Histogram { sum: 0.25, count: 2, buckets });
        assert_eq!(seconds.samples[1].labels, [("verb".to_owned(), "PUT".to_owned())]);
    }

    #[test]
    fn a_counter_has_the_suffix_unless_upstreams_has_none() {
        for (written, name) in [("adds", "adds_total"), ("authentication_attempts", "authentication_attempts")] {
            let families = Family::read(&format!("# TYPE {written} counter\n{written}_total 1\n"));
            assert_eq!((families[0].name.as_str(), &families[0].samples[0].value), (name, &Value::Number(1.0)));
        }
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (value, written) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1e-8, "1e-08"),
            (9.999_999_999_999_999e-6, "9.999999999999999e-06"),
            (1e-4, "0.0001"),
            (f64::INFINITY, "+Inf"),
            (604_800.0, "604800"),
            (1_048_576.0, "1.048576e+06"),
        ] {
            assert_eq!(go_number(value), written);
        }
    }
}
