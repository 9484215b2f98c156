//! Node selectors: the nodes that a pod requires.

use crate::intern::InternedStr;
use crate::labels::Labels;
use crate::selector::{LabelSelectorRequirement, Selector};

/// The only field of a node that `matchFields` can name.
const NODE_NAME: &str = "metadata.name";

crate::message! {
    /// `requiredDuringSchedulingIgnoredDuringExecution` of a node affinity, not yet checked.
    #[derive(Eq)]
    pub struct NodeSelector {
        /// The terms, one of which must match.
        pub terms: Vec<NodeSelectorTerm> = "nodeSelectorTerms" @ 1;
    }
}

crate::message! {
    /// A term of a [`NodeSelector`], not yet checked. All of its requirements must hold.
    #[derive(Eq)]
    pub struct NodeSelectorTerm {
        /// Requirements on the labels of the node.
        pub match_expressions: Vec<LabelSelectorRequirement> = "matchExpressions" @ 1;
        /// Requirements on the fields of the node.
        pub match_fields: Vec<LabelSelectorRequirement> = "matchFields" @ 2;
    }
}

impl NodeSelector {
    /// Returns the node that the first requirement on a node's name selects. Returns `None` if there is no such
    /// requirement, or if it does not have exactly one value.
    ///
    /// # Upstream
    /// `GetTargetNodeName` of `pkg/controller/daemon/util`.
    #[must_use]
    pub fn target_node(&self) -> Option<&InternedStr> {
        let mut fields = self.terms.iter().flat_map(|term| &term.match_fields);
        let by_name = fields.find(|field| &*field.key == NODE_NAME && &*field.operator == "In")?;
        if let [name] = &by_name.values[..] { Some(name) } else { None }
    }
}

/// The nodes that a pod requires: `spec.nodeSelector`, and the required terms of `spec.affinity.nodeAffinity`.
///
/// # Upstream
/// `nodeaffinity.RequiredNodeAffinity`, whose errors callers ignore: a term that is not valid matches no node.
#[derive(Debug, Clone, PartialEq)]
pub struct RequiredNodeAffinity {
    selector: Selector,
    // Terms that match no node are left out. `None` if the pod has no node affinity.
    terms: Option<Box<[Term]>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    labels: Selector,
    fields: Box<[FieldRequirement]>,
}

#[derive(Debug, Clone, PartialEq)]
struct FieldRequirement {
    field: InternedStr,
    value: InternedStr,
    is_equal: bool,
}

impl RequiredNodeAffinity {
    /// The nodes that both select.
    #[must_use]
    pub fn new(node_selector: &Labels, required: Option<&NodeSelector>) -> Self {
        let terms = required.map(|required| required.terms.iter().filter_map(Term::of).collect());
        Self { selector: Selector::of_labels(node_selector.iter()), terms }
    }

    /// Returns `true` if the affinity selects a node with this name and these labels.
    #[must_use]
    pub fn matches(&self, node: &str, labels: &Labels) -> bool {
        self.selector.matches(labels)
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(node, labels)))
    }
}

impl Term {
    /// Parses a term. Returns `None` if it matches no node, because it has no requirements or is invalid.
    fn of(raw: &NodeSelectorTerm) -> Option<Self> {
        if raw.match_expressions.is_empty() && raw.match_fields.is_empty() {
            return None;
        }
        let labels = Selector::of_node_requirements(&raw.match_expressions).ok()?;
        let fields = raw.match_fields.iter().map(FieldRequirement::of).collect::<Option<_>>()?;
        Some(Self { labels, fields })
    }

    fn matches(&self, node: &str, labels: &Labels) -> bool {
        self.labels.matches(labels) && self.fields.iter().all(|field| field.holds(node))
    }
}

impl FieldRequirement {
    fn of(raw: &LabelSelectorRequirement) -> Option<Self> {
        let is_equal = match raw.operator.as_str() {
            "In" => true,
            "NotIn" => false,
            _ => return None,
        };
        let [value] = &raw.values[..] else { return None };
        Some(Self { field: raw.key.clone(), value: value.clone(), is_equal })
    }

    /// A field that nodes do not have is empty.
    fn holds(&self, node: &str) -> bool {
        let value = if &*self.field == NODE_NAME { node } else { "" };
        (*self.value == *value) == self.is_equal
    }
}
