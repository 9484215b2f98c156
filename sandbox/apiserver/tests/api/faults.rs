//! Faults, and that nothing else changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kcm_api::ObjectKey;
use kcm_sandbox_apiserver::{ConnectionLost, Cut, Fault, PODS, REPLICA_SETS, Sandbox, Status, Verb};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::rows::{PODS as PODS_PATH, SETS, WEB};
use crate::support::{call, done, get, merge, pod, post, put, replica_set, watch, with};

async fn watching_pods(sandbox: &Sandbox) -> crate::support::Watching {
    watch(sandbox, &format!("{PODS_PATH}?watch=1&resourceVersion={}&allowWatchBookmarks=true", sandbox.version())).await
}

#[tokio::test(start_paused = true)]
async fn a_request_fails_with_the_given_status_from_one_occurrence_to_another() {
    let sandbox = Sandbox::default();
    let status = Status::forbidden(&PODS, "", "no");
    let fault = sandbox.faults().inject(Fault::on(Verb::Create).resource(PODS).skip(1).times(2).fail(status));
    let mut codes = Vec::new();
    for name in ["a", "b", "c", "d"] {
        codes.push(call(&sandbox, &post(PODS_PATH, &pod(name))).await.expect("answers come").code);
    }
    assert_eq!(codes, [201, 403, 403, 201]);
    assert_eq!((fault.matched(), fault.hits()), (4, 2));
    assert_eq!(sandbox.list(&PODS, None).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_fault_hits_what_it_matches_and_nothing_else() {
    let sandbox = Sandbox::default();
    let gone = || Status::new(503, "ServiceUnavailable", "down");
    let faults = sandbox.faults();
    faults.inject(Fault::on(Verb::Create).resource(PODS).name("a").fail(gone()));
    faults.inject(Fault::on(Verb::Update).resource(REPLICA_SETS).subresource("status").fail(gone()));
    faults.inject(Fault::on_any().namespace("kube-system").when(|target| !target.verb.is_write()).fail(gone()));
    let code = async |ask| call(&sandbox, &ask).await.expect("answers come").code;
    assert_eq!(code(post(PODS_PATH, &pod("a"))).await, 503);
    assert_eq!(code(post(PODS_PATH, &pod("b"))).await, 201);
    assert_eq!(code(post(SETS, &replica_set("web"))).await, 201);
    assert_eq!(code(put(&format!("{SETS}/web"), &replica_set("web"))).await, 200);
    assert_eq!(code(put(&format!("{SETS}/web/status"), &replica_set("web"))).await, 503);
    assert_eq!(code(get("/api/v1/namespaces/kube-system/pods")).await, 503);
    assert_eq!(code(post("/api/v1/namespaces/kube-system/pods", &pod("a"))).await, 503, "the first fault");
    faults.clear();
    assert_eq!(code(get("/api/v1/namespaces/kube-system/pods")).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_the_write_and_a_lost_request_does_not() {
    let sandbox = Sandbox::default();
    sandbox.faults().inject(Fault::on(Verb::Create).name("done").lose_answer());
    sandbox.faults().inject(Fault::on(Verb::Create).name("never").disconnect());
    for name in ["done", "never"] {
        assert_eq!(call(&sandbox, &post(PODS_PATH, &pod(name))).await.err(), Some(ConnectionLost), "{name}");
    }
    assert!(sandbox.get(&PODS, &ObjectKey::namespaced("default", "done")).is_some());
    assert!(sandbox.get(&PODS, &ObjectKey::namespaced("default", "never")).is_none());
    assert!(sandbox.requests().iter().all(|request| request.status.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_request_takes_effect_late_and_a_stalled_one_never() {
    let sandbox = Sandbox::default();
    let delay = Duration::from_secs(7);
    let fault = sandbox.faults().inject(Fault::on_writes().delay(delay));
    let before = Instant::now();
    done(&sandbox, &post(PODS_PATH, &pod("a"))).await;
    assert_eq!(before.elapsed(), delay);
    fault.remove();
    sandbox.faults().inject(Fault::on_writes().stall());
    let request = post(PODS_PATH, &pod("b"));
    assert!(timeout(Duration::from_hours(1), call(&sandbox, &request)).await.is_err());
    assert_eq!(sandbox.list(&PODS, None).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn held_watches_send_all_events_after_release() {
    let sandbox = Sandbox::default();
    let mut held = watching_pods(&sandbox).await;
    sandbox.faults().hold_watches(&PODS);
    done(&sandbox, &post(PODS_PATH, &pod("a"))).await;
    sandbox.bookmark(&PODS);
    assert!(held.is_quiet().await);
    sandbox.faults().release_watches(&PODS);
    assert_eq!(held.brief().await, "ADDED a");
    assert_eq!(held.brief().await, "BOOKMARK");
}

#[tokio::test(start_paused = true)]
async fn delayed_events_come_late_and_in_order() {
    let sandbox = Sandbox::default();
    let mut watching = watching_pods(&sandbox).await;
    sandbox.faults().delay_events(&PODS, Duration::from_secs(10));
    done(&sandbox, &post(PODS_PATH, &pod("a"))).await;
    let written = Instant::now();
    tokio::time::advance(Duration::from_secs(4)).await;
    done(&sandbox, &post(PODS_PATH, &pod("b"))).await;
    assert_eq!(watching.brief().await, "ADDED a");
    assert_eq!(written.elapsed().as_secs(), 10);
    assert_eq!(watching.brief().await, "ADDED b");
    assert_eq!(written.elapsed().as_secs(), 14);
}

#[tokio::test(start_paused = true)]
async fn dropped_events_reach_no_watch() {
    let sandbox = Sandbox::default();
    let mut watching = watching_pods(&sandbox).await;
    let from = sandbox.version();
    sandbox.faults().drop_events(&PODS, 1);
    for name in ["a", "b"] {
        done(&sandbox, &post(PODS_PATH, &pod(name))).await;
    }
    assert_eq!(watching.brief().await, "ADDED b");
    let mut late = watch(&sandbox, &format!("{PODS_PATH}?watch=1&resourceVersion={from}")).await;
    assert_eq!(late.brief().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn open_watches_are_cut_and_new_ones_are_not() {
    for (how, expected) in [(Cut::Clean, "end"), (Cut::Broken, "connection lost")] {
        let sandbox = Sandbox::default();
        let mut old = watching_pods(&sandbox).await;
        sandbox.faults().cut_watches(&PODS, how);
        let mut new = watching_pods(&sandbox).await;
        assert_eq!(old.brief().await, expected);
        assert_eq!(old.brief().await, "end");
        done(&sandbox, &post(PODS_PATH, &pod("a"))).await;
        assert_eq!(new.brief().await, "ADDED a");
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_watch_breaks_after_so_many_events() {
    let sandbox = Sandbox::default();
    for name in ["a", "b"] {
        done(&sandbox, &post(PODS_PATH, &pod(name))).await;
    }
    sandbox.faults().cut_next_watch(&PODS, 1, Cut::Broken);
    let path = format!("{PODS_PATH}?watch=1");
    let mut watching = watch(&sandbox, &path).await;
    assert_eq!(watching.brief().await, "ADDED a");
    assert_eq!(watching.brief().await, "connection lost");
    let mut again = watch(&sandbox, &path).await;
    assert_eq!([again.brief().await, again.brief().await], ["ADDED a", "ADDED b"]);
}

#[tokio::test(start_paused = true)]
async fn a_silenced_watch_neither_sends_nor_ends() {
    let sandbox = Sandbox::default();
    let mut old = watch(&sandbox, &format!("{PODS_PATH}?watch=1&timeoutSeconds=60")).await;
    sandbox.faults().silence_watches(&PODS);
    let mut new = watching_pods(&sandbox).await;
    done(&sandbox, &post(PODS_PATH, &pod("a"))).await;
    assert_eq!(new.brief().await, "ADDED a");
    assert!(timeout(Duration::from_hours(24), old.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn frozen_lists_are_old_only_where_that_is_allowed() {
    let sandbox = Sandbox::default();
    done(&sandbox, &post(PODS_PATH, &pod("a"))).await;
    sandbox.faults().freeze_lists(&PODS);
    done(&sandbox, &post(PODS_PATH, &pod("b"))).await;
    let count = async |query: &str| {
        let list = done(&sandbox, &get(&format!("{PODS_PATH}{query}"))).await;
        list.json["items"].as_array().expect("a list has items").len()
    };
    assert_eq!(count("?resourceVersion=0").await, 1);
    assert_eq!(count("").await, 2);
    assert_eq!(count(&format!("?resourceVersion={}", sandbox.version())).await, 2);
    let mut watching = watch(&sandbox, &format!("{PODS_PATH}?watch=1&resourceVersion=0")).await;
    assert_eq!([watching.brief().await, watching.brief().await], ["ADDED a", "ADDED b"]);
    sandbox.faults().thaw_lists(&PODS);
    assert_eq!(count("?resourceVersion=0").await, 2);
}

#[tokio::test(start_paused = true)]
async fn admission_refuses_what_a_hook_refuses() {
    let sandbox = Sandbox::default();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counter = attempts.clone();
    sandbox.admit(move |attempt| {
        if attempt.verb != Verb::Create || *attempt.resource != PODS {
            return Ok(());
        }
        counter.fetch_add(1, Ordering::Relaxed);
        let used = attempt.count(&PODS, attempt.key.namespace());
        if used < 1 { Ok(()) } else { Err(attempt.exceeded_quota("small", "pods", used, 1)) }
    });
    done(&sandbox, &post(PODS_PATH, &pod("a"))).await;
    let refused = call(&sandbox, &post(PODS_PATH, &pod("b"))).await.expect("answers come");
    assert_eq!((refused.code, refused.text_at("/reason")), (403, "Forbidden"));
    assert_eq!(
        refused.text_at("/message"),
        "pods \"b\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1"
    );
    call(&sandbox, &post(PODS_PATH, &with(pod("c"), &json!({ "spec": { "containers": [] } }))))
        .await
        .expect("answers come");
    assert_eq!(attempts.load(Ordering::Relaxed), 2, "an invalid object does not get as far");
}

#[tokio::test(start_paused = true)]
async fn requests_are_logged_with_body_and_response_code() {
    let sandbox = Sandbox::default();
    done(&sandbox, &post(PODS_PATH, &pod("web")).header("user-agent", "someone")).await;
    done(&sandbox, &merge(&format!("{WEB}?fieldManager=me"), &json!({ "metadata": { "labels": { "a": "b" } } }))).await;
    call(&sandbox, &get("/nothing")).await.expect("answers come");
    let requests = sandbox.requests();
    let brief: Vec<_> =
        requests.iter().map(|it| (it.method.as_str(), it.path.as_str(), it.query.as_str(), it.status)).collect();
    assert_eq!(
        brief,
        [
            ("POST", PODS_PATH, "", Some(201)),
            ("PATCH", WEB, "fieldManager=me", Some(200)),
            ("GET", "/nothing", "", Some(404)),
        ]
    );
    assert_eq!(requests[0].headers["user-agent"], "someone");
    assert_eq!(requests[1].body, r#"{"metadata":{"labels":{"a":"b"}}}"#);
    let target = requests[0].target.as_ref().expect("pods are a resource");
    assert_eq!((target.verb, target.name.as_deref()), (Verb::Create, Some("web")));
    sandbox.clear_requests();
    assert!(sandbox.requests().is_empty());
}
