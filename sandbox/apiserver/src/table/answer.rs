//! Tables as they are written into a response or an event.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::Resource;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use super::columns::Column;
use super::include::IncludeObject;
use super::row::Row;
use super::{columns, defined, pods};
use crate::event_view;
use crate::json;
use crate::kinds::{Behaviour, Kind};
use crate::store::stored::Stored;

/// Objects as a table; rows are made one after the other while it is written.
pub(crate) struct Table<'a> {
    columns: &'static [Column],
    /// Columns of a custom resource definition, which follow the name and replace all others.
    defined: Vec<Value>,
    /// The definitions are left out of all but the first table of a watch.
    defines_columns: bool,
    /// Rows carry the condition of completed pods.
    pods: bool,
    resource: Resource,
    metadata: Value,
    objects: Vec<&'a Stored>,
    include: IncludeObject,
    now: Timestamp,
}

impl<'a> Table<'a> {
    /// A list with its metadata.
    pub(crate) fn of_list(
        kind: &Kind,
        metadata: Value,
        objects: impl Iterator<Item = &'a Stored>,
        include: IncludeObject,
        now: Timestamp,
    ) -> Self {
        Self {
            columns: columns::of(kind, None),
            defined: defined::columns(kind),
            defines_columns: true,
            pods: kind.behaviour == Behaviour::Pod,
            resource: kind.resource.clone(),
            metadata,
            objects: objects.collect(),
            include,
            now,
        }
    }

    /// One object, or a subresource of it.
    pub(crate) fn of_object(
        kind: &Kind,
        subresource: Option<&str>,
        object: &'a Stored,
        include: IncludeObject,
        now: Timestamp,
    ) -> Self {
        let version = object.at(&["metadata", "resourceVersion"]).filter(|version| version != "");
        let metadata = version.map_or(json!({}), |version| json!({ "resourceVersion": version }));
        let columns = columns::of(kind, subresource);
        let defined = if subresource == Some("scale") { Vec::new() } else { defined::columns(kind) };
        Self { columns, defined, ..Self::of_list(kind, metadata, std::iter::once(object), include, now) }
    }

    fn columns(&self) -> &'static [Column] {
        if self.defined.is_empty() { self.columns } else { &self.columns[..1] }
    }

    pub(crate) fn without_definitions(self) -> Self {
        Self { defines_columns: false, ..self }
    }
}

impl Serialize for Table<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("kind", "Table")?;
        map.serialize_entry("apiVersion", "meta.k8s.io/v1")?;
        map.serialize_entry("metadata", &self.metadata)?;
        let definitions = self.defined.iter().map(defined::described);
        let definitions: Vec<Value> = self.columns().iter().map(|column| json!(column)).chain(definitions).collect();
        map.serialize_entry("columnDefinitions", &self.defines_columns.then_some(definitions))?;
        map.serialize_entry("rows", &Rows(self))?;
        map.end()
    }
}

struct Rows<'a>(&'a Table<'a>);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.0.objects.iter().map(|object| RowView { table: self.0, object: object.value() });
        serializer.collect_seq(rows)
    }
}

struct RowView<'a> {
    table: &'a Table<'a>,
    object: Arc<Value>,
}

impl Serialize for RowView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let resource = &self.table.resource;
        // Columns know events as they are stored.
        let stored = event_view::is_view(resource).then(|| event_view::inward(resource, Value::clone(&self.object)));
        let row = Row { object: stored.as_ref().unwrap_or(&self.object), now: self.table.now };
        let defined = self.table.defined.iter().map(|column| defined::cell(column, &row));
        let cells: Vec<Value> = self.table.columns().iter().map(|column| column.cell(&row)).chain(defined).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("cells", &cells)?;
        if let Some(conditions) = self.table.pods.then(|| pods::conditions(&self.object)).flatten() {
            map.serialize_entry("conditions", &conditions)?;
        }
        match self.table.include {
            IncludeObject::Object => match stored {
                Some(stored) => map.serialize_entry("object", &event_view::outward(resource, stored))?,
                None => map.serialize_entry("object", &*self.object)?,
            },
            // Clients find the end of the initial events by the metadata, even with `includeObject=None`.
            IncludeObject::None if !ends_initial_events(&self.object) => map.serialize_entry("object", &Value::Null)?,
            IncludeObject::None | IncludeObject::Metadata => {
                map.serialize_entry("object", &metadata_only(&self.object))?;
            }
        }
        map.end()
    }
}

/// Metadata alone, as the API answers `as=PartialObjectMetadata`.
fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}

fn ends_initial_events(object: &Value) -> bool {
    json::text(object, &["metadata", "annotations", "k8s.io/initial-events-end"]) == Some("true")
}
