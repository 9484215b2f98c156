//! The settings.

use jiff::SignedDuration;
use kcm_framework::config::gates::{
    HPA_CONFIGURABLE_TOLERANCE, HPA_GENERATION, HPA_OPTIMIZED_SELECTOR_STORE, HPA_SCALE_TO_ZERO, POD_LEVEL_RESOURCES,
};
use kcm_framework::config::{Gate, GoDuration, Section, Setting, Workers};
use kcm_framework::{BoxError, ControllerContext};

use super::calculator::{Initialization, Rules, Tolerances};
use super::spec::Behavior;

const SECTION: Section = Section::new("Horizontal-pod-autoscaler-controller", "HPAController");

/// The number of workers, which is also the limit of concurrent requests to each metrics API.
pub(super) const SYNCS: Setting<Workers> = SECTION.workers(
    "concurrent-horizontal-pod-autoscaler-syncs",
    "ConcurrentHorizontalPodAutoscalerSyncs",
    "HorizontalPodAutoscalers",
    5,
);

pub(super) const CPU_INITIALIZATION_PERIOD: Setting<GoDuration> = SECTION
    .duration(
        "horizontal-pod-autoscaler-cpu-initialization-period",
        "HorizontalPodAutoscalerCPUInitializationPeriod",
        GoDuration::from_secs(5 * 60),
    )
    .help("Time after a pod's start in which its CPU usage may be ignored.");

pub(super) const DOWNSCALE_STABILIZATION: Setting<GoDuration> = SECTION
    .duration(
        "horizontal-pod-autoscaler-downscale-stabilization",
        "HorizontalPodAutoscalerDownscaleStabilizationWindow",
        GoDuration::from_secs(5 * 60),
    )
    .help("Do not scale below the highest recommendation of this period.");

pub(super) const INITIAL_READINESS_DELAY: Setting<GoDuration> = SECTION
    .duration(
        "horizontal-pod-autoscaler-initial-readiness-delay",
        "HorizontalPodAutoscalerInitialReadinessDelay",
        GoDuration::from_secs(30),
    )
    .help("Time after a pod's start in which a change of its readiness counts as part of the start.");

pub(super) const SYNC_PERIOD: Setting<GoDuration> = SECTION
    .duration("horizontal-pod-autoscaler-sync-period", "HorizontalPodAutoscalerSyncPeriod", GoDuration::from_secs(15))
    .help("Interval at which each HorizontalPodAutoscaler is evaluated.");

pub(super) const TOLERANCE: Setting<f64> = SECTION
    .float64("horizontal-pod-autoscaler-tolerance", "HorizontalPodAutoscalerTolerance", 0.1)
    .help("Smallest relative deviation from the target that causes scaling: 0.1 is 10 %.");

/// The feature gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a field for each gate")]
pub(super) struct Gates {
    /// `HPAConfigurableTolerance`
    pub(super) configurable_tolerance: bool,
    /// `HPAGeneration`
    pub(super) generation: bool,
    /// `HPAOptimizedSelectorStore`
    pub(super) optimized_selector_store: bool,
    /// `HPAScaleToZero`
    pub(super) scale_to_zero: bool,
    /// `PodLevelResources`
    pub(super) pod_level_resources: bool,
}

impl Gates {
    pub(super) fn read(gate: impl Fn(&Gate) -> bool) -> Self {
        Self {
            configurable_tolerance: gate(&HPA_CONFIGURABLE_TOLERANCE),
            generation: gate(&HPA_GENERATION),
            optimized_selector_store: gate(&HPA_OPTIMIZED_SELECTOR_STORE),
            scale_to_zero: gate(&HPA_SCALE_TO_ZERO),
            pod_level_resources: gate(&POD_LEVEL_RESOURCES),
        }
    }

    /// Number of autoscalers that a message names if they select the same pods.
    pub(super) const fn autoscalers_named(self) -> usize {
        if self.optimized_selector_store { 2 } else { usize::MAX }
    }
}

const fn signed(duration: GoDuration) -> SignedDuration {
    SignedDuration::from_nanos(duration.as_nanos())
}

/// The settings on which decisions depend.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) sync_period: GoDuration,
    pub(super) stabilization: GoDuration,
    pub(super) tolerance: f64,
    pub(super) cpu_initialization: GoDuration,
    pub(super) readiness_delay: GoDuration,
    pub(super) gates: Gates,
}

impl Settings {
    pub(super) fn read(context: &ControllerContext) -> Result<Self, BoxError> {
        Ok(Self {
            sync_period: context.get(&SYNC_PERIOD)?,
            stabilization: context.get(&DOWNSCALE_STABILIZATION)?,
            tolerance: context.get(&TOLERANCE)?,
            cpu_initialization: context.get(&CPU_INITIALIZATION_PERIOD)?,
            readiness_delay: context.get(&INITIAL_READINESS_DELAY)?,
            gates: Gates::read(|gate| context.gate(gate)),
        })
    }

    /// The stabilization window of an autoscaler that has none of its own.
    pub(super) const fn stabilization_window(&self) -> SignedDuration {
        signed(self.stabilization)
    }

    /// The rules of calculations for an autoscaler with this behavior.
    pub(super) fn rules(&self, behavior: Option<&Behavior>, now: jiff::Timestamp) -> Rules {
        let behavior = behavior.filter(|_| self.gates.configurable_tolerance);
        let own = |of: fn(&Behavior) -> Option<f64>| behavior.and_then(of).unwrap_or(self.tolerance);
        let tolerances = Tolerances { down: own(|it| it.down.tolerance), up: own(|it| it.up.tolerance) };
        let (cpu_period, readiness_delay) = (signed(self.cpu_initialization), signed(self.readiness_delay));
        Rules { tolerances, initialization: Initialization { cpu_period, readiness_delay, now } }
    }
}
