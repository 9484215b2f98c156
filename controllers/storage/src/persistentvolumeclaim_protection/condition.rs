//! The document of a claim with another condition `Unused`.

use jiff::Timestamp;
use kcm_framework::api::time::format_seconds;
use kcm_framework::api::{Document, EditError};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

const CONDITIONS: [&str; 2] = ["status", "conditions"];
const TYPE: &str = "Unused";

/// Returns the document with the condition as of `now`. The other conditions stay; a new one comes last, as upstream.
///
/// # Errors
/// The status or its conditions have another type.
pub(super) fn with_unused(document: &Document, is_unused: bool, now: Timestamp) -> Result<Document, EditError> {
    let (status, reason, message) = if is_unused {
        ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
    } else {
        ("False", "PodUsingPVC", "A pod is currently referencing this PVC")
    };
    let condition = to_raw_value(&json!({
        "type": TYPE,
        "status": status,
        "lastTransitionTime": format_seconds(now),
        "reason": reason,
        "message": message,
    }))
    .expect("a condition is valid JSON");
    let mut conditions = document.items(&CONDITIONS)?;
    match conditions.iter_mut().find(|present| is_unused_condition(present)) {
        Some(present) => *present = &condition,
        None => conditions.push(&condition),
    }
    let mut changed = document.clone();
    changed.set(&CONDITIONS, &conditions)?;
    Ok(changed)
}

fn is_unused_condition(condition: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    serde_json::from_str::<Typed>(condition.get()).is_ok_and(|condition| condition.r#type == TYPE)
}
