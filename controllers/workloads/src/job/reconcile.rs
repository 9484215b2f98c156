//! The order of a reconcile: observe, claim, assess, plan, apply, and the three writes of the tracking.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::views::{CompletionMode, Job, Pod, PodTermination};
use kcm_api::{ObjectKey, PartReader, Selector, Uid};
use kcm_framework::ownership::{Claims, Dependents, Owner, adopt_and_release_with_finalizer};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};
use kcm_informers::Informer;
use tokio::time::Instant;

use super::apply::{StatusWriter, Writer};
use super::assess::{Assessment, assess, external_manager};
use super::backoff::{BackoffRecord, BackoffStore};
use super::conditions::Ending;
use super::event_mapping::delay_until;
use super::events::JobEvent;
use super::job_pod::{JobPod, TRACKING_FINALIZER};
use super::metrics::Metrics;
use super::plan::{Step, plan};
use super::track::{Tracking, count, finish, track};

/// Reconciles jobs.
pub(super) struct Reconciler {
    pub(super) jobs: Informer<Job>,
    pub(super) dependents: Dependents<Pod>,
    pub(super) terminations: PartReader<PodTermination>,
    pub(super) backoffs: BackoffStore,
    pub(super) metrics: Metrics,
    /// Gate `MutableSchedulingDirectivesForSuspendedJobs`: a suspended job has no start time.
    pub(super) unsets_start_time: bool,
}

#[async_trait]
impl Reconcile for Reconciler {
    async fn reconcile(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(job) = self.jobs.get(key) else {
            self.backoffs.remove(key);
            return Ok(());
        };
        if let Some(controller) = external_manager(&job) {
            session.explain(|| format!("leaves the job to {controller}, which manages it"));
            return Ok(());
        }
        if job.is_finished() {
            self.backoffs.remove(key);
            session.explain(|| "leaves the job, which has finished");
            return Ok(());
        }
        if let CompletionMode::Other(mode) = &job.completion_mode {
            session.record(&*job, &JobEvent::UnknownCompletionMode);
            session.explain(|| format!("leaves the job, whose completion mode {mode} is unknown"));
            return Ok(());
        }
        let selector = match &job.selector {
            Ok(selector) => selector,
            Err(error) => {
                // A selector is immutable: a retry cannot succeed.
                tracing::error!(%error, "The selector of the job is invalid");
                session.explain(|| "does nothing until the job changes, as its selector is invalid");
                return Ok(());
            }
        };
        let started = Instant::now();
        let mut action = "reconciling";
        let synced = self.sync(&job, selector, session, &mut action).await;
        self.metrics.synced(&job, action, synced.is_err(), started.elapsed());
        synced
    }
}

impl Reconciler {
    async fn sync(
        &self,
        job: &Job,
        selector: &Selector,
        session: &Session,
        action: &mut &'static str,
    ) -> Result<(), ReconcileError> {
        let pods = self.claimed_pods(job, selector, session).await?;
        let (key, uid, now) = (&job.metadata.key, &job.metadata.uid, seconds(session.now()));
        let assessment = assess(job, &pods, self.backoffs.get(key, uid), now);
        let step = plan(&assessment, session.now());
        session.explain(|| step.explain(&assessment));
        *action = step.action();

        let writer = Writer { session, metrics: &self.metrics, job };
        let (applied, error) = writer.apply(&step, &assessment).await;
        let now = seconds(session.now());
        let tracking = track(&assessment, &step, applied, self.unsets_start_time, now);
        self.write(&writer, &assessment, tracking).await?;
        match error {
            Some(error) => Err(error.into()),
            None => Ok(requeue(&step, &assessment, session.now())),
        }
    }

