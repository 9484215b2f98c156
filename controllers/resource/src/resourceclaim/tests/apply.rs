//! Claims on an API server in the process.

use std::time::Duration;

use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::sandbox::{Fault, PODS, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write, passing_faults};
use serde_json::{Value, json};

use crate::resourceclaim::DESCRIPTOR;
use crate::tests::{CLAIMS, Roles, TEMPLATES, allocate, beta_apis, claim_spec, create_pod, fits_role, key, pod};

const GROUPS: Resource = Resource::namespaced("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup");
/// The name of its client.
const IDENTITY: &str = "resource-claim-controller";
const COMPONENT: &str = "resource_claim";
const MINUTE: Duration = Duration::from_mins(1);

fn environment() -> TestEnvironment {
    TestEnvironment::new([DESCRIPTOR]).namespace("shop").prepare(|sandbox| create_template(sandbox, "t"))
}

fn with_groups() -> TestEnvironment {
    let gates = "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true";
    environment().arguments(&[gates]).sandbox_options(beta_apis())
}

async fn start(environment: TestEnvironment) -> TestCluster {
    let cluster = environment.start().await;
    cluster.watches(&[CLAIMS, TEMPLATES, PODS]).await;
    cluster
}

fn create_template(sandbox: &Sandbox, name: &str) {
    let of_claims = json!({ "labels": { "app": "web" }, "annotations": { "note": "1" } });
    let template = json!({
        "metadata": { "namespace": "shop", "name": name },
        "spec": { "metadata": of_claims, "spec": claim_spec() },
    });
    sandbox.create(&TEMPLATES, template).expect("the template must be valid");
}

fn create_claim(sandbox: &Sandbox, name: &str) {
    let claim = json!({ "metadata": { "namespace": "shop", "name": name }, "spec": claim_spec() });
    sandbox.create(&CLAIMS, claim).expect("the claim must be valid");
}

fn of_template(entry: &str, template: &str) -> Value {
    json!({ "name": entry, "resourceClaimTemplateName": template })
}

fn of_user(claim: &str) -> Value {
    json!([{ "name": "gpu", "resourceClaimName": claim }])
}

fn on_node(mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = json!("n");
    pod
}

/// The claim of an entry that the status of the Pod names, if it exists.
fn claim_of(sandbox: &Sandbox, pod: &str, entry: &str) -> Option<Value> {
    let pod = sandbox.get(&PODS, &key(pod))?;
    let statuses = pod["status"]["resourceClaimStatuses"].as_array()?.clone();
    let status = statuses.iter().find(|status| status["name"] == entry)?;
    sandbox.get(&CLAIMS, &key(status["resourceClaimName"].as_str()?))
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("objects have names")
}

fn consumers(sandbox: &Sandbox, claim: &str) -> Vec<Value> {
    let claim = sandbox.get(&CLAIMS, &key(claim)).unwrap_or_default();
    claim["status"]["reservedFor"].as_array().cloned().unwrap_or_default()
}

fn is_free(sandbox: &Sandbox, claim: &str) -> bool {
    let claim = sandbox.get(&CLAIMS, &key(claim)).expect("the claim exists");
    let has_finalizer = !claim["metadata"]["finalizers"].is_null();
    claim["status"]["allocation"].is_null() && claim["status"]["reservedFor"].is_null() && !has_finalizer
}

