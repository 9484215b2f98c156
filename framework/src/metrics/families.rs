//! Metric families of controllers, registered by name.

use std::any::Any;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use super::Metrics;

/// The stability of a metric, which its help begins with.
///
/// # Upstream
/// `StabilityLevel` in `k8s.io/component-base/metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// Not stated, as for metrics that upstream does not have.
    Unstated,
    /// `[ALPHA]`
    Alpha,
    /// `[BETA]`
    Beta,
    /// `[STABLE]`
    Stable,
}

impl Stability {
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Unstated => "",
            Self::Alpha => "[ALPHA] ",
            Self::Beta => "[BETA] ",
            Self::Stable => "[STABLE] ",
        }
    }
}

/// A metric that cannot be registered: a mistake of the controller's author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// Another metric has the name.
    #[error("the metric {name} is registered already, with another type or other labels: choose another name")]
    NameTaken {
        /// The name that is registered already.
        name: &'static str,
    },
    /// The name of a counter does not end in `_total`.
    #[error("the counter {name} must be named as it is scraped, with the ending `_total`")]
    NoTotal {
        /// The name of the counter.
        name: &'static str,
    },
}

type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];

/// A family of metrics `M`, one for each combination of the values of `N` labels. Clones are one family.
pub struct Labeled<M, const N: usize, C = fn() -> M> {
    names: [&'static str; N],
    family: Family<Labels<N>, M, C>,
}

/// Counters for each combination of label values.
pub type Counters<const N: usize> = Labeled<Counter, N>;
/// Gauges of whole numbers for each combination of label values.
pub type Gauges<const N: usize> = Labeled<Gauge, N>;
/// Gauges of numbers with a fraction for each combination of label values.
pub type FloatGauges<const N: usize> = Labeled<Gauge<f64, AtomicU64>, N>;
/// Histograms for each combination of label values.
pub type Histograms<const N: usize> = Labeled<Histogram, N, OfBuckets>;

/// Makes histograms with these upper bounds.
#[derive(Clone)]
pub struct OfBuckets(Arc<[f64]>);

impl MetricConstructor<Histogram> for OfBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

impl<M, const N: usize, C: Clone> Clone for Labeled<M, N, C> {
    fn clone(&self) -> Self {
        Self { names: self.names, family: self.family.clone() }
    }
}

impl<M, const N: usize, C> fmt::Debug for Labeled<M, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Labeled").field("labels", &self.names).finish_non_exhaustive()
    }
}

impl<M: Clone, const N: usize, C: MetricConstructor<M>> Labeled<M, N, C> {
    /// Returns the metric with these values of the labels, in the order of their registration.
    ///
    /// A metric is exposed from the first call on.
    pub fn of<V: Into<Cow<'static, str>>>(&self, values: [V; N]) -> M {
        self.family.get_or_create(&self.labels(values)).clone()
    }

    /// Removes the metric with these values of the labels.
    pub fn remove<V: Into<Cow<'static, str>>>(&self, values: [V; N]) {
        self.family.remove(&self.labels(values));
    }

    fn labels<V: Into<Cow<'static, str>>>(&self, values: [V; N]) -> Labels<N> {
        let mut values = values.into_iter().map(Into::into);
        self.names.map(|name| (name, values.next().unwrap_or_default()))
    }
}

impl<M: Clone, C: MetricConstructor<M>> Labeled<M, 0, C> {
    /// Returns the only metric of a family without labels, which is not exposed before the first call.
    pub fn get(&self) -> M {
        self.of::<&'static str>([])
    }
}

/// Upper bounds of a histogram: `count` of them, from `start` on, each `factor` times the previous bound.
///
/// # Upstream
/// `ExponentialBuckets` in `k8s.io/component-base/metrics`.
#[must_use]
pub fn exponential_buckets(start: f64, factor: f64, count: u16) -> Vec<f64> {
    prometheus_client::metrics::histogram::exponential_buckets(start, factor, count).collect()
}

