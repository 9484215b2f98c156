//! Colours: which objects are alike, if names do not count.

use serde_json::Value;

use super::mask::{Masked, referred};
use super::{hash_of, hash_of_multiset, hash_of_text};

/// The colour of an object: equal for two objects that cannot be told apart without generated names and uids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Colour(pub u64);

/// Number of refinements. Chains of owners have three links: Deployment, ReplicaSet, Pod, claim.
const ROUNDS: usize = 3;

/// Returns the colour of each object, in their order, by refinement as of Weisfeiler and Lehman: an object's next colour
/// is made of its content, of the colours of the objects that it refers to, at their places, and of the colours of those
/// that refer to it.
#[must_use]
pub fn colours(objects: &[Masked]) -> Vec<Colour> {
    let mut referrers = vec![Vec::new(); objects.len()];
    for (at, object) in objects.iter().enumerate() {
        for referred in &object.refers_to {
            referrers[*referred].push(at);
        }
    }
    // At first, all objects that are referred to are alike.
    let mut colours: Vec<u64> = objects.iter().map(|object| hash_of_text(&object.label)).collect();
    for _ in 0..=ROUNDS {
        let next = objects.iter().zip(&referrers).map(|(object, referrers)| {
            let content = content(&object.content, &colours);
            let referrers = hash_of_multiset("referrers", referrers.iter().map(|at| colours[*at]));
            hash_of("object", [hash_of_text(&object.label), content, referrers])
        });
        colours = next.collect();
    }
    colours.into_iter().map(Colour).collect()
}

/// The hash of a masked value, in which references have the colours of their objects.
pub(super) fn content(value: &Value, colours: &[u64]) -> u64 {
    let text = |text: &str| match referred(text).and_then(|at| colours.get(at)) {
        Some(colour) => hash_of("reference", [*colour]),
        None => hash_of("text", [hash_of_text(text)]),
    };
    match value {
        Value::Null => hash_of("null", []),
        Value::Bool(is_true) => hash_of("bool", [u64::from(*is_true)]),
        Value::Number(number) => hash_of("number", [hash_of_text(&number.to_string())]),
        Value::String(string) => text(string),
        Value::Array(items) if items.iter().any(|item| item.as_str().and_then(referred).is_some()) => {
            // The order of generated names is no order.
            hash_of_multiset("names", items.iter().map(|item| content(item, colours)))
        }
        Value::Array(items) => hash_of("array", items.iter().map(|item| content(item, colours))),
        Value::Object(fields) => hash_of_multiset(
            "object",
            fields.iter().map(|(key, value)| hash_of("field", [text(key), content(value, colours)])),
        ),
    }
}
