//! Metrics and behavior of an autoscaler, as its document has them. Pure.

use kcm_framework::api::views::HorizontalPodAutoscaler;
use kcm_framework::api::{InternedStr, InvalidSelector, LabelSelector, ResourceQuantity, Selector};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What the spec of an autoscaler sets beside its target and its bounds.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    pub(super) metrics: Vec<Metric>,
    pub(super) behavior: Option<Behavior>,
}

impl Spec {
    /// Reads the spec of an autoscaler.
    pub(super) fn of(autoscaler: &HorizontalPodAutoscaler) -> Result<Self, serde_json::Error> {
        autoscaler.raw(&["spec"]).map(RawValue::get).map_or_else(|| Ok(Self::default()), serde_json::from_str)
    }

    /// Whether any metric can be measured without pods.
    pub(super) fn scales_from_zero(&self) -> bool {
        self.metrics.iter().any(|metric| matches!(metric.source, Source::Object { .. } | Source::External { .. }))
    }
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// One metric and its target.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "RawMetric")]
pub(super) struct Metric {
    pub(super) source: Source,
    pub(super) target: Target,
}

/// Where a metric comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    Resource {
        name: String,
    },
    ContainerResource {
        name: String,
        container: String,
    },
    Pods {
        metric: Identifier,
    },
    Object {
        described: Reference,
        metric: Identifier,
    },
    External {
        metric: Identifier,
    },
    /// A type that is not known, or without its source; the API server serves none.
    Unknown {
        type_: String,
    },
}

impl Source {
    /// `type`, which is also the label of metrics.
    pub(super) fn type_name(&self) -> &str {
        match self {
            Self::Resource { .. } => "Resource",
            Self::ContainerResource { .. } => "ContainerResource",
            Self::Pods { .. } => "Pods",
            Self::Object { .. } => "Object",
            Self::External { .. } => "External",
            Self::Unknown { type_ } => type_,
        }
    }
}

/// Name and selector of a metric.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Identifier {
    pub(super) name: String,
    pub(super) selector: Option<LabelSelector>,
}

impl Identifier {
    /// The selector of the metric as a query; empty where there is none.
    pub(super) fn query(&self) -> Result<String, InvalidSelector> {
        let Some(selector) = &self.selector else { return Ok(String::new()) };
        Ok(Selector::try_from(selector)?.to_string())
    }

    /// The selector as upstream's messages have it: as Go prints a pointer to it.
    pub(super) fn selector_in_go(&self) -> String {
        let Some(selector) = &self.selector else { return "nil".to_owned() };
        let mut text = "&LabelSelector{MatchLabels:map[string]string{".to_owned();
        // Sorted by key, as there.
        for (key, value) in selector.match_labels.iter() {
            text.extend([key, ": ", value, ","]);
        }
        text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
        for it in &selector.match_expressions {
            let values = it.values.iter().map(InternedStr::as_str).collect::<Vec<_>>().join(" ");
            text.extend(["LabelSelectorRequirement{Key:", it.key.as_str(), ",Operator:", it.operator.as_str()]);
            text.extend([",Values:[", &*values, "],},"]);
        }
        text.push_str("},}");
        text
    }
}

/// An object in the namespace of the autoscaler.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Reference {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
}

