//! Job controller: runs Pods until enough of them have succeeded, and counts each finished Pod exactly once.
//!
//! Reads Jobs and Pods. Creates, deletes, adopts and releases Pods, and removes their finalizer. Updates the status of Jobs.
//!
//! ```text
//! event of a Job or a Pod ──event mapping──▶ key
//!                                             │
//!  observe ─▶ claim ─▶ assess ─▶ plan ─▶ create, delete ─▶ track ─▶ status ─▶ finalizers ─▶ count ─▶ status
//!  (caches)            (pure)   (pure)      (apply)        (pure)   (apply)    (apply)      (pure)   (apply)
//!
//! Pod with the finalizer and no Job that counts it ──▶ orphans ──▶ finalizer
//! ```
//!
//! # Guarantees
//! - **Each finished Pod is counted exactly once**, whatever the process is killed after. A Pod has the finalizer
//!   `batch.kubernetes.io/job-tracking` from its creation, so that it is not removed before it is counted. Its uid is added to
//!   `status.uncountedTerminatedPods`, at most 500 at a time, then the finalizer is removed, and then the uid becomes a
//!   count. In an indexed Job, `status.completedIndexes` stands for the Pods that succeeded.
//! - A Job is finished with `Complete` or `Failed` after all its Pods are counted and none is terminating. Before that, its
//!   status announces the end with `SuccessCriteriaMet` or `FailureTarget`, and its active Pods are deleted.
//! - Failures are checked in this order: an announced end, the pod failure policy, `backoffLimit`, `activeDeadlineSeconds`,
//!   the indexes. Successes are checked after them: the success policy, the completions.
//! - A Job fails at its active deadline and replaces Pods at the end of the back-off, also if requests of an earlier
//!   reconcile fail.
//! - If each index has a limit of its own, a failed Pod keeps its finalizer until another Pod of its index exists. That Pod
//!   takes over the number of failures in its annotations.
//! - At most 500 Pods are created, or deleted as surplus, in one reconcile. Creations start slowly, and end with the first
//!   batch in which one fails. After failures, none is created for 10 s, doubling to 10 minutes.
//! - A suspended Job has no active Pods. The Pods that are deleted for it are not counted. A resumed Job has a new start time.
//! - No step is repeated because of a stale cache: the framework does not reconcile a key before it has read its own
//!   writes (see [`Session`](kcm_framework::Session)). There are no expectations.
//! - A Job with another controller in `spec.managedBy` is left alone, and so are its Pods.
//! - Pods with the finalizer whose Job was deleted or has finished, or that have no controller, lose the finalizer. A Pod
//!   that cannot be patched is tried again, and delays no other. A Job that cannot be decoded is not deleted: its Pods keep
//!   the finalizer until it can be decoded, or at most 30 s after its deletion.
//! - Fields of a Job, its template included, that this version does not know survive every write.
//!
//! # What it does not do
//! It deletes no Jobs and no finished Pods: the garbage collector and the TTL after finished controller do. It does not
//! implement gang scheduling by workloads (`WorkloadWithJob`, alpha).
//!
//! As upstream, it keeps the start time of a suspended Job if the gate `MutableSchedulingDirectivesForSuspendedJobs` is off.
//! A Job that is resumed after its active deadline then fails at once with `DeadlineExceeded`.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/job` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all controllers
//! share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | `job_controller_stale_sync_skips_total` stays 0. | It counts syncs that are skipped because a cache is stale. | A key waits for its own writes. |
//! | A Pod that succeeds as the last one of its Job enqueues the Job at once. | It enqueues the Job after a second. | People wait for the end of a Job; no request is added. |
//! | Pods of one rank are deleted in the order of their uids. | They are deleted in the order of the cache. | The result does not depend on the cache. |
//! | The Pods of a Job that cannot be decoded keep their finalizer. | The Job keeps its last state in the cache. | The Job counts them when it can be decoded. |
//! | Orphans of a finished Job are found by owner. | They are found by label selector. | A selector compares all Pods of the namespace; orphans without owner are enqueued by their own events. |
//! | A Pod that cannot be created is counted as failed only in `job_controller_job_pods_creation_total`. | It is counted as succeeded, too. | It was not created. |
//! | A Pod that a terminating namespace rejects is not active in the status. | It is active until the next sync. | It does not exist. |
//! | A rule of a pod failure policy matches the conditions that every Pod has only if the Pod has failed. | It matches them also for Pods that a failing Job deletes. | The cache keeps them of failed Pods only, to save memory; no policy names them. |
//! | A condition that does not change keeps the fields that this version does not know. | It is written again without them. | Another version may need them. |
//! | A Job with an invalid selector is not retried until it changes. | It is retried with back-off. | Only a change helps. |

