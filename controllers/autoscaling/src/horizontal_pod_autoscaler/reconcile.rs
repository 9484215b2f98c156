//! The order of a sync: scale, metrics, plan, scale, status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kcm_framework::api::views::{AutoscaledPod, HorizontalPodAutoscaler, Pod};
use kcm_framework::api::{ObjectKey, PartReader, Selector};
use kcm_framework::discovery::Discovery;
use kcm_framework::{ReconcileError, ReconcileObject, Session, async_trait};
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::apply::{StatusWrite, StoredStatus, is_undecided, may_be_applied, write_scale, write_status};
use super::calculator::ObservedPod;
use super::conditions::{ABLE_TO_SCALE, Conditions, SCALED_TO_ZERO, SCALING_ACTIVE};
use super::evaluate::{Measurement, Responses, Scaled, evaluate};
use super::events::AutoscalerEvent;
use super::failure_message::message_of;
use super::gather::{Gathering, Job, Subject, Taken, Work};
use super::history::History;
use super::metrics::{Action, ErrorLabel, Metrics};
use super::normalize::Bounds;
use super::plan::{
    Approach, Decision, Plan, Planned, Zero, after_rescale, plan_by_metrics, plan_without_metrics, set_scaled_to_zero,
};
use super::requests::{NoRequest, Request, request_of};
use super::scale::{FoundScale, ScaleError, Scales, described, resources_of_target};
use super::selected_pods::SelectedPods;
use super::selectors::Selectors;
use super::settings::Settings;
use super::spec::Spec;
use super::status::Status;

/// Syncs autoscalers.
pub(super) struct Reconciler {
    pub(super) pods: SelectedPods,
    pub(super) part: PartReader<AutoscaledPod>,
    pub(super) discovery: Discovery,
    pub(super) scales: Arc<Scales>,
    pub(super) gathering: Arc<Gathering>,
    pub(super) selectors: Selectors,
    pub(super) histories: Mutex<BTreeMap<ObjectKey, History>>,
    pub(super) settings: Settings,
    pub(super) metrics: Metrics,
}

/// The result of a sync.
struct Synced {
    action: Action,
    error: Option<(ErrorLabel, String)>,
    started: Instant,
}

/// The autoscaler of a sync, as its document has it.
struct Read<'a> {
    autoscaler: &'a HorizontalPodAutoscaler,
    spec: Spec,
    /// The metrics of the spec, unchanged.
    metrics: Vec<Value>,
    status: Status,
    conditions: Conditions,
}

impl<'a> Read<'a> {
    fn of(autoscaler: &'a HorizontalPodAutoscaler) -> Result<Self, serde_json::Error> {
        let spec = Spec::of(autoscaler)?;
        let metrics = autoscaler.raw(&["spec", "metrics"]).map(RawValue::get);
        let metrics: Option<Vec<Value>> = metrics.map(serde_json::from_str).transpose()?.flatten();
        let status = Status::of(autoscaler)?;
        let conditions = status.conditions.clone();
        Ok(Self { autoscaler, spec, metrics: metrics.unwrap_or_default(), status, conditions })
    }

    /// The status that was read.
    fn stored(&self) -> StoredStatus {
        StoredStatus { status: self.status.clone(), version: self.autoscaler.metadata.resource_version.clone() }
    }
}

/// The selector and the pods of a target.
struct Target {
    selector: Selector,
    pods: Vec<Arc<Pod>>,
}

#[async_trait]
impl ReconcileObject<HorizontalPodAutoscaler> for Reconciler {
    async fn reconcile(
        &self,
        autoscaler: &Arc<HorizontalPodAutoscaler>,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        session.requeue_after(self.settings.sync_period.unsigned());
        let read = match Read::of(autoscaler) {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "The autoscaler cannot be decoded; it is not synced");
                session.record(&**autoscaler, &AutoscalerEvent::FailedDecode(error.to_string()));
                return Ok(());
            }
        };
        if let Some(Synced { action, error, started }) = self.sync(read, session).await? {
            let label = error.as_ref().map_or(ErrorLabel::None, |(label, _)| *label);
            self.metrics.synced(action, label, started.elapsed());
            if let Some((_, error)) = error {
                tracing::warn!(error, "Cannot sync the autoscaler; it is synced again in the next period");
            }
        }
        Ok(())
    }

    async fn deleted(&self, key: &ObjectKey, _: &Session) -> Result<(), ReconcileError> {
        self.histories.lock().remove(key);
        self.selectors.forget(key);
        self.gathering.forget(key);
        self.metrics.forget(key);
        Ok(())
    }
}

