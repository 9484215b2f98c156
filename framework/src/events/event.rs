//! An occurrence, and the core/v1 `CoreEvent` that records it.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use kcm_api::{InternedStr, Meta, Resource, ResourceVersion, Uid};
use serde::{Serialize, Serializer};

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// `apiVersion` of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Identity over the object's whole life.
    pub uid: Uid,
    /// Version of the object that was looked at.
    #[serde(skip_serializing_if = "ResourceVersion::is_unset")]
    pub resource_version: ResourceVersion,
    /// The part of the object, empty for the whole: `spec.containers{web}`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

impl ObjectReference {
    /// A reference to the object of that resource and metadata.
    #[must_use]
    pub fn of(resource: &Resource, meta: &Meta) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.to_string(),
            namespace: meta.key.namespace().unwrap_or_default().to_owned(),
            name: meta.key.name().to_owned(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            field_path: String::new(),
        }
    }
}

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum EventType {
    /// Something that is expected happened.
    Normal,
    /// Something that is not expected happened.
    Warning,
}

/// The type, reason and message of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventText<'a> {
    /// Type of the event: `Normal` or `Warning`.
    pub type_: EventType,
    /// The machine-readable reason, in upper camel case.
    pub reason: Cow<'a, str>,
    /// Message of the event, for operators.
    pub message: Cow<'a, str>,
}

impl<'a> EventText<'a> {
    /// An event of type `Normal`.
    pub fn normal(reason: impl Into<Cow<'a, str>>, message: impl Into<Cow<'a, str>>) -> Self {
        Self { type_: EventType::Normal, reason: reason.into(), message: message.into() }
    }

    /// An event of type `Warning`.
    pub fn warning(reason: impl Into<Cow<'a, str>>, message: impl Into<Cow<'a, str>>) -> Self {
        Self { type_: EventType::Warning, reason: reason.into(), message: message.into() }
    }
}

/// An event of a controller, as [`Session::record`](crate::Session::record) takes it.
///
/// A controller has one enum of all its events, so that a test of a plan asserts events as values:
///
/// ```
/// use kcm_framework::events::{Event, EventText};
///
/// enum GreeterEvent {
///     Greeted { name: String },
///     Rejected { error: String },
/// }
///
/// impl Event for GreeterEvent {
///     fn text(&self) -> EventText<'_> {
///         match self {
///             Self::Greeted { name } => EventText::normal("Greeted", format!("Greeted {name}")),
///             Self::Rejected { error } => EventText::warning("FailedGreet", format!("Error greeting: {error}")),
///         }
///     }
/// }
/// ```
pub trait Event {
    /// Returns the type, reason and message.
    fn text(&self) -> EventText<'_>;
}

/// For events whose reasons need no enum, such as the reason of a condition.
impl Event for EventText<'_> {
    fn text(&self) -> EventText<'_> {
        let Self { type_, reason, message } = self;
        EventText { type_: *type_, reason: Cow::Borrowed(reason), message: Cow::Borrowed(message) }
    }
}

/// An occurrence that a controller records as an event.
#[derive(Debug, Clone)]
pub struct Occurrence {
    /// The reporting component, for example `replicaset-controller`.
    pub component: InternedStr,
    /// The object of the event.
    pub regarding: ObjectReference,
    /// The type of the event.
    pub event_type: EventType,
    /// Reason of the event, in upper camel case.
    pub reason: InternedStr,
    /// Message of the event, for operators.
    pub message: String,
    /// Time at which it happened.
    pub at: Timestamp,
}

impl Occurrence {
    /// Hash of component, object and type: the key of the spam filter.
    pub(super) fn source_key(&self) -> u64 {
        let object = &self.regarding;
        hash(&(
            &self.component,
            &object.api_version,
            &object.kind,
            &object.namespace,
            &object.name,
            &object.uid,
            self.event_type,
        ))
    }

    /// Hash of all fields but message and field path: events of one group are similar.
    pub(super) fn group_key(&self, source: u64) -> u64 {
        hash(&(source, &self.reason))
    }

    /// Hash of all fields: events of one key are equal.
    pub(super) fn full_key(&self, group: u64) -> u64 {
        hash(&(group, &self.regarding.field_path, &self.message))
    }
}

pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// An event of core/v1, as it is sent to the API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CoreEvent {
    kind: &'static str,
    api_version: &'static str,
    /// Name and namespace of the event itself.
    pub metadata: EventMeta,
    /// The object of the event.
    pub involved_object: ObjectReference,
    /// Reason of the event, in upper camel case.
    pub reason: InternedStr,
    /// Message of the event, for operators.
    pub message: String,
    /// The source of the event.
    pub source: EventSource,
    /// When it happened first.
    #[serde(serialize_with = "seconds")]
    pub first_timestamp: Timestamp,
    /// When it happened last.
    #[serde(serialize_with = "seconds")]
    pub last_timestamp: Timestamp,
    /// Number of times that it happened.
    pub count: u32,
    /// The type of the event.
    pub r#type: EventType,
    /// The reporting component again; empty for events that combine several.
    pub reporting_component: InternedStr,
    /// Always empty, as for the controllers of upstream.
    pub reporting_instance: &'static str,
}

/// Name and namespace of an [`CoreEvent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventMeta {
    /// Name of the event.
    pub name: String,
    /// Namespace of the object; `default` for a cluster-scoped object.
    pub namespace: String,
}

/// The source of an [`CoreEvent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventSource {
    /// The reporting component, for example `replicaset-controller`.
    pub component: InternedStr,
}

impl CoreEvent {
    pub(super) fn of(occurrence: &Occurrence, number: i64) -> Self {
        let object = &occurrence.regarding;
        let namespace = if object.namespace.is_empty() { "default" } else { &object.namespace };
        Self {
            kind: "Event",
            api_version: "v1",
            metadata: EventMeta { name: name(object, number), namespace: namespace.to_owned() },
            involved_object: object.clone(),
            reason: occurrence.reason.clone(),
            message: occurrence.message.clone(),
            source: EventSource { component: occurrence.component.clone() },
            first_timestamp: occurrence.at,
            last_timestamp: occurrence.at,
            count: 1,
            r#type: occurrence.event_type,
            reporting_component: occurrence.component.clone(),
            reporting_instance: "",
        }
    }

    /// The fields of the first event that a repetition changes.
    #[must_use]
    pub fn repetition(&self) -> impl Serialize + use<'_> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Repetition<'a> {
            count: u32,
            #[serde(serialize_with = "seconds")]
            last_timestamp: Timestamp,
            message: &'a str,
        }
        Repetition { count: self.count, last_timestamp: self.last_timestamp, message: &self.message }
    }
}

/// `<object>.<number>`, or a hash of the object if that is no valid name. The same for every version of the
/// object.
pub(super) fn name(object: &ObjectReference, number: i64) -> String {
    let name = format!("{}.{number:x}", object.name);
    if is_dns_subdomain(&name) {
        return name;
    }
    let ObjectReference { api_version, kind, namespace, name, uid, .. } = object;
    format!("{:016x}.{number:x}", hash(&(api_version, kind, namespace, name, uid)))
}

fn is_dns_subdomain(name: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let ends_well = |end: Option<&u8>| end.is_some_and(|&byte| is_alphanumeric(byte));
        ends_well(bytes.first())
            && ends_well(bytes.last())
            && bytes.iter().all(|&byte| is_alphanumeric(byte) || byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

fn seconds<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%SZ"))
}