/// The default upper bounds of histograms of seconds.
///
/// # Upstream
/// `DefBuckets` in `k8s.io/component-base/metrics`.
pub const DEFAULT_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The metrics that controllers registered, by name.
pub(super) type ByName = HashMap<&'static str, Box<dyn Any + Send + Sync>>;

/// Registration of the metrics of controllers.
///
/// A metric is named as it is scraped, so that a search for the name finds it; labels are named once, here. A metric is
/// registered once: another call for the name, as by a controller that is initialized again, returns the same metric.
///
/// ```
/// use kcm_framework::metrics::{Counters, MetricError, Stability};
/// use kcm_framework::{ControllerContext, Metrics};
///
/// fn greetings(metrics: &Metrics) -> Result<Counters<1>, MetricError> {
///     metrics.counters(Stability::Unstated, "greeter_greetings_total", ["result"], "Greetings by result")
/// }
///
/// # fn main() -> Result<(), MetricError> {
/// let metrics = Metrics::new();
/// greetings(&metrics)?.of(["sent"]).inc();
/// assert!(metrics.encode().contains(r#"greeter_greetings_total{result="sent"} 1"#));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Each method fails if the name is registered with another type or other labels, or if a counter's name does not end in
/// `_total`.
impl Metrics {
    /// A counter without labels.
    pub fn counter(
        &self,
        stability: Stability,
        name: &'static str,
        help: &'static str,
    ) -> Result<Counter, MetricError> {
        self.register_named(stability, name, without_total(name)?, help, Counter::default)
    }

    /// A gauge of a whole number, without labels.
    pub fn gauge(&self, stability: Stability, name: &'static str, help: &'static str) -> Result<Gauge, MetricError> {
        self.register_named(stability, name, name, help, Gauge::default)
    }

    /// A histogram without labels; `buckets` are its upper bounds.
    pub fn histogram(
        &self,
        stability: Stability,
        name: &'static str,
        buckets: impl IntoIterator<Item = f64>,
        help: &'static str,
    ) -> Result<Histogram, MetricError> {
        self.register_named(stability, name, name, help, || Histogram::new(buckets))
    }

    /// Counters by the values of these labels.
    pub fn counters<const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        labels: [&'static str; N],
        help: &'static str,
    ) -> Result<Counters<N>, MetricError> {
        let of_name = without_total(name)?;
        self.family(stability, name, of_name, labels, help, || {
            Family::new_with_constructor(Counter::default as fn() -> _)
        })
    }

    /// Gauges of whole numbers by the values of these labels.
    pub fn gauges<const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        labels: [&'static str; N],
        help: &'static str,
    ) -> Result<Gauges<N>, MetricError> {
        self.family(stability, name, name, labels, help, || Family::new_with_constructor(Gauge::default as fn() -> _))
    }

    /// Gauges of numbers with a fraction by the values of these labels.
    pub fn float_gauges<const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        labels: [&'static str; N],
        help: &'static str,
    ) -> Result<FloatGauges<N>, MetricError> {
        self.family(stability, name, name, labels, help, || Family::new_with_constructor(Gauge::default as fn() -> _))
    }

    /// Histograms by the values of these labels; `buckets` are their upper bounds.
    pub fn histograms<const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        labels: [&'static str; N],
        buckets: impl IntoIterator<Item = f64>,
        help: &'static str,
    ) -> Result<Histograms<N>, MetricError> {
        self.family(stability, name, name, labels, help, || {
            Family::new_with_constructor(OfBuckets(buckets.into_iter().collect()))
        })
    }

