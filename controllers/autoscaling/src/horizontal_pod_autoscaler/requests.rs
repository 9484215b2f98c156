//! The requests to the metrics APIs that a metric takes. Pure.

use std::fmt::Write as _;

use kcm_framework::api::Selector;

use super::spec::{Metric, Reference, Source};

/// One of the metrics APIs. Each has a client and a limit of its own, so that one that hangs holds up no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Api {
    Resource,
    Custom,
    External,
}

impl Api {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Custom => "custom",
            Self::External => "external",
        }
    }
}

/// A request to a metrics API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Request {
    /// The usage of pods and their containers.
    Usage { namespace: String, selector: String },
    /// A custom metric of pods.
    OfPods { namespace: String, selector: String, metric: String, metric_selector: String },
    /// A custom metric of an object; of the namespace itself where no resource is named.
    OfObject { namespace: String, resource: Option<String>, name: String, metric: String, metric_selector: String },
    /// An external metric.
    External { namespace: String, metric: String, metric_selector: String },
}

impl Request {
    pub(super) const fn api(&self) -> Api {
        match self {
            Self::Usage { .. } => Api::Resource,
            Self::OfPods { .. } | Self::OfObject { .. } => Api::Custom,
            Self::External { .. } => Api::External,
        }
    }

    /// Path and query. `version` is that of the custom metrics API.
    pub(super) fn path(&self, version: &str) -> String {
        let mut path = String::from("/apis/");
        let custom = |path: &mut String, namespace: &str, rest: [&str; 3]| {
            path.push_str("custom.metrics.k8s.io/");
            segments(path, &[version, "namespaces", namespace]);
            for segment in rest.into_iter().filter(|segment| !segment.is_empty()) {
                path.push('/');
                push_encoded(path, segment);
            }
        };
        let (labels, metric_labels) = match self {
            Self::Usage { namespace, selector } => {
                segments(&mut path, &["metrics.k8s.io", "v1beta1", "namespaces", namespace, "pods"]);
                (selector.as_str(), "")
            }
            Self::OfPods { namespace, selector, metric, metric_selector } => {
                custom(&mut path, namespace, ["pods", "*", metric]);
                (selector.as_str(), metric_selector.as_str())
            }
            Self::OfObject { namespace, resource, name, metric, metric_selector } => {
                match resource {
                    Some(resource) => custom(&mut path, namespace, [resource, name, metric]),
                    None => custom(&mut path, namespace, ["metrics", metric, ""]),
                }
                ("", metric_selector.as_str())
            }
            Self::External { namespace, metric, metric_selector } => {
                segments(&mut path, &["external.metrics.k8s.io", "v1beta1", "namespaces", namespace, metric]);
                (metric_selector.as_str(), "")
            }
        };
        for (parameter, value) in [("labelSelector", labels), ("metricLabelSelector", metric_labels)] {
            if !value.is_empty() {
                path.push(if path.contains('?') { '&' } else { '?' });
                path.push_str(parameter);
                path.push('=');
                push_encoded(&mut path, value);
            }
        }
        path
    }

    /// The resource, and its object, as client-go names them in the messages of errors.
    pub(super) fn described(&self) -> String {
        match self {
            Self::Usage { .. } => "pods.metrics.k8s.io".to_owned(),
            Self::OfPods { .. } => "pods.custom.metrics.k8s.io *".to_owned(),
            Self::OfObject { resource: Some(resource), name, .. } => format!("{resource}.custom.metrics.k8s.io {name}"),
            Self::OfObject { resource: None, metric, .. } => format!("metrics.custom.metrics.k8s.io {metric}"),
            Self::External { metric, .. } => format!("{metric}.external.metrics.k8s.io"),
        }
    }
}

fn segments(path: &mut String, segments: &[&str]) {
    for (at, segment) in segments.iter().enumerate() {
        if at > 0 {
            path.push('/');
        }
        push_encoded(path, segment);
    }
}

fn push_encoded(path: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~*".contains(&byte) {
            path.push(char::from(byte));
        } else {
            write!(path, "%{byte:02X}").expect("writing to a string never fails");
        }
    }
}

/// Why a metric takes no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoRequest {
    /// The metric is not valid.
    Invalid(String),
    /// The kind of the described object is not served.
    Unmapped(String),
}

/// The request that a metric takes. `resource_of` returns the resource of a group and kind, as `plural.group`.
pub(super) fn request_of(
    metric: &Metric,
    namespace: &str,
    selector: &Selector,
    resource_of: impl Fn(&str, &str) -> Option<String>,
) -> Result<Request, NoRequest> {
    let invalid = |message: &str| Err(NoRequest::Invalid(message.to_owned()));
    let namespace = namespace.to_owned();
    let target = &metric.target;
    match &metric.source {
        Source::Resource { .. } | Source::ContainerResource { .. } => {
            if target.average_value.is_none() && target.average_utilization.is_none() {
                return invalid(
                    "invalid resource metric source: neither an average utilization target nor an average value \
                     (usage) target was set",
                );
            }
            Ok(Request::Usage { namespace, selector: selector.to_string() })
        }
        Source::Pods { metric } => {
            let metric_selector = query(metric)?;
            if target.average_value.is_none() {
                return invalid("invalid pods metric source: no average value target was set");
            }
            let selector = selector.to_string();
            Ok(Request::OfPods { namespace, selector, metric: metric.name.clone(), metric_selector })
        }
        Source::Object { described, metric: identifier } => {
            let metric_selector = query(identifier)?;
            let by_value = target.type_ == "Value" && target.value.is_some();
            let by_average = target.type_ == "AverageValue" && target.average_value.is_some();
            if !by_value && !by_average {
                return invalid(
                    "invalid object metric source: neither a value target nor an average value target was set",
                );
            }
            let resource = described_resource(described, resource_of)?;
            let (name, metric) = (described.name.clone(), identifier.name.clone());
            Ok(Request::OfObject { namespace, resource, name, metric, metric_selector })
        }
        Source::External { metric: identifier } => {
            if target.average_value.is_none() && target.value.is_none() {
                return invalid(
                    "invalid external metric source: neither a value target nor an average value target was set",
                );
            }
            let metric_selector = query(identifier)?;
            Ok(Request::External { namespace, metric: identifier.name.clone(), metric_selector })
        }
        Source::Unknown { type_ } => invalid(&format!("unknown metric source type {type_:?}")),
    }
}

fn query(metric: &super::spec::Identifier) -> Result<String, NoRequest> {
    metric.query().map_err(|error| NoRequest::Invalid(error.to_string()))
}

fn described_resource(
    described: &Reference,
    resource_of: impl Fn(&str, &str) -> Option<String>,
) -> Result<Option<String>, NoRequest> {
    // An invalid version counts as none.
    let group = match described.api_version.split_once('/') {
        Some((group, version)) if !version.contains('/') => group,
        Some(_) | None => "",
    };
    let kind = &*described.kind;
    if (group, kind) == ("", "Namespace") {
        return Ok(None);
    }
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let unmapped = || {
        let message =
            format!("unable to map kind {qualified} to resource: no matches for kind {kind:?} in group {group:?}");
        NoRequest::Unmapped(format!("unable to fetch metrics from custom metrics API: {message}"))
    };
    resource_of(group, kind).map(Some).ok_or_else(unmapped)
}
