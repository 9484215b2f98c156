//! What the metrics of an autoscaler propose, and what is wrong with those that propose nothing. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::calculator::{
    CalculationError, Measured, ObservedPod, Proposal, Rules, replicas_for_average, replicas_for_utilization,
    replicas_for_value, replicas_for_value_per_pod, sum,
};
use super::requests::{NoRequest, Request};
use super::responses::{Response, samples};
use super::spec::{Metric, Source};
use super::status::{metric_status, unknown_metric};

/// The responses of the metrics APIs, by request.
pub(super) type Responses = BTreeMap<Request, Answered>;

/// What a request returned, and how long it took.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answered {
    pub(super) response: Result<Response, String>,
    pub(super) took: Duration,
}

/// A metric with what it takes to evaluate it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement<'a> {
    pub(super) metric: &'a Metric,
    /// The metric as the spec has it.
    pub(super) spec: &'a Value,
    pub(super) request: &'a Result<Request, NoRequest>,
}

/// The target of an autoscaler, and the rules of its calculations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaled<'a> {
    pub(super) namespace: &'a str,
    pub(super) spec_replicas: i32,
    pub(super) status_replicas: i32,
    pub(super) pods: &'a [ObservedPod<'a>],
    pub(super) rules: Rules,
    /// Whether the requests of a pod as a whole count.
    pub(super) pod_level: bool,
}

/// What all metrics propose together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evaluation {
    /// The replicas and the metric that proposes most; absent where nothing can be proposed.
    pub(super) proposed: Option<(i32, String)>,
    /// The metrics of the status.
    pub(super) statuses: Vec<Value>,
    /// What is wrong with each metric that proposes nothing, in order.
    pub(super) failures: Vec<Failure>,
    /// What each metric proposes, for the metrics of the controller.
    pub(super) computed: Vec<Computed>,
}

impl Evaluation {
    /// What is wrong with the metrics, as upstream says it; the first stands for all.
    pub(super) fn error(&self) -> Option<String> {
        let first = self.failures.first()?;
        let (invalid, all) = (self.failures.len(), self.statuses.len());
        Some(format!("invalid metrics ({invalid} invalid out of {all}), first error is: {}", first.error))
    }
}

/// Why a metric proposes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// The reason of the event and of the condition.
    pub(super) reason: &'static str,
    /// The message of the event.
    pub(super) message: String,
    /// The message with what was attempted around it.
    pub(super) error: String,
    /// Whether the spec is wrong.
    pub(super) is_spec: bool,
}

/// One metric, for the metrics of the controller.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Computed {
    /// The type of the metric.
    pub(super) type_: String,
    /// The replicas that it proposes, or whether the spec is wrong.
    pub(super) result: Result<i32, bool>,
    pub(super) took: Duration,
}

