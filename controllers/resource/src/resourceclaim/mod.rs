//! Resource claims: creates the `ResourceClaims` of Pods and groups of Pods from templates, reserves them, and releases
//! claims that nobody uses any more.
//!
//! Reads Pods, `ResourceClaims`, `ResourceClaimTemplates` and, behind feature gates, `PodGroups`. Creates, updates and
//! deletes claims. Updates the status of Pods and `PodGroups`.
//!
//! ```text
//! Pod, PodGroup ─┐                   ┌─▶ key of the Pod or group ──▶ claims (create) ──▶ names in the status (apply)
//! claim ─────────┼──event mapping────┤                          └─▶ claim: reserved for a Pod that is scheduled
//! template ──────┘     (pure)        └─▶ key of the claim ──▶ live reads ──▶ plan ──▶ reservations, allocation,
//!                                                          (if needed)   (pure)     finalizer, deletion
//! ```
//!
//! # Guarantees
//! - Each entry of `spec.resourceClaims` with a template gets one claim, which the Pod controls. A claim that was deleted
//!   is created again. After a lost response, a kill or a change of the leader, the claim is found by its owner and its
//!   annotation.
//! - The claim has labels, annotations and the whole spec of the template, with fields that this version does not know.
//! - A reservation ends only if the deletion of the consumer was seen, the cache shows that the consumer will not run, or
//!   a live read shows that it does not exist. An error is no absence.
//! - A claim is deallocated with its last reservation, in one write that carries the version of the claim. Then its
//!   finalizer is removed, also if the response was lost. A claim that was never reserved stays allocated.
//! - Every write carries the uid, or the version, of the object that it was planned for.
//!
//! # What it does not do
//! It allocates no devices: the scheduler does. It deletes a claim only while the Pod that controls it exists and will
//! not run; else the garbage collector does.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/resourceclaim` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The status of a `PodGroup` keeps the entries that are known. | The apply leaves them out, so that they are removed and added by turns. | Groups with several templates come to rest. |
//! | A claim of a `PodGroup` whose feature gate is off is reported once. | It is retried for ever, with an event each time. | No retry helps. |
//! | A prefix that is cut ends in no dot or hyphen before the hyphen between the names. | It may, and the API server refuses the name for ever. | The Pod gets its claim. |
//! | No claim is created or reserved for a Pod that has finished. | A shared claim is reserved and released by turns (kubernetes#141274). | The Pod needs none. |
//! | Names of the status and deletions carry the uid. | They are by name. | They never reach a recreated object. |
//! | Claims are patched with their version. | They are updated whole. | Claims are not cached whole, and unknown fields survive. |
//! | A finalizer whose removal failed is removed by the next reconcile of this process. | It stays until the claim is released again. | The claim can be deleted. |
//! | A claim that is terminating is not deleted again. | It is. | It is being deleted. |
//! | A claim that the user has to create is not read live. | It is. | Its creation enqueues the Pod. |

mod apply;
mod deleted;
mod ensure;
mod error;
mod event_mapping;
mod events;
mod key;
mod metrics;
mod new_claim;
mod owner;
mod plan;
mod reconcile;
mod template;
mod work;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodClaims, PodGroup, ResourceClaim};
use kcm_framework::api::{Need, ObjectKey};
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::informers::{Index, Informer, Lookup};
use kcm_framework::{BoxError, ControlLoopBuilder, ControllerContext, ControllerDescriptor, Loops, Source};
use parking_lot::Mutex;

use crate::shared::{
    ADMIN_ACCESS, DYNAMIC_RESOURCE_ALLOCATION, EntryClaim, GENERIC_WORKLOAD, PRIORITIZED_LIST, WORKLOAD_CLAIMS, beside,
};
use deleted::DeletedConsumers;
use event_mapping::{Users, claims_of_group, keys_for_claim, keys_for_group, keys_for_pod, keys_for_template};
use key::Key;
use metrics::Metrics;
use reconcile::Reconciler;
use template::ClaimTemplate;
use work::{Features, group_has_work, pod_has_work};

const SECTION: Section = Section::new("Resourceclaim-controller", "ResourceClaimController");
const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-resourceclaim-syncs", "ConcurrentSyncs", "ResourceClaims", 50);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("resourceclaim-controller", init)
    .aliases(&["resource-claim-controller"])
    .service_account("resource-claim-controller")
    .event_component("resource_claim")
    .required_gates(&[DYNAMIC_RESOURCE_ALLOCATION])
    .needs(const { &[Need::part::<PodClaims>()] })
    .settings(const { &[SYNCS.row()] });

/// The caches that event mappings read.
#[derive(Clone)]
struct Caches {
    claims: Arc<Informer<ResourceClaim>>,
    groups: Option<Informer<PodGroup>>,
    used: kcm_framework::api::PartReader<PodClaims>,
    features: Features,
}

impl Caches {
    fn pod_has_work(&self, pod: &Pod) -> bool {
        let of = |name: &str| beside(&pod.metadata.key, name);
        let group = |name: &str| self.groups.as_ref().map_or(Lookup::Absent, |groups| groups.lookup(&of(name)));
        pod_has_work(pod, self.used.of(pod), self.features, |name| self.claims.lookup(&of(name)), group)
    }

