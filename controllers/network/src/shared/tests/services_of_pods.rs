//! A service and its pods on an API server in the process.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::TestCluster;
use kcm_testing::sandbox::direct::DirectClient;
use kcm_testing::sandbox::{PODS, Sandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::merge;

pub(crate) const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");
pub(crate) const NAMESPACE: &str = "shop";

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(NAMESPACE, name)
}

/// Creates the service `web`, whose fields `change` changes.
pub(crate) fn create_service(sandbox: &Sandbox, change: &Value) {
    let spec = json!({
        "selector": { "app": "web" }, "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }],
    });
    let mut service = json!({ "metadata": { "namespace": NAMESPACE, "name": "web" }, "spec": spec });
    merge(&mut service, change);
    sandbox.create(&SERVICES, service).unwrap();
}

/// Creates a pod of the service with the address `10.0.X.Y` of its number, ready, on a node.
pub(crate) fn create_pod_on(sandbox: &Sandbox, number: usize, node: &str) {
    let name = pod_name(number);
    let spec = json!({ "nodeName": node, "containers": [{ "name": "main", "image": "image" }] });
    let pod = json!({ "metadata": { "namespace": NAMESPACE, "name": name, "labels": { "app": "web" } }, "spec": spec });
    sandbox.create(&PODS, pod).unwrap();
    let ip = format!("10.0.{}.{}", number / 256, number % 256);
    let status = json!({ "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }] });
    sandbox.patch_status(&PODS, &key(&name), &json!({ "status": status })).unwrap();
    set_ready(sandbox, number, true);
}

pub(crate) fn pod_name(number: usize) -> String {
    format!("web-{number:04}")
}

pub(crate) fn set_ready(sandbox: &Sandbox, number: usize, ready: bool) {
    let now = sandbox.now().to_string();
    let now = now.split('.').next().unwrap().trim_end_matches('Z').to_owned() + "Z";
    let status = if ready { "True" } else { "False" };
    let condition = json!({ "type": "Ready", "status": status, "lastTransitionTime": now });
    sandbox.patch_status(&PODS, &key(&pod_name(number)), &json!({ "status": { "conditions": [condition] } })).unwrap();
}

/// Makes the status of a pod of the service undecodable, past the API server, which would refuse it.
pub(crate) fn make_undecodable(sandbox: &Sandbox, number: usize) {
    let status = json!({ "containerStatuses": [{ "name": "main", "restartCount": "many" }] });
    let pod = key(&pod_name(number));
    DirectClient::new(sandbox).merge(&PODS, &pod, Some("status"), &json!({ "status": status })).unwrap();
}

/// Makes the status of a pod of the service decodable again.
pub(crate) fn make_decodable(sandbox: &Sandbox, number: usize) {
    let status = json!({ "containerStatuses": null });
    sandbox.patch_status(&PODS, &key(&pod_name(number)), &json!({ "status": status })).unwrap();
}

/// Changes of pods of the service, beginning with three that are ready, and the writes within a batch period of
/// [`BATCH_PERIOD`] that they lead to.
pub(crate) struct Batches {
    pub(crate) name: &'static str,
    /// Changes the pod of that number.
    pub(crate) change: fn(&Sandbox, usize),
    /// Whose pods are changed, and when: the pods from this number on, at these seconds.
    pub(crate) first: usize,
    pub(crate) seconds: [u64; 3],
    /// How many writes there are.
    pub(crate) writes: usize,
    /// The pods that are ready afterwards.
    pub(crate) ready: &'static [usize],
}

/// The batch period of [`BATCHES`].
pub(crate) const BATCH_PERIOD: Duration = Duration::from_secs(5);

/// Additions, updates and deletions within one period and within two.
pub(crate) const BATCHES: [Batches; 6] = {
    const ADD: fn(&Sandbox, usize) = |sandbox, number| create_pod_on(sandbox, number, "node-a");
    const UPDATE: fn(&Sandbox, usize) = |sandbox, number| set_ready(sandbox, number, false);
    const DELETE: fn(&Sandbox, usize) = |sandbox, number| {
        sandbox.delete_now(&PODS, &key(&pod_name(number))).unwrap();
    };
    const ONE: [u64; 3] = [0, 1, 4];
    const TWO: [u64; 3] = [0, 1, 6];
    const ALL: &[usize] = &[1, 2, 3, 4, 5, 6];
    const fn row(
        name: &'static str,
        change: fn(&Sandbox, usize),
        (first, ready): (usize, &'static [usize]),
        (seconds, writes): ([u64; 3], usize),
    ) -> Batches {
        Batches { name, change, first, seconds, writes, ready }
    }
    [
        row("additions in one batch", ADD, (4, ALL), (ONE, 1)),
        row("additions in two batches", ADD, (4, ALL), (TWO, 2)),
        row("updates in one batch", UPDATE, (1, &[]), (ONE, 1)),
        row("updates in two batches", UPDATE, (1, &[]), (TWO, 2)),
        row("deletions in one batch", DELETE, (1, &[]), (ONE, 1)),
        row("deletions in two batches", DELETE, (1, &[]), (TWO, 2)),
    ]
};

impl Batches {
    /// Makes the changes; asserts that nothing is written before the end of a period, and how much is afterwards.
    pub(crate) async fn run(&self, cluster: &TestCluster, writes: impl Fn() -> usize) {
        let (before, mut now) = (writes(), 0);
        for (number, second) in (self.first..).zip(self.seconds) {
            cluster.advance(Duration::from_secs(second - now)).await;
            now = second;
            let ended = usize::from(Duration::from_secs(second) > BATCH_PERIOD);
            assert_eq!(writes() - before, ended, "{}: {second} s after the first change", self.name);
            (self.change)(cluster.sandbox(), number);
        }
        cluster.advance(3 * BATCH_PERIOD).await;
        assert_eq!(writes() - before, self.writes, "{}", self.name);
    }
}

/// Times how long endpoints name pods that are gone.
#[derive(Default)]
pub(crate) struct GonePods {
    gone_since: HashMap<String, Instant>,
    /// The longest time that was seen.
    pub(crate) longest: Duration,
}

impl GonePods {
    /// Asserts that each pod that endpoints name exists, or has been gone for `bound` at most. To be called at short
    /// intervals.
    pub(crate) fn check(&mut self, sandbox: &Sandbox, named: &BTreeSet<String>, bound: Duration) {
        let pods = sandbox.list(&PODS, Some(NAMESPACE));
        let existing: BTreeSet<&str> = pods.iter().filter_map(|pod| pod["metadata"]["uid"].as_str()).collect();
        self.gone_since.retain(|uid, _| named.contains(uid));
        for uid in named.iter().filter(|uid| !existing.contains(uid.as_str())) {
            let gone_for = self.gone_since.entry(uid.clone()).or_insert_with(Instant::now).elapsed();
            assert!(gone_for <= bound, "the pod {uid} has been gone for {gone_for:?}");
            self.longest = self.longest.max(gone_for);
        }
    }
}
