//! Persistent volume binder: binds claims to volumes, has volumes provisioned, and reclaims volumes whose claims were deleted.
//!
//! Reads `PersistentVolumeClaims`, `PersistentVolumes`, `StorageClasses`, Pods and Nodes. Updates claims and volumes with
//! their statuses, creates and deletes volumes, and creates and deletes the Pods that empty volumes.
//!
//! ```text
//! claim ────▶ key ──▶ plan ──▶ bind: volume, its status, claim, its status
//!   ▲        (claims) (pure)├─▶ Pending, Lost, default class
//!   │                       └─▶ provision: annotation for a driver, or a directory and its volume
//!   │ a volume that becomes available or references the claim, a class, a Pod
//! volume ───▶ key ──▶ plan ──▶ Available, Bound, Released, unbind
//!            (volumes)(pure)└─▶ reclaim ──▶ live read ──▶ delete, or empty with a Pod
//! ```
//!
//! # Guarantees
//! - A volume never has two claims. A volume references its claim before the claim names the volume, so that a binding
//!   that was interrupted anywhere is completed, here or by upstream's manager.
//! - A volume becomes `Released` only after a live read of its claim. Its directory is deleted, it is emptied, and it is
//!   deleted only after a live read of the volume and its claim.
//! - Every update carries the resource version, and a deletion the uid. Fields that this version does not know survive.
//! - Of equally good volumes the first by name is taken. The binder does not conflict with itself: a volume that a
//!   reconcile works on is reserved until the cache shows the writes.
//! - While a volume, a claim or a class cannot be decoded, nothing is decided about what it concerns.
//! - At rest nothing is sent. A claim that waits repeats its event every 10 minutes at most.
//!
//! # Upstream's rules that surprise
//! - A claim that names a volume is checked against it, its labels and its phase apart. A volume that is reserved for a
//!   claim is not checked at all if the claim names it, and only by size, modes and attributes class otherwise.
//! - A free volume with fewer access modes goes before a reserved volume with more.
//! - A claim without a class takes a volume without a class even if there is a default class. Only if none matches it gets
//!   the default class.
//! - A volume of a plugin that does not exist any more, with the policy `Delete`, gets the finalizer
//!   `kubernetes.io/pv-controller` and is `Failed`. An administrator deletes its storage and removes the finalizer.
//! - The host path plugin creates and deletes directories of the machine or container that this program runs on.
//!
//! # What it does not do
//! It does not attach, mount or expand volumes, and it deletes no volume of a CSI driver: the provisioner of the driver
//! does.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/volume/persistentvolume` of Kubernetes 1.37.2. `docs/differences.md` has the differences
//! that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | A volume that becomes available, a reserved volume, a class and a Pod enqueue the claims that wait for them. | Claims wait for the sync period. | Faster by up to 15 s. |
//! | The sync period enqueues what is neither bound nor available. | It enqueues all claims and volumes. | Their changes enqueue the others. |
//! | Ten claims and ten volumes are reconciled at the same time. | One each. | Faster. |
//! | Events of a claim that waits are sent when they differ, and every 10 minutes. | At every sync. | No requests at rest. |
//! | Deletion and recycling read volume and claim live. | They read the volume live, and the claim from the cache. | Data is never deleted because of an old cache. |
//! | Paths must begin with `/tmp/`, and no link is followed out of it. | `/var/tmp/x` matches too. | Such a directory belongs to others. |
//! | A volume is deleted by its uid, and a failed deletion is repeated. | By its name, once. | A recreated volume stays. |
//! | No finalizer is added to a volume that is being deleted. | It is, which the API server refuses. | It cannot succeed. |
//! | A recycler Pod that the volume controls is waited for after a restart. | It is deleted, and the volume is `Failed` once. | Nothing is lost. |
//! | The reports of a recycler Pod are on the Pod. | They are repeated as events of the volume. | The message of a Pod that failed is in the status of the volume. |
//! | At most 20 volumes are emptied at the same time, and a failure is repeated when its back-off ends. | No limit; at the sync period. | Load. |
//! | A provisioned directory is named by the uid of its claim. If its volume cannot be created, it is deleted and the attempt repeated with back-off. | By a random uid; five attempts, ten seconds apart. | A restart leaves no directory behind. |
//! | A recycler template that cannot be read stops this controller only, which is tried again. | It ends the process. | Other controllers go on. |

mod available;
mod claim_plan;
mod claims;
mod drafts;
mod edits;
mod event_mapping;
mod events;
mod host_path;
mod matching;
mod metrics;
mod operations;
mod plugins;
mod provision;
mod reclaim;
mod recycler;
mod reservations;
mod settings;
mod view;
mod vocabulary;
mod volume_plan;
mod volumes;
mod waiting;
mod world;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::api::Need;
use kcm_framework::api::views::{Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDeletion, PodVolumes};
use kcm_framework::config::Setting;
use kcm_framework::informers::{Change, Informer};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};
use parking_lot::Mutex;

