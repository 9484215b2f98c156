//! Events, compared with those of upstream.

use kcm_framework::events::{EventDetails as _, EventType};

use crate::deployment::events::EventReason;

#[test]
fn events_read_as_upstreams_do() {
    let name = || "web".to_owned();
    let scaled = |from, to| EventReason::Scaled { name: "web-5d4".to_owned(), from, to };
    for (event, event_type, reason, message) in [
        (
            EventReason::SelectingAll,
            EventType::Warning,
            "SelectingAll",
            "This deployment is selecting all pods. A non-empty selector is required.",
        ),
        (scaled(0, 3), EventType::Normal, "ScalingReplicaSet", "Scaled up replica set web-5d4 from 0 to 3"),
        (scaled(3, 1), EventType::Normal, "ScalingReplicaSet", "Scaled down replica set web-5d4 from 3 to 1"),
        (
            EventReason::CreateFailed { message: "Failed to create".to_owned() },
            EventType::Warning,
            "ReplicaSetCreateError",
            "Failed to create",
        ),
        (
            EventReason::RolledBack { name: name(), revision: 2 },
            EventType::Normal,
            "DeploymentRollback",
            "Rolled back deployment \"web\" to revision 2",
        ),
        (
            EventReason::NoLastRevision,
            EventType::Warning,
            "DeploymentRollbackRevisionNotFound",
            "Unable to find last revision.",
        ),
        (
            EventReason::NoSuchRevision,
            EventType::Warning,
            "DeploymentRollbackRevisionNotFound",
            "Unable to find the revision to rollback to.",
        ),
        (
            EventReason::TemplateUnchanged { name: name() },
            EventType::Warning,
            "DeploymentRollbackTemplateUnchanged",
            "The rollback revision contains the same template as current deployment \"web\"",
        ),
    ] {
        assert_eq!((event.event_type(), event.reason(), event.message().as_str()), (event_type, reason, message));
    }
}
