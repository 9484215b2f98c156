//! The next steps for one volume on all nodes that need it, have it, or are losing it.

use jiff::{SignedDuration, Timestamp};

/// Time that a volume may stay mounted on a node that is not ready, before it is detached by force.
pub(super) const UNMOUNT_WAIT: SignedDuration = SignedDuration::from_mins(6);
/// Time that a CSI driver has to attach or detach a volume, before the attempt counts as failed.
pub(super) const ATTACHER_WAIT: SignedDuration = SignedDuration::from_mins(2);
const FIRST_BACK_OFF: SignedDuration = SignedDuration::from_millis(500);
const LONGEST_BACK_OFF: SignedDuration = SignedDuration::from_secs(122);

/// Returns the wait after a failed attempt, given the wait before it.
pub(super) fn next_back_off(previous: Option<SignedDuration>) -> SignedDuration {
    previous.map_or(FIRST_BACK_OFF, |previous| previous.saturating_mul(2).min(LONGEST_BACK_OFF))
}

/// One volume, as the caches and the controller's memory show it.
#[derive(Debug, Clone)]
pub(super) struct Observed<'a> {
    pub(super) backend: Backend,
    /// `true` if several nodes may have the volume at once, or if no source of the volume is known.
    pub(super) is_shared: bool,
    /// The nodes, in the order of their names, each at most once.
    pub(super) nodes: Vec<OnNode<'a>>,
}

/// Means of attaching a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    /// A CSI driver, which a `VolumeAttachment` asks to attach.
    Csi,
    /// Fibre Channel or iSCSI: the volume is attached by being reported.
    ReportOnly,
    /// An unknown plugin: its entries are never changed.
    Unknown,
}

/// The volume on one node.
#[derive(Debug, Clone, Default)]
pub(super) struct OnNode<'a> {
    pub(super) node: &'a str,
    pub(super) health: Health,
    /// `true` if a pod on the node needs the volume.
    pub(super) is_wanted: bool,
    /// `true` if `status.volumesAttached` of the node has the volume.
    pub(super) is_reported: bool,
    /// `true` if `status.volumesInUse` of the node has the volume.
    pub(super) is_in_use: bool,
    pub(super) attachment: Option<Attachment<'a>>,
    pub(super) memory: Memory,
}

/// State of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Health {
    /// The condition `Ready` is true.
    #[default]
    Ready,
    NotReady,
    /// The node has no object. Its machine may run all the same.
    Absent,
    /// The node has the taint `node.kubernetes.io/out-of-service`, whatever else its state is.
    OutOfService {
        /// `true` if the condition `Ready` is true.
        is_ready: bool,
    },
    /// The kubelet of the node attaches volumes itself.
    Unmanaged,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attachment<'a> {
    pub(super) is_attached: bool,
    pub(super) is_deleting: bool,
    pub(super) attach_error: Option<&'a str>,
    pub(super) detach_error: Option<&'a str>,
}

/// Facts about a volume on a node that no object holds. A restart loses them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Memory {
    /// Time since which no pod on the node needs the volume.
    pub(super) unwanted_since: Option<Timestamp>,
    /// Start of the current attempt to attach or detach. After a restart, the first look at an unfinished attempt.
    pub(super) attempt_since: Option<Timestamp>,
    /// End of the wait after a failed attempt to attach.
    pub(super) attach_after: Option<Timestamp>,
    /// End of the wait after a failed attempt to detach.
    pub(super) detach_after: Option<Timestamp>,
    /// `true` if a rule allowed to detach the volume while the node may use it.
    pub(super) was_forced: bool,
    /// `true` if the pods on the node know that another node has the volume.
    pub(super) is_conflict_reported: bool,
}

/// Settings of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// `true` if only the out-of-service taint, never time alone, forces a detach.
    pub(super) disable_force_detach_on_timeout: bool,
    /// `true` if a reported volume whose attachment is missing or not attached stays reported.
    pub(super) disable_verification: bool,
}

/// A rule that allows to detach a volume that may be mounted. The label of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forced {
    /// The node was not ready for [`UNMOUNT_WAIT`].
    Timeout,
    /// An administrator declared the node out of service.
    OutOfService,
}

