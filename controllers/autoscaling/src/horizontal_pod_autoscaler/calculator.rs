//! The replica calculator: how many replicas the usage of pods or the value of a metric calls for. Pure; every amount is
//! in thousandths.
//!
//! A worked example: 3 pods request 100 m each, use 300 m, 500 m and 700 m, and the target is 100 %. The utilization is
//! 1500 / 300 = 500 %, 5 times the target, so that ⌈5 × 3⌉ = 15 replicas are proposed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::views::{AutoscaledPod, PodPhase, ReadyCondition};

/// What a decision reads of a pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservedPod<'a> {
    pub(super) name: &'a str,
    pub(super) phase: PodPhase,
    pub(super) is_terminating: bool,
    pub(super) is_ready: bool,
    pub(super) part: &'a AutoscaledPod,
}

/// The usage of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sample {
    /// Thousandths.
    pub(super) value: i64,
    /// The end of the time over which it was measured; absent where it is not valid, which is before all times.
    pub(super) timestamp: Option<Timestamp>,
    /// The length of that time.
    pub(super) window: SignedDuration,
}

/// The usage of pods by their names.
pub(super) type Samples = BTreeMap<Box<str>, Sample>;

/// By which ratios of usage and target nothing is scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tolerances {
    pub(super) down: f64,
    pub(super) up: f64,
}

impl Tolerances {
    fn include(self, ratio: f64) -> bool {
        (1.0 - self.down) <= ratio && ratio <= (1.0 + self.up)
    }
}

/// The settings of the CPU usage of young pods, and the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Initialization {
    pub(super) cpu_period: SignedDuration,
    pub(super) readiness_delay: SignedDuration,
    pub(super) now: Timestamp,
}

/// What one metric proposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// The average usage of a pod, or the value of the metric, in thousandths.
    pub(super) usage: i64,
    /// The average usage in per cent of the requests.
    pub(super) utilization: Option<i32>,
}

/// Why a metric proposes nothing. The messages are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CalculationError {
    #[error("no pods returned by selector while calculating replica count")]
    NoPods,
    #[error("did not receive metrics for targeted pods (pods might be unready)")]
    NoSamples,
    #[error("no metrics returned matched known pods")]
    NoMatch,
    #[error("missing request for {resource} in container {container} of Pod {pod}")]
    NoRequest { resource: String, container: String, pod: String },
    #[error("missing pod-level request for {resource} in Pod {pod}")]
    NoPodRequest { resource: String, pod: String },
    #[error("container {container} not found in Pod {pod}")]
    NoContainer { container: String, pod: String },
    #[error("unable to calculate ready pods: {0}")]
    ReadyPods(Box<CalculationError>),
}

/// The resource, and its container where one is named, whose usage is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured<'a> {
    pub(super) resource: &'a str,
    pub(super) container: Option<&'a str>,
    /// Whether the requests of a pod as a whole count.
    pub(super) pod_level: bool,
}

/// The pods whose usage counts, and those whose usage is assumed.
#[derive(Debug, PartialEq, Eq)]
struct Grouped<'a> {
    ready: usize,
    unready: Vec<&'a str>,
    missing: Vec<&'a str>,
    /// On their way out, or failed.
    ignored: Vec<&'a str>,
}

fn group<'a>(pods: &[ObservedPod<'a>], samples: &Samples, is_cpu: bool, initialization: Initialization) -> Grouped<'a> {
    let mut grouped = Grouped { ready: 0, unready: Vec::new(), missing: Vec::new(), ignored: Vec::new() };
    for pod in pods {
        if pod.is_terminating || pod.phase == PodPhase::Failed {
            grouped.ignored.push(pod.name);
        } else if pod.phase == PodPhase::Pending {
            grouped.unready.push(pod.name);
        } else if let Some(sample) = samples.get(pod.name) {
            if is_cpu && is_unready(pod.part, *sample, initialization) {
                grouped.unready.push(pod.name);
            } else {
                grouped.ready += 1;
            }
        } else {
            grouped.missing.push(pod.name);
        }
    }
    grouped
}

/// Whether the CPU usage of a pod is left out: while it is initialized, if it is not ready or was measured before it was;
/// later, if it has never been ready.
fn is_unready(pod: &AutoscaledPod, sample: Sample, initialization: Initialization) -> bool {
    let (ReadyCondition::Present { is_false, since }, Some(started)) = (pod.ready_condition, pod.start_time) else {
        return true;
    };
    let since = since.unwrap_or(Timestamp::MIN);
    let after = |time: Timestamp, by| time.checked_add(by).unwrap_or(Timestamp::MAX);
    if after(started, initialization.cpu_period) > initialization.now {
        is_false || sample.timestamp.unwrap_or(Timestamp::MIN) < after(since, sample.window)
    } else {
        is_false && after(started, initialization.readiness_delay) > since
    }
}

