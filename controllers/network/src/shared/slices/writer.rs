//! The requests that write slices.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use kcm_framework::api::views::{AddressType, EndpointSlice, EndpointSliceView};
use kcm_framework::api::{Document, EditError, KnownView as _, ObjectKey, OwnerReference, Resource};
use kcm_framework::client::{ApiError, Payload};
use kcm_framework::{Class, Delete, ReconcileError, Session};
use serde::Serialize;

use super::content::{Endpoint, EndpointPort};
use super::placement::Draft;
use super::written::OwnWrites;
use crate::shared::trigger_time::{TRIGGER_TIME, annotation_value};

const SLICE: &Resource = &EndpointSliceView::RESOURCE;

#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error("failed to edit {} EndpointSlice for {owner}", slice.name())]
    Edit {
        owner: OwnerName,
        slice: ObjectKey,
        #[source]
        source: EditError,
    },
    #[error("failed to create EndpointSlice for {owner}")]
    Create {
        owner: OwnerName,
        #[source]
        source: ApiError,
    },
    #[error("failed to update {} EndpointSlice for {owner}", slice.name())]
    Update {
        owner: OwnerName,
        slice: ObjectKey,
        #[source]
        source: ApiError,
    },
    #[error("failed to delete {} EndpointSlice for {owner}", slice.name())]
    Delete {
        owner: OwnerName,
        slice: ObjectKey,
        #[source]
        source: ApiError,
    },
    /// A slice of a family that its owner does not have could not be deleted.
    #[error("error deleting {} EndpointSlice for {owner}", slice.name())]
    DeleteForeign {
        owner: OwnerName,
        slice: ObjectKey,
        #[source]
        source: ApiError,
    },
}

/// Kind and key of the owner of a slice, as messages name it.
#[derive(Debug, Clone)]
pub(crate) struct OwnerName {
    pub(crate) kind: String,
    pub(crate) key: ObjectKey,
}

impl fmt::Display for OwnerName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.key)
    }
}

impl WriteError {
    pub(crate) fn class(&self) -> Class {
        match self {
            Self::Edit { .. } => Class::Terminal,
            Self::Create { source, .. }
            | Self::Update { source, .. }
            | Self::Delete { source, .. }
            | Self::DeleteForeign { source, .. } => Class::from(source),
        }
    }

    /// Whether the namespace is terminating, so that nothing can be created in it.
    pub(crate) fn is_namespace_terminating(&self) -> bool {
        matches!(self, Self::Create { source, .. } if source.is_namespace_terminating())
    }

    /// The error with its cause.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Edit { source, .. } => format!("{self}: {source}"),
            Self::Create { source, .. }
            | Self::Update { source, .. }
            | Self::Delete { source, .. }
            | Self::DeleteForeign { source, .. } => format!("{self}: {}", source.message()),
        }
    }
}

impl From<WriteError> for ReconcileError {
    fn from(error: WriteError) -> Self {
        Self::new(error.class(), error)
    }
}

/// The owner of slices, with the metadata that they take from it.
#[derive(Debug)]
pub(crate) struct SliceOwner<'a> {
    /// The owner: a service, or endpoints.
    pub(crate) reference: OwnerReference,
    pub(crate) key: &'a ObjectKey,
    /// All labels of its slices.
    pub(crate) labels: BTreeMap<&'a str, &'a str>,
    /// The annotations that its slices take over; absent if the annotations of slices are left alone.
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

impl SliceOwner<'_> {
    fn name(&self) -> OwnerName {
        OwnerName { kind: self.reference.kind.to_string(), key: self.key.clone() }
    }
}

/// Writes the slices of one owner.
pub(crate) struct SliceWriter<'a> {
    pub(crate) session: &'a Session,
    pub(crate) owner: &'a SliceOwner<'a>,
    pub(crate) own_writes: &'a OwnWrites,
    /// The time of the change that led to this write.
    pub(crate) trigger: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewSlice<'a> {
    api_version: String,
    kind: &'a str,
    metadata: NewMeta<'a>,
    address_type: &'static str,
    endpoints: &'a [Endpoint],
    ports: &'a [EndpointPort],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMeta<'a> {
    name: &'a str,
    generate_name: &'a str,
    namespace: &'a str,
    labels: &'a BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    owner_references: [&'a OwnerReference; 1],
}

