//! Lifecycles of pods, as clients observe them.

use kcm_sandbox_apiserver::PODS;
use serde_json::{Value, json};

use crate::support::{condition, key, lab, pass, pod, rules, text, why, with};

const STATE: &str = "/status/containerStatuses/0/state";

fn waits_for(pod: &Value) -> String {
    text(pod, &format!("{STATE}/waiting/reason"))
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_scheduled_created_started_and_ready() {
    let lab = lab(1);
    lab.create(pod("web", "web:1"));
    lab.until("web is being created", |lab| waits_for(&lab.pod("web")) == "ContainerCreating").await;
    assert_eq!(text(&lab.pod("web"), "/status/phase"), "Pending");
    assert_eq!(condition(&lab.pod("web"), "PodScheduled"), "True");
    assert_eq!(why(&lab.pod("web"), "Ready"), "False ContainersNotReady: containers with unready status: [main]");

    lab.until_ready("web").await;
    let web = lab.pod("web");
    assert_eq!(text(&web, "/status/phase"), "Running");
    for kind in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        assert_eq!(condition(&web, kind), "True", "{kind}");
    }
    assert_eq!(text(&web, "/status/hostIP"), text(&lab.node("node-1"), "/status/addresses/0/address"));
    assert!(text(&web, "/status/podIP").starts_with("10.128.1."), "{}", web["status"]);
    assert_eq!(web["status"]["observedGeneration"], web["metadata"]["generation"]);
    let container = &web["status"]["containerStatuses"][0];
    assert_eq!(
        (&container["started"], &container["ready"], &container["restartCount"]),
        (&json!(true), &json!(true), &json!(0))
    );
    assert!(text(container, "/imageID").starts_with("web@sha256:"));
    assert_eq!(lab.events("web"), ["Scheduled", "Pulling", "Pulled", "Created", "Started"]);

    lab.create(pod("two", "web:1"));
    lab.until_ready("two").await;
    assert_eq!(lab.events("two"), ["Scheduled", "Pulled", "Created", "Started"], "the node has the image");
    assert_ne!(text(&lab.pod("two"), "/status/podIP"), text(&web, "/status/podIP"));
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_probes_and_gates() {
    let lab = lab(1);
    let probe =
        ("/spec/containers/0/readinessProbe", json!({ "initialDelaySeconds": 20, "tcpSocket": { "port": 80 } }));
    let gate = ("/spec/readinessGates", json!([{ "conditionType": "example.com/go" }]));
    lab.create(with(pod("web", "web:1"), &[probe, gate]));
    lab.until("web runs", |lab| text(&lab.pod("web"), "/status/phase") == "Running").await;
    assert_eq!(condition(&lab.pod("web"), "ContainersReady"), "False");
    pass(15_000).await;
    assert_eq!(condition(&lab.pod("web"), "ContainersReady"), "False");
    pass(6_000).await;
    assert_eq!(condition(&lab.pod("web"), "ContainersReady"), "True");
    let missing = "False ReadinessGatesNotReady: corresponding condition of pod readiness gate \"example.com/go\" does not exist.";
    assert_eq!(why(&lab.pod("web"), "Ready"), missing);

    let mut conditions = lab.pod("web")["status"]["conditions"].clone();
    conditions
        .as_array_mut()
        .expect("conditions are a list")
        .push(json!({ "type": "example.com/go", "status": "True" }));
    let patch = json!({ "status": { "conditions": conditions } });
    lab.sandbox.patch_status(&PODS, &key("web"), &patch).expect("the patch is valid");
    lab.until_ready("web").await;
    assert_eq!(condition(&lab.pod("web"), "example.com/go"), "True", "what others say stays");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_missing_is_backed_off_from_until_it_is_replaced() {
    let lab = lab(1);
    lab.create(pod("web", "web:missing"));
    lab.until("the pull fails", |lab| waits_for(&lab.pod("web")) == "ErrImagePull").await;
    lab.until("it is backed off from", |lab| waits_for(&lab.pod("web")) == "ImagePullBackOff").await;
    pass(3_600_000).await;
    assert_eq!(text(&lab.pod("web"), "/status/phase"), "Pending");
    assert_eq!(
        lab.events("web").iter().filter(|reason| *reason == "BackOff").count(),
        1,
        "repeated events are counted"
    );

    let mut web = lab.pod("web");
    web["spec"]["containers"][0]["image"] = json!("web:2");
    lab.sandbox.update(&PODS, web).expect("an image may change");
    lab.until_ready("web").await;
    assert_eq!(text(&lab.pod("web"), "/status/containerStatuses/0/image"), "web:2");
}

#[tokio::test(start_paused = true)]
async fn a_crashing_container_is_backed_off_from_ever_longer() {
    let lab = lab(1);
    lab.create(with(pod("web", "web:1"), &[("/metadata/annotations/sandbox~1pod", json!("crash after=5s"))]));
    let mut waits = Vec::new();
    for _ in 0..6 {
        lab.until("the container waits", |lab| waits_for(&lab.pod("web")) == "CrashLoopBackOff").await;
        let message = text(&lab.pod("web"), &format!("{STATE}/waiting/message"));
        waits.push(message.split(' ').nth(1).unwrap_or_default().to_owned());
        lab.until("the container runs again", |lab| {
            !lab.pod("web").pointer(STATE).is_some_and(|state| state["running"].is_null())
        })
        .await;
    }
    assert_eq!(waits, ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s"]);
    let status = &lab.pod("web")["status"]["containerStatuses"][0];
    assert_eq!(status["restartCount"], 7);
    assert_eq!(text(status, "/lastState/terminated/reason"), "Error");
    assert_eq!(text(&lab.pod("web"), "/status/phase"), "Running");
}

#[tokio::test(start_paused = true)]
async fn a_container_may_crash_so_many_times_and_then_run() {
    let lab = lab(1);
    lab.create(with(pod("web", "web:1"), &[("/metadata/annotations/sandbox~1pod", json!("crash times=2 ready=3s"))]));
    lab.until_ready("web").await;
    pass(600_000).await;
    assert_eq!(lab.pod("web")["status"]["containerStatuses"][0]["restartCount"], 2);
}

#[tokio::test(start_paused = true)]
async fn containers_that_end_give_the_pod_its_phase() {
    for (policy, phrase, expected) in [
        ("Never", "finish", "Succeeded"),
        ("Never", "exit=3", "Failed"),
        ("OnFailure", "finish", "Succeeded"),
        ("OnFailure", "exit=3 times=1 after=1s", "Running"),
        ("Always", "finish", "Running"),
    ] {
        let lab = lab(1);
        let policy = ("/spec/restartPolicy", json!(policy));
        lab.create(with(pod("job", "job:1"), &[policy, ("/metadata/annotations/sandbox~1pod", json!(phrase))]));
        pass(30_000).await;
        assert_eq!(text(&lab.pod("job"), "/status/phase"), expected, "{phrase}");
    }
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_in_order_and_sidecars_stay() {
    let lab = lab(1);
    let init = json!([
        { "name": "first", "image": "a:1" },
        { "name": "side", "image": "b:1", "restartPolicy": "Always" },
        { "name": "second", "image": "c:1" },
    ]);
    lab.create(with(pod("web", "web:1"), &[("/spec/initContainers", init)]));
    let runs = |pod: &Value, list: &str, at: usize| !pod["status"][list][at]["state"]["running"].is_null();
    lab.until("first runs", |lab| runs(&lab.pod("web"), "initContainerStatuses", 0)).await;
    assert!(!runs(&lab.pod("web"), "initContainerStatuses", 1));
    assert_eq!(waits_for(&lab.pod("web")), "PodInitializing");
    assert_eq!(
        why(&lab.pod("web"), "Initialized"),
        "False ContainersNotInitialized: containers with incomplete status: [first side second]"
    );
    lab.until("second runs", |lab| runs(&lab.pod("web"), "initContainerStatuses", 2)).await;
    assert!(runs(&lab.pod("web"), "initContainerStatuses", 1));
    lab.until_ready("web").await;
    assert!(runs(&lab.pod("web"), "initContainerStatuses", 1));
    assert_eq!(condition(&lab.pod("web"), "Initialized"), "True");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_stops_within_its_grace_period_and_is_removed() {
    let lab = lab(1);
    lab.create(pod("web", "web:1"));
    lab.until_ready("web").await;
    lab.sandbox.delete(&PODS, &key("web")).expect("the pod is there");
    assert_eq!(lab.pod("web")["metadata"]["deletionGracePeriodSeconds"], 30);
    pass(200).await;
    assert_eq!(condition(&lab.pod("web"), "Ready"), "True", "it still runs");
    pass(2_000).await;
    assert_eq!(lab.pod("web"), Value::Null);
    assert_eq!(lab.messages("web", "Killing"), ["Stopping container main"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_does_not_stop_is_killed_after_its_grace_and_one_that_is_stuck_is_not() {
    let lab = lab(1);
    let phrase = |phrase: &str| ("/metadata/annotations/sandbox~1pod", json!(phrase));
    lab.create(with(pod("slow", "web:1"), &[phrase("stop=never")]));
    lab.create(pod("stuck", "web:stuck"));
    for name in ["slow", "stuck"] {
        lab.until_ready(name).await;
        lab.sandbox.delete(&PODS, &key(name)).expect("the pod is there");
    }
    pass(29_000).await;
    assert_ne!(lab.pod("slow"), Value::Null);
    pass(2_000).await;
    assert_eq!(lab.pod("slow"), Value::Null);
    pass(3_600_000).await;
    assert_ne!(lab.pod("stuck"), Value::Null);
    let unstick = json!({ "metadata": { "annotations": { "sandbox/pod": "stop=1s" } } });
    lab.sandbox.patch(&PODS, &key("stuck"), &unstick).expect("annotations may change");
    lab.until_gone(&PODS, &key("stuck")).await;
}

#[tokio::test(start_paused = true)]
async fn another_image_restarts_a_running_container() {
    let lab = lab(1);
    lab.create(pod("web", "web:1"));
    lab.until_ready("web").await;
    let mut web = lab.pod("web");
    web["spec"]["containers"][0]["image"] = json!("web:2");
    lab.sandbox.update(&PODS, web).expect("an image may change");
    lab.until("web runs the other image", |lab| {
        let status = &lab.pod("web")["status"]["containerStatuses"][0];
        status["image"] == "web:2" && status["restartCount"] == 1 && status["ready"] == true
    })
    .await;
    assert_eq!(lab.messages("web", "Killing"), ["Container main definition changed, will be restarted"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_ends_at_its_deadline() {
    let lab = lab(1);
    lab.create(with(pod("web", "web:1"), &[("/spec/activeDeadlineSeconds", json!(60))]));
    lab.until_ready("web").await;
    pass(61_000).await;
    let web = lab.pod("web");
    assert_eq!(
        (text(&web, "/status/phase"), text(&web, "/status/reason")),
        ("Failed".into(), "DeadlineExceeded".into())
    );
    assert_eq!(web["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137);
}

#[tokio::test(start_paused = true)]
async fn rules_and_annotations_say_what_pods_do_while_they_run_too() {
    let lab = crate::support::lab_with(rules("pods:\n- labels: {app: web}\n  do: ready=never\n"));
    lab.create(pod("web", "web:1"));
    pass(60_000).await;
    assert_eq!(condition(&lab.pod("web"), "Ready"), "False");
    let annotate = |phrase: &str| {
        let patch = json!({ "metadata": { "annotations": { "sandbox/pod": phrase } } });
        lab.sandbox.patch(&PODS, &key("web"), &patch).expect("annotations may change");
    };
    annotate("ready=1s");
    lab.until_ready("web").await;
    annotate("crahs");
    pass(1_000).await;
    assert_eq!(condition(&lab.pod("web"), "Ready"), "False", "the rule counts again");
    assert_eq!(lab.messages("web", "UnknownBehaviour").len(), 1);
    annotate("crash ready=1s");
    lab.until("web crashes", |lab| waits_for(&lab.pod("web")) == "CrashLoopBackOff").await;
}

#[tokio::test(start_paused = true)]
async fn seeds_and_requests_decide_everything() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let lab = lab(3);
        for at in 0..20 {
            lab.create(pod(&format!("web-{at}"), if at % 3 == 0 { "web:crash" } else { "web:1" }));
        }
        pass(60_000).await;
        let pods: Vec<String> = lab.sandbox.list(&PODS, None).iter().map(Value::to_string).collect();
        seen.push((pods, lab.sandbox.version()));
    }
    assert_eq!(seen[0], seen[1]);
}
