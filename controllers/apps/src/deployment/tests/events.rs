//! Events, compared with those of upstream.

use kcm_framework::events::{Event as _, EventText, EventType};

use crate::deployment::events::DeploymentEvent;

#[test]
fn events_read_as_upstreams_do() {
    let name = || "web".to_owned();
    let scaled = |from, to| DeploymentEvent::Scaled { name: "web-5d4".to_owned(), from, to };
    for (event, type_, reason, message) in [
        (
            DeploymentEvent::SelectingAll,
            EventType::Warning,
            "SelectingAll",
            "This deployment is selecting all pods. A non-empty selector is required.",
        ),
        (scaled(0, 3), EventType::Normal, "ScalingReplicaSet", "Scaled up replica set web-5d4 from 0 to 3"),
        (scaled(3, 1), EventType::Normal, "ScalingReplicaSet", "Scaled down replica set web-5d4 from 3 to 1"),
        (
            DeploymentEvent::CreateFailed { message: "Failed to create".to_owned() },
            EventType::Warning,
            "ReplicaSetCreateError",
            "Failed to create",
        ),
        (
            DeploymentEvent::RolledBack { name: name(), revision: 2 },
            EventType::Normal,
            "DeploymentRollback",
            "Rolled back deployment \"web\" to revision 2",
        ),
        (
            DeploymentEvent::NoLastRevision,
            EventType::Warning,
            "DeploymentRollbackRevisionNotFound",
            "Unable to find last revision.",
        ),
        (
            DeploymentEvent::NoSuchRevision,
            EventType::Warning,
            "DeploymentRollbackRevisionNotFound",
            "Unable to find the revision to rollback to.",
        ),
        (
            DeploymentEvent::TemplateUnchanged { name: name() },
            EventType::Warning,
            "DeploymentRollbackTemplateUnchanged",
            "The rollback revision contains the same template as current deployment \"web\"",
        ),
    ] {
        assert_eq!(event.text(), EventText { type_, reason: reason.into(), message: message.into() });
    }
}
