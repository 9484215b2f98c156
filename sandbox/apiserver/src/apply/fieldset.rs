//! [`FieldSet`]: sets of fields, as in `managedFields`. Pure.
//!
//! # Upstream
//! `structured-merge-diff/fieldpath`

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element;

/// The `FieldsV1` key for the field itself, next to its children.
const SELF: &str = ".";

/// A set of fields: a tree whose edges are path elements in their serialized form ([`element`]).
///
/// A field and its children are independent members. Empty branches are removed, so equal sets are equal trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    nodes: BTreeMap<String, Node>,
}

/// A node of the set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// The field is in the set.
    pub(crate) member: bool,
    pub(crate) below: FieldSet,
}

impl Node {
    /// A field without its children.
    pub(crate) fn leaf() -> Self {
        Self { member: true, below: FieldSet::default() }
    }

    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Reads `FieldsV1`. Elements of unknown kinds are skipped, as upstream; `None` if an element of a
    /// known kind is malformed.
    pub(crate) fn from_json(fields: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (text, below) in fields.as_object()? {
            if text == SELF {
                continue;
            }
            let Some(canonical) = element::canonical(text)? else { continue };
            let below_map = below.as_object()?;
            let node =
                Node { member: below_map.is_empty() || below_map.contains_key(SELF), below: Self::from_json(below)? };
            // Elements of unknown kinds may have left nothing below.
            let member = node.member || node.below.is_empty();
            set.put(canonical, Node { member, ..node });
        }
        Some(set)
    }

    pub(crate) fn into_json(self) -> Value {
        let write = |(element, node): (String, Node)| {
            let mut below = node.below.into_json();
            if let Some(map) = below.as_object_mut().filter(|map| node.member && !map.is_empty()) {
                map.insert(SELF.to_owned(), Value::Object(Map::new()));
            }
            (element, below)
        };
        Value::Object(self.nodes.into_iter().map(write).collect())
    }

    /// A set of named fields, each the only one below the one before.
    pub(crate) fn of_paths(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let elements: Vec<String> = path.iter().map(|name| element::field(name)).collect();
            set.insert(&elements);
        }
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn get(&self, element: &str) -> Option<&Node> {
        self.nodes.get(element)
    }

    pub(crate) fn contains<S: AsRef<str>>(&self, path: &[S]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last.as_ref()).is_some_and(|node| node.member),
            [first, rest @ ..] => self.get(first.as_ref()).is_some_and(|node| node.below.contains(rest)),
        }
    }

    /// Adds a field without its parents.
    pub(crate) fn insert(&mut self, path: &[String]) {
        match path {
            [] => {}
            [last] => self.nodes.entry(last.clone()).or_default().member = true,
            [first, rest @ ..] => self.nodes.entry(first.clone()).or_default().below.insert(rest),
        }
    }

    /// Sets the node of a field; an empty node removes it.
    pub(crate) fn put(&mut self, element: String, node: Node) {
        if !node.is_empty() {
            self.nodes.insert(element, node);
        }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(element, node)| (element.as_str(), node))
    }

    /// Adds the fields of another set.
    pub(crate) fn union(&mut self, other: &Self) {
        for (element, theirs) in &other.nodes {
            match self.nodes.get_mut(element) {
                None => drop(self.nodes.insert(element.clone(), theirs.clone())),
                Some(ours) => {
                    ours.member |= theirs.member;
                    ours.below.union(&theirs.below);
                }
            }
        }
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut both = Self::default();
        for (element, ours) in &self.nodes {
            if let Some(theirs) = other.nodes.get(element) {
                let below = ours.below.intersection(&theirs.below);
                both.put(element.clone(), Node { member: ours.member && theirs.member, below });
            }
        }
        both
    }

    /// Subtracts the fields of another set; their children stay.
    pub(crate) fn subtract(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.nodes.retain(|element, ours| {
            if let Some(theirs) = other.nodes.get(element) {
                ours.member &= !theirs.member;
                ours.below.subtract(&theirs.below);
            }
            !ours.is_empty()
        });
    }

    /// Subtracts the fields of another set with their subtrees.
    pub(crate) fn subtract_trees(&mut self, other: &Self) {
        self.nodes.retain(|element, ours| {
            match other.nodes.get(element) {
                Some(theirs) if theirs.member => return false,
                Some(theirs) => ours.below.subtract_trees(&theirs.below),
                None => {}
            }
            !ours.is_empty()
        });
    }

    /// Returns the paths of all fields: first the fields of a level, then their children, each in upstream's order.
    pub(crate) fn paths(&self) -> Vec<Vec<&str>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths<'a>(&'a self, prefix: &mut Vec<&'a str>, paths: &mut Vec<Vec<&'a str>>) {
        let mut nodes: Vec<(&str, &Node)> = self.nodes().collect();
        nodes.sort_by(|(a, _), (b, _)| element::order(a, b));
        for (element, _) in nodes.iter().filter(|(_, node)| node.member) {
            paths.push(prefix.iter().chain([element]).copied().collect());
        }
        for (element, node) in nodes {
            prefix.push(element);
            node.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }
}

