//! The release of the lease, and how the next leader takes it.

use super::*;

/// The requests about the lease of a handover.
async fn handover(sandbox: &Sandbox, first: &mut Participant, second: &mut Participant) -> Vec<String> {
    sleep(Duration::from_millis(4_900)).await;
    sandbox.clear_requests();
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    let of_lease = sandbox.requests().into_iter().filter(|it| it.path.ends_with("/kube-controller-manager"));
    of_lease.map(|request| request.method.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn one_request_releases_the_lease_and_one_takes_it() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    assert_eq!(handover(&sandbox, &mut first, &mut second).await, ["PUT", "PUT"]);
    assert_eq!(record(&sandbox)["holderIdentity"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_release_tells_the_next_leader_what_the_last_has_written() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    assert_eq!(first.leadership.borrow().predecessor, Predecessor::Unknown, "there was no lease");
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(30)).await;
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    assert_eq!(second.leadership.borrow().predecessor, Predecessor::Released(Arc::default()));
    let mut third = participant(&sandbox, "third", 3);
    sleep(Duration::from_secs(30)).await;
    second.task.shutdown().await;
    third.leads().await;
    assert_eq!(third.leadership.borrow().predecessor, Predecessor::Unknown, "the lease has expired");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_client_has_changed_is_read_before_it_is_released() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_millis(1_900)).await;
    // The watch of the leader does not show the change before the leader is asked to stop.
    sandbox.faults().delay_events(&LEASES, Duration::from_millis(1));
    let labelled = serde_json::json!({ "metadata": { "labels": { "a": "b" } } });
    sandbox.patch(&LEASES, &lease(), &labelled).expect("the patch is valid");
    sandbox.clear_requests();
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    let of_lease = sandbox.requests().into_iter().filter(|it| it.path.ends_with("/kube-controller-manager"));
    let methods: Vec<_> = of_lease.map(|request| request.method.clone()).collect();
    assert_eq!(methods[..3], ["PUT", "GET", "PUT"], "{methods:?}");
    let lease = sandbox.get(&LEASES, &lease()).expect("the lease must exist");
    assert_eq!((&lease["spec"]["holderIdentity"], &lease["metadata"]["labels"]["a"]), (&"second".into(), &"b".into()));
}

/// Patches a label of the lease to `value`, which its holder does not see.
fn label(sandbox: &Sandbox, value: usize) {
    let labelled = serde_json::json!({ "metadata": { "labels": { "a": value.to_string() } } });
    sandbox.patch(&LEASES, &lease(), &labelled).expect("the patch is valid");
}

/// Stops a leader whose lease another client changes before each of the first `conflicts` updates that release it.
async fn release_among_conflicts(sandbox: &Sandbox, first: &mut Participant, conflicts: usize) {
    sandbox.faults().delay_events(&LEASES, Duration::from_hours(1));
    let slow = Fault::on(Verb::Update).resource(LEASES).delay(Duration::from_millis(10));
    let slow = sandbox.faults().inject(slow);
    first.stop.cancel();
    let mut changed = 0;
    while changed < conflicts {
        sleep(Duration::from_millis(1)).await;
        if slow.hits() > changed {
            changed += 1;
            label(sandbox, changed);
        }
    }
    drop(first.task.join_next().await);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_meets_conflicts_is_repeated() {
    for conflicts in [1, 2, 5] {
        let sandbox = Sandbox::new(SandboxOptions::default());
        let mut first = participant(&sandbox, "first", 1);
        first.leads().await;
        sleep(Duration::from_millis(1_900)).await;
        release_among_conflicts(&sandbox, &mut first, conflicts).await;
        assert_eq!(record(&sandbox)["holderIdentity"], "", "after {conflicts} conflicts");
        let lease = sandbox.get(&LEASES, &lease()).expect("the lease must exist");
        assert_eq!(lease["metadata"]["labels"]["a"], conflicts.to_string(), "the changes of others stay");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_meets_conflicts_without_end_ends_at_the_renew_deadline() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let conflict = Fault::on(Verb::Update).resource(LEASES).fail(Status::conflict(&LEASES, lease().name(), "test"));
    let conflict = sandbox.faults().inject(conflict);
    let stopped = Instant::now();
    first.stop.cancel();
    drop(first.task.join_next().await);
    let took = stopped.elapsed();
    let expected = TIMING.renew_deadline..TIMING.renew_deadline + Duration::from_secs(2);
    assert!(expected.contains(&took), "it took {took:?}");
    assert!((2..=200).contains(&conflict.hits()), "it sent {} updates", conflict.hits());
}

#[tokio::test(start_paused = true)]
async fn a_release_does_not_free_the_lease_of_another_that_a_conflict_shows() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    sleep(Duration::from_millis(1_900)).await;
    sandbox.faults().delay_events(&LEASES, Duration::from_hours(1));
    let slow = Fault::on(Verb::Update).resource(LEASES).delay(Duration::from_millis(10));
    let slow = sandbox.faults().inject(slow);
    first.stop.cancel();
    while slow.hits() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    label(&sandbox, 1);
    while slow.hits() == 1 {
        sleep(Duration::from_millis(1)).await;
    }
    let taken = serde_json::json!({ "spec": { "holderIdentity": "second" } });
    sandbox.patch(&LEASES, &lease(), &taken).expect("the patch is valid");
    drop(first.task.join_next().await);
    assert_eq!(slow.hits(), 2);
    assert_eq!(record(&sandbox)["holderIdentity"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_released_whose_acquisition_has_no_answer_before_the_stop() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    sandbox.faults().delay_events(&LEASES, Duration::from_mins(1));
    sandbox.faults().inject(Fault::on(Verb::Create).resource(LEASES).times(1).lose_answer());
    let mut first = participant(&sandbox, "first", 1);
    while sandbox.get(&LEASES, &lease()).is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(record(&sandbox)["holderIdentity"], "first");
    first.stop.cancel();
    drop(first.task.join_next().await);
    assert_eq!(record(&sandbox)["holderIdentity"], "");
    assert!(first.leadership.borrow().term.is_none(), "it has never led");
}
