//! The bars: the limits that the project set before it measured.

use super::figures::Figure;

/// The limit of a figure of ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    /// A value in the figure's unit.
    Value(f64),
    /// A factor of the peer's median in the same record.
    OfPeer(f64),
    /// A factor of ours in another phase of the scenario.
    OfPhase(f64, &'static str),
    /// So much above ours in another phase of the scenario.
    AbovePhase(f64, &'static str),
}

/// A limit of one figure in one phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bar {
    pub(super) scenario: &'static str,
    pub(super) phase: &'static str,
    pub(super) figure: Figure,
    pub(super) limit: Limit,
}

/// A limit that was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// The row of the table, without its last cell.
    pub(super) row: String,
    pub(super) is_reached: bool,
}

const fn bar(scenario: &'static str, phase: &'static str, figure: Figure, limit: Limit) -> Bar {
    Bar { scenario, phase, figure, limit }
}

const MB: f64 = 1e6;

/// What a controller costs beside the peer's in a phase of its own scenario.
const OF_CONTROLLER: [(Figure, f64); 4] =
    [(Figure::Cpu, 0.333), (Figure::Wall, 1.0), (Figure::ServerCpu, 1.0), (Figure::Resident, 0.166)];

/// The phases to which that applies.
const PHASES: &[(&str, &str)] = &[
    ("jobs", "completed"),
    ("job-large", "completed"),
    ("stateful-sets", "made"),
    ("stateful-sets", "rolled"),
    ("stateful-sets", "scaled to zero"),
    ("daemonsets", "made"),
    ("daemonsets", "rolled"),
    ("cron-jobs", "started"),
];

/// The same for the controllers of endpoints, service CIDRs, budgets and autoscalers.
const OF_TRAFFIC: [(Figure, f64); 4] =
    [(Figure::Cpu, 0.333), (Figure::Wall, 1.0), (Figure::Requests, 1.0), (Figure::Resident, 0.166)];

/// The phases to which that applies.
const TRAFFIC: &[(&str, &str)] = &[
    ("services", "made"),
    ("services", "rolled"),
    ("services", "deleted"),
    ("service-large", "made"),
    ("service-large", "rolled"),
    ("service-large", "deleted"),
    ("mirrored", "made"),
    ("mirrored", "changed"),
    ("mirrored", "deleted"),
    ("service-cidrs", "made"),
    ("service-cidrs", "deleted"),
    ("budgets", "drained"),
    ("autoscalers", "scaled"),
];

/// What the collection of garbage and the removal of namespaces cost beside the peer's.
const OF_GARBAGE: [(Figure, f64); 3] = [(Figure::Cpu, 0.333), (Figure::Wall, 1.0), (Figure::Resident, 0.166)];

/// The phases to which that applies.
const GARBAGE: &[(&str, &str)] = &[
    ("gc-background", "collected"),
    ("gc-namespace", "removed"),
    ("gc-orphans", "orphaned"),
    ("gc-chains", "collected"),
    ("gc-restart", "restarted"),
    ("gc-kinds", "removed"),
];

/// All bars.
pub(super) fn bars() -> impl Iterator<Item = Bar> {
    let of_phases = |phases: &'static [(&str, &str)], parts: &'static [(Figure, f64)]| {
        phases.iter().flat_map(|&(scenario, phase)| {
            parts.iter().map(move |&(figure, part)| bar(scenario, phase, figure, Limit::OfPeer(part)))
        })
    };
    BARS.iter()
        .copied()
        .chain(of_phases(PHASES, &OF_CONTROLLER))
        .chain(of_phases(TRAFFIC, &OF_TRAFFIC))
        .chain(of_phases(GARBAGE, &OF_GARBAGE))
}