/// Removes the metadata fields that no manager owns.
///
/// # Upstream
/// `managedfields/internal/stripmeta.go`
pub(crate) static NEVER_OWNED: std::sync::LazyLock<FieldSet> = std::sync::LazyLock::new(|| {
    FieldSet::of_paths(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn set(fields: &Value) -> FieldSet {
        FieldSet::from_json(fields).expect("the fields must be well-formed")
    }

    #[test]
    fn a_field_and_its_children_are_distinct_members() {
        let fields = json!({ "f:spec": { "f:a": {}, "f:b": { ".": {}, "f:c": {} } } });
        let read = set(&fields);
        assert!(!read.contains(&["f:spec"]));
        assert!(read.contains(&["f:spec", "f:b"]) && read.contains(&["f:spec", "f:b", "f:c"]));
        assert_eq!(read.into_json(), fields);
    }

    #[test]
    fn keys_are_read_in_any_spelling() {
        let read = set(&json!({ "f:ports": { "k:{ \"protocol\": \"TCP\", \"containerPort\": 80 }": {} } }));
        assert!(read.contains(&["f:ports", "k:{\"containerPort\":80,\"protocol\":\"TCP\"}"]));
    }

    #[test]
    fn elements_of_unknown_kinds_are_left_out_and_broken_ones_refused() {
        assert_eq!(set(&json!({ "x:new": {}, "f:a": {} })), set(&json!({ "f:a": {} })));
        for broken in
            [json!({ "fa": {} }), json!({ "k:{": {} }), json!({ "i:one": {} }), json!({ "f:a": 1 }), json!([])]
        {
            assert_eq!(FieldSet::from_json(&broken), None, "{broken}");
        }
    }

    #[test]
    fn subtracting_a_field_leaves_what_is_below_it_and_subtracting_trees_does_not() {
        let full = set(&json!({ "f:a": { ".": {}, "f:b": {} }, "f:c": {} }));
        let a = set(&json!({ "f:a": {} }));
        let mut fields = full.clone();
        fields.subtract(&a);
        assert_eq!(fields, set(&json!({ "f:a": { "f:b": {} }, "f:c": {} })));
        let mut trees = full;
        trees.subtract_trees(&a);
        assert_eq!(trees, set(&json!({ "f:c": {} })));
    }

    #[test]
    fn paths_come_by_level_and_numbers_by_size() {
        let fields = set(&json!({
            "f:ports": { "k:{\"port\":443}": { ".": {}, "f:name": {} }, "k:{\"port\":80}": {} },
            "f:type": {},
        }));
        assert_eq!(
            fields.paths(),
            [
                vec!["f:type"],
                vec!["f:ports", "k:{\"port\":80}"],
                vec!["f:ports", "k:{\"port\":443}"],
                vec!["f:ports", "k:{\"port\":443}", "f:name"],
            ]
        );
    }

    fn any_set() -> impl Strategy<Value = FieldSet> {
        proptest::collection::vec(proptest::collection::vec(prop_oneof!["f:[ab]", "v:[12]"], 1..4), 0..8).prop_map(
            |paths| {
                let mut set = FieldSet::default();
                for path in &paths {
                    set.insert(path);
                }
                set
            },
        )
    }

    proptest! {
        #[test]
        fn json_round_trips(set in any_set()) {
            prop_assert_eq!(FieldSet::from_json(&set.clone().into_json()), Some(set));
        }

        #[test]
        fn intersection_and_difference_make_up_the_whole(a in any_set(), b in any_set()) {
            let mut whole = a.intersection(&b);
            let mut rest = a.clone();
            rest.subtract(&b);
            prop_assert!(rest.intersection(&b).is_empty());
            whole.union(&rest);
            prop_assert_eq!(whole, a);
        }

        #[test]
        fn a_union_contains_every_field_of_both(a in any_set(), b in any_set()) {
            let mut both = a.clone();
            both.union(&b);
            for path in a.paths().iter().chain(&b.paths()) {
                prop_assert!(both.contains(path));
            }
            prop_assert_eq!(both.intersection(&a), a);
        }
    }
}