    fn family<M, const N: usize, C>(
        &self,
        stability: Stability,
        name: &'static str,
        registered: &'static str,
        names: [&'static str; N],
        help: &'static str,
        new: impl FnOnce() -> Family<Labels<N>, M, C>,
    ) -> Result<Labeled<M, N, C>, MetricError>
    where
        Family<Labels<N>, M, C>: Metric + Clone,
        M: Send + Sync + 'static,
        C: Clone + Send + Sync + 'static,
    {
        let mut by_name = self.by_name.lock();
        if let Some(known) = by_name.get(name) {
            let known = known.downcast_ref::<Labeled<M, N, C>>().filter(|known| known.names == names);
            return known.cloned().ok_or(MetricError::NameTaken { name });
        }
        let labeled = Labeled { names, family: new() };
        register(&mut self.registry.lock(), stability, registered, help, labeled.family.clone());
        by_name.insert(name, Box::new(labeled.clone()));
        Ok(labeled)
    }

    fn register_named<M: Metric + Clone>(
        &self,
        stability: Stability,
        name: &'static str,
        registered: &'static str,
        help: &'static str,
        new: impl FnOnce() -> M,
    ) -> Result<M, MetricError> {
        let mut by_name = self.by_name.lock();
        if let Some(known) = by_name.get(name) {
            return known.downcast_ref::<M>().cloned().ok_or(MetricError::NameTaken { name });
        }
        let metric = new();
        register(&mut self.registry.lock(), stability, registered, help, metric.clone());
        by_name.insert(name, Box::new(metric.clone()));
        Ok(metric)
    }
}

fn register(registry: &mut Registry, stability: Stability, name: &str, help: &str, metric: impl Metric) {
    registry.register(name, format!("{}{help}", stability.prefix()), metric);
}

/// The text format appends `_total` to the names of counters.
fn without_total(name: &'static str) -> Result<&'static str, MetricError> {
    name.strip_suffix("_total").ok_or(MetricError::NoTotal { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_of_one_name_is_registered_once() {
        let metrics = Metrics::new();
        for count in [1, 2] {
            let greetings = metrics.counters(Stability::Alpha, "greetings_total", ["to", "by"], "Greetings").unwrap();
            greetings.of(["a", "b"]).inc_by(count);
            let latest = metrics.gauges(Stability::Beta, "latest", [], "Latest").unwrap();
            latest.get().set(count.try_into().unwrap());
            let shares = metrics.float_gauges(Stability::Alpha, "shares", ["of"], "Shares").unwrap();
            shares.of(["a"]).set(0.5);
            let sizes = metrics.histogram(Stability::Stable, "sizes", exponential_buckets(1.0, 2.0, 2), "Sizes");
            sizes.unwrap().observe(1.5);
        }
        let text = metrics.encode();
        for line in [
            r#"greetings_total{to="a",by="b"} 3"#,
            "# HELP greetings [ALPHA] Greetings.",
            "latest{} 2",
            "sizes_count 2",
            r#"sizes_bucket{le="1.0"} 0"#,
            r#"shares{of="a"} 0.5"#,
            r#"sizes_bucket{le="2.0"} 2"#,
        ] {
            assert_eq!(text.lines().filter(|it| *it == line).count(), 1, "{line} in {text}");
        }
    }

    #[test]
    fn a_name_with_another_type_or_other_labels_is_refused() {
        let metrics = Metrics::new();
        metrics.counters(Stability::Alpha, "greetings_total", ["to"], "Greetings").unwrap();
        let taken = MetricError::NameTaken { name: "greetings_total" };
        let other_label = metrics.counters(Stability::Alpha, "greetings_total", ["by"], "Greetings").err();
        let more_labels = metrics.counters(Stability::Alpha, "greetings_total", ["to", "by"], "Greetings").err();
        let other_type = metrics.gauge(Stability::Alpha, "greetings_total", "Greetings").err();
        assert_eq!([other_label, more_labels, other_type], [Some(taken.clone()), Some(taken.clone()), Some(taken)]);
        let no_total = metrics.counter(Stability::Alpha, "greetings", "Greetings").err();
        assert_eq!(no_total, Some(MetricError::NoTotal { name: "greetings" }));
    }

    #[test]
    fn a_removed_metric_and_one_that_was_never_asked_for_are_not_exposed() {
        let metrics = Metrics::new();
        let wanted = metrics.gauges(Stability::Alpha, "wanted", ["of"], "Wanted").unwrap();
        wanted.of(["a"]).set(1);
        wanted.remove(["a"]);
        metrics.gauges(Stability::Alpha, "unset", [], "Unset").unwrap();
        let text = metrics.encode();
        assert!(!text.lines().any(|line| line.starts_with("wanted{") || line.starts_with("unset{")), "{text}");
    }
}
