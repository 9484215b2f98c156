//! The metrics of this controller.

use std::fmt;
use std::sync::Arc;

use jiff::SignedDuration;
use kcm_framework::metrics::{Counters, Histograms, MetricError, Stability};
use kcm_framework::prometheus_client::collector::Collector;
use kcm_framework::prometheus_client::encoding::DescriptorEncoder;
use parking_lot::Mutex;
use serde::Deserialize;

use super::names::{csi_plugin, plugin_name};
use super::plan::Forced;
use super::state::State;
use super::world::{World, unique_name};
use crate::shared::metrics::{Counts, count, encode, storage_seconds};

/// An operation that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Attach,
    Detach,
}

#[derive(Debug)]
pub(super) struct Metrics {
    seconds: Histograms<4>,
    forced: Counters<1>,
}

impl Metrics {
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Result<Self, MetricError> {
        Ok(Self {
            seconds: storage_seconds(metrics)?,
            forced: metrics.counters(
                Stability::Alpha,
                "attach_detach_controller_attachdetach_controller_forced_detaches_total",
                ["reason"],
                "Volumes that were detached although they may be mounted",
            )?,
        })
    }

    /// Counts the end of an operation, or a failed attempt.
    pub(super) fn finished(
        &self,
        work: Work,
        volume: &str,
        is_migrated: bool,
        elapsed: SignedDuration,
        has_failed: bool,
    ) {
        let name = match work {
            Work::Attach => "volume_attach",
            Work::Detach => "volume_detach",
        };
        let status = if has_failed { "fail-unknown" } else { "success" };
        let migrated = if is_migrated { "true" } else { "false" };
        let labels = [plugin_name(volume).unwrap_or_default(), name.to_owned(), status.to_owned(), migrated.to_owned()];
        self.seconds.of(labels).observe(elapsed.as_secs_f64());
    }

    pub(super) fn forced(&self, forced: Forced) {
        let reason = match forced {
            Forced::Timeout => "timeout",
            Forced::OutOfService => "out-of-service",
        };
        self.forced.of([reason]).inc();
    }
}

/// The caches that a scrape counts. Empty while the controller does not run, as upstream's followers count nothing.
#[derive(Clone, Default)]
pub(super) struct Counted(Arc<Mutex<Option<Caches>>>);

#[derive(Clone)]
struct Caches {
    world: World,
    state: Arc<State>,
}

impl Counted {
    /// Returns the collector of this manager.
    pub(super) fn register(metrics: &kcm_framework::Metrics) -> Self {
        metrics.register(|registry| {
            let counted = Self::default();
            registry.register_collector(Box::new(counted.clone()));
            counted
        })
    }

    /// Counts these caches from now on.
    pub(super) fn show(&self, world: World, state: Arc<State>) {
        *self.0.lock() = Some(Caches { world, state });
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
    }
}

impl Collector for Counted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(Caches { world, state }) = self.0.lock().clone() else { return Ok(()) };
        let encoder = &mut encoder;
        encode(
            encoder,
            "attachdetach_controller_total_volumes",
            "[ALPHA] Volumes that pods need, and volumes that nodes have",
            &["plugin_name", "state"],
            &total(&world, &state),
        )?;
        encode(
            encoder,
            "storage_count_attachable_volumes_in_use",
            "[ALPHA] Volumes of pods with a node",
            &["node", "volume_plugin"],
            &in_use(&world),
        )
    }
}

fn total(world: &World, state: &State) -> Counts {
    let mut counts = Counts::new();
    let mut desired = Vec::new();
    state.desired.lock().for_each(|volume| desired.extend(plugin_name(volume)));
    for plugin in desired {
        count(&mut counts, &[&plugin, "desired_state_of_world"]);
    }
    // Attachments of volumes that do not exist are left out, as upstream leaves out volumes without source.
    for attachment in world.attachments.list() {
        let volume = attachment.volume_name.as_deref().and_then(|name| world.volume(name));
        if let Some(plugin) = volume.and_then(|volume| unique_name(&volume)).and_then(|name| plugin_name(&name)) {
            count(&mut counts, &[&plugin, "actual_state_of_world"]);
        }
    }
    for node in world.nodes.list() {
        for entry in world.parts.nodes.of(&node).attached.iter().filter(|entry| !entry.name.contains("/csi/")) {
            if let Some(plugin) = plugin_name(&entry.name) {
                count(&mut counts, &[&plugin, "actual_state_of_world"]);
            }
        }
    }
    counts
}

fn in_use(world: &World) -> Counts {
    let mut pods = Vec::new();
    // Other caches are read when the lock of this cache is free.
    world.pods.for_each(|pod| {
        if pod.node_name.is_some() && world.parts.has_volumes(pod) {
            pods.push(Arc::clone(pod));
        }
    });
    let mut counts = Counts::new();
    for pod in pods {
        let Some(node) = &pod.node_name else { continue };
        let found = world.all_volumes_of(&pod);
        let attachable = found.attachable.iter().filter_map(|volume| plugin_name(&volume.unique_name));
        let of_kubelet = world.parts.inline.of(&pod).volumes.iter().filter_map(|volume| inline_csi(volume));
        for plugin in attachable.chain(of_kubelet) {
            count(&mut counts, &[node, &plugin]);
        }
    }
    counts
}

/// Returns the plugin of a CSI volume of a pod.
fn inline_csi(volume: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Volume {
        csi: Csi,
    }
    #[derive(Deserialize)]
    struct Csi {
        #[serde(default)]
        driver: String,
    }
    serde_json::from_str(volume).ok().map(|volume: Volume| csi_plugin(&volume.csi.driver))
}
