//! The field set of an applied configuration. Pure.
//!
//! # Upstream
//! `structured-merge-diff/typed/tofieldset.go`, `fieldpath.Set.EnsureNamedFieldsAreMembers`

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::element;
use super::fieldset::{FieldSet, Node};
use super::shape::{Form, Shape};

/// Returns every leaf and every list item of an object, without declared fields that are only parents.
pub(crate) fn fields_of(shape: Shape, object: &Value) -> FieldSet {
    node_of(shape, object).below
}

fn node_of(shape: Shape, value: &Value) -> Node {
    match shape.form(value) {
        Form::Leaf => Node::leaf(),
        Form::Map => {
            let mut below = FieldSet::default();
            for (name, value) in value.as_object().into_iter().flatten() {
                let (shape, declared) = shape.field(name);
                let mut node = node_of(shape, value);
                node.member |= !declared || value.is_null() || value.as_object().is_some_and(Map::is_empty);
                below.put(element::field(name), node);
            }
            Node { member: false, below }
        }
        Form::List => {
            let (mut below, mut seen) = (FieldSet::default(), BTreeSet::new());
            for item in value.as_array().into_iter().flatten() {
                let Some(element) = shape.element(item) else { continue };
                // Items with duplicate keys are owned together, as a whole.
                let node = if seen.insert(element.clone()) { node_of(shape.item(), item) } else { Node::leaf() };
                below.put(element, Node { member: true, ..node });
            }
            Node { member: false, below }
        }
    }
}

/// Returns the set with all declared parents of its fields.
pub(crate) fn with_declared_parents(shape: Shape, set: &FieldSet) -> FieldSet {
    let mut whole = FieldSet::default();
    for (element, node) in set.nodes() {
        let (below, declared) = match element::name_of(element) {
            Some(name) => shape.field(name),
            None => (shape.item(), false),
        };
        let member = node.member || declared && !node.below.is_empty();
        whole.put(element.to_owned(), Node { member, below: with_declared_parents(below, &node.below) });
    }
    whole
}
