//! The responses of the metrics APIs. Pure.
//!
//! What an API serves is not trusted: a value of a pod that is no quantity counts as missing, a time that is none is before
//! all times.

use std::str::FromStr as _;

use jiff::{SignedDuration, Timestamp};
use kcm_framework::api::{ResourceList, ResourceQuantity};
use kcm_framework::config::GoDuration;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::calculator::{Sample, Samples};
use super::requests::Request;

/// What a metrics API returned.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Response {
    /// The usage of pods and their containers.
    Usage(Vec<PodMetrics>),
    /// A metric of pods.
    Pods(Samples),
    /// The value of a metric of an object, in thousandths.
    Value(i64),
    /// The values of an external metric, in thousandths.
    Values(Vec<i64>),
}

/// The usage of a pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodMetrics {
    name: Box<str>,
    timestamp: Option<Timestamp>,
    window: SignedDuration,
    containers: Vec<ContainerMetrics>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(default)]
struct ContainerMetrics {
    name: Box<str>,
    usage: ResourceList,
}

/// Reads a response; the error is what follows "unable to get metric" in messages.
pub(super) fn read(request: &Request, json: &[u8]) -> Result<Response, String> {
    match request {
        Request::Usage { .. } => usage(json),
        Request::OfPods { .. } => of_pods(json),
        Request::OfObject { .. } => of_object(json),
        Request::External { .. } => external(json),
    }
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

/// The items of a list, each as it stands: one that cannot be read keeps no other from being read.
fn items<'a>(api: &str, json: &'a [u8]) -> Result<Vec<&'a RawValue>, String> {
    let list: List<'a> = serde_json::from_slice(json)
        .map_err(|error| format!("unable to fetch metrics from {api} metrics API: the response is no list: {error}"))?;
    Ok(list.items.unwrap_or_default())
}

fn none_returned(api: &str) -> String {
    format!("no metrics returned from {api} metrics API")
}

fn usage(json: &[u8]) -> Result<Response, String> {
    #[derive(Deserialize)]
    struct Item {
        metadata: Metadata,
        #[serde(default)]
        timestamp: Value,
        #[serde(default)]
        window: Value,
        #[serde(default)]
        containers: Option<Vec<ContainerMetrics>>,
    }
    #[derive(Deserialize)]
    struct Metadata {
        name: Box<str>,
    }
    let items = items("resource", json)?;
    if items.is_empty() {
        return Err(none_returned("resource"));
    }
    // An object without a name says nothing of any pod.
    let read = items.into_iter().filter_map(|item| serde_json::from_str::<Item>(item.get()).ok());
    let pods = read.map(|item| PodMetrics {
        name: item.metadata.name,
        timestamp: timestamp(&item.timestamp),
        window: go_duration(&item.window),
        containers: item.containers.unwrap_or_default(),
    });
    Ok(Response::Usage(pods.collect()))
}

/// The samples of a resource: of a container of each pod, or of all of them together.
pub(super) fn samples(pods: &[PodMetrics], resource: &str, container: Option<&str>) -> Samples {
    let value_of = |pod: &PodMetrics| {
        let mut values = pod.containers.iter().filter(|it| container.is_none_or(|name| *it.name == *name));
        let value = |it: &ContainerMetrics| it.usage.get(resource).map(ResourceQuantity::to_milli);
        match container {
            Some(_) => value(values.next()?),
            None if pod.containers.is_empty() => None,
            None => values.try_fold(0_i64, |sum, it| Some(sum.saturating_add(value(it)?))),
        }
    };
    let sample = |pod: &PodMetrics| {
        let value = value_of(pod)?;
        Some((pod.name.clone(), Sample { value, timestamp: pod.timestamp, window: pod.window }))
    };
    pods.iter().filter_map(sample).collect()
}

/// A value of `custom.metrics.k8s.io`, in both of its versions.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MetricValue {
    described_object: DescribedObject,
    timestamp: Value,
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    value: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DescribedObject {
    name: Box<str>,
}

/// The window of a custom metric that names none.
const DEFAULT_WINDOW: SignedDuration = SignedDuration::from_secs(60);

fn of_pods(json: &[u8]) -> Result<Response, String> {
    let items = items("custom", json)?;
    if items.is_empty() {
        return Err(none_returned("custom"));
    }
    let read = items.into_iter().filter_map(|item| serde_json::from_str::<MetricValue>(item.get()).ok());
    let samples = read.filter_map(|item| {
        let window = item.window_seconds.map_or(DEFAULT_WINDOW, SignedDuration::from_secs);
        let sample = Sample { value: milli(&item.value)?, timestamp: timestamp(&item.timestamp), window };
        Some((item.described_object.name, sample))
    });
    Ok(Response::Pods(samples.collect()))
}

fn of_object(json: &[u8]) -> Result<Response, String> {
    let fetch = |message: String| format!("unable to fetch metrics from custom metrics API: {message}");
    let items = items("custom", json)?;
    let [item] = &items[..] else {
        let count = items.len();
        return Err(fetch(format!(
            "the custom metrics API server returned {count} results when we asked for exactly one"
        )));
    };
    let value = value_of(item);
    milli(&value).map(Response::Value).ok_or_else(|| fetch(format!("the value {value} is no quantity")))
}

fn external(json: &[u8]) -> Result<Response, String> {
    let items = items("external", json)?;
    if items.is_empty() {
        return Err(none_returned("external"));
    }
    let value = |item: &RawValue| {
        let value = value_of(item);
        milli(&value).ok_or_else(|| {
            format!("unable to fetch metrics from external metrics API: the value {value} is no quantity")
        })
    };
    items.into_iter().map(value).collect::<Result<Vec<_>, _>>().map(Response::Values)
}

/// The value of an item; null where there is none.
fn value_of(item: &RawValue) -> Value {
    #[derive(Deserialize)]
    struct Item {
        value: Value,
    }
    serde_json::from_str(item.get()).map_or(Value::Null, |item: Item| item.value)
}

fn milli(value: &Value) -> Option<i64> {
    ResourceQuantity::deserialize(value).ok().map(ResourceQuantity::to_milli)
}

fn timestamp(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn go_duration(value: &Value) -> SignedDuration {
    let parsed = value.as_str().and_then(|text| GoDuration::from_str(text).ok());
    SignedDuration::from_nanos(parsed.map_or(0, GoDuration::as_nanos))
}
