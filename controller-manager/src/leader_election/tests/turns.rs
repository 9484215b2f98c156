//! Which manager leads, and from when until when.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_first_creates_the_lease_without_a_transition() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let record = record(&sandbox);
    assert_eq!(record["holderIdentity"], "first");
    assert_eq!((&record["leaseDurationSeconds"], &record["leaseTransitions"]), (&15.into(), &0.into()));
    assert_eq!(record["acquireTime"], record["renewTime"]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_renews_every_retry_period_with_one_request() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    sandbox.clear_requests();
    sleep(Duration::from_mins(1)).await;
    let requests = sandbox.requests();
    let methods: Vec<_> = requests
        .iter()
        .filter(|it| it.path.ends_with("/kube-controller-manager"))
        .map(|it| it.method.clone())
        .collect();
    assert_eq!(methods, vec!["PUT"; methods.len()]);
    assert!((29..=31).contains(&methods.len()), "{} renewals in a minute", methods.len());
}

#[tokio::test(start_paused = true)]
async fn a_standby_leads_at_once_when_the_lease_is_released() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(30)).await;
    let stopped = Instant::now();
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    assert!(stopped.elapsed() < Duration::from_millis(200), "it took {:?}", stopped.elapsed());
    let record = record(&sandbox);
    assert_eq!((&record["holderIdentity"], &record["leaseTransitions"]), (&"second".into(), &1.into()));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_cannot_act_leaves_the_lease_to_others_for_thirty_seconds() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let ready = watch::Sender::new(false);
    let mut cold = participant_when(&sandbox, "cold", 2, ready.subscribe());
    let mut warm = participant(&sandbox, "warm", 3);
    sleep(Duration::from_secs(30)).await;
    first.stop.cancel();
    drop(first.task.join_next().await);
    warm.leads().await;
    warm.stop.cancel();
    drop(warm.task.join_next().await);
    let free = Instant::now();
    cold.leads().await;
    let waited = free.elapsed();
    assert!((Duration::from_secs(30)..Duration::from_secs(35)).contains(&waited), "nobody else leads: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_competes_as_soon_as_it_can_act_and_a_leader_goes_on_when_it_cannot() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let ready = watch::Sender::new(false);
    let mut first = participant_when(&sandbox, "first", 1, ready.subscribe());
    sleep(Duration::from_secs(10)).await;
    assert!(sandbox.get(&LEASES, &lease()).is_none());
    ready.send_replace(true);
    let since = Instant::now();
    first.leads().await;
    assert!(since.elapsed() < Duration::from_millis(200), "it took {:?}", since.elapsed());
    ready.send_replace(false);
    let lost = first.leadership.wait_for(|leadership| leadership.leads_until.is_none());
    assert!(timeout(Duration::from_mins(2), lost).await.is_err(), "it must go on leading");
}

#[tokio::test(start_paused = true)]
async fn a_standby_leads_within_the_duration_and_a_second_of_the_death_of_the_leader() {
    for seed in 0..20 {
        let sandbox = Sandbox::new(SandboxOptions::default());
        let mut first = participant(&sandbox, "first", seed);
        first.leads().await;
        let mut second = participant(&sandbox, "second", seed + 100);
        sleep(Duration::from_secs(30) + Duration::from_millis(seed * 300)).await;
        let killed = Instant::now();
        first.task.shutdown().await;
        second.leads().await;
        let took = killed.elapsed();
        assert!(took <= TIMING.lease_duration + Duration::from_secs(1), "it took {took:?} with seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_expects_to_lead_shortly_before_the_lease_expires_and_not_while_it_is_renewed() {
    for seed in 0..10 {
        let sandbox = Sandbox::new(SandboxOptions::default());
        let mut first = participant(&sandbox, "first", seed);
        first.leads().await;
        let mut second = participant(&sandbox, "second", seed + 100);
        let mut changes = second.leadership.clone();
        let expected = changes.wait_for(|leadership| leadership.is_expected);
        assert!(timeout(Duration::from_mins(2), expected).await.is_err(), "the lease is renewed");
        first.task.shutdown().await;
        let expected = second.leadership.wait_for(|leadership| leadership.is_expected);
        drop(timeout(Duration::from_mins(1), expected).await.expect("the lease expires").expect("it must run"));
        let since = Instant::now();
        second.leads().await;
        let ahead = since.elapsed();
        let bounds = Duration::from_millis(750)..=Duration::from_millis(1_300);
        assert!(bounds.contains(&ahead), "{ahead:?} before it led, with seed {seed}");
        assert!(!second.leadership.borrow().is_expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_within_the_renew_deadline_and_leads_again_when_it_can() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let fault = sandbox.faults().inject(Fault::on_any().resource(LEASES).stall());
    let cut = Instant::now();
    first.lost().await;
    assert!(cut.elapsed() <= TIMING.renew_deadline, "it took {:?}", cut.elapsed());
    fault.remove();
    first.leads().await;
    assert_eq!(record(&sandbox)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn each_term_of_leadership_has_a_number_of_its_own() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    assert_eq!(first.leadership.borrow().term, Some(1));
    let fault = sandbox.faults().inject(Fault::on_any().resource(LEASES).stall());
    first.lost().await;
    assert_eq!(first.leadership.borrow().term, None);
    fault.remove();
    first.leads().await;
    assert_eq!(first.leadership.borrow().term, Some(2));
}
