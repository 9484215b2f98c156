//! The figures of a phase.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A figure of a phase. Less is better, but for [`Figure::ChangesPerCpu`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Figure {
    /// From the first request until the condition of the phase holds, in seconds.
    Wall,
    /// From the first line of the manager's log to the one of the last cache that is synced, in seconds.
    CachesFull,
    /// CPU of the manager until it is idle again, in seconds.
    Cpu,
    /// Resident memory of the idle manager, in bytes.
    Resident,
    /// The peak of resident memory since the phase began, in bytes.
    Peak,
    /// Bytes that the manager's connections received.
    Received,
    /// CPU of the API server, in seconds.
    ServerCpu,
    /// Accepted writes to pods, replica sets and deployments, each a change that the manager watches, for each second
    /// of its CPU.
    ChangesPerCpu,
    /// The longest that a key has waited for a worker since the manager was started, in seconds.
    ///
    /// Of the peer the bound of a bucket, a power of ten: its histogram has no more.
    LongestWait,
    /// Bytes that the manager has allocated and not freed yet, by its allocator.
    Live,
    /// Bytes that its allocator holds beside those.
    Held,
    /// Resident memory for each further pod, in bytes.
    PerPod,
    /// The median of what the scenario times for each of its objects, in seconds.
    Latency,
    /// The 99th percentile of the same.
    LatencyP99,
    /// The longest of the same.
    LongestLatency,
    /// The number of requests of the manager, where the scenario says what they are about; without lists and watches.
    Requests,
}

impl Figure {
    /// All of them, as they are printed.
    pub(super) const ALL: [Self; 16] = [
        Self::Wall,
        Self::Latency,
        Self::LatencyP99,
        Self::LongestLatency,
        Self::Requests,
        Self::CachesFull,
        Self::Cpu,
        Self::Resident,
        Self::Peak,
        Self::Live,
        Self::Held,
        Self::PerPod,
        Self::Received,
        Self::ServerCpu,
        Self::ChangesPerCpu,
        Self::LongestWait,
    ];

    /// Its name in tables.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::CachesFull => "until caches are full",
            Self::Cpu => "CPU",
            Self::Resident => "resident",
            Self::Peak => "peak",
            Self::Received => "received",
            Self::ServerCpu => "API server's CPU",
            Self::ChangesPerCpu => "changes per CPU second",
            Self::LongestWait => "longest wait of a key",
            Self::Live => "live",
            Self::Held => "held beside it",
            Self::PerPod => "resident per further pod",
            Self::Latency => "median latency",
            Self::LatencyP99 => "99% of latencies below",
            Self::LongestLatency => "longest latency",
            Self::Requests => "requests of the manager",
        }
    }

    /// A value with its unit.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Self::Wall => format!("{value:.1} s"),
            Self::LongestWait | Self::CachesFull | Self::Latency | Self::LatencyP99 | Self::LongestLatency => {
                format!("{value:.3} s")
            }
            Self::Cpu | Self::ServerCpu => format!("{value:.2} s"),
            Self::Resident | Self::Peak | Self::Received | Self::Live | Self::Held => format!("{:.1} MB", value / 1e6),
            Self::PerPod => format!("{:.1} KB", value / 1e3),
            Self::ChangesPerCpu | Self::Requests => format!("{value:.0}"),
        }
    }
}

/// The figures of one phase of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Phase {
    /// The name of the phase, as in `rolled`.
    pub(super) name: String,
    /// The figures that could be measured.
    pub(super) figures: BTreeMap<Figure, f64>,
    /// The number of requests by verb and resource.
    pub(super) requests: BTreeMap<String, u64>,
}

/// A figure over several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Spread {
    /// The middle one; of an even number the higher of the two.
    pub(super) median: f64,
    /// The least.
    pub(super) least: f64,
    /// The most.
    pub(super) most: f64,
}

impl Spread {
    /// The spread of values; `None` of none.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        Some(Self { median: *values.get(values.len() / 2)?, least: *values.first()?, most: *values.last()? })
    }
}

/// The figures of latencies; none of none.
pub(super) fn of_latencies(latencies: &[Duration]) -> impl Iterator<Item = (Figure, f64)> {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    // The rank that so many percent of them do not exceed, from 1.
    let at = move |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100);
        Some(sorted.get(rank.checked_sub(1)?)?.as_secs_f64())
    };
    [(Figure::Latency, 50), (Figure::LatencyP99, 99), (Figure::LongestLatency, 100)]
        .into_iter()
        .filter_map(move |(figure, percent)| Some((figure, at(percent)?)))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    #[test]
    fn latencies_have_a_median_and_two_ends() {
        let of =
            |latencies: Range<u64>| of_latencies(&latencies.map(Duration::from_secs).collect::<Vec<_>>()).collect();
        let figures: BTreeMap<Figure, f64> = of(1..201);
        let expected = [(Figure::Latency, 100.0), (Figure::LatencyP99, 198.0), (Figure::LongestLatency, 200.0)];
        assert_eq!(figures, BTreeMap::from(expected));
        assert_eq!(of(1..2), BTreeMap::from(expected.map(|(figure, _)| (figure, 1.0))));
        assert!(of(1..1).is_empty());
    }

    #[test]
    fn a_spread_is_the_middle_and_the_ends() {
        let spread = Spread::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!(spread, Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(Spread::of(std::iter::empty()), None);
    }

    #[test]
    fn values_carry_their_unit() {
        assert_eq!(Figure::Resident.text(12_340_000.0), "12.3 MB");
        assert_eq!(Figure::Cpu.text(0.456), "0.46 s");
        assert_eq!(Figure::ChangesPerCpu.text(1234.5), "1234");
    }
}