/// The target of a metric; amounts in thousandths.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(from = "RawTarget")]
pub(super) struct Target {
    pub(super) type_: String,
    pub(super) value: Option<i64>,
    pub(super) average_value: Option<i64>,
    pub(super) average_utilization: Option<i32>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawTarget {
    r#type: String,
    value: Option<ResourceQuantity>,
    average_value: Option<ResourceQuantity>,
    average_utilization: Option<i32>,
}

impl From<RawTarget> for Target {
    fn from(raw: RawTarget) -> Self {
        Self {
            type_: raw.r#type,
            value: raw.value.map(ResourceQuantity::to_milli),
            average_value: raw.average_value.map(ResourceQuantity::to_milli),
            average_utilization: raw.average_utilization,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawMetric {
    r#type: String,
    resource: Option<RawSource>,
    container_resource: Option<RawSource>,
    pods: Option<RawSource>,
    object: Option<RawSource>,
    external: Option<RawSource>,
}

/// The fields of all sources.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawSource {
    name: String,
    container: String,
    metric: Identifier,
    described_object: Reference,
    target: Target,
}

impl From<RawMetric> for Metric {
    fn from(raw: RawMetric) -> Self {
        let RawMetric { r#type: type_, resource, container_resource, pods, object, external } = raw;
        let (source, fields) = match (&*type_, resource, container_resource, pods, object, external) {
            ("Resource", Some(it), ..) => (Source::Resource { name: it.name }, it.target),
            ("ContainerResource", _, Some(it), ..) => {
                (Source::ContainerResource { name: it.name, container: it.container }, it.target)
            }
            ("Pods", _, _, Some(it), ..) => (Source::Pods { metric: it.metric }, it.target),
            ("Object", _, _, _, Some(it), _) => {
                (Source::Object { described: it.described_object, metric: it.metric }, it.target)
            }
            ("External", _, _, _, _, Some(it)) => (Source::External { metric: it.metric }, it.target),
            _ => (Source::Unknown { type_ }, Target::default()),
        };
        Self { source, target: fields }
    }
}

/// How fast an autoscaler scales in each direction.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "RawBehavior")]
pub(super) struct Behavior {
    pub(super) up: ScalingRules,
    pub(super) down: ScalingRules,
}

/// How fast an autoscaler scales in one direction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScalingRules {
    /// Seconds; absent for that of the settings.
    pub(super) stabilization_window: Option<i32>,
    pub(super) select: SelectPolicy,
    pub(super) policies: Vec<Policy>,
    /// As a share of the target; absent for that of the settings.
    pub(super) tolerance: Option<f64>,
}

/// Which policy applies, of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum SelectPolicy {
    /// That of the least change.
    Min,
    /// None: nothing is scaled in the direction.
    Disabled,
    /// That of the greatest change.
    #[serde(other)]
    Max,
}

/// How much may change in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Policy {
    pub(super) r#type: PolicyType,
    pub(super) value: i32,
    pub(super) period_seconds: i32,
}

/// Of what the value of a policy is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum PolicyType {
    /// Pods.
    Pods,
    /// Per cent of the replicas at the begin of the period.
    Percent,
    /// A type that is not known; it counts for nothing.
    #[serde(other)]
    Other,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawBehavior {
    scale_up: Option<RawRules>,
    scale_down: Option<RawRules>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawRules {
    stabilization_window_seconds: Option<i32>,
    select_policy: Option<SelectPolicy>,
    policies: Option<Vec<Policy>>,
    tolerance: Option<ResourceQuantity>,
}

impl From<RawBehavior> for Behavior {
    /// The defaults are those that the API server sets.
    fn from(raw: RawBehavior) -> Self {
        const PERIOD_SECONDS: i32 = 15;
        let policy = |r#type, value| Policy { r#type, value, period_seconds: PERIOD_SECONDS };
        let rules = |raw: Option<RawRules>, window, policies| {
            let raw = raw.unwrap_or_default();
            ScalingRules {
                stabilization_window: raw.stabilization_window_seconds.or(window),
                select: raw.select_policy.unwrap_or(SelectPolicy::Max),
                policies: raw.policies.unwrap_or(policies),
                tolerance: raw.tolerance.map(ResourceQuantity::to_f64),
            }
        };
        let up = vec![policy(PolicyType::Pods, 4), policy(PolicyType::Percent, 100)];
        Self {
            up: rules(raw.scale_up, Some(0), up),
            down: rules(raw.scale_down, None, vec![policy(PolicyType::Percent, 100)]),
        }
    }
}

impl Metric {
    /// Whether the target of an object or external metric is its value divided by the replicas.
    pub(super) fn is_per_pod(&self) -> bool {
        match &self.source {
            Source::Object { .. } => self.target.type_ != "Value" || self.target.value.is_none(),
            Source::External { .. } => self.target.average_value.is_some(),
            Source::Resource { .. } | Source::ContainerResource { .. } | Source::Pods { .. } => true,
            Source::Unknown { .. } => false,
        }
    }
}