/// Evaluates all metrics of an autoscaler. The highest proposal counts; while a metric fails, nothing is scaled down.
pub(super) fn evaluate(measurements: &[Measurement<'_>], responses: &Responses, scaled: &Scaled<'_>) -> Evaluation {
    let mut highest: Option<(i32, String)> = None;
    let mut evaluation =
        Evaluation { proposed: None, statuses: Vec::new(), failures: Vec::new(), computed: Vec::new() };
    for measurement in measurements {
        let answered = measurement.request.as_ref().ok().and_then(|request| responses.get(request));
        let proposed = propose(measurement, answered.map(|answered| &answered.response), scaled);
        let took = answered.map_or(Duration::ZERO, |answered| answered.took);
        let type_ = measurement.metric.source.type_name().to_owned();
        let result = proposed.as_ref().map(|proposal| proposal.replicas).map_err(|failure| failure.is_spec);
        evaluation.computed.push(Computed { type_, result, took });
        match proposed {
            Ok(proposal) => {
                evaluation.statuses.push(metric_status(measurement.metric, measurement.spec, proposal));
                if highest.as_ref().is_none_or(|(most, _)| *most == 0 || proposal.replicas > *most) {
                    highest = Some((proposal.replicas, name_of(measurement.metric)));
                }
            }
            Err(failure) => {
                evaluation.statuses.push(unknown_metric());
                evaluation.failures.push(failure);
            }
        }
    }
    let is_safe = |replicas: i32| evaluation.failures.is_empty() || replicas >= scaled.spec_replicas;
    evaluation.proposed = highest.filter(|(replicas, _)| is_safe(*replicas));
    evaluation
}

/// The metric, as conditions and events name it.
fn name_of(metric: &Metric) -> String {
    let is_average = metric.target.average_value.is_some();
    match &metric.source {
        Source::Resource { name } | Source::ContainerResource { name, .. } if is_average => format!("{name} resource"),
        Source::Resource { name } => format!("{name} resource utilization (percentage of request)"),
        Source::ContainerResource { name, .. } => {
            format!("{name} container resource utilization (percentage of request)")
        }
        Source::Pods { metric } => format!("pods metric {}", metric.name),
        Source::Object { described, metric: identifier } if !metric.is_per_pod() => {
            format!("{} metric {}", described.kind, identifier.name)
        }
        Source::Object { metric, .. } | Source::External { metric } => {
            format!("external metric {}({})", metric.name, metric.selector_in_go())
        }
        Source::Unknown { type_ } => type_.clone(),
    }
}

fn propose(
    measurement: &Measurement<'_>,
    answered: Option<&Result<Response, String>>,
    scaled: &Scaled<'_>,
) -> Result<Proposal, Failure> {
    let metric = measurement.metric;
    let failure = |message| failure_of(metric, scaled.namespace, &message);
    let response = match (measurement.request, answered) {
        (Err(NoRequest::Invalid(message)), _) => return Err(failure(Problem::Own(message.clone()))),
        (Err(NoRequest::Unmapped(message)), _) | (Ok(_), Some(Err(message))) => {
            return Err(failure(Problem::OfApi(message.clone())));
        }
        (Ok(_), Some(Ok(response))) => response,
        (Ok(_), None) => return Err(failure(Problem::OfApi("the metric has not been requested".to_owned()))),
    };
    let calculated = calculate(metric, response, scaled);
    calculated.map_err(|error| failure(Problem::Own(error.to_string())))
}

fn calculate(metric: &Metric, response: &Response, scaled: &Scaled<'_>) -> Result<Proposal, CalculationError> {
    let Scaled { spec_replicas, status_replicas, pods, rules, pod_level, .. } = *scaled;
    let target = &metric.target;
    let resource = match &metric.source {
        Source::Resource { name } => Some((name, None)),
        Source::ContainerResource { name, container } => Some((name, Some(container.as_str()))),
        Source::Pods { .. } | Source::Object { .. } | Source::External { .. } | Source::Unknown { .. } => None,
    };
    let value = match response {
        Response::Usage(usage) => {
            let (resource, container) = resource.ok_or(CalculationError::NoSamples)?;
            let samples = samples(usage, resource, container);
            return match (target.average_value, target.average_utilization) {
                (Some(average), _) => replicas_for_average(spec_replicas, average, resource, samples, pods, rules),
                (None, utilization) => {
                    let measured = Measured { resource, container, pod_level };
                    replicas_for_utilization(spec_replicas, utilization.unwrap_or(0), measured, samples, pods, rules)
                }
            };
        }
        Response::Pods(samples) => {
            let average = target.average_value.unwrap_or(0);
            return replicas_for_average(spec_replicas, average, "", samples.clone(), pods, rules);
        }
        Response::Value(value) => *value,
        Response::Values(values) => sum(values),
    };
    if metric.is_per_pod() {
        let average = target.average_value.unwrap_or(0);
        return Ok(replicas_for_value_per_pod(status_replicas, value, average, rules.tolerances));
    }
    replicas_for_value(spec_replicas, value, target.value.unwrap_or(0), pods, rules.tolerances)
}

/// Where the message of a failure comes from.
enum Problem {
    /// From the metrics API.
    OfApi(String),
    /// From the metric or the calculation.
    Own(String),
}

/// A failure with upstream's messages.
fn failure_of(metric: &Metric, namespace: &str, problem: &Problem) -> Failure {
    let is_average = metric.target.average_value.is_some();
    let prefixed = |prefix: String| match problem {
        Problem::OfApi(message) => format!("{prefix}: {message}"),
        Problem::Own(message) => message.clone(),
    };
    let has_target = is_average || metric.target.average_utilization.is_some();
    let of_resource = |name: &str| {
        let message = prefixed(format!("unable to get metrics for resource {name}"));
        if !has_target {
            return message;
        }
        format!("failed to get {name} {}: {message}", if is_average { "usage" } else { "utilization" })
    };
    let (reason, message, error) = match &metric.source {
        Source::Resource { name } => {
            let message = of_resource(name);
            let error = format!("failed to get {name} resource metric value: {message}");
            ("FailedGetResourceMetric", message, error)
        }
        Source::ContainerResource { name, container } => {
            let message = of_resource(name);
            let error = format!("failed to get {container} container metric value: {message}");
            ("FailedGetContainerResourceMetric", message, error)
        }
        Source::Pods { metric } => {
            let message = prefixed(format!("unable to get metric {}", metric.name));
            let error = format!("failed to get pods metric value: {message}");
            ("FailedGetPodsMetric", message, error)
        }
        Source::Object { described, metric: identifier } => {
            let on = format!("{} {namespace}/{}", described.kind, described.name);
            let message = prefixed(format!("unable to get metric {} on {on}", identifier.name));
            // A selector is read before, whatever the target.
            let is_read = matches!(problem, Problem::OfApi(_));
            let is_average = metric.is_per_pod() && metric.target.type_ == "AverageValue" && is_average;
            let around = if is_average && is_read {
                format!("failed to get {} object metric: ", identifier.name)
            } else {
                String::new()
            };
            let error = format!("failed to get object metric value: {around}{message}");
            ("FailedGetObjectMetric", message, error)
        }
        Source::External { metric: identifier } => {
            let name = &identifier.name;
            let got = format!("unable to get external metric {namespace}/{name}/{}", identifier.selector_in_go());
            let message = prefixed(got);
            let around = match (is_average, metric.target.value) {
                (true, _) => format!("failed to get {name} external metric: "),
                (false, Some(_)) => format!("failed to get external metric {name}: "),
                (false, None) => String::new(),
            };
            let error = format!("failed to get {name} external metric value: {around}{message}");
            ("FailedGetExternalMetric", message, error)
        }
        Source::Unknown { .. } => {
            let message = prefixed(String::new());
            ("InvalidMetricSourceType", message.clone(), message)
        }
    };
    Failure { reason, message, error, is_spec: matches!(metric.source, Source::Unknown { .. }) }
}