/// The ratio of usage and target, and the usage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Usage {
    pub(super) ratio: f64,
    pub(super) average: i64,
    pub(super) utilization: Option<i32>,
}

/// The utilization of the requests of those pods of which there are samples.
///
/// Sums have 128 bits, and what exceeds its result is the most that the result holds.
pub(super) fn utilization(
    samples: &Samples,
    requests: &BTreeMap<&str, i64>,
    target: i32,
) -> Result<Usage, CalculationError> {
    let (mut used, mut requested, mut count) = (0_i128, 0_i128, 0_i128);
    for (pod, sample) in samples {
        let Some(request) = requests.get(&**pod) else { continue };
        used += i128::from(sample.value);
        requested += i128::from(*request);
        count += 1;
    }
    if requested == 0 {
        return Err(CalculationError::NoMatch);
    }
    let percent = saturating_i32(used * 100 / requested);
    let ratio = f64::from(percent) / f64::from(target);
    Ok(Usage { ratio, average: saturating_i64(used / count), utilization: Some(percent) })
}

/// The average usage of all pods of which there are samples, beside a target.
pub(super) fn average(samples: &Samples, target: i64) -> Usage {
    let used: i128 = samples.values().map(|sample| i128::from(sample.value)).sum();
    let count = i128::try_from(samples.len().max(1)).unwrap_or(i128::MAX);
    let average = saturating_i64(used / count);
    Usage { ratio: ratio(average, target), average, utilization: None }
}