/// Methods and paths of the requests.
fn requests(cluster: &TestCluster) -> Vec<String> {
    cluster.requests_of(IDENTITY).iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

/// A Pod gets two claims, uses them and finishes.
async fn life(cluster: &TestCluster) {
    cluster.watches(&[CLAIMS, TEMPLATES, PODS]).await;
    let uid = create_pod(cluster.sandbox(), pod("web", &json!([of_template("gpu", "t"), of_template("nic", "t")])));
    let has_both = |sandbox: &Sandbox| ["gpu", "nic"].iter().all(|entry| claim_of(sandbox, "web", entry).is_some());
    cluster.eventually("it has its claims", has_both).await;
    cluster.settle().await;
    assert_eq!(cluster.sandbox().list(&CLAIMS, None).len(), 2);
    let gpu = claim_of(cluster.sandbox(), "web", "gpu").unwrap();
    allocate(cluster.sandbox(), name(&gpu), "d0", &json!([]), &[("web", &uid)]);
    cluster.settle().await;
    cluster.sandbox().set_pod_phase(&key("web"), "Succeeded").unwrap();
    cluster.eventually("the claims are deleted", |sandbox| sandbox.list(&CLAIMS, None).is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn s70_to_s79_a_pod_gets_claims_uses_them_and_leaves_none() {
    let cluster = start(environment()).await;
    life(&cluster).await;
    fits_role(&cluster, IDENTITY, Roles::Default);
    let verbs: Vec<String> = cluster.writes_of(IDENTITY).into_iter().map(|write| write.method).collect();
    // Two claims, the names; reservation and allocation, finalizer, deletion; deletion of the claim that was not used.
    assert_eq!(verbs.iter().filter(|verb| *verb == "POST").count(), 2);
    assert_eq!(verbs.iter().filter(|verb| *verb == "PATCH").count(), 3);
    assert_eq!(verbs.iter().filter(|verb| *verb == "DELETE").count(), 2);
    for deletion in cluster.bodies_of(IDENTITY, "DELETE") {
        assert!(deletion["preconditions"]["uid"].is_string(), "{deletion}");
    }
    assert_eq!(cluster.events_of(COMPONENT), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn s71_a_claim_has_everything_that_the_template_has() {
    let cluster = start(environment()).await;
    let uid = create_pod(cluster.sandbox(), pod("web", &json!([of_template("gpu", "t")])));
    cluster.eventually("it has its claim", |sandbox| claim_of(sandbox, "web", "gpu").is_some()).await;
    let claim = claim_of(cluster.sandbox(), "web", "gpu").unwrap();
    let metadata = &claim["metadata"];
    assert_eq!(metadata["generateName"], "web-gpu-");
    assert!(name(&claim).starts_with("web-gpu-") && name(&claim).len() == 13, "{metadata}");
    assert_eq!(metadata["labels"], json!({ "app": "web" }));
    assert_eq!(metadata["annotations"], json!({ "note": "1", "resource.kubernetes.io/pod-claim-name": "gpu" }));
    let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true }]);
    assert_eq!(metadata["ownerReferences"], owner);
    assert_eq!(claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"], "gpu");
    let metrics = cluster.metrics();
    for line in [
        "dynamic_resource_allocation_resourceclaim_creates_total{status=\"success\",admin_access=\"false\",\
         owner_api_group=\"\",owner_api_kind=\"Pod\"} 1",
        "dynamic_resource_allocation_resource_claims{allocated=\"false\",admin_access=\"false\",\
         source=\"resource_claim_template\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn s72_the_status_keeps_the_names_that_are_known() {
    let cluster = start(environment()).await;
    create_pod(cluster.sandbox(), pod("web", &json!([of_template("nic", "later"), of_template("gpu", "t")])));
    cluster.advance(MINUTE).await;
    assert!(claim_of(cluster.sandbox(), "web", "gpu").is_none(), "the first error ends the reconcile");
    create_template(cluster.sandbox(), "later");
    cluster.eventually("it has its claims", |sandbox| claim_of(sandbox, "web", "nic").is_some()).await;
    let gpu = claim_of(cluster.sandbox(), "web", "gpu").expect("both are named at once");
    cluster.sandbox().delete_now(&CLAIMS, &key(name(&gpu))).unwrap();
    let is_other = |sandbox: &Sandbox| claim_of(sandbox, "web", "gpu").is_some_and(|claim| name(&claim) != name(&gpu));
    cluster.eventually("a deleted claim is created again", is_other).await;
    cluster.advance(MINUTE).await;
    assert!(claim_of(cluster.sandbox(), "web", "nic").is_some());
    assert_eq!(cluster.sandbox().list(&CLAIMS, None).len(), 2);
    let applied = cluster.bodies_of(IDENTITY, "PATCH");
    assert_eq!(applied.len(), 2);
    assert!(applied.iter().all(|body| body["metadata"]["uid"].is_string()), "{applied:?}");
    let stored = cluster.sandbox().get(&PODS, &key("web")).unwrap();
    let managers = stored["metadata"]["managedFields"].as_array().unwrap();
    let of_status = managers.iter().find(|manager| manager["subresource"] == "status").unwrap();
    assert_eq!((&of_status["manager"], &of_status["operation"]), (&json!("ResourceClaimController"), &json!("Apply")));
    let events = cluster.events_of(COMPONENT);
    let expected = "PodResourceClaim nic: resource claim template \"later\": \
                    resourceclaimtemplate.resource.k8s.io \"later\" not found";
    assert!(events[0].contains("Warning FailedResourceClaimCreation") && events[0].contains(expected), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn s73_allocated_claims_are_reserved_for_a_pod_that_is_bound() {
    let cluster = start(environment()).await;
    create_claim(cluster.sandbox(), "shared");
    let other = create_pod(cluster.sandbox(), on_node(pod("other", &of_user("shared"))));
    allocate(cluster.sandbox(), "shared", "d0", &json!([]), &[("other", &other)]);
    let uid = create_pod(cluster.sandbox(), on_node(pod("web", &of_user("shared"))));
    cluster.eventually("it is reserved", |sandbox| consumers(sandbox, "shared").len() == 2).await;
    assert_eq!(consumers(cluster.sandbox(), "shared")[1], json!({ "resource": "pods", "name": "web", "uid": uid }));
    let patch = &cluster.bodies_of(IDENTITY, "PATCH")[0];
    assert!(patch["metadata"]["resourceVersion"].is_string() && patch["metadata"]["uid"].is_string(), "{patch}");
    fits_role(&cluster, IDENTITY, Roles::Default);
}

#[tokio::test(start_paused = true)]
async fn t44_a_pod_that_has_finished_is_not_reserved_again() {
    let cluster = start(environment()).await;
    create_claim(cluster.sandbox(), "shared");
    let other = create_pod(cluster.sandbox(), on_node(pod("other", &of_user("shared"))));
    let web = create_pod(cluster.sandbox(), on_node(pod("web", &of_user("shared"))));
    allocate(cluster.sandbox(), "shared", "d0", &json!([]), &[("other", &other), ("web", &web)]);
    cluster.settle().await;
    cluster.sandbox().set_pod_phase(&key("web"), "Failed").unwrap();
    cluster.eventually("it is released", |sandbox| consumers(sandbox, "shared").len() == 1).await;
    cluster.advance(10 * MINUTE).await;
    assert_eq!(cluster.writes_of(IDENTITY).len(), 1);
    assert_eq!(consumers(cluster.sandbox(), "shared")[0]["name"], "other");
}

/// Pods that share a claim end: by their phase, by a deletion, and before they are scheduled.
async fn shared(cluster: &TestCluster) {
    cluster.watches(&[CLAIMS, TEMPLATES, PODS]).await;
    create_claim(cluster.sandbox(), "shared");
    let pods: Vec<(&str, String)> = ["a", "b", "c"]
        .map(|name| (name, create_pod(cluster.sandbox(), on_node(pod(name, &of_user("shared"))))))
        .into();
    let users: Vec<(&str, &str)> = pods.iter().map(|(name, uid)| (*name, &**uid)).collect();
    allocate(cluster.sandbox(), "shared", "d0", &json!([]), &users);
    cluster.settle().await;
    cluster.sandbox().set_pod_phase(&key("a"), "Succeeded").unwrap();
    cluster.sandbox().delete_now(&PODS, &key("b")).unwrap();
    cluster.eventually("two are released", |sandbox| consumers(sandbox, "shared").len() == 1).await;
    assert!(!is_free(cluster.sandbox(), "shared"));
    cluster.sandbox().delete_now(&PODS, &key("c")).unwrap();
    let unused = |sandbox: &Sandbox| {
        let claim = sandbox.get(&CLAIMS, &key("shared")).unwrap();
        claim["status"]["allocation"].is_null() && claim["status"]["reservedFor"].is_null()
    };
    cluster.eventually("it is deallocated", unused).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn s76_s77_a_shared_claim_is_free_when_its_last_consumer_ends() {
    let cluster = start(environment()).await;
    shared(&cluster).await;
    assert!(is_free(cluster.sandbox(), "shared"));
    let reads = requests(&cluster).into_iter().filter(|request| request.starts_with("GET")).count();
    assert_eq!(reads, 0, "deletions that were seen need no live read");
    fits_role(&cluster, IDENTITY, Roles::Default);
}

#[tokio::test(start_paused = true)]
async fn s78_a_terminating_claim_that_is_not_used_is_let_go() {
    let cluster = start(environment()).await;
    create_claim(cluster.sandbox(), "unused");
    allocate(cluster.sandbox(), "unused", "d0", &json!([]), &[]);
    cluster.advance(MINUTE).await;
    assert!(cluster.writes_of(IDENTITY).is_empty(), "s80: an allocation that was never reserved stays");
    cluster.sandbox().delete(&CLAIMS, &key("unused")).unwrap();
    cluster.eventually("it is deleted", |sandbox| sandbox.get(&CLAIMS, &key("unused")).is_none()).await;
    assert_eq!(cluster.writes_of(IDENTITY).len(), 2, "{:?}", requests(&cluster));
}

#[tokio::test(start_paused = true)]
async fn t45_a_consumer_that_only_the_api_server_knows_is_kept() {
    let cluster = start(environment()).await;
    create_claim(cluster.sandbox(), "shared");
    cluster.sandbox().faults().hold_watches(&PODS);
    let uid = create_pod(cluster.sandbox(), pod("web", &of_user("shared")));
    allocate(cluster.sandbox(), "shared", "d0", &json!([]), &[("web", &uid)]);
    cluster.advance(MINUTE).await;
    assert_eq!(consumers(cluster.sandbox(), "shared").len(), 1);
    let reads = requests(&cluster);
    assert!(!reads.is_empty() && reads.iter().all(|read| read == "GET /api/v1/namespaces/shop/pods/web"), "{reads:?}");
}

#[tokio::test(start_paused = true)]
async fn t45_an_error_is_no_absence() {
    let cluster = start(environment()).await;
    let unavailable = Status::new(500, "InternalError", "etcd is slow");
    cluster.sandbox().faults().inject(Fault::on(Verb::Get).resource(PODS).times(20).fail(unavailable));
    create_claim(cluster.sandbox(), "shared");
    allocate(cluster.sandbox(), "shared", "d0", &json!([]), &[("gone", "some-uid")]);
    cluster.settle().await;
    assert_eq!(consumers(cluster.sandbox(), "shared").len(), 1);
    cluster.eventually("it is released after a live read", |sandbox| is_free(sandbox, "shared")).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_recreated_under_its_name_gets_a_claim_of_its_own() {
    let cluster = start(environment()).await;
    let of = |sandbox: &Sandbox, uid: &str| {
        claim_of(sandbox, "web", "gpu").is_some_and(|claim| claim["metadata"]["ownerReferences"][0]["uid"] == uid)
    };
    let first = create_pod(cluster.sandbox(), pod("web", &json!([of_template("gpu", "t")])));
    cluster.eventually("it has its claim", |sandbox| of(sandbox, &first)).await;
    cluster.sandbox().delete_now(&PODS, &key("web")).unwrap();
    let second = create_pod(cluster.sandbox(), pod("web", &json!([of_template("gpu", "t")])));
    cluster.eventually("the new pod has its claim", |sandbox| of(sandbox, &second)).await;
    cluster.eventually("the claim of the old pod is deleted", |sandbox| sandbox.list(&CLAIMS, None).len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_claim_of_the_name_is_replaced_and_left_alone() {
    let cluster = start(environment()).await;
    create_claim(cluster.sandbox(), "foreign");
    let before = cluster.sandbox().get(&CLAIMS, &key("foreign"));
    cluster.sandbox().faults().hold_watches(&PODS);
    create_pod(cluster.sandbox(), pod("web", &json!([of_template("gpu", "t")])));
    let status = json!({ "status": { "resourceClaimStatuses": [{ "name": "gpu", "resourceClaimName": "foreign" }] } });
    cluster.sandbox().patch_status(&PODS, &key("web"), &status).unwrap();
    cluster.sandbox().faults().release_watches(&PODS);
    cluster.advance(MINUTE).await;
    // A claim of another owner is no work; the pod waits until it is deleted.
    assert_eq!(cluster.sandbox().get(&CLAIMS, &key("foreign")), before);
    cluster.sandbox().delete_now(&CLAIMS, &key("foreign")).unwrap();
    let own = |sandbox: &Sandbox| claim_of(sandbox, "web", "gpu").is_some_and(|claim| name(&claim) != "foreign");
    cluster.eventually("it has its claim", own).await;
}

#[tokio::test(start_paused = true)]
async fn s74_a_pod_of_a_group_waits_while_groups_are_disabled() {
    let cluster = start(environment().allow_error("GenericWorkload")).await;
    let mut member = pod("web", &json!([of_template("gpu", "t")]));
    member["spec"]["schedulingGroup"] = json!({ "podGroupName": "g" });
    create_pod(cluster.sandbox(), member);
    cluster.advance(10 * MINUTE).await;
    assert!(requests(&cluster).is_empty());
}

fn create_group(sandbox: &Sandbox, claims: &Value) -> String {
    let group = json!({
        "metadata": { "namespace": "shop", "name": "g" },
        "spec": { "schedulingPolicy": { "basic": {} }, "resourceClaims": claims },
    });
    let created = sandbox.create(&GROUPS, group).expect("the group must be valid");
    created["metadata"]["uid"].as_str().expect("objects have uids").to_owned()
}

fn names_of_group(sandbox: &Sandbox) -> Vec<Value> {
    let group = sandbox.get(&GROUPS, &ObjectKey::namespaced("shop", "g")).unwrap_or_default();
    group["status"]["resourceClaimStatuses"].as_array().cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn s75_a_group_gets_claims_that_its_pods_share() {
    let cluster = start(with_groups()).await;
    cluster.watches(&[GROUPS]).await;
    let group = create_group(cluster.sandbox(), &json!([of_template("gpu", "t"), of_template("nic", "t")]));
    cluster.eventually("it has its claims", |sandbox| names_of_group(sandbox).len() == 2).await;
    let mut member = on_node(pod("web", &json!([of_template("gpu", "t"), of_template("own", "t")])));
    member["spec"]["schedulingGroup"] = json!({ "podGroupName": "g" });
    create_pod(cluster.sandbox(), member);
    let has_both = |sandbox: &Sandbox| ["gpu", "own"].iter().all(|entry| claim_of(sandbox, "web", entry).is_some());
    cluster.eventually("the pod has both", has_both).await;
    let gpu = claim_of(cluster.sandbox(), "web", "gpu").unwrap();
    assert_eq!(gpu["metadata"]["ownerReferences"][0]["uid"], group);
    assert_eq!(gpu["metadata"]["ownerReferences"][0]["apiVersion"], "scheduling.k8s.io/v1beta1");
    allocate(cluster.sandbox(), name(&gpu), "d0", &json!([]), &[]);
    cluster.eventually("it is reserved", |sandbox| consumers(sandbox, name(&gpu)).len() == 1).await;
    let consumer = json!({ "apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": group });
    assert_eq!(consumers(cluster.sandbox(), name(&gpu)), [consumer]);
    // T41: the names of the group stay when one of its claims is created again.
    let nic = names_of_group(cluster.sandbox())[1]["resourceClaimName"].clone();
    cluster.sandbox().delete_now(&CLAIMS, &key(nic.as_str().unwrap())).unwrap();
    let is_other = |sandbox: &Sandbox| names_of_group(sandbox)[1]["resourceClaimName"] != nic;
    cluster.eventually("it is created again", is_other).await;
    cluster.advance(MINUTE).await;
    assert_eq!(names_of_group(cluster.sandbox())[0]["resourceClaimName"], name(&gpu));
    // No other controller removes the finalizer here.
    let unprotected = json!({ "metadata": { "finalizers": null } });
    cluster.sandbox().patch(&GROUPS, &key("g"), &unprotected).unwrap();
    cluster.sandbox().delete_now(&GROUPS, &key("g")).unwrap();
    cluster.eventually("it is free", |sandbox| is_free(sandbox, name(&gpu))).await;
    fits_role(&cluster, IDENTITY, Roles::Gated);
}

#[tokio::test(start_paused = true)]
async fn t42_a_claim_of_a_group_is_reported_once_while_the_feature_is_off() {
    let environment = environment().arguments(&["--feature-gates=GenericWorkload=true"]).sandbox_options(beta_apis());
    let cluster = start(environment.allow_error("DRAWorkloadResourceClaims")).await;
    create_group(cluster.sandbox(), &json!([of_template("gpu", "t")]));
    cluster.settle().await;
    let mut member = pod("web", &json!([of_template("gpu", "t")]));
    member["spec"]["schedulingGroup"] = json!({ "podGroupName": "g" });
    create_pod(cluster.sandbox(), member);
    cluster.advance(10 * MINUTE).await;
    let events = cluster.events_of(COMPONENT);
    let expected = "claim gpu is a PodGroup claim but the DRAWorkloadResourceClaims feature is disabled";
    assert!(events.len() == 1 && events[0].ends_with(expected), "{events:?}");
    assert!(cluster.sandbox().list(&CLAIMS, None).is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    assert_eq!(kill_after_each_write(environment, life).await, 7);
    assert_eq!(kill_after_each_write(environment, shared).await, 3);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault.resource(CLAIMS));
        life(&cluster).await;
    }
    for fault in passing_faults() {
        let cluster = environment().start().await;
        cluster.sandbox().faults().inject(fault.resource(CLAIMS));
        shared(&cluster).await;
        cluster.eventually("it is free", |sandbox| is_free(sandbox, "shared")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn late_watches_create_no_claim_twice() {
    let cluster = environment().start().await;
    for resource in [CLAIMS, PODS] {
        cluster.sandbox().faults().delay_events(&resource, Duration::from_secs(20));
    }
    life(&cluster).await;
    assert_eq!(cluster.bodies_of(IDENTITY, "POST").len(), 2);
}
