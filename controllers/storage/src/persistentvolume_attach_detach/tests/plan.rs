use jiff::{SignedDuration, Timestamp};

use super::super::plan::{
    Attachment, Backend, Failure, Forced, Health, Memory, Observed, OnNode, Plan, Settings, Step, next_back_off, plan,
};

const NOW: Timestamp = Timestamp::constant(1_000_000, 0);
const SETTINGS: Settings = Settings { disable_force_detach_on_timeout: false, disable_verification: false };

fn ago(seconds: i64) -> Option<Timestamp> {
    Some(NOW - SignedDuration::from_secs(seconds))
}

fn after(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

fn wanted(node: &str) -> OnNode<'_> {
    OnNode { node, is_wanted: true, ..OnNode::default() }
}

/// A node that has the volume, reported, with its attachment.
fn attached(node: &str) -> OnNode<'_> {
    let attachment = Attachment { is_attached: true, ..Attachment::default() };
    OnNode { node, is_reported: true, attachment: Some(attachment), ..OnNode::default() }
}

fn single(nodes: Vec<OnNode<'_>>) -> Observed<'_> {
    Observed { backend: Backend::Csi, is_shared: false, nodes }
}

fn check(name: &str, volume: &Observed<'_>, steps: &[(&str, Step<'_>)], look_again: Option<Timestamp>) {
    let expected = Plan { steps: steps.to_vec(), look_again };
    assert_eq!(plan(volume, SETTINGS, NOW), expected, "{name}");
}

#[test]
fn ad_18_ad_21_attaches() {
    let pending = |attachment, attempt| OnNode {
        attachment: Some(attachment),
        memory: Memory { attempt_since: attempt, ..Memory::default() },
        ..wanted("a")
    };
    let failing = || Attachment { attach_error: Some("boom"), ..Attachment::default() };
    let done = || Attachment { is_attached: true, ..Attachment::default() };
    let deleting = || Attachment { is_deleting: true, is_attached: true, ..Attachment::default() };
    for (name, on, step, look_again) in [
        ("nothing yet", wanted("a"), Some(Step::Attach), None),
        ("5.10: an attachment exists", pending(Attachment::default(), None), None, Some(after(120))),
        ("the driver works", pending(Attachment::default(), ago(119)), None, Some(after(1))),
        (
            "the driver does not respond",
            pending(Attachment::default(), ago(120)),
            Some(Step::FailAttach(Failure::TimedOut)),
            None,
        ),
        ("the driver fails", pending(failing(), ago(1)), Some(Step::FailAttach(Failure::Driver("boom"))), None),
        ("AD-25: attached", pending(done(), ago(1)), Some(Step::Report), None),
        ("5.10: reported and attached", OnNode { is_wanted: true, ..attached("a") }, None, None),
        ("being deleted", pending(deleting(), ago(1)), Some(Step::FailAttach(Failure::BeingDeleted)), None),
        ("5.10: being deleted before the pod came", pending(deleting(), None), None, None),
        ("unmanaged", OnNode { health: Health::Unmanaged, ..wanted("a") }, None, None),
    ] {
        let steps: Vec<_> = step.map(|step| ("a", step)).into_iter().collect();
        check(name, &single(vec![on]), &steps, look_again);
    }
    let mut waiting = pending(failing(), ago(1));
    waiting.memory.attach_after = Some(after(4));
    check("one event an attempt", &single(vec![waiting]), &[], Some(after(4)));
    let mut refused = wanted("a");
    refused.memory.attach_after = Some(after(2));
    check("back-off of the request", &single(vec![refused]), &[], Some(after(2)));
    let deleted_by_hand = OnNode { is_wanted: true, attachment: None, ..attached("a") };
    let steps = [("a", Step::Withdraw), ("a", Step::Attach)];
    check("5.10: reported, no attachment", &single(vec![deleted_by_hand]), &steps, None);
}

