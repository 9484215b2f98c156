//! Server-side apply: the merge, the conflicts, and what goes away. Pure.
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

/// An object to apply, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Application<'a> {
    pub(crate) shape: Shape,
    /// The version of the API in which it is written.
    pub(crate) version: &'a str,
    /// What this path does not write.
    pub(crate) ignored: &'a FieldSet,
    pub(crate) object: &'a Value,
    pub(crate) by: &'a Manager,
    pub(crate) force: bool,
}

/// Fields that others own and that would change.
pub(crate) type Conflicts = Vec<(Manager, FieldSet)>;

impl Application<'_> {
    /// Merges into the live object, and takes out what the manager applied before, applies no more, and nobody else
    /// owns. Returns the object as it is to be, `None` where nothing changes, and its owners, whose times are those of
    /// before.
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

    /// Takes out of the merged object the fields of `last` that nobody owns any more.
    fn prune(&self, merged: &Value, last: &FieldSet, managers: &Managers) -> Value {
        let declared = |set: &FieldSet| with_declared_parents(self.shape, set);
        let all = |object: &Value| declared(&fields_of(self.shape, object));
        let last = declared(last);
        let (merged_fields, bare) = (all(merged), without(self.shape, merged, &last));

        // What is below a field of another owner went with its parent, and comes back.
        let mut owned = FieldSet::default();
        managers.0.values().for_each(|entry| owned.union(&entry.fields));
        let mut dropped = merged_fields.clone();
        dropped.subtract(&all(&bare));
        dropped.subtract(&declared(&owned));
        let pruned = without(self.shape, merged, &dropped);

        // Only what was applied goes: fields without an owner stay.
        let mut dropped = merged_fields;
        dropped.subtract(&all(&pruned));
        without(self.shape, merged, &dropped.intersection(&last))
    }
}
