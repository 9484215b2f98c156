//! The status of an autoscaler. Pure.

use jiff::Timestamp;
use kcm_framework::api::views::HorizontalPodAutoscaler;
use kcm_framework::api::{Condition, Document, EditError, ResourceQuantity};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calculator::Proposal;
use super::conditions::Conditions;
use super::spec::{Metric, Source};

/// The fields of the status that the controller writes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Status {
    /// The generation that was synced last, `None` if it is not known.
    pub(super) observed_generation: Option<i64>,
    pub(super) current_replicas: i32,
    pub(super) desired_replicas: i32,
    pub(super) last_scale_time: Option<Timestamp>,
    pub(super) current_metrics: Vec<Value>,
    pub(super) conditions: Conditions,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    observed_generation: Option<i64>,
    current_replicas: Option<i32>,
    desired_replicas: Option<i32>,
    #[serde(with = "kcm_framework::api::time::optional_seconds")]
    last_scale_time: Option<Timestamp>,
    current_metrics: Option<Vec<Value>>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Serialize)]
struct Time(#[serde(with = "kcm_framework::api::time::optional_seconds")] Option<Timestamp>);

impl Status {
    /// Reads the status of an autoscaler.
    pub(super) fn of(autoscaler: &HorizontalPodAutoscaler) -> Result<Self, serde_json::Error> {
        let Some(raw) = autoscaler.raw(&["status"]) else { return Ok(Self::default()) };
        let raw: Option<RawStatus> = serde_json::from_str(RawValue::get(raw))?;
        let raw = raw.unwrap_or_default();
        Ok(Self {
            observed_generation: raw.observed_generation,
            current_replicas: raw.current_replicas.unwrap_or(0),
            desired_replicas: raw.desired_replicas.unwrap_or(0),
            last_scale_time: raw.last_scale_time,
            current_metrics: raw.current_metrics.unwrap_or_default(),
            conditions: Conditions(raw.conditions.unwrap_or_default()),
        })
    }

    /// Whether the API server would store the same: quantities are compared by value.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let metrics = |status: &Self| status.current_metrics.iter().map(by_value).collect::<Vec<_>>();
        let rest = |status: &Self| Self { current_metrics: Vec::new(), ..status.clone() };
        rest(self) == rest(other) && metrics(self) == metrics(other)
    }

    /// The document of an autoscaler with this status. Fields that are not known here stay.
    pub(super) fn written_to(&self, autoscaler: &HorizontalPodAutoscaler) -> Result<Document, EditError> {
        let mut document = autoscaler.document.clone();
        match self.observed_generation {
            Some(generation) => document.set(&["status", "observedGeneration"], &generation)?,
            None => document.remove(&["status", "observedGeneration"])?,
        }
        document.set(&["status", "currentReplicas"], &self.current_replicas)?;
        document.set(&["status", "desiredReplicas"], &self.desired_replicas)?;
        if self.last_scale_time.is_some() {
            document.set(&["status", "lastScaleTime"], &Time(self.last_scale_time))?;
        }
        let metrics = (!self.current_metrics.is_empty()).then_some(&self.current_metrics);
        document.set(&["status", "currentMetrics"], &metrics)?;
        document.set(&["status", "conditions"], &self.conditions.0)?;
        Ok(document)
    }
}

/// A metric of the status whose quantities are numbers.
fn by_value(metric: &Value) -> Value {
    let mut metric = metric.clone();
    for source in metric.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        for field in ["value", "averageValue"] {
            if let Some(quantity) = source.get_mut("current").and_then(|current| current.get_mut(field)) {
                let value = ResourceQuantity::deserialize(&*quantity).ok();
                *quantity = value.map_or(Value::Null, |value| json!(value.to_milli()));
            }
        }
    }
    metric
}

/// The metric of the status where its metric proposes nothing; clients show it as unknown.
pub(super) fn unknown_metric() -> Value {
    json!({ "type": "" })
}

/// The metric of the status for what a metric proposes. `spec` is the metric as the spec has it.
pub(super) fn metric_status(metric: &Metric, spec: &Value, proposal: Proposal) -> Value {
    let Proposal { usage, utilization, .. } = proposal;
    let quantity = |is_memory: bool| {
        // As the metrics server writes them.
        if is_memory { ResourceQuantity::of_milli_in_binary(usage) } else { ResourceQuantity::of_milli(usage) }
    };
    let mut current = json!({});
    if let Some(utilization) = utilization {
        current["averageUtilization"] = json!(utilization);
    }
    let of_resource = |name: &str| quantity(name == "memory").to_string();
    let identifier = |source: &Value| {
        let mut identifier = json!({ "name": source["metric"]["name"] });
        if let Some(selector) = source["metric"].get("selector").filter(|selector| !selector.is_null()) {
            identifier["selector"] = selector.clone();
        }
        identifier
    };
    let of_value = if metric.is_per_pod() { "averageValue" } else { "value" };
    match &metric.source {
        Source::Resource { name } => {
            current["averageValue"] = json!(of_resource(name));
            json!({ "type": "Resource", "resource": { "name": name, "current": current } })
        }
        Source::ContainerResource { name, container } => {
            current["averageValue"] = json!(of_resource(name));
            let source = json!({ "name": name, "container": container, "current": current });
            json!({ "type": "ContainerResource", "containerResource": source })
        }
        Source::Pods { .. } => {
            current["averageValue"] = json!(quantity(false).to_string());
            json!({ "type": "Pods", "pods": { "metric": identifier(&spec["pods"]), "current": current } })
        }
        Source::Object { .. } => {
            current[of_value] = json!(quantity(false).to_string());
            let source = &spec["object"];
            let described = &source["describedObject"];
            let status = json!({ "metric": identifier(source), "current": current, "describedObject": described });
            json!({ "type": "Object", "object": status })
        }
        Source::External { .. } => {
            current[of_value] = json!(quantity(false).to_string());
            json!({ "type": "External", "external": { "metric": identifier(&spec["external"]), "current": current } })
        }
        Source::Unknown { .. } => unknown_metric(),
    }
}