impl SliceWriter<'_> {
    /// Creates a slice.
    pub(crate) async fn create(&self, family: AddressType, draft: &Draft) -> Result<(), WriteError> {
        let owner = self.owner;
        let prefix = format!("{}-", owner.key.name());
        let namespace = owner.key.namespace().unwrap_or_default();
        let key = ObjectKey::namespaced(namespace, self.session.generate_name(&prefix));
        let mut annotations = owner.annotations.clone().unwrap_or_default();
        annotations.extend(self.trigger.map(|time| (TRIGGER_TIME.to_owned(), annotation_value(time))));
        let slice = NewSlice {
            api_version: SLICE.api_version(),
            kind: &SLICE.kind,
            metadata: NewMeta {
                name: key.name(),
                generate_name: &prefix,
                namespace,
                labels: &owner.labels,
                annotations,
                owner_references: [&owner.reference],
            },
            address_type: family.as_str(),
            endpoints: &draft.endpoints,
            ports: draft.ports.as_deref().unwrap_or_default(),
        };
        let response = self.session.create::<EndpointSlice>(&key, Payload::json(&slice)).await;
        let written = response.map_err(|source| WriteError::Create { owner: owner.name(), source })?;
        self.own_writes.wrote(written.uid, written.resource_version);
        Ok(())
    }

    /// Updates a slice: labels, endpoints and trigger time, and ports if they are new to it.
    pub(crate) async fn update(&self, slice: &EndpointSlice, draft: &Draft) -> Result<(), WriteError> {
        let key = &slice.metadata.key;
        let document = self.edited(slice, draft);
        let document =
            document.map_err(|source| WriteError::Edit { owner: self.owner.name(), slice: key.clone(), source })?;
        let response = self.session.update(slice, &document).await;
        let written = response.map_err(|source| {
            let (owner, slice) = (self.owner.name(), key.clone());
            WriteError::Update { owner, slice, source }
        })?;
        self.own_writes.wrote(written.uid, written.resource_version);
        Ok(())
    }

    fn edited(&self, slice: &EndpointSlice, draft: &Draft) -> Result<Document, EditError> {
        let mut document = slice.document.clone();
        document.set(&["endpoints"], &draft.endpoints)?;
        if let Some(ports) = &draft.ports {
            document.set(&["ports"], ports)?;
        }
        document.set(&["metadata", "labels"], &self.owner.labels)?;
        if let Some(annotations) = &self.owner.annotations {
            document.set(&["metadata", "annotations"], annotations)?;
            document.set(&["metadata", "ownerReferences"], &[&self.owner.reference])?;
        }
        match self.trigger {
            Some(time) => document.set(&["metadata", "annotations", TRIGGER_TIME], &annotation_value(time))?,
            None => document.remove(&["metadata", "annotations", TRIGGER_TIME])?,
        }
        Ok(document)
    }

    pub(crate) async fn delete(&self, slice: &EndpointSlice) -> Result<(), WriteError> {
        delete_slice(self.session, self.own_writes, slice).await.map_err(|source| {
            let (owner, slice) = (self.owner.name(), slice.metadata.key.clone());
            WriteError::Delete { owner, slice, source }
        })
    }

    /// Deletes a slice of a family that the owner does not have.
    pub(crate) async fn delete_foreign(&self, slice: &EndpointSlice) -> Result<(), WriteError> {
        delete_slice(self.session, self.own_writes, slice).await.map_err(|source| {
            let (owner, slice) = (self.owner.name(), slice.metadata.key.clone());
            WriteError::DeleteForeign { owner, slice, source }
        })
    }
}

/// Deletes a slice, also one without an owner.
pub(crate) async fn delete_slice(
    session: &Session,
    own_writes: &OwnWrites,
    slice: &EndpointSlice,
) -> Result<(), ApiError> {
    session.delete(slice, Delete::default()).await?;
    own_writes.deleted(&slice.metadata.uid);
    Ok(())
}
