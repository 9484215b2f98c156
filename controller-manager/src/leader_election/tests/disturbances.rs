//! A lease that others change, and responses and events that are lost or late.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_is_lost_costs_nothing_but_a_read() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let fault = sandbox.faults().inject(Fault::on(Verb::Update).resource(LEASES).times(3).lose_answer());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fault.hits(), 3);
    assert!(first.leadership.borrow().leads_until.is_some());
    assert_eq!(record(&sandbox)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_standby_does_not_create_a_deleted_lease_while_its_holder_may_write() {
    for seed in 0..20 {
        let sandbox = Sandbox::new(SandboxOptions::default());
        let mut first = participant(&sandbox, "first", seed);
        first.leads().await;
        let mut second = participant(&sandbox, "second", seed + 100);
        sleep(Duration::from_secs(10) + Duration::from_millis(seed * 300)).await;
        // It does not see the deletion.
        first.task.shutdown().await;
        sandbox.delete(&LEASES, &lease()).expect("the lease must exist");
        assert!(!first.fence.is_closed());
        let deleted = Instant::now();
        second.leads().await;
        assert!(first.fence.is_closed(), "after {:?} with seed {seed}", deleted.elapsed());
        assert_eq!(record(&sandbox)["leaseTransitions"], 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restore_of_etcd_shows_in_the_version_of_the_lease() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let (of_first, of_second) = (Surroundings::default(), Surroundings::default());
    let mut first = participant_in(&sandbox, "first", 1, of_first.clone());
    first.leads().await;
    let _second = participant_in(&sandbox, "second", 2, of_second.clone());
    let backup = sandbox.version();
    sleep(Duration::from_mins(2)).await;
    let suspicions = || [&of_first, &of_second].map(|of| of.rollbacks.load(Ordering::Relaxed));
    assert_eq!(suspicions(), [0, 0], "each renewal has a new version");
    // No watch breaks.
    sandbox.faults().silence_watches(&LEASES);
    sandbox.restore(backup).expect("its events are kept");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(suspicions(), [1, 1]);
    assert_eq!(first.leadership.borrow().term, Some(1), "its record is in the backup");
}

#[tokio::test(start_paused = true)]
async fn a_leader_creates_its_lease_again_when_somebody_deletes_it() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(10)).await;
    sandbox.delete(&LEASES, &lease()).expect("the lease must exist");
    sleep(Duration::from_secs(3)).await;
    assert_eq!(record(&sandbox)["holderIdentity"], "first");
    sleep(Duration::from_mins(1)).await;
    assert_eq!((first.leadership.borrow().term, second.leadership.borrow_and_update().term), (Some(1), None));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_takes_is_lost_at_once() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let taken = serde_json::json!({ "spec": { "holderIdentity": "second" } });
    sandbox.patch(&LEASES, &lease(), &taken).expect("the patch is valid");
    let since = Instant::now();
    first.lost().await;
    assert!(since.elapsed() < Duration::from_millis(200), "it took {:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_behind_does_not_end_a_term() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    sandbox.faults().delay_events(&LEASES, Duration::from_secs(1));
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    first.stop.cancel();
    drop(first.task.join_next().await);
    // The watch shows the release after the second has acquired the lease.
    let mut second = participant(&sandbox, "second", 2);
    second.leads().await;
    let lost = second.leadership.wait_for(|leadership| leadership.leads_until.is_none());
    assert!(timeout(Duration::from_mins(2), lost).await.is_err(), "it must go on leading");
    assert_eq!(record(&sandbox)["leaseTransitions"], 1);
}
