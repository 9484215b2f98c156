//! Attach and detach: attaches the volumes of pods to their nodes, and detaches volumes that no pod needs any more.
//!
//! Reads Pods, `PersistentVolumeClaims`, `PersistentVolumes`, Nodes, `VolumeAttachments` and `CSIDrivers`. Creates and
//! deletes `VolumeAttachments`, which the attachers of CSI drivers act on, and writes `status.volumesAttached` of Nodes.
//!
//! ```text
//! Pod, claim, driver ──▶ key of the Pod ──▶ volumes that it needs ──┐
//! volume, attachment, Node ──────────▶ key of the volume ◀──────────┘
//!                                        └▶ snapshot ──▶ plan ──▶ attachment: create, delete
//!                                          (caches)    (pure)  └▶ key of the Node ──▶ one patch of its report
//! ```
//!
//! # Guarantees
//! - A volume for a single node is attached to a second node only after its attachment and its entry in the report of
//!   the first node are deleted, and the kubelet does not use it any more. A detach by force is the exception.
//! - A Node reports a volume only after the driver has attached it, and ceases to report it before it is detached.
//! - A volume is detached while its Node may use it only if no pod has needed it for 6 minutes and the Node is not ready,
//!   or if the Node has the taint `node.kubernetes.io/out-of-service`. Every other detach follows a live read of the Node;
//!   a failed read detaches nothing.
//! - The deletion of an attachment carries its uid, and so does the patch of a Node.
//! - Names of attachments are upstream's. A restart, also as upstream's manager, goes on wherever it was interrupted.
//! - A restart sends lists, and nothing else if the volumes are attached and reported.
//! - While a Node or an attachment cannot be decoded, nothing is decided about its volumes.
//!
//! # What it does not do
//! It mounts nothing, and calls no driver: attachers do. Volumes of Fibre Channel and iSCSI are reported and no more.
//! It does not execute flex drivers. A Pod with a volume of an installed flex driver gets an event.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/volume/attachdetach` of Kubernetes 1.37.2. `docs/differences.md` has the differences that
//! all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A change enqueues the volumes that it concerns. | A loop looks at all volumes every 100 ms, and polls attachments. | Faster, and nothing is done at rest. |
//! | Changes of a Node's report are gathered for 100 ms into one patch. Equal reports are not written. | A patch for each detach, also without a change. | Requests. |
//! | A volume for a single Node counts as attached until its attachment and its entry in the report are deleted, and a ready Node does not use it. | After a failed detach it is attached to a second Node. | Data is not corrupted. |
//! | A volume that the kubelet uses after all is reported again. | It is left out until it is attached again. | The kubelet finds it. |
//! | A detach from a healthy Node is verified at any age, and is not counted as forced. | After six minutes it is not verified. | The volume may be mounted. |
//! | A volume handle may contain `^`. | Such a volume cannot be detached. | It would stay attached. |
//! | Volumes that the kubelet of an unmanaged Node attaches are left alone. A Node is unmanaged as soon as it loses the annotation. | They are detached. Once managed, a Node stays managed. | They belong to the kubelet. |
//! | Entries of unknown plugins in `volumesAttached` stay as they are, in order, and cost no request. | Two patches every 100 ms. | Requests. |
//! | A Pod that is deleted after its claim leaves its volumes at once. | Within a minute. | Faster. |
//! | A volume of a restarted manager is in use if the Node says so. | It counts as in use until the next change of the Node, or for six minutes. | Faster. |
//! | An attachment that is missing or not attached is noticed when it changes; `--attach-detach-reconcile-sync-period` has no effect. | Every minute, with a live read of each missing one. | Requests. |
//! | A detach by force of a Fibre Channel or iSCSI volume is not counted. | It is. | Nothing is detached. |
//! | Volumes with a flex driver are not attached. | The driver is executed. | Drivers are programs of vendors. |

