//! Job controller: runs pods until enough of them have succeeded, and counts each finished one exactly once.
//!
//! Reads jobs and pods. Creates, deletes, adopts and releases pods, and removes their finalizer. Updates the status of jobs.
//!
//! ```text
//! event of a job or a pod ──event mapping──▶ key
//!                                             │
//!  observe ─▶ claim ─▶ assess ─▶ plan ─▶ create, delete ─▶ track ─▶ status ─▶ finalizers ─▶ count ─▶ status
//!  (caches)            (pure)   (pure)      (apply)        (pure)   (apply)    (apply)      (pure)   (apply)
//!
//! pod with the finalizer and no job that counts it ──▶ orphans ──▶ finalizer
//! ```
//!
//! # Guarantees
//! - **Each finished pod is counted exactly once**, whatever the process is killed after. A pod has the finalizer
//!   `batch.kubernetes.io/job-tracking` from its creation, so that it is not gone before it is counted. Its uid goes into
//!   `status.uncountedTerminatedPods`, at most 500 at a time, then the finalizer is removed, and then the uid becomes a
//!   count. Of an indexed job, `status.completedIndexes` stands for the pods that succeeded.
//! - A job is finished with `Complete` or `Failed` after all its pods are counted and none is terminating. Before that, its
//!   status announces the end with `SuccessCriteriaMet` or `FailureTarget`, and its active pods are deleted.
//! - Failures are looked for in this order: an announced end, the pod failure policy, `backoffLimit`,
//!   `activeDeadlineSeconds`, the indexes. Successes come after them: the success policy, the completions.
//! - Where each index has a limit of its own, a failed pod keeps its finalizer until another pod of its index exists, which
//!   takes over the number of failures in its annotations.
//! - At most 500 pods are created, or deleted as surplus, in one reconcile. Creations start slowly, and end with the first
//!   batch in which one fails. After failures, none is created for 10 s, doubling to 10 minutes.
//! - A suspended job has no active pods; those that are deleted for it are not counted. Resumed, it has a new start time.
//! - No step is repeated because of a stale cache: the framework does not reconcile a key before it has read its own
//!   writes (see [`Session`](kcm_framework::Session)). There are no expectations.
//! - A job with another controller in `spec.managedBy` is left alone, and so are its pods.
//! - Pods with the finalizer whose job is gone or finished, or that have no controller, lose it.
//! - Fields of a job, its template included, that this version does not know survive every write.
//!
//! # What it does not do
//! It deletes no jobs, and no finished pods: the garbage collector and the ttl after finished controller do. Gang
//! scheduling by workloads (`WorkloadWithJob`, alpha) is not there.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/job` of Kubernetes 1.36.3. Everything else is as there, messages of events and conditions
//! included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | the framework reads its own writes | expectations for pods and finalizers, and since 1.36 a comparison of versions | holds for every controller; `job_controller_stale_sync_skips_total` stays 0 |
//! | names of pods are generated here, in addition to `generateName` | by the API server | a creation whose response was lost can be looked up |
//! | deletions and patches of pods have their uid | no precondition | a pod that was recreated under the same name is left alone |
//! | a pod that succeeds as the last one of its job enqueues it at once | after a second | people wait for the end of a job; it costs no request more |
//! | pods of one rank are deleted by their uid | in the order of the cache | the result does not depend on it |
//! | orphans of a finished job are found by owner | by label selector | a selector looks at all pods of the namespace; orphans without owner are enqueued by their own events |
//! | an orphan whose finalizer cannot be removed is tried again | only when something changes, if its job has finished | |
//! | a pod that could not be created is counted as failed only | also as succeeded | `job_controller_job_pods_creation_total` |
//! | a pod that a terminating namespace rejects is not active in the status | is until the next sync | |
//! | the conditions that every pod has match a rule of a pod failure policy only once the pod has failed | also of pods that a failing job deletes | memory; no policy names them |
//! | a condition that does not change is left as the API server has it, unknown fields included | is written again | |
//! | a job with an invalid selector is not retried until it changes | retries | only a change helps |
//! | a missing permission is retried after a minute | back-off | design of the framework: only an administrator can grant it |
//! | `--concurrent-job-syncs` below 1 is rejected | accepted, and no worker runs | |

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
mod settings;
mod status;
mod success_policy;
mod track;

#[cfg(test)]
mod tests;

use std::time::Duration;

use kcm_api::Need;
use kcm_api::views::{Job, Pod, PodTermination};
use kcm_config::gates::MUTABLE_SCHEDULING_DIRECTIVES_FOR_SUSPENDED_JOBS;
use kcm_framework::ownership::Dependents;
use kcm_framework::workqueue::RetryLimits;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loop, Loops};

use backoff::BackoffStore;
use event_mapping::{OrphanKey, key_for_job, keys_for_pod, orphan_of_pod, orphans_of_job, owners};
use job_pod::{COMPLETION_INDEX, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT};
use metrics::Metrics;
use orphans::OrphanReconciler;
use reconcile::Reconciler;
use settings::{CONCURRENT_SYNCS, ROWS};

/// The retries of both queues, as upstream: no bucket over all keys.
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
    .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    Ok(Loops::new().with(jobs(context)?).with(orphans(context)))
}

/// The loop that reconciles jobs.
fn jobs(context: &ControllerContext) -> Result<Loop, BoxError> {
    let metrics = Metrics::register(context.metrics());
    let mut described = context.control_loop("job").retry_limits(RETRIES).workers_from(CONCURRENT_SYNCS);
    let counted = metrics.clone();
    let jobs = described.watches_for(kcm_framework::Source::known().resync(), move |change| {
        counted.observe_job(change);
        key_for_job(change)
    });
    described.keyed_by(&jobs);
    let (counted, owners) = (metrics.clone(), owners(jobs.clone()));
    let dependents = Dependents::of(&described.reads::<Pod>());
    let pods = dependents.clone();
    described.watches::<Pod, _>(move |change| {
        counted.observe_pod(change);
        keys_for_pod(change, &owners, |job| pods.any_controlled_by(job, |pod| !pod.is_finished()))
    });
    Ok(described.reconcile(Reconciler {
        jobs,
        dependents,
        terminations: context.part()?,
        backoffs: BackoffStore::default(),
        metrics,
        unsets_start_time: context.gate(&MUTABLE_SCHEDULING_DIRECTIVES_FOR_SUSPENDED_JOBS),
    }))
}

/// The loop that removes the finalizer of orphans.
fn orphans(context: &ControllerContext) -> Loop {
    let described = context.control_loop::<OrphanKey>("job_orphan_pod");
    let mut described = described.retry_limits(RETRIES).workers_from(CONCURRENT_SYNCS);
    let jobs = described.watches::<Job, _>(orphans_of_job);
    let owners = owners(jobs);
    let of_changes = owners.clone();
    let pods = described.watches::<Pod, _>(move |change| orphan_of_pod(change, &of_changes));
    described.keyed_by(&pods);
    let dependents = Dependents::of(&pods);
    described.reconcile(OrphanReconciler { pods, dependents, owners })
}

kcm_framework::inventory::submit! { DESCRIPTOR }