#[test]
fn ad_18_b_13_a_volume_for_one_node_is_on_one_node() {
    let loses = |on: OnNode<'static>| OnNode { memory: Memory { unwanted_since: ago(1), ..on.memory }, ..on };
    let in_use = || loses(OnNode { is_in_use: true, ..attached("a") });
    check("in use elsewhere", &single(vec![in_use(), wanted("b")]), &[("b", Step::ReportConflict)], None);
    let mut told = wanted("b");
    told.memory.is_conflict_reported = true;
    check("AD-31: told once", &single(vec![in_use(), told]), &[], None);
    let steps = [("a", Step::Detach(None)), ("b", Step::ReportConflict)];
    check("detaches come first", &single(vec![loses(attached("a")), wanted("b")]), &steps, None);
    let deleting = Attachment { is_deleting: true, ..Attachment::default() };
    let uncertain = OnNode { is_reported: false, attachment: Some(deleting), ..loses(attached("a")) };
    let steps = [("b", Step::ReportConflict)];
    check("T-12, 5.10: being deleted on a", &single(vec![uncertain, wanted("b")]), &steps, Some(after(120)));
    let unmanaged = OnNode { health: Health::Unmanaged, ..attached("a") };
    check("T-15: a kubelet attached it", &single(vec![unmanaged, wanted("b")]), &steps, None);
    let mut forced = OnNode { node: "a", is_in_use: true, ..OnNode::default() };
    forced.memory.was_forced = true;
    check("forced", &single(vec![forced, wanted("b")]), &[("b", Step::Attach)], None);
    let mounted = OnNode { node: "a", is_in_use: true, ..OnNode::default() };
    check("in use without attachment", &single(vec![mounted.clone(), wanted("b")]), &steps, None);
    let lost = OnNode { health: Health::NotReady, ..mounted };
    check("detached by force before a restart", &single(vec![lost, wanted("b")]), &[("b", Step::Attach)], None);
    let steps = [("a", Step::Attach), ("b", Step::ReportConflict)];
    check("two nodes wait", &single(vec![wanted("a"), wanted("b")]), &steps, None);
    let shared = Observed { is_shared: true, ..single(vec![in_use(), wanted("b")]) };
    check("AD-16: a shared volume", &shared, &[("b", Step::Attach)], None);
}

#[test]
fn ad_17_detaches() {
    let not_ready = Health::NotReady;
    let out = Health::OutOfService { is_ready: true };
    let detach = |forced| Some(Step::Detach(forced));
    let (timeout, taint) = (Some(Forced::Timeout), Some(Forced::OutOfService));
    let end = after(360) + SignedDuration::from_millis(1);
    for (name, health, is_in_use, elapsed, step, look_again) in [
        ("not in use", Health::Ready, false, 1, detach(None), None),
        ("in use", Health::Ready, true, 1, None, None),
        ("in use on a ready node for long", Health::Ready, true, 3600, None, None),
        ("T-14: not in use, ready, late: verified", Health::Ready, false, 3600, detach(None), None),
        ("not ready, in use", not_ready, true, 0, None, Some(end)),
        ("at six minutes", not_ready, true, 360, None, Some(NOW + SignedDuration::from_millis(1))),
        ("after six minutes", not_ready, true, 361, detach(timeout), None),
        ("not ready, not in use", not_ready, false, 1, detach(None), None),
        ("out of service", out, true, 1, detach(taint), None),
        ("out of service and timed out", Health::OutOfService { is_ready: false }, true, 361, detach(timeout), None),
        ("unmanaged", Health::Unmanaged, false, 1, None, None),
    ] {
        let mut on = OnNode { health, is_in_use, ..attached("a") };
        on.memory.unwanted_since = ago(elapsed);
        let steps: Vec<_> = step.map(|step| ("a", step)).into_iter().collect();
        check(name, &single(vec![on]), &steps, look_again);
    }
    let first = [("a", Step::StartUnmountWait), ("a", Step::Detach(None))];
    check("the wait starts", &single(vec![attached("a")]), &first, None);
    let mut comes_back = OnNode { is_wanted: true, ..attached("a") };
    comes_back.memory.unwanted_since = ago(100);
    check("a pod came back", &single(vec![comes_back]), &[("a", Step::Keep)], None);
}

