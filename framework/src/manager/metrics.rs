//! The metrics of a manager as a whole, which upstream does not have, but for one: computed at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use kcm_api::ResourceVersion;
use kcm_informers::InformerStatus;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::handle::{ManagerHandle, WeakHandle};
use crate::discovery::Discovery;

/// Value of the label `name` of upstream's metrics of informers.
const INFORMERS: &str = "kube-controller-manager";

/// The caches, the fence, discovery and the connection of one manager.
pub(super) struct ManagerMetrics(WeakHandle);

/// The caches of one resource, which differ in views and list options.
struct Caches {
    /// The longest time since one of them was confirmed.
    confirmed_ago: Option<Duration>,
    /// The lowest version of them.
    version: Option<u64>,
}

impl ManagerMetrics {
    pub(super) fn of(handle: &ManagerHandle) -> Self {
        Self(handle.downgrade())
    }
}

impl Collector for ManagerMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(manager) = self.0.upgrade() else { return Ok(()) };
        encode_caches(&mut encoder, &manager.informers())?;
        let fence = manager.fence();
        let help = "1 if the manager may not write because another replica may be the leader, and 0 otherwise";
        let is_closed = i64::from(fence.is_closed());
        gauge(&mut encoder, "manager_write_fence_closed", help)?.single(is_closed)?;
        let help = "Seconds for which the manager may write unless its lease is renewed; absent without a limit";
        if let Some(open_for) = fence.open_for() {
            gauge(&mut encoder, "manager_write_fence_open_seconds", help)?.single(open_for.as_secs_f64())?;
        }
        let help = "Seconds for which the API server has been unreachable; 0 while it is reachable";
        let outage = manager.connection().unreachable_for().unwrap_or_default();
        gauge(&mut encoder, "api_server_unreachable_seconds", help)?.single(outage.as_secs_f64())?;
        let discovery = manager.discovery();
        let help = "Seconds since the served resources were last read completely";
        if let Some(age) = discovery.as_ref().and_then(Discovery::age) {
            gauge(&mut encoder, "manager_discovery_age_seconds", help)?.single(age.as_secs_f64())?;
        }
        let help = "Versions of API groups whose discovery fails";
        let broken = discovery.map_or(0, |discovery| discovery.resources().broken().len());
        gauge(&mut encoder, "manager_discovery_broken_groups", help)?.single(i64::try_from(broken).unwrap_or(i64::MAX))
    }
}

fn encode_caches(encoder: &mut DescriptorEncoder<'_>, informers: &[InformerStatus]) -> Result<(), fmt::Error> {
    let mut caches = BTreeMap::new();
    for informer in informers {
        let known = caches.entry(&informer.resource).or_insert(Caches { confirmed_ago: None, version: None });
        known.confirmed_ago = known.confirmed_ago.max(informer.confirmed_ago);
        let version = last_digits(&informer.last_sync_resource_version);
        known.version = [known.version, version].into_iter().flatten().min();
    }
    let help = "Seconds since a list, a change or a bookmark confirmed that the caches of a resource are current";
    let mut age = gauge(encoder, "informer_last_event_age_seconds", help)?;
    for (resource, cache) in &caches {
        if let Some(ago) = cache.confirmed_ago {
            age.of(&[("resource", &*resource.to_string())], ago.as_secs_f64())?;
        }
    }
    let help = "[ALPHA] The 15 least significant digits of the resource version of the store";
    let mut versions = gauge(encoder, "informer_store_resource_version", help)?;
    for (resource, cache) in &caches {
        if let Some(version) = cache.version.and_then(|version| i64::try_from(version).ok()) {
            let labels = [
                ("name", INFORMERS),
                ("group", &*resource.group),
                ("version", &*resource.version),
                ("resource", &*resource.plural),
            ];
            versions.of(&labels, version)?;
        }
    }
    Ok(())
}

/// The 15 last digits, which a floating-point number holds exactly.
fn last_digits(version: &ResourceVersion) -> Option<u64> {
    let digits = version.to_string();
    digits.get(digits.len().saturating_sub(15)..)?.parse().ok()
}

/// A gauge to which values are added.
struct OneGauge<'a>(MetricEncoder<'a>);

fn gauge<'a>(encoder: &'a mut DescriptorEncoder<'_>, name: &'a str, help: &str) -> Result<OneGauge<'a>, fmt::Error> {
    Ok(OneGauge(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?))
}

impl OneGauge<'_> {
    /// Adds the value of a gauge without labels.
    fn single<N>(self, value: N) -> Result<(), fmt::Error>
    where
        ConstGauge<N>: EncodeMetric,
    {
        ConstGauge::new(value).encode(self.0)
    }

    fn of<N>(&mut self, labels: &[(&str, &str)], value: N) -> Result<(), fmt::Error>
    where
        ConstGauge<N>: EncodeMetric,
    {
        ConstGauge::new(value).encode(self.0.encode_family(&labels)?)
    }
}

impl fmt::Debug for ManagerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ManagerMetrics")
    }
}