/// Reason of a failed attempt to attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure<'a> {
    /// The driver reports this error.
    Driver(&'a str),
    /// The attachment of an earlier pod is being deleted.
    BeingDeleted,
    /// The driver did not respond within [`ATTACHER_WAIT`].
    TimedOut,
}

/// A step for the volume on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Forget that the volume was unwanted.
    Keep,
    /// Remember that no pod has needed the volume since now.
    StartUnmountWait,
    Attach,
    /// Add the volume to the report, then tell the pods that the volume is attached.
    Report,
    /// Tell the pods that the attempt failed. The next attempt starts after [`next_back_off`].
    FailAttach(Failure<'a>),
    /// Tell the pods, once, that another node has the volume.
    ReportConflict,
    /// Remove the volume from the report.
    Withdraw,
    /// Remove the volume from the report, and delete the attachment after that.
    ///
    /// Without a rule that forces the detach, a live read of the node first shows that the node does not use the volume:
    /// before the attachment is deleted, or before the volume leaves the report if it has no attachment.
    Detach(Option<Forced>),
    /// Count the attempt to detach as failed. The next attempt starts after [`next_back_off`].
    FailDetach(Failure<'a>),
}

/// Steps in the order of nodes, and the time of the next look at the volume if no object changes before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan<'a> {
    pub(super) steps: Vec<(&'a str, Step<'a>)>,
    pub(super) look_again: Option<Timestamp>,
}

impl<'a> Plan<'a> {
    fn step(&mut self, on: &OnNode<'a>, step: Step<'a>) {
        self.steps.push((on.node, step));
    }

    fn wait_until(&mut self, time: Timestamp) {
        self.look_again = Some(self.look_again.map_or(time, |earlier| earlier.min(time)));
    }
}

impl OnNode<'_> {
    /// Returns `true` if the node may have the volume, so that no other node may get it too.
    fn holds(&self) -> bool {
        // A node that does not respond may go on saying that it uses a volume that was detached by force before a restart.
        let uses = match self.health {
            Health::Ready | Health::Unmanaged => self.is_in_use,
            Health::NotReady | Health::Absent | Health::OutOfService { .. } => false,
        };
        let has = self.attachment.is_some() || self.is_reported || uses;
        has && !(self.memory.was_forced && self.attachment.is_none())
    }
}

/// Decides the next steps for a volume. Detaches precede attaches.
pub(super) fn plan<'a>(volume: &Observed<'a>, settings: Settings, now: Timestamp) -> Plan<'a> {
    let mut plan = Plan::default();
    if volume.backend == Backend::Unknown {
        return plan;
    }
    let managed = || volume.nodes.iter().filter(|on| on.health != Health::Unmanaged);
    for on in managed().filter(|on| !on.is_wanted) {
        plan_unwanted(on, volume.backend, settings, now, &mut plan);
    }
    let mut holders = volume.nodes.iter().filter(|on| on.holds()).map(|on| on.node).collect::<Vec<_>>();
    for on in managed().filter(|on| on.is_wanted) {
        let is_elsewhere = !volume.is_shared && holders.iter().any(|holder| *holder != on.node);
        if settings.disable_verification && on.is_reported {
            plan_kept(on, &mut plan);
            continue;
        }
        plan_wanted(on, volume.backend, is_elsewhere, now, &mut plan);
        // Of several nodes that wait for the volume, one gets it.
        if plan.steps.last().is_some_and(|(node, step)| {
            *node == on.node
                && (*step == Step::Attach || volume.backend == Backend::ReportOnly && *step == Step::Report)
        }) {
            holders.push(on.node);
        }
    }
    plan
}

fn plan_kept<'a>(on: &OnNode<'a>, plan: &mut Plan<'a>) {
    if on.memory.unwanted_since.is_some() {
        plan.step(on, Step::Keep);
    }
}