/// The replicas that a target for the utilization of requests calls for.
pub(super) fn replicas_for_utilization(
    current: i32,
    target: i32,
    measured: Measured<'_>,
    samples: Samples,
    pods: &[ObservedPod<'_>],
    rules: Rules,
) -> Result<Proposal, CalculationError> {
    let (grouped, samples) = grouped(pods, samples, measured.resource, rules)?;
    let requests = requests(pods, measured)?;
    // Upstream: missing pods use their whole request, or the target where that is more.
    let assumed = |pod: &str| {
        let request = i128::from(requests.get(pod).copied().unwrap_or(0));
        saturating_i64(request * i128::from(target.max(100)) / 100)
    };
    replicas(current, &grouped, samples, rules.tolerances, assumed, |samples| utilization(samples, &requests, target))
}

/// The replicas that a target for the average usage calls for, of a resource or of any metric of pods.
pub(super) fn replicas_for_average(
    current: i32,
    target: i64,
    resource: &str,
    samples: Samples,
    pods: &[ObservedPod<'_>],
    rules: Rules,
) -> Result<Proposal, CalculationError> {
    let (grouped, samples) = grouped(pods, samples, resource, rules)?;
    replicas(current, &grouped, samples, rules.tolerances, |_| target, |samples| Ok(average(samples, target)))
}

/// What every calculation of an autoscaler takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rules {
    pub(super) tolerances: Tolerances,
    pub(super) initialization: Initialization,
}

/// The pods by what is known of their usage, and the samples that count.
fn grouped<'a>(
    pods: &[ObservedPod<'a>],
    mut samples: Samples,
    resource: &str,
    rules: Rules,
) -> Result<(Grouped<'a>, Samples), CalculationError> {
    if pods.is_empty() {
        return Err(CalculationError::NoPods);
    }
    let grouped = group(pods, &samples, resource == "cpu", rules.initialization);
    for name in grouped.ignored.iter().chain(&grouped.unready) {
        samples.remove(*name);
    }
    if samples.is_empty() { Err(CalculationError::NoSamples) } else { Ok((grouped, samples)) }
}

fn replicas(
    current: i32,
    grouped: &Grouped<'_>,
    mut samples: Samples,
    tolerances: Tolerances,
    assumed: impl Fn(&str) -> i64,
    usage_of: impl Fn(&Samples) -> Result<Usage, CalculationError>,
) -> Result<Proposal, CalculationError> {
    let usage = usage_of(&samples)?;
    let proposal = |replicas| Proposal { replicas, usage: usage.average, utilization: usage.utilization };
    let adds_unready = !grouped.unready.is_empty() && usage.ratio > 1.0;
    if !adds_unready && grouped.missing.is_empty() {
        let within = tolerances.include(usage.ratio);
        return Ok(proposal(if within { current } else { times(usage.ratio, grouped.ready) }));
    }
    let mut assume = |pod: &str, value| samples.insert(pod.into(), Sample { value, ..Sample::default() });
    for pod in &grouped.missing {
        // At the target, missing pods change nothing.
        if usage.ratio < 1.0 {
            assume(pod, assumed(pod));
        } else if usage.ratio > 1.0 {
            assume(pod, 0);
        }
    }
    if adds_unready {
        for pod in &grouped.unready {
            assume(pod, 0);
        }
    }
    let corrected = usage_of(&samples)?.ratio;
    let is_reversed = |ratio: f64| (usage.ratio < 1.0 && ratio > 1.0) || (usage.ratio > 1.0 && ratio < 1.0);
    if tolerances.include(corrected) || is_reversed(corrected) {
        return Ok(proposal(current));
    }
    let replicas = times(corrected, samples.len());
    // More pods count than there are replicas, or fewer.
    let is_against = (corrected < 1.0 && replicas > current) || (corrected > 1.0 && replicas < current);
    Ok(proposal(if is_against { current } else { replicas }))
}

/// The replicas that a target for the value of a metric calls for: those that are ready, multiplied, or the ratio itself
/// where there are none.
pub(super) fn replicas_for_value(
    current: i32,
    value: i64,
    target: i64,
    pods: &[ObservedPod<'_>],
    tolerances: Tolerances,
) -> Result<Proposal, CalculationError> {
    let ratio = ratio(value, target);
    let proposal = |replicas| Ok(Proposal { replicas, usage: value, utilization: None });
    if current == 0 {
        return proposal(times(ratio, 1));
    }
    if tolerances.include(ratio) {
        return proposal(current);
    }
    if pods.is_empty() {
        return Err(CalculationError::ReadyPods(Box::new(CalculationError::NoPods)));
    }
    let ready = pods.iter().filter(|pod| pod.phase == PodPhase::Running && pod.is_ready).count();
    proposal(times(ratio, ready))
}

/// The replicas that a target for the value of a metric, divided by the replicas, calls for.
pub(super) fn replicas_for_value_per_pod(replicas: i32, value: i64, target: i64, tolerances: Tolerances) -> Proposal {
    let ratio = float(value) / (float(target) * f64::from(replicas));
    let within = tolerances.include(ratio);
    let wanted = if within { replicas } else { times(self::ratio(value, target), 1) };
    let usage = if value == i64::MAX { value } else { ceil_i64(float(value) / f64::from(replicas)) };
    Proposal { replicas: wanted, usage, utilization: None }
}

/// The sum of the values of a metric; what exceeds 64 bits is the most that they hold.
pub(super) fn sum(values: &[i64]) -> i64 {
    saturating_i64(values.iter().map(|value| i128::from(*value)).sum())
}

/// What each pod requests of a resource.
fn requests<'a>(pods: &[ObservedPod<'a>], measured: Measured<'_>) -> Result<BTreeMap<&'a str, i64>, CalculationError> {
    pods.iter().map(|pod| Ok((pod.name, request(pod, measured)?))).collect()
}

fn request(pod: &ObservedPod<'_>, measured: Measured<'_>) -> Result<i64, CalculationError> {
    let Measured { resource, container, pod_level } = measured;
    let requests = &pod.part.requests;
    if let (true, None, Some(of_pod)) = (pod_level, container, &requests.pod_level) {
        let missing = || CalculationError::NoPodRequest { resource: resource.to_owned(), pod: pod.name.to_owned() };
        return Ok(of_pod.get(resource).ok_or_else(missing)?.to_milli());
    }
    let mut sum = 0_i64;
    for (name, of_container) in &requests.containers {
        if container.is_some_and(|container| *name != *container) {
            continue;
        }
        let missing = || CalculationError::NoRequest {
            resource: resource.to_owned(),
            container: name.to_string(),
            pod: pod.name.to_owned(),
        };
        sum = sum.saturating_add(of_container.get(resource).ok_or_else(missing)?.to_milli());
        if container.is_some() {
            return Ok(sum);
        }
    }
    match container {
        Some(container) => {
            Err(CalculationError::NoContainer { container: container.to_owned(), pod: pod.name.to_owned() })
        }
        None => Ok(sum),
    }
}

fn ratio(value: i64, target: i64) -> f64 {
    float(value) / float(target)
}

#[expect(clippy::cast_precision_loss, reason = "upstream divides floating-point numbers")]
const fn float(value: i64) -> f64 {
    value as f64
}

/// The ratio of so many pods, rounded up; what exceeds 32 bits is the most that they hold.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn times(ratio: f64, pods: usize) -> i32 {
    (ratio * pods as f64).ceil() as i32
}

#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn ceil_i64(value: f64) -> i64 {
    value.ceil() as i64
}

fn saturating_i64(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn saturating_i32(value: i128) -> i32 {
    i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
}
