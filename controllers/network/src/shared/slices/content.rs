//! The endpoints and ports in the JSON of a slice.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_framework::api::views::EndpointSlice;
use serde::{Deserialize, Deserializer, Serialize};

/// A slice of the cache with its endpoints and ports.
///
/// The cache holds the JSON of slices only, about 300 bytes for each endpoint. A comparison reads endpoints and ports from
/// it.
#[derive(Debug, Clone)]
pub(crate) struct ExistingSlice {
    /// The slice.
    pub(crate) object: Arc<EndpointSlice>,
    /// Its ports, sorted.
    pub(crate) ports: Vec<EndpointPort>,
    /// Its endpoints, in their order.
    pub(crate) endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default, deserialize_with = "null_as_empty")]
    endpoints: Vec<Endpoint>,
    #[serde(default, deserialize_with = "null_as_empty")]
    ports: Vec<EndpointPort>,
}

impl ExistingSlice {
    /// Reads slices, without terminating slices. Returns also the slices that cannot be read, which are to be replaced.
    pub(crate) fn read_all(slices: Vec<Arc<EndpointSlice>>) -> (Vec<Self>, Vec<Arc<EndpointSlice>>) {
        let (mut read, mut invalid) = (Vec::new(), Vec::new());
        for slice in slices.into_iter().filter(|slice| !slice.metadata.is_terminating()) {
            match Self::read(Arc::clone(&slice)) {
                Some(existing) => read.push(existing),
                None => invalid.push(slice),
            }
        }
        (read, invalid)
    }

    /// Reads a slice. `None` if its endpoints or ports cannot be read.
    pub(crate) fn read(object: Arc<EndpointSlice>) -> Option<Self> {
        let Content { mut endpoints, mut ports } = serde_json::from_str(object.document.as_str()).ok()?;
        for endpoint in &mut endpoints {
            endpoint.addresses.sort_unstable();
        }
        ports.sort_unstable();
        Some(Self { object, ports, endpoints })
    }
}

/// An endpoint. As upstream, an update of a slice loses fields that are not known here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Endpoint {
    /// The addresses, sorted.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub(crate) addresses: Vec<String>,
    /// Its conditions.
    #[serde(default)]
    pub(crate) conditions: Conditions,
    /// Its hostname.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hostname: Option<String>,
    /// The object that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target_ref: Option<TargetRef>,
    /// The topology of an older API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deprecated_topology: Option<BTreeMap<String, String>>,
    /// The node that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node_name: Option<String>,
    /// The zone that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<String>,
    /// From where traffic should come to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hints: Option<Hints>,
}

/// The conditions of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Conditions {
    /// Whether it takes new connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<bool>,
    /// Whether it serves requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) serving: Option<bool>,
    /// Whether it is about to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terminating: Option<bool>,
}

/// The object that an endpoint is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TargetRef {
    /// `kind`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) kind: String,
    /// `namespace`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    /// `name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    /// `uid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
    /// `apiVersion`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) api_version: String,
    /// `resourceVersion`, which no comparison counts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) resource_version: String,
    /// `fieldPath`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field_path: String,
}

/// From where traffic should come to an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hints {
    /// The zones.
    #[serde(default, deserialize_with = "null_as_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) for_zones: Vec<Hint>,
    /// The nodes.
    #[serde(default, deserialize_with = "null_as_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) for_nodes: Vec<Hint>,
}

/// A zone or a node of a hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hint {
    /// Its name.
    pub(crate) name: String,
}

impl Hints {
    /// A hint for one zone.
    pub(crate) fn zone(name: &str) -> Self {
        Self { for_zones: vec![Hint { name: name.to_owned() }], for_nodes: Vec::new() }
    }
}

/// Addresses, hostname, and namespace and name of the object.
pub(crate) type Identity<'a> = (&'a [String], &'a str, (&'a str, &'a str));

/// A port of all endpoints of a slice. An absent name is another than an empty one, as upstream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointPort {
    /// `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// `protocol`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    /// `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<i32>,
    /// `appProtocol`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) app_protocol: Option<String>,
}

impl Endpoint {
    /// Whether it takes new connections.
    pub(crate) fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }

    /// Returns the fields that identify it, whatever its conditions and its place.
    pub(crate) fn identity(&self) -> Identity<'_> {
        let target = self.target_ref.as_ref().map_or(("", ""), |target| (&*target.namespace, &*target.name));
        (&*self.addresses, self.hostname.as_deref().unwrap_or_default(), target)
    }

    /// Whether both are equal in what counts for a write beside the identity. Hints are compared apart.
    ///
    /// # Upstream
    /// `EndpointsEqualBeyondHash`
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        let target = |endpoint: &Self| {
            endpoint.target_ref.clone().map(|target| TargetRef { resource_version: String::new(), ..target })
        };
        self.node_name == other.node_name
            && self.zone == other.zone
            && self.conditions == other.conditions
            && (self.target_ref == other.target_ref || target(self) == target(other))
    }
}

fn null_as_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
