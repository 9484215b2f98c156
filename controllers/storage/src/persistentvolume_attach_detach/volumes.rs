//! The reconcile of a volume: snapshot, plan, and the steps on each node.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{ReconcileError, Session};

use super::apply::{AttachError, attach, delete};
use super::desired::users_elsewhere;
use super::events::{PodEvent, PodName, attached, failed, waiting};
use super::key::Key;
use super::live::{LiveNodes, Use};
use super::memory::Operation;
use super::metrics::{Metrics, Work};
use super::observe::{Snapshot, attachment_name};
use super::plan::{Forced, Settings, plan};
use super::reports::Change;
use super::state::State;
use super::steps::Action;
use super::world::World;

/// Time for which changes of a node's report are gathered into one patch, as upstream's period of its reconciler.
const GATHER: Duration = Duration::from_millis(100);

pub(super) struct Volumes<'a> {
    pub(super) world: &'a World,
    pub(super) state: &'a State,
    pub(super) queue: &'a Queue<Key>,
    pub(super) settings: Settings,
    pub(super) live_nodes: &'a LiveNodes,
    pub(super) metrics: &'a Metrics,
}

/// One reconcile of one volume.
struct Round<'a> {
    of: &'a Volumes<'a>,
    volume: &'a str,
    session: &'a Session,
    now: Timestamp,
    snapshot: Snapshot,
    /// Nodes whose report is to change for this volume.
    changing: BTreeSet<String>,
    error: Option<ReconcileError>,
}

impl Volumes<'_> {
    pub(super) async fn reconcile(&self, volume: &str, session: &Session) -> Result<(), ReconcileError> {
        let Some(mut snapshot) = Snapshot::take(volume, self.world, self.state, session) else { return Ok(()) };
        let now = session.now();
        for facts in snapshot.detached.drain(..) {
            self.metrics.finished(Work::Detach, volume, false, facts.detach.elapsed(now), false);
        }
        snapshot.follow(now);
        self.follow_attachments(volume, &snapshot);
        let round = Round { of: self, volume, session, now, snapshot, changing: BTreeSet::new(), error: None };
        round.run().await
    }

    /// Remembers the attachments that no persistent volume leads to.
    fn follow_attachments(&self, volume: &str, snapshot: &Snapshot) {
        if self.world.volumes_by_name.count(volume) > 0 {
            return self.state.names.set(volume, Vec::new());
        }
        let names = snapshot.nodes.keys().filter_map(|node| attachment_name(volume, node)).collect();
        self.state.names.set(volume, names);
    }
}

