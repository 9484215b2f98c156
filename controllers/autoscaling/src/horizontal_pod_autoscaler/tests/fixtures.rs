//! Pods and rules of cases.

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::{AutoscaledPod, PodPhase, PodRequests, ReadyCondition};
use kcm_framework::api::{ResourceList, ResourceQuantity, Shared};

use crate::horizontal_pod_autoscaler::calculator::{Initialization, ObservedPod, Rules, Sample, Samples, Tolerances};

/// The current time of all cases.
pub(super) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("it is a time")
}

pub(super) fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// A tolerance of 10 %, two minutes of initialization, ten seconds to the first readiness: as in upstream's tests.
pub(super) fn rules() -> Rules {
    Rules {
        tolerances: Tolerances { down: 0.1, up: 0.1 },
        initialization: Initialization { cpu_period: seconds(120), readiness_delay: seconds(10), now: now() },
    }
}

/// A pod that the test owns.
#[derive(Debug, Clone)]
pub(super) struct TestPod {
    pub(super) name: String,
    pub(super) phase: PodPhase,
    pub(super) is_terminating: bool,
    pub(super) part: AutoscaledPod,
}

/// A pod that has run and been ready for an hour, and whose container `main` requests so much CPU, in thousandths.
pub(super) fn pod(name: &str, request: i64) -> TestPod {
    let requests = [("cpu".into(), ResourceQuantity::of_milli(request))].into_iter().collect();
    with_containers(name, vec![("main", requests)])
}

pub(super) fn with_containers(name: &str, containers: Vec<(&str, ResourceList)>) -> TestPod {
    let containers = containers.into_iter().map(|(name, requests)| (name.into(), requests)).collect();
    let mut part = AutoscaledPod::default();
    part.ready_condition = ReadyCondition::Present { is_false: false, since: Some(now() - seconds(3600)) };
    part.start_time = Some(now() - seconds(3600));
    part.requests = Shared::new(PodRequests { containers, pod_level: None });
    TestPod { name: name.to_owned(), phase: PodPhase::Running, is_terminating: false, part }
}

impl TestPod {
    pub(super) fn phase(self, phase: PodPhase) -> Self {
        Self { phase, ..self }
    }

    pub(super) fn terminating(self) -> Self {
        Self { is_terminating: true, ..self }
    }

    /// Started so many seconds ago, with the condition `Ready` that has had its status for so many.
    pub(super) fn started(mut self, ago: i64, is_false: bool, since: i64) -> Self {
        self.part.start_time = Some(now() - seconds(ago));
        self.part.ready_condition = ReadyCondition::Present { is_false, since: Some(now() - seconds(since)) };
        self
    }

    pub(super) fn without_condition(mut self) -> Self {
        self.part.ready_condition = ReadyCondition::Absent;
        self
    }

    pub(super) fn observed(&self) -> ObservedPod<'_> {
        ObservedPod {
            name: &self.name,
            phase: self.phase,
            is_terminating: self.is_terminating,
            is_ready: matches!(self.part.ready_condition, ReadyCondition::Present { is_false: false, .. }),
            part: &self.part,
        }
    }
}

/// Pods `pod-0`, `pod-1`… that each request so much CPU.
pub(super) fn pods(count: usize, request: i64) -> Vec<TestPod> {
    (0..count).map(|at| pod(&format!("pod-{at}"), request)).collect()
}

/// Samples of `pod-0`, `pod-1`… of the last minute.
pub(super) fn samples(values: &[i64]) -> Samples {
    let sample = |value| Sample { value, timestamp: Some(now()), window: seconds(60) };
    values.iter().enumerate().map(|(at, value)| (format!("pod-{at}").into(), sample(*value))).collect()
}