    fn group_has_work(&self, group: &PodGroup) -> bool {
        group_has_work(group, |name| self.claims.lookup(&beside(&group.metadata.key, name)))
    }

    /// The objects of an index that have work.
    fn pods(&self, index: &Index<Pod, ObjectKey>, key: &ObjectKey) -> Vec<ObjectKey> {
        let pods = index.get(key).into_iter().filter(|pod| self.pod_has_work(pod));
        pods.map(|pod| pod.metadata.key.clone()).collect()
    }

    fn groups(&self, index: Option<&Index<PodGroup, ObjectKey>>, key: &ObjectKey) -> Vec<ObjectKey> {
        let groups = index.map(|index| index.get(key)).unwrap_or_default();
        let with_work = groups.into_iter().filter(|group| self.group_has_work(group));
        with_work.map(|group| group.metadata.key.clone()).collect()
    }
}

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let features = Features {
        admin_access: context.gate(&ADMIN_ACCESS),
        prioritized_list: context.gate(&PRIORITIZED_LIST),
        groups: context.gate(&GENERIC_WORKLOAD),
        group_claims: context.gate(&GENERIC_WORKLOAD) && context.gate(&WORKLOAD_CLAIMS),
    };
    let mut control_loop = context.control_loop::<Key>("resource_claim").workers(&SYNCS);
    let claims = Arc::new(control_loop.reads::<ResourceClaim>());
    let groups = features.groups.then(|| control_loop.reads::<PodGroup>());
    let used = context.part()?;
    let caches = Caches { claims: Arc::clone(&claims), groups: groups.clone(), used, features };
    let deleted = Arc::new(DeletedConsumers::default());

    let (of_pod, seen) = (caches.clone(), Arc::clone(&deleted));
    let pods = control_loop.primary_with(Source::<Pod>::known(), move |change| {
        keys_for_pod(change, used, &seen, |pod| of_pod.pod_has_work(pod))
    });
    let templates = watch(&mut control_loop, &caches, &pods, &deleted);
    let reconciler = Reconciler {
        pods,
        used,
        claims_by_controller: claims
            .index("controller", |claim| claim.metadata.controller().map(|owner| owner.uid.clone())),
        metrics: Metrics::register(context.metrics(), &claims)?,
        claims,
        templates,
        groups,
        features,
        deleted,
        releases: Mutex::default(),
    };
    Ok(control_loop.reconcile(reconciler).into())
}

/// Watches claims, templates and groups.
fn watch(
    control_loop: &mut ControlLoopBuilder<Key>,
    caches: &Caches,
    pods: &Informer<Pod>,
    deleted: &Arc<DeletedConsumers>,
) -> Informer<ClaimTemplate> {
    let used = caches.used;
    let pods_by_claim = pods.index("claims", move |pod| claims_of_entries(pod, used.of(pod)));
    let pods_by_template = pods.index("claim-templates", move |pod| {
        let templates = used.of(pod).entries.iter().filter_map(|entry| entry.template.as_ref());
        templates.map(|template| beside(&pod.metadata.key, template)).collect::<Vec<_>>()
    });
    let groups = caches.groups.as_ref().filter(|_| caches.features.group_claims);
    let groups_by_claim =
        groups.map(|groups| groups.index("claims", |group| claims_of_group(group).collect::<Vec<_>>()));
    let groups_by_template = groups.map(|groups| {
        groups.index("claim-templates", |group| {
            let templates = group.claims.iter().filter_map(|entry| entry.template.as_ref());
            templates.map(|template| beside(&group.metadata.key, template)).collect::<Vec<_>>()
        })
    });
    let of_claim = caches.clone();
    control_loop.watches::<ResourceClaim, _>(move |change| {
        keys_for_claim(change, |claim| Users {
            pods: of_claim.pods(&pods_by_claim, claim),
            groups: of_claim.groups(groups_by_claim.as_ref(), claim),
        })
    });
    if groups.is_some() {
        let pods_by_group = pods.index("group-of-claims", move |pod| {
            let claims = used.of(pod);
            let group = claims.group.as_deref().filter(|_| !claims.entries.is_empty());
            group.map(|group| beside(&pod.metadata.key, group))
        });
        let (of_group, seen) = (caches.clone(), Arc::clone(deleted));
        control_loop.watches::<PodGroup, _>(move |change| {
            let pods = |group: &ObjectKey| of_group.pods(&pods_by_group, group);
            keys_for_group(change, &seen, |group| of_group.group_has_work(group), pods)
        });
    }
    let of_template = caches.clone();
    control_loop.watches::<ClaimTemplate, _>(move |change| {
        keys_for_template(change, |template| Users {
            pods: of_template.pods(&pods_by_template, template),
            groups: of_template.groups(groups_by_template.as_ref(), template),
        })
    })
}

/// The claims of the entries of a Pod. The scheduler creates and reserves the claim of extended resources, which is not
/// indexed, as upstream.
fn claims_of_entries(pod: &Pod, claims: &PodClaims) -> Vec<ObjectKey> {
    let named = claims.entries.iter().filter_map(|entry| EntryClaim::of(entry.into(), &claims.statuses).named());
    named.map(|(claim, _)| beside(&pod.metadata.key, claim)).collect()
}

kcm_framework::inventory::submit! { DESCRIPTOR }
