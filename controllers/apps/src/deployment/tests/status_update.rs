//! Status updates that a failed creation and a collision cause.

use serde_json::json;

use super::fixtures::{deployment, now, progressing};
use crate::deployment::status_update::{collision_update, failed_creation_update};

#[test]
fn a_failed_creation_sets_the_condition_with_a_progress_deadline() {
    let update = failed_creation_update(&deployment("web").build(), "Failed to create", now()).unwrap();
    let condition = update.status.conditions.iter().find(|condition| condition.type_ == "Progressing").unwrap();
    assert_eq!((condition.reason.as_str(), &*condition.message), ("ReplicaSetCreateError", "Failed to create"));
    let reported =
        deployment("web").status(json!({ "conditions": [progressing("False", "ReplicaSetCreateError", 9)] })).build();
    assert!(!failed_creation_update(&reported, "again", now()).unwrap().is_needed(&reported), "written once");
    assert_eq!(failed_creation_update(&deployment("web").no_deadline().build(), "Failed to create", now()), None);
}

#[test]
fn collisions_are_counted() {
    let counted = |status| collision_update(&deployment("web").status(status).build()).status.collision_count;
    assert_eq!((counted(json!({})), counted(json!({ "collisionCount": 2 }))), (Some(1), Some(3)));
}