impl Reconciler {
    /// Syncs an autoscaler; `None` if it waits for the scale of its target or for its metrics.
    async fn sync(&self, mut read: Read<'_>, session: &Session) -> Result<Option<Synced>, ReconcileError> {
        let autoscaler = read.autoscaler;
        let key = &autoscaler.metadata.key;
        let subject = Subject::of(autoscaler);
        let (found, responses, started) = match self.gathering.take(key) {
            Taken::Waiting => {
                session.explain(|| "waits for the API of its target or of its metrics");
                return Ok(None);
            }
            Taken::Done(gathered) if gathered.subject == subject => {
                (gathered.scale, gathered.responses, gathered.started)
            }
            Taken::Done(_) | Taken::Nothing => {
                let started = Instant::now();
                match resources_of_target(autoscaler, &self.discovery.resources()) {
                    Ok(resources) => {
                        session.explain(|| "reads the scale of its target");
                        self.gathering.start(Job { key: key.clone(), subject, work: Work::Scale(resources), started });
                        return Ok(None);
                    }
                    Err(error) => (Err(error), Responses::new(), started),
                }
            }
        };
        let synced = |error| Ok(Some(Synced { action: Action::None, error, started }));
        let found = match found {
            Ok(found) => found,
            Err(ScaleError::Unanswered(error)) => return Err(error.into()),
            Err(error) => return synced(Some(self.without_scale(read, &error, session).await?)),
        };
        let now = session.now();
        let message = "the HPA controller was able to get the target's current scale";
        read.conditions.set(ABLE_TO_SCALE, true, "SucceededGetScale", message, now);
        let bounds =
            Bounds { current: found.scale.replicas, min: autoscaler.min_replicas, max: autoscaler.max_replicas };
        let zero = Zero {
            gate: self.settings.gates.scale_to_zero,
            measurable: read.spec.scales_from_zero(),
            scaled: self.settings.gates.scale_to_zero && read.conditions.is_true(SCALED_TO_ZERO),
        };
        let approach = Approach::of(bounds, zero);
        self.histories.lock().entry(key.clone()).or_default().begin(bounds.current, now);
        let behavior = read.spec.behavior.clone();
        let window = self.settings.stabilization_window();
        let planned = Planned { bounds, zero, behavior: behavior.as_ref(), window, now };
        let plan = if approach == Approach::Metrics {
            match self.target(&mut read, &found, session) {
                Err(message) => {
                    session.record(autoscaler, &AutoscalerEvent::FailedComputeMetricsReplicas(message.clone()));
                    let (conditions, error) = (read.conditions.clone(), Some(message));
                    let (events, metrics, computed) = Default::default();
                    Plan { decision: Decision::Unknown, conditions, metrics, events, error, computed }
                }
                Ok(target) => {
                    let requests = self.requests(&read, &target);
                    let needed: BTreeSet<&Request> =
                        requests.iter().filter_map(|request| request.as_ref().ok()).collect();
                    if needed.iter().any(|request| !responses.contains_key(request)) {
                        let work = Work::Metrics { found, requests: needed.into_iter().cloned().collect() };
                        session.explain(|| "reads its metrics");
                        self.gathering.start(Job { key: key.clone(), subject, work, started });
                        return Ok(None);
                    }
                    self.plan(&read, &target, &requests, &responses, &found, planned)
                }
            }
        } else {
            plan_without_metrics(planned, approach, read.conditions.clone())
        };
        session.explain(|| plan.explain(bounds));
        self.apply(&read, plan, &found, planned, started, session).await.map(Some)
    }

    /// Reports that the scale of the target is unknown.
    async fn without_scale(
        &self,
        mut read: Read<'_>,
        error: &ScaleError,
        session: &Session,
    ) -> Result<(ErrorLabel, String), ReconcileError> {
        let autoscaler = read.autoscaler;
        let (cause, label, message) = match error {
            ScaleError::InvalidVersion(cause) => {
                let message = format!("invalid API version in scale target reference: {cause}");
                (cause.clone(), ErrorLabel::Spec, message)
            }
            ScaleError::Unmapped(cause) => {
                let message = format!("unable to determine resource for scale target reference: {cause}");
                (cause.clone(), ErrorLabel::Internal, message)
            }
            ScaleError::Request(cause) => {
                let message = format!("failed to query scale subresource for {}: {cause}", reference(autoscaler));
                (cause.clone(), ErrorLabel::Internal, message)
            }
            ScaleError::Unanswered(error) => (error.message(), ErrorLabel::Internal, error.to_string()),
        };
        session.record(autoscaler, &AutoscalerEvent::FailedGetScale(cause.clone()));
        session.explain(|| message.clone());
        let shown = format!("the HPA controller was unable to get the target's current scale: {cause}");
        read.conditions.set(ABLE_TO_SCALE, false, "FailedGetScale", shown, session.now());
        let stored = read.stored();
        let status = Status { conditions: read.conditions, ..read.status };
        write_status(session, autoscaler, &stored, &status).await?;
        Ok((label, message))
    }

