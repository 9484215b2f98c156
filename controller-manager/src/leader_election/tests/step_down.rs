//! A leader closes its fence, or steps down, because its process or its connection cannot act.

use super::*;

#[tokio::test(start_paused = true)]
async fn writes_pass_the_fence_whenever_the_leadership_is_published() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    assert!(first.fence.is_closed());
    for _ in 0..3 {
        first.leads().await;
        assert!(!first.fence.is_closed(), "loops that start now may write at once");
        let fault = sandbox.faults().inject(Fault::on_any().resource(LEASES).stall());
        first.lost().await;
        assert!(first.fence.is_closed());
        fault.remove();
    }
}

/// The heartbeat of a main thread that beats until the sender is dropped, and then is blocked for ever.
fn beating(tasks: &mut JoinSet<()>) -> (Heartbeat, CancellationToken) {
    let (heartbeat, blocked) = (Heartbeat::new(), CancellationToken::new());
    let beats = blocked.clone().run_until_cancelled_owned(heartbeat.clone().run());
    tasks.spawn(async move {
        if let Some(never) = beats.await {
            match never {}
        }
    });
    (heartbeat, blocked)
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_main_thread_is_blocked_does_not_keep_the_lease() {
    let limit = Duration::from_mins(1);
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut main_thread = JoinSet::new();
    let (heartbeat, blocked) = beating(&mut main_thread);
    let watchdog = Watchdog::new(heartbeat, limit, || {});
    let mut first = participant_in(&sandbox, "first", 1, Surroundings { watchdog, ..Surroundings::default() });
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_mins(5)).await;
    assert_eq!(first.leadership.borrow().term, Some(1), "a thread that is not blocked loses no lease");
    blocked.cancel();
    sleep(limit).await;
    assert_eq!(first.leadership.borrow().term, Some(1));
    let until = Instant::now();
    first.lost().await;
    assert!(first.fence.is_closed());
    assert!(until.elapsed() <= Duration::from_secs(6), "it took {:?}", until.elapsed());
    assert_eq!(record(&sandbox)["holderIdentity"], "first", "writes may be under way: the lease expires");
    drop(first.task.join_next().await);
    second.leads().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_as_a_whole_is_not_blocked() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let (heartbeat, exits) = (Heartbeat::new(), Arc::new(AtomicUsize::new(0)));
    let exit = Arc::clone(&exits);
    let watchdog = Watchdog::new(heartbeat.clone(), Duration::from_mins(1), move || {
        exit.fetch_add(1, Ordering::Relaxed);
    });
    let mut first = participant_in(&sandbox, "first", 1, Surroundings { watchdog, ..Surroundings::default() });
    first.leads().await;
    let mut main_thread = JoinSet::new();
    // The lease's thread is the first to go on.
    sleep(Duration::from_secs(62)).await;
    main_thread.spawn(async move { match heartbeat.run().await {} });
    sleep(Duration::from_mins(5)).await;
    assert_eq!(first.leadership.borrow().term, Some(1));
    assert_eq!(exits.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_machine_was_suspended_steps_down_before_it_reads_the_lease() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let surroundings = Surroundings::default();
    let clock = surroundings.clock.clone();
    let mut first = participant_in(&sandbox, "first", 1, surroundings);
    first.leads().await;
    sleep(Duration::from_millis(900)).await;
    clock.suspend(Duration::from_hours(1));
    assert!(first.fence.is_closed(), "no write passes, though nothing has run since");
    sandbox.clear_requests();
    first.leads_in_term(2).await;
    let of_lease = sandbox.requests().into_iter().filter(|it| it.path.ends_with("/kube-controller-manager"));
    let methods: Vec<_> = of_lease.map(|request| request.method.clone()).collect();
    assert_eq!(methods, ["GET", "PUT"]);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_was_under_way_during_a_suspension_does_not_count() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let surroundings = Surroundings::default();
    let clock = surroundings.clock.clone();
    let mut first = participant_in(&sandbox, "first", 1, surroundings);
    first.leads().await;
    let slow = sandbox.faults().inject(Fault::on(Verb::Update).resource(LEASES).times(1).delay(Duration::from_secs(1)));
    while slow.hits() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    clock.suspend(Duration::from_secs(5));
    first.leads_in_term(2).await;
    assert_eq!(record(&sandbox)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_controllers_have_no_connection_for_the_renew_deadline_steps_down() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let surroundings = Surroundings::default();
    let connection = Arc::clone(&surroundings.connection);
    let mut first = participant_in(&sandbox, "first", 1, surroundings);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(30)).await;
    *connection.lock() = Some(Instant::now());
    sleep(TIMING.renew_deadline.saturating_sub(Duration::from_millis(1))).await;
    assert_eq!(first.leadership.borrow().term, Some(1), "its lease is renewed, and a probe may succeed yet");
    first.lost().await;
    assert!(first.fence.is_closed());
    second.leads().await;
    // It does not compete for a lease under which it could not act.
    second.task.shutdown().await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(first.leadership.borrow().term, None);
    *connection.lock() = None;
    first.leads().await;
}

#[tokio::test(start_paused = true)]
async fn an_unusable_connection_that_recovers_within_the_renew_deadline_ends_no_term() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let surroundings = Surroundings::default();
    let connection = Arc::clone(&surroundings.connection);
    let mut first = participant_in(&sandbox, "first", 1, surroundings);
    first.leads().await;
    for _ in 0..10 {
        *connection.lock() = Some(Instant::now());
        sleep(TIMING.renew_deadline.saturating_sub(Duration::from_secs(1))).await;
        *connection.lock() = None;
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(first.leadership.borrow().term, Some(1));
}