mod apply;
mod assess;
mod backoff;
mod conditions;
mod event_mapping;
mod events;
mod explain;
mod failure_policy;
mod indexes;
mod job_pod;
mod metrics;
mod orphans;
mod plan;
mod pod_template;
mod reconcile;
mod status;
mod success_policy;
mod track;

#[cfg(test)]
mod tests;

use std::time::Duration;

use kcm_framework::api::Need;
use kcm_framework::api::views::{Pod, PodTermination};
use kcm_framework::config::gates::MUTABLE_SCHEDULING_DIRECTIVES_FOR_SUSPENDED_JOBS;
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::ownership::Dependents;
use kcm_framework::workqueue::RetryLimits;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loop, Loops, Source};

use backoff::BackoffStore;
use event_mapping::{CountingJobs, OrphanKey, key_for_job, keys_for_pod, orphan_of_pod, orphans_of_job, owners};
use job_pod::{COMPLETION_INDEX, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT};
use metrics::Metrics;
use orphans::OrphanReconciler;
use reconcile::Reconciler;

const SECTION: Section = Section::new("Job-controller", "JobController");
const SYNCS: Setting<Workers> = SECTION.workers("concurrent-job-syncs", "ConcurrentJobSyncs", "Jobs", 5);

/// The retry limits of both queues, as upstream: no bucket over all keys.
const RETRIES: RetryLimits =
    RetryLimits { base: Duration::from_secs(1), max: Duration::from_mins(1), interval: Duration::ZERO, burst: 0 };

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("job-controller", init)
    .aliases(&["job"])
    .needs(&[
        Need::part::<PodTermination>(),
        Need::annotation::<Pod>(COMPLETION_INDEX),
        Need::annotation::<Pod>(INDEX_FAILURE_COUNT),
        Need::annotation::<Pod>(INDEX_IGNORED_FAILURE_COUNT),
    ])
    .settings(const { &[SYNCS.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    Ok(Loops::new().with(jobs(context)?).with(orphans(context)))
}

/// The loop that reconciles Jobs.
fn jobs(context: &ControllerContext) -> Result<Loop, BoxError> {
    let metrics = Metrics::register(context.metrics())?;
    let mut control_loop = context.control_loop("job").retry_limits(RETRIES).workers(&SYNCS);
    let counted = metrics.clone();
    let jobs = control_loop.primary_with(Source::known().resync(), move |change| {
        counted.observe_job(change);
        key_for_job(change)
    });
    let (counted, owners) = (metrics.clone(), owners(jobs.clone()));
    let dependents = Dependents::of(&control_loop.reads::<Pod>());
    let pods = dependents.clone();
    control_loop.watches::<Pod, _>(move |change| {
        counted.observe_pod(change);
        keys_for_pod(change, &owners, |job| pods.any_controlled_by(job, |pod| !pod.is_finished()))
    });
    let reconciler = Reconciler {
        dependents,
        terminations: context.part()?,
        backoffs: BackoffStore::default(),
        metrics,
        unsets_start_time: context.gate(&MUTABLE_SCHEDULING_DIRECTIVES_FOR_SUSPENDED_JOBS),
    };
    Ok(control_loop.reconcile_objects(jobs, reconciler))
}

/// The loop that removes the finalizer of orphans.
fn orphans(context: &ControllerContext) -> Loop {
    let mut control_loop = context.control_loop::<OrphanKey>("job_orphan_pod").retry_limits(RETRIES).workers(&SYNCS);
    let jobs = CountingJobs::of(control_loop.watches(orphans_of_job));
    let of_changes = jobs.clone();
    let pods = control_loop.primary_with(Source::known(), move |change| orphan_of_pod(change, &of_changes));
    let dependents = Dependents::of(&pods);
    control_loop.reconcile(OrphanReconciler { pods, dependents, jobs })
}

kcm_framework::inventory::submit! { DESCRIPTOR }