    /// Returns the selector and the pods of the target. An error is reported as condition and event.
    fn target(&self, read: &mut Read<'_>, found: &FoundScale, session: &Session) -> Result<Target, String> {
        let (autoscaler, now) = (read.autoscaler, session.now());
        let key = &autoscaler.metadata.key;
        let text = &found.scale.selector;
        if text.is_empty() {
            session.record(autoscaler, &AutoscalerEvent::SelectorRequired);
            let message = "the HPA target's scale is missing a selector";
            read.conditions.set(SCALING_ACTIVE, false, "InvalidSelector", message, now);
            return Err("selector is required".to_owned());
        }
        let selector: Selector = text.parse().map_err(|error| {
            let message = format!("couldn't convert selector into a corresponding internal selector object: {error}");
            session.record(autoscaler, &AutoscalerEvent::InvalidSelector(message.clone()));
            read.conditions.set(SCALING_ACTIVE, false, "InvalidSelector", message.clone(), now);
            message
        })?;
        let pods = self.pods.of(key.namespace().unwrap_or_default(), &selector);
        let most = self.settings.gates.autoscalers_named();
        if let Some(several) = self.selectors.ambiguous(key, &selector, &pods, most) {
            let message = format!("pods by selector {text} are controlled by more than one HPA (e.g. {several})");
            session.record(autoscaler, &AutoscalerEvent::AmbiguousSelector(message.clone()));
            read.conditions.set(SCALING_ACTIVE, false, "AmbiguousSelector", message.clone(), now);
            return Err(message);
        }
        Ok(Target { selector, pods })
    }

    fn requests(&self, read: &Read<'_>, target: &Target) -> Vec<Result<Request, NoRequest>> {
        let namespace = read.autoscaler.metadata.key.namespace().unwrap_or_default();
        let resources = self.discovery.resources();
        let resource_of = |group: &str, kind: &str| {
            let found = resources.resource_of_kind(group, kind)?;
            Some(if group.is_empty() { found.plural.to_string() } else { format!("{}.{group}", found.plural) })
        };
        let request = |metric| request_of(metric, namespace, &target.selector, resource_of);
        read.spec.metrics.iter().map(request).collect()
    }

    fn plan(
        &self,
        read: &Read<'_>,
        target: &Target,
        requests: &[Result<Request, NoRequest>],
        responses: &Responses,
        found: &FoundScale,
        planned: Planned<'_>,
    ) -> Plan {
        let key = &read.autoscaler.metadata.key;
        let pods: Vec<ObservedPod<'_>> = target
            .pods
            .iter()
            .map(|pod| ObservedPod {
                name: pod.metadata.key.name(),
                phase: pod.phase,
                is_terminating: pod.metadata.is_terminating(),
                is_ready: pod.is_ready(),
                part: self.part.of(pod),
            })
            .collect();
        let scaled = Scaled {
            namespace: key.namespace().unwrap_or_default(),
            spec_replicas: found.scale.replicas,
            status_replicas: found.scale.current_replicas,
            pods: &pods,
            rules: self.settings.rules(planned.behavior, planned.now),
            pod_level: self.settings.gates.pod_level_resources,
        };
        let measurements: Vec<Measurement<'_>> = read
            .spec
            .metrics
            .iter()
            .zip(&read.metrics)
            .zip(requests)
            .map(|((metric, spec), request)| Measurement { metric, spec, request })
            .collect();
        let evaluation = evaluate(&measurements, responses, &scaled);
        let mut histories = self.histories.lock();
        plan_by_metrics(planned, evaluation, read.conditions.clone(), histories.entry(key.clone()).or_default())
    }

