//! Device taint eviction: deletes Pods whose claims do not tolerate the taints of their devices with the effect
//! `NoExecute`, and shows the progress in the status of `DeviceTaintRules`.
//!
//! Reads Pods, `ResourceClaims`, `ResourceSlices` and `DeviceTaintRules`. Updates the status of Pods and rules, and deletes
//! Pods.
//!
//! ```text
//! Pod, claim ────────▶ key of the Pod ──────▶ plan ──▶ live reads of rules and slices ──▶ plan ──▶ condition, deletion
//! slice, rule ──▶ Pods of claims of the devices └─ tolerated for a time ──▶ requeue when the time ends
//! rule, eviction ────▶ key of the rule ──▶ numbers ──▶ condition of the rule (apply)
//! ```
//!
//! # Guarantees
//! - A Pod is due at the earliest time of all taints of all its claims: the `timeAdded` of a taint, and the time for which
//!   the result of the allocation tolerates it. These times survive a restart and a change of the leader.
//! - Only the slices of the newest generation of a pool count.
//! - A Pod is deleted only after live reads within the same second have shown a taint that evicts it. Pods share the reads.
//! - The deletion carries the uid, so that an eviction never reaches a Pod that was recreated under the name.
//! - A Pod has the condition `DisruptionTarget` before it is deleted. The deletion has the grace period of the Pod.
//! - An eviction that fails is retried with back-off until it succeeds, or until the taint is tolerated or removed.
//! - The status of a rule is updated at once when its spec changes, and at most every ten seconds else.
//!
//! # What it does not do
//! It asks no disruption budget. It sets no taints. The phase of the Pod does not matter: the resource claim controller
//! removes the reservations of Pods that have finished.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/devicetainteviction` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Rules and slices are read live before an eviction. | The Pod is read live. | A deletion cannot be undone. Uids protect the Pod. |
//! | A condition `Completed` or `NoEffect` of a predecessor stays while nothing is pending. | It is computed again after each start. | A takeover at rest writes nothing. |
//! | A rule that was recreated gets its status at once. | It may wait for the next eviction. | The condition is of another object. |
//! | A Pod that begins to terminate by itself is not counted as evicted. | It is counted if its eviction was due. | Nothing was evicted. |
//! | An eviction that is retried records one event. | It records one for each attempt. | Events are not repeated. |
//! | The status is applied while evictions go on. | All evictions wait for it. | A slow API server stops no eviction. |

mod apply;
mod event_mapping;
mod events;
mod key;
mod metrics;
mod plan;
mod progress;
mod reconcile;
mod rule;
mod status;
mod views;

#[cfg(test)]
mod tests;

use kcm_framework::api::views::{ClaimDevices, Pod, PodClaims, PodDisruption, ResourceClaim};
use kcm_framework::api::{Need, ObjectKey, PartReader};
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::informers::{Change, Index, Informer};
use kcm_framework::{
    BoxError, ControlLoopBuilder, ControllerContext, ControllerDescriptor, Loops, SharedReads, Source,
};
use parking_lot::Mutex;

use crate::shared::{
    DEVICE_TAINT_RULES, DEVICE_TAINTS, DYNAMIC_RESOURCE_ALLOCATION, GENERIC_WORKLOAD, WORKLOAD_CLAIMS, beside,
};
use event_mapping::{DeviceKey, change_of_rule, consumers, device_keys, devices_of_slice, key_for_pod, keys_for_claim};
use key::Key;
use metrics::Metrics;
use plan::{PodInUse, Slices, Taints, evict_pod};
use progress::Progress;
use reconcile::Reconciler;
use views::{DeviceTaintRule, ResourceSlice};

/// The canonical name, which is the name of the queue too.
const NAME: &str = "device-taint-eviction-controller";

const SECTION: Section = Section::new("Device-taint-eviction-controller", "DeviceTaintEvictionController");
const SYNCS: Setting<Workers> =
    SECTION.workers("concurrent-device-taint-eviction-syncs", "ConcurrentSyncs", "Pods on tainted devices", 8);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new(NAME, init)
    .required_gates(&[DYNAMIC_RESOURCE_ALLOCATION, DEVICE_TAINTS])
    .needs(const { &[Need::part::<PodClaims>(), Need::part::<PodDisruption>(), Need::part::<ClaimDevices>()] })
    .settings(const { &[SYNCS.row()] });

/// The caches that event mappings read.
#[derive(Clone)]
struct Caches {
    claims: Informer<ResourceClaim>,
    claims_by_device: Index<ResourceClaim, DeviceKey>,
    slices: Slices,
    rules: Option<Informer<DeviceTaintRule>>,
    used: PartReader<PodClaims>,
    devices: PartReader<ClaimDevices>,
    has_groups: bool,
}

impl Caches {
    fn taints(&self) -> Taints {
        let rules = self.rules.as_ref().map(Informer::list).unwrap_or_default();
        Taints { rules: rules.into_iter().filter(|rule| rule.taint.evicts()).collect(), slices: self.slices.clone() }
    }

