//! Comparison of two states of an object, field by field. Pure.
//!
//! # Upstream
//! `structured-merge-diff/typed/compare.go`

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element;
use super::fieldset::{FieldSet, NEVER_OWNED, Node};
use super::shape::{Form, Shape};

/// The fields in which two states differ: leaves, and parents only if they are added or removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Added or modified fields.
    pub(crate) set: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty()
    }

    /// Compares two states, except the subtrees of `ignored` and the fields that no manager owns.
    pub(crate) fn between(shape: Shape, old: &Value, new: &Value, ignored: &FieldSet) -> Self {
        let Walk { set, removed } = Walk::of(shape, Some(old), Some(new), Some(ignored));
        let (mut set, mut removed) = (set.below, removed.below);
        set.subtract(&NEVER_OWNED);
        removed.subtract(&NEVER_OWNED);
        Self { set, removed }
    }
}

/// The changes in one value and below it.
#[derive(Default)]
struct Walk {
    set: Node,
    removed: Node,
}

impl Walk {
    fn of(shape: Shape, old: Option<&Value>, new: Option<&Value>, ignored: Option<&FieldSet>) -> Self {
        let mut walk = Self::default();
        // Equal values are skipped; most of an object is equal.
        if old == new {
            return walk;
        }
        let form = |value: Option<&Value>| value.filter(|value| !value.is_null()).map(|value| shape.form(value));
        let (old_form, new_form) = (form(old), form(new));
        let mut is_leaf = false;
        // A value without a known type can change from a map to something else. Then it is walked as both.
        for form in [old_form, new_form.filter(|form| old_form != Some(*form))].into_iter().flatten() {
            is_leaf |= match form {
                Form::Leaf => true,
                Form::Map => walk.map(shape, old, new, ignored),
                Form::List => walk.list(shape, old, new),
            };
        }
        match (old, new) {
            (Some(_), None) => walk.removed.member = true,
            (Some(_), Some(_)) if !is_leaf => {}
            (_, _) => walk.set.member = true,
        }
        walk
    }

    /// Descends to a field or an item.
    fn step(
        &mut self,
        element: String,
        shape: Shape,
        old: Option<&Value>,
        new: Option<&Value>,
        ignored: Option<&FieldSet>,
    ) {
        let Self { set, removed } = Self::of(shape, old, new, ignored);
        self.removed.below.put(element.clone(), removed);
        self.set.below.put(element, set);
    }

    /// Walks maps. Returns `true` if both are empty: then they count as leaves.
    fn map(&mut self, shape: Shape, old: Option<&Value>, new: Option<&Value>, ignored: Option<&FieldSet>) -> bool {
        let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
        let implied: BTreeMap<&str, &Value> = shape.implied().collect();
        let given = old.into_iter().chain(new).flat_map(Map::keys).map(String::as_str);
        let names: BTreeSet<&str> = given.chain(implied.keys().copied()).collect();
        for name in &names {
            let (old, new) = (lookup(old, name, &implied), lookup(new, name, &implied));
            if old == new {
                continue;
            }
            let element = element::field(name);
            let ignored = ignored.and_then(|ignored| ignored.get(&element));
            if ignored.is_none_or(|ignored| !ignored.member) {
                self.step(element, shape.field(name).0, old, new, ignored.map(|ignored| &ignored.below));
            }
        }
        names.is_empty()
    }

    /// Walks lists whose items have owners of their own. Returns `true` if both are empty: then they count as leaves.
    fn list(&mut self, shape: Shape, old: Option<&Value>, new: Option<&Value>) -> bool {
        let (old, new) = (items(shape, old), items(shape, new));
        let elements: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for &element in &elements {
            let old = old.get(element).map_or(&[][..], Vec::as_slice);
            let new = new.get(element).map_or(&[][..], Vec::as_slice);
            match (old, new) {
                ([] | [_], [] | [_]) => {
                    self.step(element.clone(), shape.item(), old.first().copied(), new.first().copied(), None);
                }
                // Items with duplicate keys are owned together, as a whole.
                ([_, _, ..], [_, _, ..]) if old == new => {}
                ([_, _, ..], [_, _, ..]) => self.mark(element, true),
                ([_, _, ..], _) => {
                    if let Some(&new) = new.first() {
                        self.step(element.clone(), shape.item(), None, Some(new), None);
                    }
                    self.mark(element, false);
                }
                (_, _) => {
                    if let Some(&old) = old.first() {
                        self.step(element.clone(), shape.item(), Some(old), None, None);
                    }
                    self.mark(element, true);
                }
            }
        }
        elements.is_empty()
    }

    fn mark(&mut self, element: &str, is_there: bool) {
        let changed = if is_there { &mut self.set } else { &mut self.removed };
        changed.below.insert(&[element.to_owned()]);
    }
}

/// A field of a map that is there, or what it holds without being given.
fn lookup<'a>(
    map: Option<&'a Map<String, Value>>,
    name: &str,
    implied: &BTreeMap<&str, &'a Value>,
) -> Option<&'a Value> {
    map.and_then(|map| map.get(name).or_else(|| implied.get(name).copied()))
}

/// Returns the items of a list by path element; items without keys have no owners.
fn items(shape: Shape, list: Option<&Value>) -> BTreeMap<String, Vec<&Value>> {
    let mut items: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        if let Some(element) = shape.element(item) {
            items.entry(element).or_default().push(item);
        }
    }
    items
}