    /// Carries out a plan.
    async fn apply(
        &self,
        read: &Read<'_>,
        plan: Plan,
        found: &FoundScale,
        planned: Planned<'_>,
        started: Instant,
        session: &Session,
    ) -> Result<Synced, ReconcileError> {
        let autoscaler = read.autoscaler;
        let (key, bounds) = (&autoscaler.metadata.key, planned.bounds);
        for event in &plan.events {
            session.record(autoscaler, event);
        }
        for computed in &plan.computed {
            self.metrics.computed(computed, read.status.current_replicas);
        }
        let mut error = plan.error.map(|message| (ErrorLabel::Internal, message));
        let mut action = Action::None;
        let mut stored = read.stored();
        let mut status = Status {
            observed_generation: self.settings.gates.generation.then_some(autoscaler.metadata.generation),
            current_replicas: bounds.current,
            current_metrics: plan.metrics,
            conditions: plan.conditions,
            ..read.status.clone()
        };
        if matches!(plan.decision, Decision::Rescale { to, .. } if planned.zero.is_to_zero(bounds, to)) {
            set_scaled_to_zero(&mut status.conditions, true, planned.now);
            stored = match write_status(session, autoscaler, &stored, &status).await? {
                StatusWrite::Stored(stored) => stored,
                unwritten @ (StatusWrite::Deleted | StatusWrite::Rejected(_)) => {
                    let error = unwritten.error().map(|message| (ErrorLabel::Internal, message)).or(error);
                    return Ok(Synced { action, error, started });
                }
            };
        } else {
            planned.zero.settle(&mut status.conditions, bounds, planned.now);
        }
        match plan.decision {
            Decision::Unknown => {
                error = error.map(|(label, message)| {
                    let reference = reference(autoscaler);
                    let failed = "failed to compute desired number of replicas based on listed metrics for";
                    (label, format!("{failed} {reference}: {message}"))
                });
            }
            Decision::Keep => {
                status.desired_replicas = bounds.current;
                self.metrics.desires(key, bounds.current);
            }
            Decision::Rescale { to, reason } => {
                let target = target_of(autoscaler);
                match write_scale(session, self.scales.client(), found, &target, to).await {
                    Ok(()) => {
                        tracing::info!(from = bounds.current, to, reason, "Scaled the target of an autoscaler");
                        after_rescale(&mut status.conditions, bounds, to, planned.zero, planned.now);
                        session.record(autoscaler, &AutoscalerEvent::SuccessfulRescale { size: to, reason });
                        self.remember_scale(key, planned, to);
                        action = Action::of(bounds.current, to);
                        status.desired_replicas = to;
                        status.last_scale_time = Some(planned.now);
                        self.metrics.desires(key, to);
                    }
                    Err(failed) if is_undecided(&failed) => {
                        if may_be_applied(&failed) {
                            self.remember_scale(key, planned, to);
                        }
                        return Err(failed.into());
                    }
                    Err(failed) => {
                        planned.zero.settle(&mut status.conditions, bounds, planned.now);
                        let message = message_of(&failed, "put", Some(&described(&found.resource, &target)));
                        let event = AutoscalerEvent::FailedRescale { size: to, reason, error: message.clone() };
                        session.record(autoscaler, &event);
                        let shown = format!("the HPA controller was unable to update the target scale: {message}");
                        status.conditions.set(ABLE_TO_SCALE, false, "FailedUpdateScale", shown, planned.now);
                        let message = format!("failed to rescale {}: {message}", reference(autoscaler));
                        error = Some((ErrorLabel::Internal, message));
                    }
                }
            }
        }
        if let Some(message) = write_status(session, autoscaler, &stored, &status).await?.error() {
            error = Some((ErrorLabel::Internal, message));
        }
        Ok(Synced { action, error, started })
    }

    /// Enters a scale in the history, by which the policies of a behavior limit the next one.
    fn remember_scale(&self, key: &ObjectKey, planned: Planned<'_>, to: i32) {
        let mut histories = self.histories.lock();
        let history = histories.entry(key.clone()).or_default();
        history.scaled(planned.behavior, planned.bounds.current, to, planned.now);
    }
}

fn target_of(autoscaler: &HorizontalPodAutoscaler) -> ObjectKey {
    ObjectKey::namespaced(autoscaler.metadata.key.namespace().unwrap_or_default(), &*autoscaler.target_name)
}

/// The target, as messages name it.
fn reference(autoscaler: &HorizontalPodAutoscaler) -> String {
    let namespace = autoscaler.metadata.key.namespace().unwrap_or_default();
    format!("{}/{namespace}/{}", autoscaler.target_kind, autoscaler.target_name)
}
