//! `ReplicationController` controller: keeps the number of pods of each `ReplicationController` at `spec.replicas`.
//!
//! Reads `ReplicationControllers` and Pods. Creates, deletes, adopts and releases Pods. Updates the status of
//! `ReplicationControllers`.
//!
//! `ReplicationControllers` are the predecessor of `ReplicaSets`, and both have the same code: `shared/replicas`. The
//! guarantees of the [`ReplicaSet` controller](crate::replicaset) and its differences from upstream hold here as well.
//! The two kinds differ as follows:
//!
//! | | `ReplicaSet` | `ReplicationController` |
//! | --- | --- | --- |
//! | `spec.selector` | It has labels and expressions. | It has labels; an empty selector selects nothing. |
//! | `status.terminatingReplicas` | It is counted. | It does not exist. |
//! | component of the events | `replicaset-controller` | `replication-controller` |
//! | name of the queue | `replicaset` | `replicationmanager` |
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/replication` of Kubernetes 1.37.2, which converts `ReplicationControllers` to
//! `ReplicaSets` and runs the `ReplicaSet` controller on them. Here both kinds implement one trait, and nothing is
//! converted. `docs/differences.md` has the differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Fields that this version does not know survive every write. | They are lost in the conversion. | The JSON of the object is edited. |

#[cfg(test)]
mod tests;

use kcm_framework::ControllerDescriptor;
use kcm_framework::api::views::ReplicationController;
use kcm_framework::config::{Section, Setting, Workers};

use crate::shared::replicas::{init, replica_owner};

const SECTION: Section = Section::new("Replicationcontroller-controller", "ReplicationController");
const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-rc-syncs", "ConcurrentRCSyncs", "ReplicationControllers", 5);

/// The name of the service account, and the component of the events.
const ACCOUNT: &str = "replication-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("replicationcontroller-controller", |context| {
    init::<ReplicationController>(context, "replicationmanager", &SYNCS)
})
.aliases(&["replicationcontroller"])
.service_account(ACCOUNT)
.event_component(ACCOUNT)
.settings(const { &[SYNCS.row()] });

replica_owner!(ReplicationController, "replication controller", counts_terminating: false);

kcm_framework::inventory::submit! { DESCRIPTOR }