    /// The pods that the job controls after adoptions and releases, sorted by index.
    async fn claimed_pods(
        &self,
        job: &Job,
        selector: &Selector,
        session: &Session,
    ) -> Result<Vec<JobPod>, ReconcileError> {
        let owner = Owner::of(job);
        let claims = Claims::of(owner, selector, &self.dependents.owned_or_orphaned(owner, Some(selector)));
        let adopted: HashSet<Uid> = claims.adopt.iter().map(|pod| pod.metadata.uid.clone()).collect();
        let pods = adopt_and_release_with_finalizer(session, owner, claims, TRACKING_FINALIZER).await?;
        let is_adopted = |pod: &Arc<Pod>| adopted.contains(&pod.metadata.uid);
        let mut pods: Vec<_> =
            pods.into_iter().map(|pod| JobPod::new(Arc::clone(&pod), is_adopted(&pod), self.terminations)).collect();
        pods.sort_unstable_by(|a, b| (a.index, &a.pod.metadata.key).cmp(&(b.index, &b.pod.metadata.key)));
        Ok(pods)
    }

    /// The three writes of the tracking: the uids of finished pods, their finalizers, and the counts.
    async fn write(
        &self,
        writer: &Writer<'_>,
        assessment: &Assessment<'_>,
        tracking: Tracking<'_>,
    ) -> Result<(), ReconcileError> {
        let Writer { session, metrics, job } = *writer;
        let Tracking { mut status, release, mut tracked, ending, suspension, policy_actions } = tracking;
        if let Some(is_suspended) = suspension {
            session.record(job, if is_suspended { &JobEvent::Suspended } else { &JobEvent::Resumed });
        }
        let mut current = StatusWriter::of(job, session);
        if current.put(&status).await? {
            self.backoffs.put(&job.metadata.key, &job.metadata.uid, assessment.backoff);
            metrics.counted(job, &job.status, &status);
        }
        for (action, count) in policy_actions {
            metrics.handled_by_policy(action, count);
        }

        let (released, error) = writer.release(&release).await;
        for pod in released {
            tracked.remove(pod.uid());
        }
        count(&mut status, &tracked);
        let is_finished = error.is_none() && finish(&mut status, ending.as_ref(), seconds(session.now()));
        let before = current.current.clone();
        if current.put(&status).await? {
            metrics.counted(job, &before, &status);
        }
        if let (true, Some(ending)) = (is_finished, &ending) {
            self.finished(writer, assessment, ending);
        }
        error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Records the end of a job.
    fn finished(&self, writer: &Writer<'_>, assessment: &Assessment<'_>, ending: &Ending) {
        let Writer { session, metrics, job } = *writer;
        tracing::info!(result = ending.result.final_condition(), reason = &*ending.reason, "Job finished");
        match ending.result {
            super::conditions::JobResult::Complete => {
                if job.completions.is_some_and(|completions| assessment.succeeded > completions) {
                    session.record(job, &JobEvent::TooManySucceededPods);
                }
            }
            super::conditions::JobResult::Failed => {}
        }
        session.record(job, &JobEvent::Ended(ending));
        metrics.finished(job, ending);
        self.backoffs.put(&job.metadata.key, &job.metadata.uid, BackoffRecord::default());
    }
}

/// When the job is reconciled again without an event: at its deadline, or when the back-off is over.
fn requeue(step: &Step<'_>, assessment: &Assessment<'_>, now: Timestamp) -> Outcome {
    let backoff = match step {
        Step::BackOff { until } => Some(delay_until(*until, now)),
        Step::DeleteActive(_)
        | Step::Suspend(_)
        | Step::DeleteSurplus { .. }
        | Step::Create { .. }
        | Step::Keep
        | Step::LeaveToDeletion => None,
    };
    let deadline = assessment.deadline.filter(|_| assessment.ending.is_none());
    let deadline = deadline.map(|at| at.duration_since(now).try_into().unwrap_or_default());
    let delay = [backoff, deadline].into_iter().flatten().min();
    delay.map_or_else(|| (), Outcome::requeue_after)
}

/// A time in whole seconds, as the API has it.
fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