use claims::Claims;
use metrics::{Counted, Metrics};
use provision::Provisioning;
use reclaim::{Reclaimer, Recyclers};
use recycler::{Recycler, read_template};
use reservations::Reservations;
use view::StorageClass;
use volumes::Volumes;
use world::{PodsOfClaims, Registries, World, volumes_of_claim};

/// Claims, and volumes, that are reconciled at the same time.
const WORKERS: usize = 10;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("persistentvolume-binder-controller", init)
    .aliases(&["persistentvolume-binder"])
    .service_account("persistent-volume-binder")
    .event_component("persistentvolume-controller")
    .needs(const { &[Need::part::<PodVolumes>(), Need::part::<PodDeletion>()] })
    .settings(settings::ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let period = context.get(&settings::SYNC_PERIOD)?.unsigned();
    let (pod_volumes, deletions) = (context.part()?, context.part()?);
    let registries = Arc::new(Registries::default());
    let metrics = Arc::new(Metrics::register(context.metrics())?);
    let mut claim_loop = context.control_loop("claims").workers(WORKERS);
    let mut volume_loop = context.control_loop("volumes").workers(WORKERS);
    let (claim_keys, volume_keys) = (claim_loop.queue(), volume_loop.queue());
    let reservations = Reservations::new(claim_keys.clone(), volume_keys);

    let claims = claim_loop.primary_with(Source::known().resync_every(period), event_mapping::key_for_claim);
    let by_volume = claims.index("volume", |claim: &PersistentVolumeClaim| {
        Some(claim.volume_name.clone()).filter(|name| !name.is_empty())
    });
    let shared = Arc::clone(&registries);
    let volumes = claim_loop.watches(move |change: &Change<PersistentVolume>| {
        event_mapping::claims_for_volume(change, &shared, |volume| by_volume.get(volume))
    });
    let shared = Arc::clone(&registries);
    let classes =
        claim_loop.watches(move |change: &Change<StorageClass>| event_mapping::claims_for_class(change, &shared));
    let shared = Arc::clone(&registries);
    let pods =
        claim_loop.watches(move |change: &Change<Pod>| event_mapping::claims_for_pod(change, pod_volumes, &shared));
    let nodes = claim_loop.reads::<Node>();

    let by_claim = volumes_of_claim(&volumes);
    let pods_of_claims = PodsOfClaims::new(&pods, pod_volumes, deletions);
    let world = || World {
        claims: claims.clone(),
        volumes: volumes.clone(),
        volumes_of_claim: by_claim.clone(),
        classes: classes.clone(),
        pods: pods_of_claims.clone(),
        reservations: reservations.clone(),
        registries: Arc::clone(&registries),
    };

    let own = volume_loop.primary_with(Source::known().resync_every(period), event_mapping::key_for_volume);
    let referencing = by_claim.clone();
    volume_loop.watches(move |change: &Change<PersistentVolumeClaim>| {
        event_mapping::volumes_for_claim(change, |claim| referencing.get(claim))
    });
    let recycler_pods: Informer<Pod> = volume_loop.watches(event_mapping::volume_for_pod);
    volume_loop.reads::<StorageClass>();

    let claim_reconciler = Claims {
        world: world(),
        metrics: Arc::clone(&metrics),
        provisioning: Provisioning {
            is_enabled: context.get(&settings::DYNAMIC_PROVISIONING)?,
            provisions_host_paths: context.get(&settings::HOST_PATH_PROVISIONING)?,
            nodes,
        },
    };
    let volume_reconciler = Volumes {
        reclaimer: Reclaimer { world: world(), metrics, recyclers: recyclers(context, recycler_pods)? },
        counted: Counted::register(context.metrics()),
        claims: claim_keys,
    };
    let claim_loop = claim_loop.reconcile_objects(claims.clone(), claim_reconciler);
    Ok(Loops::new().with(claim_loop).with(volume_loop.reconcile_objects(own, volume_reconciler)))
}

fn recyclers(context: &ControllerContext, pods: Informer<Pod>) -> Result<Recyclers, BoxError> {
    let recycler = |template: &Setting<String>, minimum: &Setting<i32>, increment: &Setting<i32>| {
        let template = read_template(template.name(), &context.get(template)?)?;
        Ok::<_, BoxError>(Recycler::new(template, context.get(minimum)?, context.get(increment)?))
    };
    Ok(Recyclers {
        pods,
        host_path: recycler(
            &settings::HOST_PATH_TEMPLATE,
            &settings::HOST_PATH_MINIMUM,
            &settings::HOST_PATH_INCREMENT,
        )?,
        nfs: recycler(&settings::NFS_TEMPLATE, &settings::NFS_MINIMUM, &settings::NFS_INCREMENT)?,
        under_way: Mutex::default(),
    })
}

kcm_framework::inventory::submit! { DESCRIPTOR }