mod actual;
mod apply;
mod claim;
mod desired;
mod event_mapping;
mod events;
mod flex;
mod key;
mod live;
mod memory;
mod metrics;
mod names;
mod nodes;
mod observe;
mod plan;
mod pods;
mod reconcile;
mod report;
mod reports;
mod settings;
mod state;
mod steps;
mod view;
mod volume;
mod volumes;
mod world;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::Need;
use kcm_framework::api::views::{
    Node, NodeVolumes, PersistentVolume, PersistentVolumeClaim, Pod, PodDeletion, PodInlineVolumes, PodVolumes,
};
use kcm_framework::informers::Change;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use crate::shared::csi_driver::CsiDriver;
use flex::Flex;
use key::Key;
use live::LiveNodes;
use metrics::{Counted, Metrics};
use plan::Settings;
use reconcile::Reconciler;
use state::State;
use view::VolumeAttachment;
use world::{MANAGED, Parts, World, claims_of, unique_name, volumes_of_node};

/// Keys that are reconciled at the same time.
const WORKERS: usize = 10;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("persistentvolume-attach-detach-controller", init)
        .aliases(&["attachdetach"])
        .service_account("attachdetach-controller")
        .event_component("attachdetach-controller")
        .needs(
            const {
                &[
                    Need::part::<PodVolumes>(),
                    Need::part::<PodInlineVolumes>(),
                    Need::part::<PodDeletion>(),
                    Need::part::<NodeVolumes>(),
                    Need::annotation::<Node>(MANAGED),
                ]
            },
        )
        .settings(settings::ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let parts =
        Parts { claims: context.part()?, inline: context.part()?, deletions: context.part()?, nodes: context.part()? };
    let state = Arc::new(State::default());
    let mut control_loop = context.control_loop::<Key>("pvcs").workers(WORKERS);
    let queue = control_loop.queue();

    let pods =
        control_loop.primary_with(Source::<Pod>::known(), move |change| event_mapping::key_for_pod(change, parts));
    let pods_by_claim = pods.index("claim", move |pod| claims_of(pod, parts.claims));
    let by_claim = pods_by_claim.clone();
    let claims = control_loop.watches(move |change: &Change<PersistentVolumeClaim>| {
        event_mapping::pods_for_claim(change, parts, |claim| by_claim.get(claim))
    });
    let volumes = control_loop.watches(move |change: &Change<PersistentVolume>| {
        event_mapping::keys_for_volume(change, parts, |claim| pods_by_claim.get(claim))
    });
    let shared = Arc::clone(&state);
    let nodes = control_loop.watches(move |change: &Change<Node>| event_mapping::keys_for_node(change, parts, &shared));
    let (shared, read) = (Arc::clone(&state), volumes.clone());
    let attachments = control_loop
        .watches(move |change: &Change<VolumeAttachment>| event_mapping::volume_for_attachment(change, &read, &shared));
    let all_pods = pods.clone();
    let drivers = control_loop
        .watches(move |change: &Change<CsiDriver>| event_mapping::pods_for_driver(change, parts, &all_pods));

    let world = World {
        parts,
        pods,
        claims,
        volumes_by_name: volumes.index("unique name", unique_name),
        volumes,
        nodes_by_volume: nodes.index("volume", move |node: &Node| volumes_of_node(parts.nodes.of(node))),
        nodes,
        attachments_by_volume: attachments
            .index("volume", |attachment: &VolumeAttachment| attachment.volume_name.clone()),
        attachments,
        drivers,
    };
    let reconciler = Reconciler {
        world,
        state,
        queue,
        settings: Settings {
            disable_force_detach_on_timeout: context.get(&settings::DISABLE_FORCE_DETACH)?,
            disable_verification: context.get(&settings::DISABLE_VERIFICATION)?,
        },
        flex: Flex::new(context.get(&settings::FLEX_DIRECTORY)?.into()),
        live_nodes: LiveNodes::default(),
        metrics: Metrics::register(context.metrics())?,
        counted: Counted::register(context.metrics()),
    };
    Ok(control_loop.reconcile(reconciler).into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
