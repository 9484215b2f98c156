//! [`Managers`]: the field managers of an object and the fields that they own. Pure.
//!
//! # Upstream
//! `structured-merge-diff/merge/update.go`, `apimachinery/pkg/util/managedfields/internal`

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::compare::Changes;
use super::fieldset::FieldSet;
use crate::json;

/// Maximum number of update entries; the oldest ones beyond it are merged.
const MOST_UPDATERS: usize = 10;
/// The manager of merged update entries.
const ANCIENT: &str = "ancient-changes";

/// The manager of fields that existed before the first apply to an object without managed fields.
pub(crate) const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The operation of a manager entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Apply, Self::Update].into_iter().find(|operation| operation.name() == name)
    }
}

/// The identity of a manager. Managers are ordered as upstream's identifiers in error messages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    /// Only for updates: appliers are identical in every version.
    version: String,
    pub(crate) subresource: String,
}

impl Manager {
    pub(crate) fn new(name: &str, operation: Operation, version: &str, subresource: Option<&str>) -> Self {
        let name = if name.is_empty() { "unknown" } else { name };
        let version = if operation == Operation::Update { version } else { "" };
        Self {
            name: name.to_owned(),
            operation,
            version: version.to_owned(),
            subresource: subresource.unwrap_or_default().to_owned(),
        }
    }
}

impl std::fmt::Display for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.version)?;
        }
        Ok(())
    }
}

/// The fields of one manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) fields: FieldSet,
    /// The API version of the field names.
    pub(crate) version: String,
    pub(crate) time: Option<String>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managers(pub(crate) BTreeMap<Manager, Entry>);

impl Managers {
    /// Parses `metadata.managedFields`; `None` if an entry is malformed.
    pub(crate) fn from_json(entries: &[Value]) -> Option<Self> {
        let mut managers = BTreeMap::new();
        for entry in entries {
            let text = |field: &str| json::text(entry, &[field]).unwrap_or_default();
            let operation = Operation::parse(text("operation"))?;
            let version = text("apiVersion");
            if version.is_empty() || text("fieldsType") != "FieldsV1" {
                return None;
            }
            let fields = json::at(entry, &["fieldsV1"]).map_or(Some(FieldSet::default()), FieldSet::from_json)?;
            let subresource = Some(text("subresource"));
            // A name may be empty in what a client sends.
            let mut manager = Manager::new(text("manager"), operation, version, subresource);
            text("manager").clone_into(&mut manager.name);
            let time = json::text(entry, &["time"]).map(str::to_owned);
            managers.insert(manager, Entry { fields, version: version.to_owned(), time });
        }
        Some(Self(managers))
    }

    /// Encodes `metadata.managedFields`: appliers first, then by time.
    pub(crate) fn into_json(self) -> Value {
        let mut entries: Vec<(Manager, Entry)> = self.0.into_iter().collect();
        // Times have one format, so their strings sort by time.
        entries.sort_by_cached_key(|(manager, entry)| {
            let Manager { name, operation, subresource, .. } = manager.clone();
            (operation, entry.time.clone(), name, entry.version.clone(), subresource)
        });
        let write = |(manager, entry): (Manager, Entry)| {
            let mut json = json!({
                "apiVersion": entry.version,
                "fieldsType": "FieldsV1",
                "fieldsV1": entry.fields.into_json(),
                "operation": manager.operation.name(),
            });
            for (field, text) in
                [("manager", Some(manager.name)), ("subresource", Some(manager.subresource)), ("time", entry.time)]
            {
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    json[field] = text.into();
                }
            }
            json
        };
        entries.into_iter().map(write).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Moves the ownership of changed fields to the writer.
    pub(crate) fn update(&mut self, changes: &Changes, by: Manager, version: &str, now: Option<String>) {
        self.yield_to(changes, version, None);
        if changes.set.is_empty() {
            return;
        }
        let entry = self.0.entry(by).or_default();
        entry.fields.union(&changes.set);
        version.clone_into(&mut entry.version);
        entry.time = now;
        self.cap_updaters();
    }

    /// Removes changed and removed fields from all other managers, and managers without fields. An applier owns the
    /// fields of its configuration.
    pub(crate) fn yield_to(&mut self, changes: &Changes, version: &str, applied_by: Option<&Manager>) {
        self.0.retain(|manager, entry| {
            if Some(manager) != applied_by {
                // Fields in a version that is not served cannot be compared.
                if entry.version != version {
                    return false;
                }
                entry.fields.subtract(&changes.set);
                entry.fields.subtract(&changes.removed);
            }
            !entry.fields.is_empty()
        });
    }

    /// Returns the changed fields that other managers own: the conflicts of an apply without force.
    pub(crate) fn conflicts(&self, changes: &Changes, version: &str, applied_by: &Manager) -> Vec<(Manager, FieldSet)> {
        let others = self.0.iter().filter(|(manager, entry)| *manager != applied_by && entry.version == version);
        others
            .map(|(manager, entry)| (manager.clone(), entry.fields.intersection(&changes.set)))
            .filter(|(_, fields)| !fields.is_empty())
            .collect()
    }

    /// Merges the oldest update entries of a version until the limit holds.
    fn cap_updaters(&mut self) {
        let updaters = self.0.iter().filter(|(manager, _)| manager.operation == Operation::Update);
        let mut updaters: Vec<(Option<String>, Manager)> =
            updaters.map(|(manager, entry)| (entry.time.clone(), manager.clone())).collect();
        let mut surplus = updaters.len().saturating_sub(MOST_UPDATERS);
        updaters.sort();
        let mut first_of_version: BTreeMap<String, Manager> = BTreeMap::new();
        for (time, manager) in updaters {
            if surplus == 0 {
                break;
            }
            let Some(first) = first_of_version.get(&manager.version) else {
                first_of_version.insert(manager.version.clone(), manager);
                continue;
            };
            let bucket = Manager::new(ANCIENT, Operation::Update, &manager.version, None);
            let Some(taken) = self.0.remove(&manager) else { continue };
            if !self.0.contains_key(&bucket) {
                let entry = self.0.remove(first).unwrap_or_default();
                self.0.insert(bucket.clone(), entry);
            }
            let entry = self.0.entry(bucket).or_default();
            entry.fields.union(&taken.fields);
            entry.version = taken.version;
            entry.time = time;
            surplus -= 1;
        }
    }
}
