//! Gauges that are computed at each scrape.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::Metrics;
use super::families::{MetricError, Stability};

/// The values of the labels of a gauge, and its number.
type Sample<const N: usize> = ([Cow<'static, str>; N], i64);
type Read<const N: usize> = Box<dyn Fn() -> Vec<Sample<N>> + Send + Sync>;

/// The function that computes the samples. It is replaced when the controller is initialized again.
type Current<const N: usize> = Arc<Mutex<Read<N>>>;

impl Metrics {
    /// Gauges that `read` computes at each scrape, by the values of these labels. Only the samples that it returns are
    /// exposed.
    ///
    /// A second call for the name, such as by a controller that is initialized again, replaces the function.
    ///
    /// # Errors
    /// Fails if the name is registered as another metric.
    pub fn gauges_at_scrape<const N: usize>(
        &self,
        stability: Stability,
        name: &'static str,
        labels: [&'static str; N],
        help: &'static str,
        read: impl Fn() -> Vec<Sample<N>> + Send + Sync + 'static,
    ) -> Result<(), MetricError> {
        let read: Read<N> = Box::new(read);
        let mut by_name = self.by_name.lock();
        if let Some(known) = by_name.get(name) {
            let known = known.downcast_ref::<Current<N>>().ok_or(MetricError::NameTaken { name })?;
            *known.lock() = read;
            return Ok(());
        }
        let current = Arc::new(Mutex::new(read));
        by_name.insert(name, Box::new(Arc::clone(&current)));
        let help = format!("{}{help}", stability.prefix());
        self.register_collector(AtScrape { name, help, labels, current });
        Ok(())
    }
}

struct AtScrape<const N: usize> {
    name: &'static str,
    help: String,
    labels: [&'static str; N],
    current: Current<N>,
}

impl<const N: usize> Collector for AtScrape<N> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut metric = encoder.encode_descriptor(self.name, &self.help, None, MetricType::Gauge)?;
        let samples = self.current.lock()();
        for (values, number) in samples {
            let mut values = values.into_iter();
            let labels = self.labels.map(|label| (label, values.next().unwrap_or_default()));
            ConstGauge::new(number).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for AtScrape<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtScrape").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_of_the_last_function_are_exposed() {
        let metrics = Metrics::new();
        let register = |number| {
            let read = move || vec![(["cat".into(), "true".into()], number)];
            metrics.gauges_at_scrape(Stability::Alpha, "pets", ["kind", "fed"], "Pets by kind", read)
        };
        register(1).unwrap();
        register(2).unwrap();
        let text = metrics.encode();
        assert!(text.contains("# HELP pets [ALPHA] Pets by kind"), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with("pets{")).collect::<Vec<_>>(),
            [r#"pets{kind="cat",fed="true"} 2"#]
        );
        metrics.gauges(Stability::Alpha, "owners", [], "Owners").unwrap();
        assert!(metrics.gauges_at_scrape(Stability::Alpha, "owners", [], "", Vec::new).is_err());
    }
}
