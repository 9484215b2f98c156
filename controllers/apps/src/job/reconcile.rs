//! The order of a reconcile: observe, claim, assess, plan, apply, and the three writes of the tracking.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::views::{CompletionMode, Job, Pod, PodTermination};
use kcm_framework::api::{ObjectKey, PartReader, Selector, Uid};
use kcm_framework::ownership::{Claims, Dependents, Owner, adopt_and_release_with_finalizer};
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use tokio::time::Instant;

use super::apply::{StatusWriter, Writer};
use super::assess::{Assessment, active_deadline, assess, external_manager};
use super::backoff::{BackoffRecord, BackoffStore};
use super::conditions::{Ending, JobResult};
use super::event_mapping::delay_until;
use super::events::JobEvent;
use super::job_pod::{JobPod, TRACKING_FINALIZER};
use super::metrics::Metrics;
use super::plan::{Step, plan};
use super::track::{Tracking, count, finish, track};

/// Reconciles Jobs.
pub(super) struct Reconciler {
    pub(super) dependents: Dependents<Pod>,
    pub(super) terminations: PartReader<PodTermination>,
    pub(super) backoffs: BackoffStore,
    pub(super) metrics: Metrics,
    /// Gate `MutableSchedulingDirectivesForSuspendedJobs`: a suspended Job has no start time.
    pub(super) unsets_start_time: bool,
}

#[async_trait]
impl ReconcileObject<Job> for Reconciler {
    async fn reconcile(&self, job: &Arc<Job>, session: &Session) -> Result<(), ReconcileError> {
        if let Some(controller) = external_manager(job) {
            session.explain(|| format!("leaves the job to {controller}, which manages it"));
            return Ok(());
        }
        if job.is_finished() {
            self.backoffs.remove(&job.metadata.key);
            session.explain(|| "leaves the job, which has finished");
            return Ok(());
        }
        if let CompletionMode::Other(mode) = &job.completion_mode {
            session.record(&**job, &JobEvent::UnknownCompletionMode);
            session.explain(|| format!("leaves the job, whose completion mode {mode} is unknown"));
            return Ok(());
        }
        let selector = match &job.selector {
            Ok(selector) => selector,
            Err(error) => {
                session.wait_for_change("its selector is invalid", error);
                self.metrics.synced(job, "reconciling", true, Duration::ZERO);
                return Ok(());
            }
        };
        let started = Instant::now();
        let mut action = "reconciling";
        let synced = self.sync(job, selector, session, &mut action).await;
        self.metrics.synced(job, action, synced.is_err(), started.elapsed());
        synced
    }

    async fn deleted(&self, key: &ObjectKey, _: &Session) -> Result<(), ReconcileError> {
        self.backoffs.remove(key);
        Ok(())
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
        let now = session.now();
        // A deadline that is past ends the Job in this reconcile, and an end that was announced has no deadline.
        let deadline = active_deadline(job, seconds(now)).filter(|at| *at > now);
        session.requeue_by(deadline.filter(|_| Ending::announced(&job.status).is_none()));
        let pods = self.claimed_pods(job, selector, session).await?;
        let (key, uid) = (&job.metadata.key, &job.metadata.uid);
        let assessment = assess(job, &pods, self.backoffs.get(key, uid), seconds(session.now()));
        let step = plan(&assessment, session.now());
        if let Step::BackOff { until } = step {
            session.requeue_after(delay_until(until, session.now()));
        }
        session.explain(|| step.explain(&assessment));
        *action = step.action();

        let writer = Writer { session, metrics: &self.metrics, job };
        let (applied, error) = writer.apply(&step, &assessment).await;
        let now = seconds(session.now());
        let tracking = track(&assessment, &step, applied, self.unsets_start_time, now);
        self.write(&writer, &assessment, tracking).await?;
        error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Returns the Pods that the Job controls after adoptions and releases, sorted by index.
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

    /// Makes the three writes of the tracking: the uids of finished Pods, their finalizers, and the counts.
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
        if current.update(&status).await? {
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
        if current.update(&status).await? {
            metrics.counted(job, &before, &status);
        }
        if let (true, Some(ending)) = (is_finished, &ending) {
            self.finished(writer, assessment, ending);
        }
        error.map_or(Ok(()), |error| Err(error.into()))
    }

    fn finished(&self, writer: &Writer<'_>, assessment: &Assessment<'_>, ending: &Ending) {
        let Writer { session, metrics, job } = *writer;
        tracing::info!(result = ending.result.final_condition(), reason = &*ending.reason, "Job finished");
        match ending.result {
            JobResult::Complete => {
                if job.completions.is_some_and(|completions| assessment.succeeded > completions) {
                    session.record(job, &JobEvent::TooManySucceededPods);
                }
            }
            JobResult::Failed => {}
        }
        session.record(job, &JobEvent::Ended(ending));
        metrics.finished(job, ending);
        self.backoffs.put(&job.metadata.key, &job.metadata.uid, BackoffRecord::default());
    }
}

/// Cuts a time to whole seconds, as the API has times.
fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