/// The bars of single figures, for full runs.
const BARS: &[Bar] = &[
    bar("idle", "idle", Figure::Resident, Limit::Value(16.0 * MB)),
    bar("replica-sets", "made", Figure::Cpu, Limit::OfPeer(0.35)),
    bar("replica-sets", "made", Figure::Wall, Limit::OfPeer(1.05)),
    bar("replica-sets", "made", Figure::ServerCpu, Limit::OfPeer(1.05)),
    bar("deployments", "available", Figure::Cpu, Limit::OfPeer(0.345)),
    bar("deployments", "available", Figure::Wall, Limit::OfPeer(1.05)),
    bar("deployments", "rolled", Figure::Cpu, Limit::OfPeer(0.325)),
    bar("deployments", "rolled", Figure::Wall, Limit::OfPeer(1.05)),
    bar("deployments", "rolled", Figure::Resident, Limit::Value(35.0 * MB)),
    bar("deployments", "rolled", Figure::ServerCpu, Limit::OfPeer(1.05)),
    bar("deployments", "rested", Figure::Resident, Limit::OfPhase(1.2, "restarted")),
    bar("restart", "with 5,000 pods", Figure::Resident, Limit::Value(30.0 * MB)),
    bar("restart", "with 20,000 pods", Figure::PerPod, Limit::Value(3000.0)),
    bar("cut", "rolled", Figure::Wall, Limit::OfPeer(1.05)),
    bar("workloads-idle", "idle", Figure::Resident, Limit::Value(20.0 * MB)),
    bar("jobs", "completed", Figure::Latency, Limit::OfPeer(1.0)),
    bar("cron-jobs", "started", Figure::LongestLatency, Limit::OfPeer(1.0)),
    bar("services", "made", Figure::Latency, Limit::OfPeer(1.0)),
    bar("services", "made", Figure::LatencyP99, Limit::OfPeer(1.0)),
    bar("services", "rolled", Figure::Latency, Limit::OfPeer(1.0)),
    bar("services", "rolled", Figure::LatencyP99, Limit::OfPeer(1.0)),
    bar("service-large", "made", Figure::Latency, Limit::OfPeer(1.0)),
    bar("service-large", "made", Figure::LatencyP99, Limit::OfPeer(1.0)),
    bar("service-large", "rolled", Figure::Latency, Limit::OfPeer(1.0)),
    bar("service-large", "rolled", Figure::LatencyP99, Limit::OfPeer(1.0)),
    bar("autoscalers", "rested", Figure::Cpu, Limit::OfPeer(0.333)),
    bar("autoscalers", "rested", Figure::Requests, Limit::OfPeer(1.0)),
    bar("autoscalers", "rested", Figure::Resident, Limit::OfPeer(0.166)),
    bar("autoscalers", "restarted", Figure::LongestLatency, Limit::Value(15.0)),
    bar("large-cluster", "with 150,000 pods", Figure::Resident, Limit::Value(200.0 * MB)),
    bar("large-cluster", "changes beside 150,000 pods", Figure::Cpu, Limit::OfPhase(1.2, "changes beside 1,000 pods")),
    bar("gc-large", "with them", Figure::Resident, Limit::AbovePhase(2.0 * MB, "without them")),
    bar("gc-large", "restarted", Figure::Resident, Limit::AbovePhase(2.0 * MB, "without them")),
];

/// How much longer an event may take beside many cached pods than beside few.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Growth {
    /// The micro benchmark, without the number of pods at the end of its name.
    pub(super) event: &'static str,
    pub(super) few: u32,
    pub(super) many: u32,
    /// The factor that it must not exceed.
    pub(super) limit: f64,
}

/// An event takes the same time, but for the caches of the processor.
pub(super) const GROWTH: Growth =
    Growth { event: "growth/cut, decode, update and select by owner", few: 1_000, many: 50_000, limit: 1.3 };

impl Limit {
    /// The limit in the figure's unit; `None` where the value that it is a factor of was not measured.
    pub(super) fn value(self, peer: Option<f64>, of_phase: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            Self::OfPeer(part) => peer.map(|peer| peer * part),
            Self::OfPhase(part, phase) => of_phase(phase).map(|value| value * part),
            Self::AbovePhase(more, phase) => of_phase(phase).map(|value| value + more),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SCENARIOS;

    #[test]
    fn every_bar_is_of_a_scenario() {
        for bar in bars() {
            assert!(SCENARIOS.iter().any(|scenario| scenario.name == bar.scenario), "{bar:?}");
        }
    }
}