    fn is_tainted(&self, claim: &ResourceClaim) -> bool {
        self.taints().evict_from_claim(self.devices.of(claim)).is_some()
    }

    fn is_tainted_pod(&self, pod: &Pod) -> bool {
        let claims = self.used.of(pod);
        let group = claims.group.as_deref().filter(|_| self.has_groups);
        let claim_of = |claim: &str| self.claims.lookup(&beside(&pod.metadata.key, claim)).found();
        evict_pod(PodInUse { pod, claims, group }, &self.taints(), self.devices, claim_of).is_some()
    }
}

/// The Pods of groups, if groups may have claims.
type ByGroup = Option<Index<Pod, ObjectKey>>;

fn pods_of_group(by_group: &ByGroup, group: &ObjectKey) -> Vec<ObjectKey> {
    let pods = by_group.as_ref().map(|by_group| by_group.get(group)).unwrap_or_default();
    pods.iter().map(|pod| pod.metadata.key.clone()).collect()
}

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop::<Key>(NAME).workers(&SYNCS);
    let (used, devices): (PartReader<PodClaims>, PartReader<ClaimDevices>) = (context.part()?, context.part()?);
    let claims = control_loop.reads::<ResourceClaim>();
    let all_slices = control_loop.reads::<ResourceSlice>();
    let by_pool = all_slices.index("pool", |slice| [(slice.driver.clone(), slice.pool.clone())]);
    let rules = context.gate(&DEVICE_TAINT_RULES).then(|| control_loop.reads::<DeviceTaintRule>());
    let caches = Caches {
        claims_by_device: claims.index("device", move |claim| device_keys(devices.of(claim))),
        claims: claims.clone(),
        slices: Slices::Cached(by_pool),
        rules: rules.clone(),
        used,
        devices,
        has_groups: context.gate(&GENERIC_WORKLOAD) && context.gate(&WORKLOAD_CLAIMS),
    };
    let of_pod = caches.clone();
    let pods = control_loop.primary_with(Source::<Pod>::known(), move |change| {
        key_for_pod(change, used, |pod| of_pod.is_tainted_pod(pod)).map(Key::Pod)
    });
    let by_group = caches.has_groups.then(|| {
        pods.index("group-of-claims", move |pod| {
            let claims = used.of(pod);
            let group = claims.group.as_deref().filter(|_| !claims.entries.is_empty());
            group.map(|group| beside(&pod.metadata.key, group))
        })
    });
    watch(&mut control_loop, &caches, &by_group);
    let reconciler = Reconciler {
        pods,
        used,
        disruptions: context.part()?,
        pods_by_group: by_group,
        claims,
        devices,
        all_slices,
        slices: caches.slices,
        rules,
        queue: control_loop.queue(),
        progress: Mutex::new(Progress::default()),
        live_rules: SharedReads::default(),
        live_slices: SharedReads::default(),
        metrics: Metrics::register(context.metrics())?,
    };
    Ok(control_loop.reconcile(reconciler).into())
}

/// Watches claims, slices and rules.
fn watch(control_loop: &mut ControlLoopBuilder<Key>, caches: &Caches, by_group: &ByGroup) {
    let (of_claim, groups) = (caches.clone(), by_group.clone());
    control_loop.watches(move |change: &Change<ResourceClaim>| {
        let keys = keys_for_claim(change, |claim| of_claim.is_tainted(claim), |group| pods_of_group(&groups, group));
        keys.into_iter().map(Key::Pod)
    });
    let (of_slice, groups) = (caches.clone(), by_group.clone());
    control_loop.watches(move |change: &Change<ResourceSlice>| {
        let devices = devices_of_slice(change, &of_slice.slices);
        let claims = devices.iter().flat_map(|device| of_slice.claims_by_device.get(device));
        claims
            .flat_map(|claim| consumers(&claim, |group| pods_of_group(&groups, group)))
            .map(Key::Pod)
            .collect::<Vec<_>>()
    });
    if caches.rules.is_some() {
        let (of_rule, groups) = (caches.clone(), by_group.clone());
        control_loop.watches(move |change: &Change<DeviceTaintRule>| {
            let effect = change_of_rule(change);
            let mut keys: Vec<Key> =
                effect.computes_status.then(|| Key::Rule(change.key().clone())).into_iter().collect();
            if effect.evicting.is_empty() {
                return keys;
            }
            // Rules rarely change.
            of_rule.claims.for_each(|claim| {
                let mut devices = of_rule.devices.of(claim).results.iter();
                let is_selected = devices.any(|device| {
                    effect.evicting.iter().any(|rule| rule.selects(&device.driver, &device.pool, &device.device))
                });
                if is_selected {
                    keys.extend(consumers(claim, |group| pods_of_group(&groups, group)).into_iter().map(Key::Pod));
                }
            });
            keys
        });
    }
}

kcm_framework::inventory::submit! { DESCRIPTOR }
