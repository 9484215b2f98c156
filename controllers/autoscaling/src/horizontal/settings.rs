//! The settings.

use jiff::SignedDuration;
use kcm_config::gates::{HPA_CONFIGURABLE_TOLERANCE, HPA_SCALE_TO_ZERO, POD_LEVEL_RESOURCES};
use kcm_config::{Gate, GateStage, GoDuration, Initial, Row, checks};
use kcm_framework::SettingsSection;
use serde::Deserialize;

use super::calculator::{Initialization, Rules, Tolerances};
use super::spec::Behavior;

/// How many autoscalers are reconciled at once, and how many requests each metrics API serves at once.
pub(super) const CONCURRENT_SYNCS: &str = "concurrent-horizontal-pod-autoscaler-syncs";

/// Whether an autoscaler is synced as soon as it is created or its spec changes. A gate of ours.
pub(super) const SYNC_ON_SPEC_CHANGE: Gate =
    Gate { name: "HPASyncOnSpecChange", default: false, stage: GateStage::Alpha, locked: false };

const SECTION: &str = "Horizontal-pod-autoscaler-controller";

/// The rows of the settings.
pub(super) const ROWS: &[Row] = &[
    Row::new(CONCURRENT_SYNCS, SECTION, Initial::Int32(5))
        .path("HPAController.ConcurrentHorizontalPodAutoscalerSyncs")
        .help("How many autoscalers are worked on at once. More is faster, and loads the API server and the network more.")
        .check(checks::positive)
        .reloaded(),
    Row::new(
        "horizontal-pod-autoscaler-cpu-initialization-period",
        SECTION,
        Initial::Duration(GoDuration::from_secs(5 * 60)),
    )
    .path("HPAController.HorizontalPodAutoscalerCPUInitializationPeriod")
    .help("How long after the start of a pod its CPU usage may be left out."),
    Row::new(
        "horizontal-pod-autoscaler-downscale-stabilization",
        SECTION,
        Initial::Duration(GoDuration::from_secs(5 * 60)),
    )
    .path("HPAController.HorizontalPodAutoscalerDownscaleStabilizationWindow")
    .help("The period whose highest recommendation the autoscaler does not scale below."),
    Row::new(
        "horizontal-pod-autoscaler-initial-readiness-delay",
        SECTION,
        Initial::Duration(GoDuration::from_secs(30)),
    )
    .path("HPAController.HorizontalPodAutoscalerInitialReadinessDelay")
    .help("How long after the start of a pod a change of its readiness counts as its first."),
    Row::new("horizontal-pod-autoscaler-sync-period", SECTION, Initial::Duration(GoDuration::from_secs(15)))
        .path("HPAController.HorizontalPodAutoscalerSyncPeriod")
        .help("How often each autoscaler is evaluated."),
    Row::new("horizontal-pod-autoscaler-tolerance", SECTION, Initial::Float64(0.1))
        .path("HPAController.HorizontalPodAutoscalerTolerance")
        .help("How far the usage may be from the target, as a share of it, before the autoscaler scales."),
];

/// The values of the section.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Section {
    #[serde(rename = "HorizontalPodAutoscalerSyncPeriod")]
    pub(super) sync_period: GoDuration,
    #[serde(rename = "HorizontalPodAutoscalerDownscaleStabilizationWindow")]
    stabilization: GoDuration,
    #[serde(rename = "HorizontalPodAutoscalerTolerance")]
    tolerance: f64,
    #[serde(rename = "HorizontalPodAutoscalerCPUInitializationPeriod")]
    cpu_initialization: GoDuration,
    #[serde(rename = "HorizontalPodAutoscalerInitialReadinessDelay")]
    readiness_delay: GoDuration,
}

impl SettingsSection for Section {
    const SECTION: &str = "HPAController";
}

/// The feature gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gates {
    /// `HPAConfigurableTolerance`
    pub(super) configurable_tolerance: bool,
    /// `HPAScaleToZero`
    pub(super) scale_to_zero: bool,
    /// `PodLevelResources`
    pub(super) pod_level_resources: bool,
}

impl Gates {
    /// Reads the gates.
    pub(super) fn read(gate: impl Fn(&Gate) -> bool) -> Self {
        Self {
            configurable_tolerance: gate(&HPA_CONFIGURABLE_TOLERANCE),
            scale_to_zero: gate(&HPA_SCALE_TO_ZERO),
            pod_level_resources: gate(&POD_LEVEL_RESOURCES),
        }
    }
}

/// The settings that decisions take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) section: Section,
    pub(super) gates: Gates,
}

const fn signed(duration: GoDuration) -> SignedDuration {
    SignedDuration::from_nanos(duration.as_nanos())
}

impl Settings {
    /// The stabilization window of an autoscaler that has none of its own.
    pub(super) const fn stabilization_window(&self) -> SignedDuration {
        signed(self.section.stabilization)
    }

    /// The rules of calculations for an autoscaler with that behavior.
    pub(super) fn rules(&self, behavior: Option<&Behavior>, now: jiff::Timestamp) -> Rules {
        let behavior = behavior.filter(|_| self.gates.configurable_tolerance);
        let own = |of: fn(&Behavior) -> Option<f64>| behavior.and_then(of).unwrap_or(self.section.tolerance);
        let tolerances = Tolerances { down: own(|it| it.down.tolerance), up: own(|it| it.up.tolerance) };
        let (cpu_period, readiness_delay) =
            (signed(self.section.cpu_initialization), signed(self.section.readiness_delay));
        Rules { tolerances, initialization: Initialization { cpu_period, readiness_delay, now } }
    }
}
