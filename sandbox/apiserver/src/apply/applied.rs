//! Server-side apply: merge, conflicts, and pruning. Pure.
//!
//! # Upstream
//! `Apply` and `prune` of `structured-merge-diff/merge/update.go`

use serde_json::Value;

use super::collect::{fields_of, with_declared_parents};
use super::compare::Changes;
use super::fieldset::{FieldSet, NEVER_OWNED};
use super::managers::{Entry, Manager, Managers};
use super::merge::{merge, without};
use super::shape::Shape;

/// An applied configuration and its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Application<'a> {
    pub(crate) shape: Shape,
    /// The API version of the configuration.
    pub(crate) version: &'a str,
    /// Fields that this path does not write.
    pub(crate) ignored: &'a FieldSet,
    pub(crate) object: &'a Value,
    pub(crate) by: &'a Manager,
    pub(crate) force: bool,
}

/// Fields that other managers own and that the apply would change.
pub(crate) type Conflicts = Vec<(Manager, FieldSet)>;

impl Application<'_> {
    /// Merges into the live object, and prunes the fields that the manager applied before, no longer applies, and no
    /// other manager owns. Returns the new object, or `None` if nothing changes, and its managers with unchanged times.
    pub(crate) fn to(&self, live: &Value, mut managers: Managers) -> Result<(Option<Value>, Managers), Conflicts> {
        let mut fields = fields_of(self.shape, self.object);
        fields.subtract_trees(self.ignored);
        let last = managers.0.remove(self.by);
        let time = last.as_ref().and_then(|last| last.time.clone());
        managers.0.insert(self.by.clone(), Entry { fields, version: self.version.to_owned(), time });

        let mut object = merge(self.shape, live, self.object);
        if let Some(last) = last.filter(|last| last.version == self.version) {
            object = self.prune(&object, &last.fields, &managers);
        }
        let changes = Changes::between(self.shape, live, &object, self.ignored);
        let conflicts = managers.conflicts(&changes, self.version, self.by);
        if !self.force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        if let Some(entry) = managers.0.get_mut(self.by) {
            entry.fields.subtract(&NEVER_OWNED);
        }
        managers.yield_to(&changes, self.version, Some(self.by));
        Ok(((object != *live).then_some(object), managers))
    }

    /// Prunes the fields of `last` that no manager owns any more.
    fn prune(&self, merged: &Value, last: &FieldSet, managers: &Managers) -> Value {
        let declared = |set: &FieldSet| with_declared_parents(self.shape, set);
        let all = |object: &Value| declared(&fields_of(self.shape, object));
        let last = declared(last);
        let (merged_fields, bare) = (all(merged), without(self.shape, merged, &last));

        // Fields of other managers below a pruned parent are restored.
        let mut owned = FieldSet::default();
        managers.0.values().for_each(|entry| owned.union(&entry.fields));
        let mut dropped = merged_fields.clone();
        dropped.subtract(&all(&bare));
        dropped.subtract(&declared(&owned));
        let pruned = without(self.shape, merged, &dropped);

        // Only applied fields are pruned: fields without an owner stay.
        let mut dropped = merged_fields;
        dropped.subtract(&all(&pruned));
        without(self.shape, merged, &dropped.intersection(&last))
    }
}