#[test]
fn ad_17_time_forces_nothing_if_disabled() {
    let settings = Settings { disable_force_detach_on_timeout: true, disable_verification: false };
    let mut on = OnNode { health: Health::NotReady, is_in_use: true, ..attached("a") };
    on.memory.unwanted_since = ago(3600);
    assert_eq!(plan(&single(vec![on.clone()]), settings, NOW), Plan::default());
    on.health = Health::OutOfService { is_ready: false };
    let steps = vec![("a", Step::Detach(Some(Forced::OutOfService)))];
    assert_eq!(plan(&single(vec![on]), settings, NOW), Plan { steps, look_again: None });
}

#[test]
fn ad_23_detaches_end_with_the_attachment() {
    let detaching = |error, attempt, after| {
        let attachment =
            Attachment { is_deleting: true, is_attached: true, detach_error: error, ..Attachment::default() };
        let memory =
            Memory { unwanted_since: ago(1), attempt_since: attempt, detach_after: after, ..Memory::default() };
        single(vec![OnNode { is_reported: false, attachment: Some(attachment), memory, ..attached("a") }])
    };
    check("the driver works", &detaching(None, ago(20), None), &[], Some(after(100)));
    let failed = |failure| [("a", Step::FailDetach(failure))];
    check("the driver fails", &detaching(Some("no"), ago(1), None), &failed(Failure::Driver("no")), None);
    check("back-off", &detaching(Some("no"), ago(1), Some(after(3))), &[], Some(after(3)));
    check("no response", &detaching(None, ago(121), None), &failed(Failure::TimedOut), None);
    let gone = OnNode { is_reported: false, attachment: None, ..attached("a") };
    check("gone", &single(vec![gone]), &[], None);
    let mut reported = attached("a");
    reported.attachment = None;
    reported.memory.unwanted_since = ago(1);
    check("AD-12: reported only", &single(vec![reported]), &[("a", Step::Withdraw)], None);
    let mut still_in_use = attached("a");
    still_in_use.memory = Memory { unwanted_since: ago(1), detach_after: Some(after(5)), ..Memory::default() };
    check("a failed verification waits", &single(vec![still_in_use]), &[], Some(after(5)));
}

#[test]
fn pl_7_fibre_channel_and_iscsi_are_only_reported() {
    let report_only = |nodes| Observed { backend: Backend::ReportOnly, ..single(nodes) };
    let reported = |node| OnNode { attachment: None, ..attached(node) };
    check("attach", &report_only(vec![wanted("a")]), &[("a", Step::Report)], None);
    check("attached", &report_only(vec![OnNode { is_wanted: true, ..reported("a") }]), &[], None);
    let steps = [("a", Step::Report), ("b", Step::ReportConflict)];
    check("two nodes wait", &report_only(vec![wanted("a"), wanted("b")]), &steps, None);
    let mut unwanted = reported("a");
    unwanted.memory.unwanted_since = ago(1);
    let steps = [("a", Step::Detach(None)), ("b", Step::ReportConflict)];
    check("moves", &report_only(vec![unwanted, wanted("b")]), &steps, None);
}

#[test]
fn pl_11_t_18_unknown_plugins_cost_nothing() {
    let volume = Observed { backend: Backend::Unknown, ..single(vec![attached("a")]) };
    check("reported", &volume, &[], None);
}

#[test]
fn back_off_doubles_to_two_minutes_and_two_seconds() {
    let waits = std::iter::successors(Some(next_back_off(None)), |previous| Some(next_back_off(Some(*previous))));
    let waits: Vec<_> = waits.take(10).map(|wait| wait.as_millis()).collect();
    assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 122_000, 122_000]);
}
