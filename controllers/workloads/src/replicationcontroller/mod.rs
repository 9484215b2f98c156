//! Replication controller controller: keeps the number of pods of each replication controller at `spec.replicas`.
//!
//! Reads replication controllers and pods. Creates, deletes, adopts and releases pods. Updates the status of replication
//! controllers.
//!
//! Replication controllers are the predecessor of replica sets, and the code is the same: `shared/replicas`. The page of
//! the [replica set controller](crate::replicaset) has its guarantees and its differences from upstream, which all hold
//! here. What differs between the two kinds:
//!
//! | | replica set | replication controller |
//! | --- | --- | --- |
//! | `spec.selector` | labels and expressions | labels; an empty one selects nothing |
//! | `status.terminatingReplicas` | counted | the API has no such field |
//! | component of the events | `replicaset-controller` | `replication-controller` |
//! | name of the queue | `replicaset` | `replicationmanager` |
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/replication` of Kubernetes 1.36.3, which converts replication controllers to replica sets
//! and runs the replica set controller on these. Here both kinds implement one trait, and nothing is converted.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | fields that this version does not know survive every write | the object is converted and back | |
//! | `--concurrent-rc-syncs` below 1 is rejected | accepted, and no worker runs | |

mod settings;

#[cfg(test)]
mod tests;

use kcm_api::views::{ReplicaSetStatus, ReplicationController};
use kcm_api::{Document, InvalidSelector, Labels, Selector};
use kcm_framework::{ControllerContext, ControllerDescriptor, Loops};

use crate::shared::replicas::{ReplicaOwner, control_loop};
use settings::{CONCURRENT_SYNCS, ROWS};

/// The name of the service account, and the component of the events.
const ACCOUNT: &str = "replication-controller";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("replicationcontroller-controller", |context| Ok(init(context)))
        .aliases(&["replicationcontroller"])
        .service_account(ACCOUNT)
        .event_component(ACCOUNT)
        .settings(ROWS);

fn init(context: &ControllerContext) -> Loops {
    let controllers = context.control_loop("replicationmanager").workers_from(CONCURRENT_SYNCS);
    Loops::new().with(control_loop::<ReplicationController>(context, controllers))
}

impl ReplicaOwner for ReplicationController {
    const NOUN: &'static str = "replication controller";
    const COUNTS_TERMINATING: bool = false;

    fn replicas(&self) -> i32 {
        self.view.replicas
    }

    fn min_ready_seconds(&self) -> i32 {
        self.view.min_ready_seconds
    }

    fn selector(&self) -> &Result<Selector, InvalidSelector> {
        &self.view.selector
    }

    fn template_labels(&self) -> &Labels {
        &self.view.template_labels
    }

    fn status(&self) -> &ReplicaSetStatus {
        &self.view.status
    }

    fn document(&self) -> &Document {
        &self.document
    }
}

kcm_framework::inventory::submit! { DESCRIPTOR }