impl Round<'_> {
    async fn run(mut self) -> Result<(), ReconcileError> {
        let observed = self.snapshot.observed(self.volume);
        let plan = plan(&observed, self.of.settings, self.now);
        let steps: Vec<(String, Action)> =
            plan.steps.iter().map(|(node, step)| ((*node).to_owned(), Action::of(step, self.volume))).collect();
        self.session.requeue_by(plan.look_again);
        if steps.is_empty() {
            self.session.explain(|| "needs no step on any node");
        }
        for (node, step) in steps {
            self.session.explain(|| format!("on node {node}: {step}"));
            self.apply(&node, step).await;
        }
        let Self { of, volume, snapshot, mut changing, .. } = self;
        changing.extend(snapshot.facts.iter().filter(|(_, facts)| facts.is_restored).map(|(node, _)| node.clone()));
        of.state.reports.cancel(volume, &changing);
        for facts in snapshot.facts.values() {
            let ends = [facts.attach.next_attempt(), facts.detach.next_attempt()];
            self.session.requeue_by(ends.into_iter().flatten().filter(|end| *end > self.now).min());
        }
        of.state.memories.set(volume, snapshot.facts);
        self.error.map_or(Ok(()), Err)
    }

    async fn apply(&mut self, node: &str, step: Action) {
        let facts = self.snapshot.facts.entry(node.to_owned()).or_default();
        match step {
            Action::Keep => facts.unwanted_since = None,
            Action::StartUnmountWait => facts.unwanted_since = Some(self.now),
            Action::Attach => self.attach(node).await,
            Action::Report => self.report(node),
            Action::FailAttach(error) => self.fail_attach(node, &error),
            Action::ReportConflict => self.report_conflict(node),
            Action::Withdraw => {
                self.change(node, Change::Withdraw);
            }
            Action::Detach(forced) => self.detach(node, forced).await,
            Action::FailDetach(error) => self.fail_detach(node, &error),
        }
    }

    /// Requests a change of the node's report. Returns `true` if it is new.
    fn change(&mut self, node: &str, change: Change) -> bool {
        self.changing.insert(node.to_owned());
        let is_new = self.of.state.reports.request(node, self.volume, change);
        if is_new {
            self.of.queue.add_after(Key::Node(node.into()), GATHER, Priority::Live);
        }
        is_new
    }

    fn record(&self, node: &str, event: impl Fn(&PodName) -> PodEvent) {
        let Some(wanted) = self.snapshot.wanted.get(node) else { return };
        for (uid, name) in &wanted.pods {
            if let Some(pod) = self.of.world.pods.get(&name.key()).filter(|pod| pod.metadata.uid == *uid) {
                self.session.record(&*pod, &event(name));
            }
        }
    }

    async fn attach(&mut self, node: &str) {
        let Some(wanted) = self.snapshot.wanted.get(node) else { return };
        match attach(&wanted.volume, node, self.session).await {
            Ok(()) => {
                tracing::info!(volume = self.volume, node, "Attaching a volume");
                if let Some(facts) = self.snapshot.facts.get_mut(node) {
                    facts.attach.restart(self.now);
                    facts.was_forced = false;
                    facts.is_conflict_reported = false;
                }
            }
            Err(AttachError::Refused { message, cause }) => {
                self.fail_attach(node, &message);
                self.error = cause.map(Into::into).or(self.error.take());
            }
            Err(AttachError::Unanswered(error)) => self.error = Some(error.into()),
        }
    }

    fn report(&mut self, node: &str) {
        if !self.change(node, Change::Report) {
            return;
        }
        let Some(wanted) = self.snapshot.wanted.get(node) else { return };
        let message = attached(&wanted.volume.spec_name);
        self.record(node, |_| PodEvent::Attached(message.clone()));
        let is_migrated = wanted.volume.is_migrated;
        if let Some(facts) = self.snapshot.facts.get_mut(node) {
            self.of.metrics.finished(Work::Attach, self.volume, is_migrated, facts.attach.elapsed(self.now), false);
            facts.attach = Operation::default();
            facts.is_conflict_reported = false;
        }
    }

    fn fail_attach(&mut self, node: &str, error: &str) {
        let Some(wanted) = self.snapshot.wanted.get(node) else { return };
        tracing::warn!(volume = self.volume, node, error, "Cannot attach a volume");
        let message = failed(&wanted.volume.spec_name, error);
        self.record(node, |_| PodEvent::Failed(message.clone()));
        let is_migrated = wanted.volume.is_migrated;
        if let Some(facts) = self.snapshot.facts.get_mut(node) {
            facts.attach.fail(self.now);
            self.of.metrics.finished(Work::Attach, self.volume, is_migrated, facts.attach.elapsed(self.now), true);
        }
    }

    fn report_conflict(&mut self, node: &str) {
        let Some(wanted) = self.snapshot.wanted.get(node) else { return };
        let users = users_elsewhere(&self.snapshot.wanted, node);
        self.record(node, |pod| PodEvent::Failed(waiting(&wanted.volume.spec_name, &pod.namespace, &users)));
        if let Some(facts) = self.snapshot.facts.get_mut(node) {
            facts.is_conflict_reported = true;
        }
    }

    async fn detach(&mut self, node: &str, forced: Option<Forced>) {
        let is_reported = self.snapshot.nodes.get(node).is_some_and(|state| state.is_reported);
        let attachment = self.snapshot.attachments.get(node).cloned();
        // The key of the node could send it while the attachment is deleted.
        self.of.state.reports.cancel_report(node, self.volume);
        if is_reported || self.of.state.reports.may_be_reported(node, self.volume) {
            // Without an attachment, the volume counts as detached once it is withdrawn.
            let is_verified_before = attachment.is_none() && forced.is_none();
            if !is_verified_before || self.is_unmounted(node, false).await {
                self.change(node, Change::Withdraw);
            }
            return;
        }
        let Some(attachment) = attachment else { return };
        if let Some(facts) = self.snapshot.facts.get_mut(node) {
            facts.is_restored = false;
        }
        if forced.is_none() && !self.is_unmounted(node, true).await {
            return;
        }
        match delete(&attachment, self.session).await {
            Ok(()) => {
                tracing::info!(volume = self.volume, node, forced = ?forced, "Detaching a volume");
                if let Some(forced) = forced {
                    self.of.metrics.forced(forced);
                }
                if let Some(facts) = self.snapshot.facts.get_mut(node) {
                    facts.detach.restart(self.now);
                    facts.was_forced = forced.is_some();
                }
            }
            Err(error) if error.is_other_object() => self.error = Some(error.into()),
            Err(error) => {
                let name = attachment.metadata.key.name();
                let message = error.message();
                let text =
                    format!("kubernetes.io/csi: detacher.Detach failed to delete VolumeAttachment [{name}]: {message}");
                self.fail_detach(node, &text);
                self.error = Some(error.into());
            }
        }
    }

    /// Returns `true` if a live read shows that the node does not use the volume. Otherwise the attempt has failed.
    async fn is_unmounted(&mut self, node: &str, is_withdrawn: bool) -> bool {
        let patched = self.of.state.reports.patched(node);
        match self.of.live_nodes.use_of(self.volume, node, patched, self.session).await {
            Ok(Use::None) => return true,
            Ok(Use::Reported) if !is_withdrawn => return true,
            Ok(Use::Mounted) => {
                if is_withdrawn {
                    // The volume stays usable for the pods that have it mounted.
                    self.change(node, Change::Report);
                    if let Some(facts) = self.snapshot.facts.get_mut(node) {
                        facts.is_restored = true;
                    }
                }
                self.fail_detach(node, "volume is still in use by node, according to Node status");
            }
            Ok(Use::Reported) => self.fail_detach(node, "the node reports the volume again"),
            Err(error) => {
                self.fail_detach(node, &format!("cannot read the node: {}", error.message()));
                self.error = Some(error.into());
            }
        }
        false
    }

    fn fail_detach(&mut self, node: &str, error: &str) {
        tracing::warn!(volume = self.volume, node, error, "Cannot detach a volume");
        if let Some(facts) = self.snapshot.facts.get_mut(node) {
            facts.detach.fail(self.now);
            self.of.metrics.finished(Work::Detach, self.volume, false, facts.detach.elapsed(self.now), true);
        }
    }
}
