//! Selects the metrics and label values of a scrape.

use std::collections::{BTreeMap, BTreeSet};

use super::family::{Family, Kind, Sample, Value};
use super::stability::Stability;

/// The label value that replaces a value that is not allowed.
///
/// # Upstream
/// `k8s.io/component-base/metrics`, `MetricLabelAllowList`.
const UNEXPECTED: &str = "unexpected";

/// The metric that counts what is shown as unexpected.
const UNEXPECTED_TOTAL: &str = "cardinality_enforcement_unexpected_categorizations_total";

/// Settings that select the metrics and label values of a scrape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpositionOptions {
    disabled: BTreeSet<String>,
    /// The allowed values, by metric and label.
    allowed: BTreeMap<(String, String), BTreeSet<String>>,
    shows_hidden: bool,
}

/// A key of allowed label values that names no metric and label.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not METRIC,LABEL")]
pub struct NotAMetricLabel(String);

impl ExpositionOptions {
    /// Leaves out metrics by their names.
    #[must_use]
    pub fn disabled(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.disabled.extend(names);
        self
    }

    /// Shows metrics that are hidden since the minor version before this one.
    #[must_use]
    pub fn show_hidden(self, shows_hidden: bool) -> Self {
        Self { shows_hidden, ..self }
    }

    /// Shows other values of a label than these as unexpected; keys are `METRIC,LABEL`, and values are joined by commas.
    ///
    /// # Errors
    /// A key does not have that form.
    pub fn allow(mut self, pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, NotAMetricLabel> {
        for (key, values) in pairs {
            let Some((metric, label)) = key.split_once(',') else { return Err(NotAMetricLabel(key)) };
            let values = values.split(',').map(|value| value.trim().to_owned()).collect();
            self.allowed.insert((metric.to_owned(), label.to_owned()), values);
        }
        Ok(self)
    }

    /// Leaves out what is disabled or hidden, replaces label values that are not allowed, and adds what is counted of that.
    pub(crate) fn apply(&self, families: &mut Vec<Family>) {
        families.extend(registered(families));
        let (mut hidden, mut disabled) = (0, 0);
        families.retain(|family| {
            let is_disabled = self.disabled.contains(&family.name);
            let is_hidden = !is_disabled && !self.shows_hidden && Stability::is_hidden(&family.name);
            (disabled, hidden) = (disabled + i32::from(is_disabled), hidden + i32::from(is_hidden));
            !is_disabled && !is_hidden
        });
        let unexpected: f64 = families.iter_mut().map(|family| self.replace_labels(family)).sum();
        let counters = [
            ("hidden_metrics_total", "[BETA] Metrics that are hidden as deprecated", f64::from(hidden)),
            ("disabled_metrics_total", "[BETA] Metrics that --disabled-metrics leaves out", f64::from(disabled)),
            (UNEXPECTED_TOTAL, "[ALPHA] Label values that --allow-metric-labels shows as unexpected", unexpected),
        ];
        families.extend(counters.into_iter().filter(|(name, ..)| !self.disabled.contains(*name)).map(counter));
        families.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Replaces the label values of a family that are not allowed, merges the samples that are equal then, and returns how
    /// many observations that concerns.
    fn replace_labels(&self, family: &mut Family) -> f64 {
        let mut unexpected = 0.0;
        let name = &family.name;
        let limits: Vec<_> = self.allowed.iter().filter(|((metric, _), _)| metric == name).collect();
        if limits.is_empty() {
            return unexpected;
        }
        for sample in &mut family.samples {
            let observations = sample.value.observations(family.kind);
            for (label, value) in &mut sample.labels {
                let allowed = limits.iter().find(|((_, limited), _)| limited == label);
                if allowed.is_some_and(|(_, values)| !values.contains(value)) {
                    UNEXPECTED.clone_into(value);
                    unexpected += observations;
                }
            }
        }
        let mut merged: Vec<Sample> = Vec::with_capacity(family.samples.len());
        for sample in family.samples.drain(..) {
            match merged.iter_mut().find(|known| known.labels == sample.labels) {
                Some(known) => known.value.add(&sample.value),
                None => merged.push(sample),
            }
        }
        family.samples = merged;
        unexpected
    }
}

/// The metric that counts the metrics by their stability.
fn registered(families: &[Family]) -> Option<Family> {
    let mut counts: BTreeMap<(String, &str), f64> = BTreeMap::new();
    for family in families {
        if let Some(stability) = Stability::of(family) {
            *counts.entry((Stability::deprecated_version(&family.name), stability.as_str())).or_default() += 1.0;
        }
    }
    let samples: Vec<_> = counts
        .into_iter()
        .map(|((deprecated, level), count)| Sample {
            labels: vec![
                ("deprecated_version".to_owned(), deprecated),
                ("stability_level".to_owned(), level.to_owned()),
            ],
            value: Value::Number(count),
        })
        .collect();
    let (name, help) =
        ("registered_metrics_total", "[BETA] Metrics by their stability and the version of their deprecation");
    (!samples.is_empty()).then(|| Family { name: name.to_owned(), help: help.to_owned(), kind: Kind::Counter, samples })
}

fn counter((name, help, value): (&str, &str, f64)) -> Family {
    let sample = Sample { labels: Vec::new(), value: Value::Number(value) };
    Family { name: name.to_owned(), help: help.to_owned(), kind: Kind::Counter, samples: vec![sample] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(name: &str, verbs: &[(&str, f64)]) -> Family {
        let sample = |(verb, value): &(&str, f64)| Sample {
            labels: vec![("verb".to_owned(), (*verb).to_owned())],
            value: Value::Number(*value),
        };
        let samples = verbs.iter().map(sample).collect();
        Family { name: name.to_owned(), help: String::new(), kind: Kind::Counter, samples }
    }

    fn value(families: &[Family], name: &str) -> Option<f64> {
        let family = families.iter().find(|family| family.name == name)?;
        match family.samples[0].value {
            Value::Number(number) => Some(number),
            Value::Histogram { .. } => None,
        }
    }

    #[test]
    fn a_disabled_metric_is_left_out_and_counted() {
        let mut families = vec![family("a_total", &[("GET", 1.0)]), family("b_total", &[("GET", 1.0)])];
        ExpositionOptions::default().disabled(["a_total".to_owned()]).apply(&mut families);
        assert!(value(&families, "a_total").is_none() && value(&families, "b_total").is_some());
        assert_eq!(value(&families, "disabled_metrics_total"), Some(1.0));
        assert_eq!(value(&families, "hidden_metrics_total"), Some(0.0));
    }

    #[test]
    fn values_that_are_not_allowed_are_merged_into_unexpected() {
        let verbs = [("GET", 1.0), ("PUT", 2.0), ("POST", 4.0)];
        let options = ExpositionOptions::default().allow([("a_total,verb".to_owned(), "GET,LIST".to_owned())]).unwrap();
        let mut families = vec![family("a_total", &verbs), family("b_total", &verbs)];
        options.apply(&mut families);
        assert_eq!(families[0], family("a_total", &[("GET", 1.0), ("unexpected", 6.0)]));
        assert_eq!(families[1], family("b_total", &verbs), "families are sorted by name");
        assert_eq!(value(&families, UNEXPECTED_TOTAL), Some(6.0));
    }

    #[test]
    fn histograms_are_merged_by_their_buckets() {
        let histogram =
            |count| Value::Histogram { sum: 1.0, count, buckets: vec![(1.0, count), (f64::INFINITY, count)] };
        let sample =
            |verb: &str, count| Sample { labels: vec![("verb".to_owned(), verb.to_owned())], value: histogram(count) };
        let samples = vec![sample("PUT", 2), sample("POST", 3)];
        let (name, help) = ("a".to_owned(), String::new());
        let mut families = vec![Family { name, help, kind: Kind::Histogram, samples }];
        let options = ExpositionOptions::default().allow([("a,verb".to_owned(), "GET".to_owned())]).unwrap();
        options.apply(&mut families);
        let buckets = vec![(1.0, 5), (f64::INFINITY, 5)];
        assert_eq!(families[0].samples.len(), 1);
        assert_eq!(families[0].samples[0].value, Value::Histogram { sum: 2.0, count: 5, buckets });
        assert_eq!(value(&families, UNEXPECTED_TOTAL), Some(5.0));
    }

    #[test]
    fn a_key_without_a_label_is_refused() {
        let error = ExpositionOptions::default().allow([("a".to_owned(), "b".to_owned())]).unwrap_err();
        assert_eq!(error.to_string(), "\"a\" is not METRIC,LABEL");
    }
}
