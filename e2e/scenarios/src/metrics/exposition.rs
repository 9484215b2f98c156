//! The text format of Prometheus, as far as types, labels and buckets go.

use std::collections::{BTreeMap, BTreeSet};

/// A metric with all of its series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Family {
    /// `counter`, `gauge`, `histogram` or `summary`.
    pub(super) kind: String,
    /// The names of its labels, without those of the format itself.
    pub(super) labels: BTreeSet<String>,
    /// The bounds of a histogram, in order.
    pub(super) buckets: Vec<String>,
    /// The stability that its help begins with, as `ALPHA`; empty without one.
    pub(super) stability: String,
}

/// Reads a page of metrics, by the names of the families.
pub(super) fn read(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in page.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            kind.clone_into(&mut families.entry(name.to_owned()).or_default().kind);
        } else if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            let stability = help.strip_prefix('[').and_then(|help| help.split_once(']'));
            stability
                .map_or("", |(level, _)| level)
                .clone_into(&mut families.entry(name.to_owned()).or_default().stability);
        } else if !line.starts_with('#') && !line.is_empty() {
            sample(line, &mut families);
        }
    }
    families
}

fn sample(line: &str, families: &mut BTreeMap<String, Family>) {
    let (name, labels) = match line.split_once('{') {
        Some((name, rest)) => (name, rest.rsplit_once('}').map_or("", |(labels, _)| labels)),
        None => (line.split(' ').next().unwrap_or_default(), ""),
    };
    let bases = ["_bucket", "_sum", "_count"].into_iter().filter_map(|suffix| name.strip_suffix(suffix));
    let Some(family) = bases.chain([name]).find(|base| families.contains_key(*base)) else { return };
    let family = families.get_mut(family).expect("it was found");
    for (label, value) in pairs(labels) {
        if label == "le" {
            if !family.buckets.contains(&value) {
                family.buckets.push(value);
            }
        } else if label != "quantile" {
            family.labels.insert(label);
        }
    }
}

/// The labels of a sample; a value may hold commas and escaped quotes.
fn pairs(mut rest: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    while let Some((label, after)) = rest.split_once("=\"") {
        let mut escaped = false;
        let end = after.find(|letter| {
            let ends = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        });
        let Some(end) = end else { break };
        pairs.push((label.trim_start_matches(',').to_owned(), after[..end].to_owned()));
        rest = &after[end + 1..];
    }
    pairs
}

/// The sum of the samples of that name which have all of these labels.
pub(super) fn sum(page: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let samples = page.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (found, rest) = series.split_once('{').unwrap_or((series, ""));
        let has = pairs(rest);
        let matches = |(label, value): &(&str, &str)| has.iter().any(|(known, is)| known == label && is == value);
        (found == name && labels.iter().all(matches)).then(|| value.parse::<f64>().ok()).flatten()
    });
    samples.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP requests [ALPHA] Requests.
# TYPE requests counter
requests{code=\"200\",path=\"/a,b\\\"c\"} 3
# TYPE seconds histogram
seconds_bucket{verb=\"GET\",le=\"0.1\"} 1
seconds_bucket{verb=\"GET\",le=\"+Inf\"} 1
seconds_sum{verb=\"GET\"} 0.01
seconds_count{verb=\"GET\"} 1
# TYPE depth gauge
depth 0
";

    #[test]
    fn families_have_their_type_labels_and_buckets() {
        let families = read(PAGE);
        assert_eq!(families.keys().collect::<Vec<_>>(), ["depth", "requests", "seconds"]);
        assert_eq!(families["depth"], Family { kind: "gauge".to_owned(), ..Family::default() });
        assert_eq!(families["requests"].labels, BTreeSet::from(["code".to_owned(), "path".to_owned()]));
        assert_eq!(families["requests"].stability, "ALPHA");
        assert_eq!(families["seconds"].buckets, ["0.1", "+Inf"]);
        assert_eq!(families["seconds"].labels, BTreeSet::from(["verb".to_owned()]));
        assert!((sum(PAGE, "requests", &[("code", "200")]) - 3.0).abs() < f64::EPSILON);
        assert!(sum(PAGE, "requests", &[("code", "404")]).abs() < f64::EPSILON);
    }
}
