//! Events and metrics of leader election.

use super::*;

/// Type, reason, message, object and source of each event.
fn events(sandbox: &Sandbox) -> Vec<[String; 5]> {
    let events = sandbox.list(&EVENTS, Some("kube-system"));
    let text = |event: &Value, path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
    let paths = ["/type", "/reason", "/message", "/involvedObject/kind", "/source/component"];
    events.iter().map(|event| paths.map(|path| text(event, path))).collect()
}

#[tokio::test(start_paused = true)]
async fn events_on_the_lease_say_who_became_leader_and_who_stopped_leading() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    sleep(Duration::from_secs(1)).await;
    let of_lease =
        |message: &str| ["Normal", "LeaderElection", message, "Lease", "kube-controller-manager"].map(str::to_owned);
    assert_eq!(events(&sandbox), [of_lease("first became leader")]);
    let uid = &sandbox.get(&LEASES, &lease()).expect("the lease must exist")["metadata"]["uid"];
    assert_eq!(sandbox.list(&EVENTS, None)[0]["involvedObject"]["uid"], *uid);
    first.stop.cancel();
    drop(first.task.join_next().await);
    let mut events = events(&sandbox);
    events.sort();
    assert_eq!(events, [of_lease("first became leader"), of_lease("first stopped leading")]);
}

#[tokio::test(start_paused = true)]
async fn metrics_show_who_leads_and_how_often_a_renewal_had_to_read_first() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let mut first = participant(&sandbox, "first", 1);
    first.leads().await;
    let mut second = participant(&sandbox, "second", 2);
    sleep(Duration::from_secs(10)).await;
    let status = |leads: u8| format!("leader_election_master_status{{name=\"kube-controller-manager\"}} {leads}");
    let shows = |participant: &Participant, line: &str| participant.metrics.encode().lines().any(|it| it == line);
    assert!(shows(&first, &status(1)) && shows(&second, &status(0)));
    // The client repeats the update because its response was lost. The API server refuses the repetition, because the
    // first update took effect.
    let slow = "leader_election_slowpath_total{name=\"kube-controller-manager\"} 1";
    let fault = sandbox.faults().inject(Fault::on(Verb::Update).resource(LEASES).times(2).lose_answer());
    sleep(Duration::from_mins(1)).await;
    assert_eq!(fault.hits(), 2);
    assert!(shows(&first, slow), "{}", first.metrics.encode());
    first.stop.cancel();
    drop(first.task.join_next().await);
    second.leads().await;
    assert!(shows(&first, &status(0)) && shows(&second, &status(1)));
}
