//! Watches: start, events, end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use kcm_sandbox_apiserver::{PODS, Sandbox, SandboxOptions};
use serde_json::{Value, json};

use crate::rows::{MAPS, PODS as PODS_PATH, SETS, WEB};
use crate::support::{brief, call, delete, done, get, merge, pod, post, replica_set, watch, with};

const INITIAL: &str = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn with_pods(names: &[&str]) -> Sandbox {
    let sandbox = Sandbox::default();
    for name in names {
        done(&sandbox, &post(PODS_PATH, &pod(name))).await;
    }
    sandbox
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_sends_the_state_and_a_marked_bookmark() {
    let sandbox = with_pods(&["b", "a"]).await;
    let version = sandbox.version();
    let mut watching = watch(&sandbox, &format!("{PODS_PATH}?{INITIAL}")).await;
    assert_eq!(watching.brief().await, "ADDED a");
    assert_eq!(watching.brief().await, "ADDED b");
    let bookmark = watching.next().await.expect("the stream goes on").expect("nothing breaks");
    assert_eq!(
        bookmark,
        json!({ "type": "BOOKMARK", "object": {
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {
                "resourceVersion": version.to_string(), "annotations": { "k8s.io/initial-events-end": "true" },
            },
            "spec": { "containers": null }, "status": {},
        }})
    );
    done(&sandbox, &post(PODS_PATH, &pod("c"))).await;
    assert_eq!(watching.brief().await, "ADDED c");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_waits_for_the_version_it_wants() {
    let sandbox = with_pods(&[]).await;
    let next = sandbox.version() + 1;
    let path = format!("{PODS_PATH}?{INITIAL}&resourceVersion={next}");
    let (mut watching, _) = tokio::join!(watch(&sandbox, &path), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        done(&sandbox, &post(PODS_PATH, &pod("a"))).await
    });
    assert_eq!(watching.brief().await, "ADDED a");
    let mut too_late = watch(&sandbox, &format!("{PODS_PATH}?{INITIAL}&resourceVersion={}", next + 9)).await;
    assert_eq!(too_late.brief().await, "ERROR 504");
    assert_eq!(too_late.brief().await, "end");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_starts_with_the_state() {
    let sandbox = with_pods(&["a"]).await;
    for version in ["", "&resourceVersion=0"] {
        let mut watching = watch(&sandbox, &format!("{PODS_PATH}?watch=1{version}")).await;
        assert_eq!(watching.brief().await, "ADDED a", "{version:?}");
        assert!(watching.is_quiet().await, "{version:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_starts_from_any_version_in_the_window() {
    let sandbox = with_pods(&["a"]).await;
    let version = sandbox.version();
    done(&sandbox, &merge(&format!("{PODS_PATH}/a"), &json!({ "metadata": { "labels": { "x": "1" } } }))).await;
    done(&sandbox, &post(SETS, &replica_set("web"))).await;
    done(&sandbox, &delete(&format!("{PODS_PATH}/a"))).await;
    let path = format!("{PODS_PATH}?watch=1&resourceVersion={version}&timeoutSeconds=1");
    let events = watch(&sandbox, &path).await.rest().await;
    assert_eq!(events.iter().map(brief).collect::<Vec<_>>(), ["MODIFIED a", "MODIFIED a", "DELETED a"]);
    let versions: Vec<u64> = events
        .iter()
        .map(|event| {
            event["object"]["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok()).expect("a number")
        })
        .collect();
    assert!(versions.is_sorted() && versions[0] > version, "{versions:?}");
    assert_eq!(versions[2], sandbox.version(), "a deletion carries its own version");
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_before_the_window_is_one_error() {
    let sandbox = with_pods(&["a"]).await;
    sandbox.compact();
    let mut watching = watch(&sandbox, &format!("{PODS_PATH}?watch=1&resourceVersion=2")).await;
    let event = watching.next().await.expect("the stream goes on").expect("nothing breaks");
    let message = format!("too old resource version: 2 ({})", sandbox.version());
    assert_eq!(
        event,
        json!({ "type": "ERROR", "object": {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": "Expired", "code": 410, "message": message,
        }})
    );
    assert_eq!(watching.brief().await, "end");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_behind_the_window_is_closed() {
    let sandbox = Sandbox::new(SandboxOptions { watch_window: 10, ..SandboxOptions::default() });
    let mut slow = watch(&sandbox, &format!("{MAPS}?watch=1&resourceVersion={}", sandbox.version())).await;
    for number in 0..11 {
        done(&sandbox, &post(MAPS, &json!({ "metadata": { "name": format!("m{number}") } }))).await;
    }
    assert_eq!(slow.brief().await, "end");
}

/// Counts how often a task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_stays_open_while_other_resources_fill_the_window() {
    let sandbox = Sandbox::new(SandboxOptions { watch_window: 10, ..SandboxOptions::default() });
    let mut watching = watch(&sandbox, &format!("{PODS_PATH}?watch=1&resourceVersion={}", sandbox.version())).await;
    let wakes = Arc::new(Wakes::default());
    let alarm = Waker::from(wakes.clone());
    let mut next = Box::pin(watching.brief());
    assert!(next.as_mut().poll(&mut Context::from_waker(&alarm)).is_pending());
    for number in 0..30 {
        done(&sandbox, &post(MAPS, &json!({ "metadata": { "name": format!("m{number}") } }))).await;
    }
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    done(&sandbox, &post(PODS_PATH, &pod("a"))).await;
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(next.await, "ADDED a");
}

#[tokio::test(start_paused = true)]
async fn entering_a_selection_is_an_addition_and_leaving_it_a_deletion() {
    let sandbox = with_pods(&["web"]).await;
    let path = format!("{PODS_PATH}?watch=1&resourceVersion={}&labelSelector=x%3D1", sandbox.version());
    let mut watching = watch(&sandbox, &path).await;
    for (labels, expected) in [
        (json!({ "y": "1" }), None),
        (json!({ "x": "1" }), Some("ADDED web")),
        (json!({ "y": "2" }), Some("MODIFIED web")),
        (json!({ "x": "2" }), Some("DELETED web")),
    ] {
        let before = sandbox.version();
        done(&sandbox, &merge(WEB, &json!({ "metadata": { "labels": labels } }))).await;
        let Some(expected) = expected else { continue };
        let event = watching.next().await.expect("the stream goes on").expect("nothing breaks");
        assert_eq!(brief(&event), expected);
        assert_eq!(event["object"]["metadata"]["resourceVersion"], json!((before + 1).to_string()));
        if expected.starts_with("DELETED") {
            assert_eq!(event["object"]["metadata"]["labels"]["x"], "1", "the last state that was selected");
        }
    }
    done(&sandbox, &delete(WEB)).await;
    assert!(watching.is_quiet().await, "what was never selected is not seen to go");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_are_seen_from_their_binding_on() {
    let sandbox = with_pods(&["web"]).await;
    let version = sandbox.version();
    let path = format!("/api/v1/pods?watch=1&resourceVersion={version}&fieldSelector=spec.nodeName%3Dn1");
    let mut watching = watch(&sandbox, &path).await;
    let key = kcm_api::ObjectKey::namespaced("default", "web");
    sandbox.bind_pod(&key, "n1").expect("the pod is not bound");
    assert_eq!(watching.brief().await, "ADDED web");
    sandbox.set_pod_ready(&key, true, sandbox.now()).expect("the pod is there");
    assert_eq!(watching.brief().await, "MODIFIED web");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_metadata_sends_partial_objects() {
    let sandbox = with_pods(&["a"]).await;
    let ask = get(&format!("{PODS_PATH}?{INITIAL}&timeoutSeconds=1"))
        .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let text = call(&sandbox, &ask).await.expect("no fault is at work").text;
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).expect("an event is JSON");
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(event["object"]["apiVersion"], "meta.k8s.io/v1");
        assert_eq!(event["object"].get("spec"), None);
    }
    assert_eq!(text.lines().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_on_demand() {
    let sandbox = with_pods(&[]).await;
    let path = format!("{PODS_PATH}?watch=1&resourceVersion={}", sandbox.version());
    let mut plain = watch(&sandbox, &path).await;
    let mut marked = watch(&sandbox, &format!("{path}&allowWatchBookmarks=true")).await;
    done(&sandbox, &post(SETS, &replica_set("web"))).await;

    sandbox.bookmark(&PODS);
    let bookmark = marked.next().await.expect("the stream goes on").expect("nothing breaks");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], json!(sandbox.version().to_string()));
    assert!(marked.is_quiet().await);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(marked.brief().await, "BOOKMARK");
    assert!(tokio::time::timeout(Duration::from_mins(10), plain.next()).await.is_err(), "not asked for");
}

#[tokio::test(start_paused = true)]
async fn the_last_bookmark_comes_two_seconds_before_the_end() {
    let sandbox = with_pods(&[]).await;
    let path = format!("{PODS_PATH}?watch=1&allowWatchBookmarks=true&resourceVersion={}", sandbox.version());
    let mut watching = watch(&sandbox, &format!("{path}&timeoutSeconds=3")).await;
    let mut short = watch(&sandbox, &format!("{path}&timeoutSeconds=2")).await;
    done(&sandbox, &post(SETS, &replica_set("web"))).await;
    let wait = Duration::from_millis(999);
    assert!(tokio::time::timeout(wait, watching.next()).await.is_err());
    tokio::time::advance(Duration::from_millis(1)).await;
    let bookmark = watching.next().await.expect("the stream goes on").expect("nothing breaks");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], json!(sandbox.version().to_string()));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(watching.brief().await, "end");
    assert_eq!(short.brief().await, "end", "it ends too early for a bookmark");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_after_its_timeout() {
    let sandbox = with_pods(&[]).await;
    let mut watching = watch(&sandbox, &format!("{PODS_PATH}?watch=1&timeoutSeconds=5")).await;
    assert_eq!(sandbox.open_watches(&PODS), 1);
    let wait = Duration::from_millis(4_999);
    assert!(tokio::time::timeout(wait, watching.next()).await.is_err());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(watching.brief().await, "end");
    drop(watching);
    assert_eq!(sandbox.open_watches(&PODS), 0);
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_state_until_it_has_left_the_window() {
    let sandbox = with_pods(&["a", "b", "c", "d"]).await;
    let first = done(&sandbox, &get(&format!("{PODS_PATH}?limit=2"))).await;
    let token = first.text_at("/metadata/continue").to_owned();
    done(&sandbox, &delete(&format!("{PODS_PATH}/c"))).await;
    done(&sandbox, &post(PODS_PATH, &pod("cc"))).await;

    let next = format!("{PODS_PATH}?limit=2&continue={token}");
    let second = done(&sandbox, &get(&next)).await;
    assert_eq!(names(&second.json), ["c", "d"]);
    assert_eq!(second.text_at("/metadata/resourceVersion"), first.text_at("/metadata/resourceVersion"));
    assert_eq!(second.json["metadata"].get("continue"), None);

    let mixed = call(&sandbox, &get(&format!("{next}&resourceVersion=2"))).await.expect("no fault is at work");
    assert_eq!(mixed.text_at("/message"), "specifying resource version is not allowed when using continue");

    sandbox.compact();
    let expired = call(&sandbox, &get(&next)).await.expect("no fault is at work");
    assert_eq!((expired.code, expired.text_at("/reason")), (410, "Expired"));
    let inconsistent = expired.text_at("/metadata/continue").to_owned();
    let rest = done(&sandbox, &get(&format!("{PODS_PATH}?continue={inconsistent}"))).await;
    assert_eq!(names(&rest.json), ["cc", "d"]);
}

#[tokio::test(start_paused = true)]
async fn an_exact_list_shows_the_past_or_says_that_it_is_gone() {
    let sandbox = with_pods(&["a"]).await;
    let version = sandbox.version();
    done(&sandbox, &merge(&format!("{PODS_PATH}/a"), &json!({ "metadata": { "labels": { "x": "1" } } }))).await;
    done(&sandbox, &post(PODS_PATH, &with(pod("b"), &json!({})))).await;
    let path = format!("{PODS_PATH}?resourceVersion={version}");
    let past = done(&sandbox, &get(&format!("{path}&resourceVersionMatch=Exact"))).await;
    assert_eq!(names(&past.json), ["a"]);
    assert_eq!(past.json.pointer("/items/0/metadata/labels/x"), None);
    assert_eq!(names(&done(&sandbox, &get(&path)).await.json), ["a", "b"], "not older than");
    sandbox.compact();
    let gone = call(&sandbox, &get(&format!("{path}&resourceVersionMatch=Exact"))).await.expect("no fault is at work");
    assert_eq!(gone.text_at("/message"), "The resourceVersion for the provided list is too old.");
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("a list has items");
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}