fn plan_wanted<'a>(on: &OnNode<'a>, backend: Backend, is_elsewhere: bool, now: Timestamp, plan: &mut Plan<'a>) {
    plan_kept(on, plan);
    match &on.attachment {
        Some(attachment) if attachment.is_deleting => {
            // A reported volume stays usable until the driver has detached it. Its pods started before.
            if !on.is_reported && on.memory.attempt_since.is_some() {
                match on.memory.attach_after.filter(|end| *end > now) {
                    Some(end) => plan.wait_until(end),
                    None => plan.step(on, Step::FailAttach(Failure::BeingDeleted)),
                }
            }
        }
        Some(attachment) if attachment.is_attached => {
            if !on.is_reported && on.health != Health::Absent {
                plan.step(on, Step::Report);
            }
        }
        Some(attachment) => {
            // The driver has lost the volume. The kubelet must not mount it.
            if on.is_reported {
                plan.step(on, Step::Withdraw);
            }
            plan_attempt(on, attachment.attach_error, on.memory.attach_after, now, plan, Step::FailAttach);
        }
        None if backend == Backend::ReportOnly && on.is_reported || on.health == Health::Absent => {}
        None if is_elsewhere => {
            if !on.memory.is_conflict_reported {
                plan.step(on, Step::ReportConflict);
            }
        }
        None => match on.memory.attach_after.filter(|end| *end > now) {
            Some(end) => plan.wait_until(end),
            None if backend == Backend::ReportOnly => plan.step(on, Step::Report),
            None => {
                // The attachment was deleted by hand. The kubelet must not mount a volume that is not attached.
                if on.is_reported {
                    plan.step(on, Step::Withdraw);
                }
                plan.step(on, Step::Attach);
            }
        },
    }
}

/// Ends an attempt of the driver that failed or takes too long.
fn plan_attempt<'a>(
    on: &OnNode<'a>,
    error: Option<&'a str>,
    after: Option<Timestamp>,
    now: Timestamp,
    plan: &mut Plan<'a>,
    fail: impl Fn(Failure<'a>) -> Step<'a>,
) {
    if let Some(end) = after.filter(|end| *end > now) {
        return plan.wait_until(end);
    }
    if let Some(error) = error {
        return plan.step(on, fail(Failure::Driver(error)));
    }
    let end = on.memory.attempt_since.unwrap_or(now).saturating_add(ATTACHER_WAIT).unwrap_or(Timestamp::MAX);
    if end <= now { plan.step(on, fail(Failure::TimedOut)) } else { plan.wait_until(end) }
}

fn plan_unwanted<'a>(on: &OnNode<'a>, backend: Backend, settings: Settings, now: Timestamp, plan: &mut Plan<'a>) {
    if on.attachment.is_none() && !on.is_reported {
        return;
    }
    let since = on.memory.unwanted_since.unwrap_or_else(|| {
        plan.step(on, Step::StartUnmountWait);
        now
    });
    if let Some(attachment) = on.attachment.as_ref().filter(|attachment| attachment.is_deleting) {
        if on.is_reported && !on.is_in_use {
            plan.step(on, Step::Withdraw);
        }
        return plan_attempt(on, attachment.detach_error, on.memory.detach_after, now, plan, Step::FailDetach);
    }
    let (is_ready, is_out_of_service) = match on.health {
        Health::Ready | Health::Unmanaged => (true, false),
        Health::NotReady | Health::Absent => (false, false),
        Health::OutOfService { is_ready } => (is_ready, true),
    };
    let end = since.saturating_add(UNMOUNT_WAIT).unwrap_or(Timestamp::MAX);
    let may_time_out = !settings.disable_force_detach_on_timeout && !is_ready;
    // The wait must have passed, not only ended, as upstream.
    let forced = if may_time_out && now > end {
        Some(Forced::Timeout)
    } else {
        is_out_of_service.then_some(Forced::OutOfService)
    };
    if on.is_in_use && forced.is_none() {
        if may_time_out {
            plan.wait_until(end.saturating_add(SignedDuration::from_millis(1)).unwrap_or(Timestamp::MAX));
        }
        return;
    }
    if let Some(end) = on.memory.detach_after.filter(|end| *end > now) {
        return plan.wait_until(end);
    }
    match (backend, &on.attachment) {
        (Backend::Csi, Some(_)) | (Backend::ReportOnly, _) => plan.step(on, Step::Detach(forced)),
        (Backend::Csi, None) | (Backend::Unknown, _) => plan.step(on, Step::Withdraw),
    }
}
