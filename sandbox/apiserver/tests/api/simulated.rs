//! Seams of simulations: forks, a clock that is set by hand, and requests and watches without a runtime.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use kcm_sandbox_apiserver::{
    CONFIG_MAPS, Exchanged, Fault, LineKind, ManualClock, ObjectKey, OpenWatch, Sandbox, SandboxOptions, Verb,
    WatchStep,
};
use serde_json::{Value, json};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn sandbox() -> Sandbox {
    Sandbox::with_clock(SandboxOptions::default(), ManualClock::default())
}

fn config(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

fn create(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.create(&CONFIG_MAPS, config(name)).expect("the name is free")
}

fn request(method: Method, path: &str, body: &str) -> Request<Bytes> {
    Request::builder().method(method).uri(path).body(Bytes::from(body.to_owned())).expect("the request is well formed")
}

fn response(exchanged: Exchanged) -> (u16, Value) {
    match exchanged {
        Exchanged::Response(response) => {
            (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
        }
        other @ (Exchanged::Watch(_) | Exchanged::Lost | Exchanged::Silence) => panic!("no response but {other:?}"),
    }
}

fn watch(sandbox: &Sandbox, query: &str) -> OpenWatch {
    match sandbox.exchange(request(Method::GET, &format!("{PATH}?watch=true&{query}"), "")) {
        Exchanged::Watch(watch) => watch,
        other @ (Exchanged::Response(_) | Exchanged::Lost | Exchanged::Silence) => panic!("no watch but {other:?}"),
    }
}

fn lines(watch: &mut OpenWatch) -> Vec<(LineKind, String)> {
    let mut lines = Vec::new();
    while let WatchStep::Line(line) = watch.step() {
        let event: Value = serde_json::from_slice(&line.bytes).expect("a line is JSON");
        lines.push((line.kind, event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned()));
    }
    lines
}

#[test]
fn a_fork_shares_nothing_that_can_change() {
    let first = sandbox();
    create(&first, "before");
    first.faults().inject(Fault::on(Verb::Create).disconnect());
    let clock = ManualClock::default();
    let fork = first.fork(clock.clone());
    let version = first.version();

    create(&fork, "in-fork");
    fork.delete(&CONFIG_MAPS, &ObjectKey::namespaced("default", "before")).expect("it exists");
    fork.admit(|_| Err(kcm_sandbox_apiserver::Status::bad_request("never")));
    clock.advance_to(Duration::from_mins(1));
    assert_eq!(first.version(), version, "the first server has no write of the fork");
    assert!(first.get(&CONFIG_MAPS, &ObjectKey::namespaced("default", "in-fork")).is_none());
    assert!(first.get(&CONFIG_MAPS, &ObjectKey::namespaced("default", "before")).is_some());
    assert_eq!(fork.now().as_second() - first.now().as_second(), 60, "each has its clock");
    create(&first, "after-fork");
    assert!(fork.get(&CONFIG_MAPS, &ObjectKey::namespaced("default", "after-fork")).is_none());
    assert!(fork.requests().is_empty());

    let other = first.fork(ManualClock::default());
    let (status, _) = response(other.exchange(request(Method::POST, PATH, &config("no-fault").to_string())));
    assert_eq!(status, 201, "a fork has no injected faults");
}

#[test]
fn two_forks_write_the_same() {
    let first = sandbox();
    create(&first, "before");
    let written = || create(&first.fork(ManualClock::default()), "new");
    assert_eq!(written(), written());
}

#[test]
fn a_fork_keeps_the_past_events_and_continues_the_time() {
    let first = Sandbox::with_clock(SandboxOptions::default(), ManualClock::at(Duration::from_secs(90)));
    let version = first.version();
    create(&first, "before");
    let fork = first.fork(ManualClock::default());
    assert_eq!(fork.now(), first.now());
    create(&fork, "after");
    let mut watch = watch(&fork, &format!("resourceVersion={version}"));
    assert_eq!(lines(&mut watch), [(LineKind::Added, "before".to_owned()), (LineKind::Added, "after".to_owned())]);
}

#[test]
fn requests_need_no_runtime() {
    let sandbox = sandbox();
    let (status, created) = response(sandbox.exchange(request(Method::POST, PATH, &config("one").to_string())));
    assert_eq!((status, &created["metadata"]["name"]), (201, &json!("one")));
    let (status, list) = response(sandbox.exchange(request(Method::GET, PATH, "")));
    assert_eq!((status, list["items"].as_array().map(Vec::len)), (200, Some(1)));
    let (status, _) = response(sandbox.exchange(request(Method::GET, &format!("{PATH}/none"), "")));
    assert_eq!(status, 404);
    sandbox.faults().inject(Fault::on(Verb::Create).lose_answer());
    let unanswered = sandbox.exchange(request(Method::POST, PATH, &config("two").to_string()));
    assert!(matches!(unanswered, Exchanged::Lost), "{unanswered:?}");
    assert!(sandbox.get(&CONFIG_MAPS, &ObjectKey::namespaced("default", "two")).is_some());
}

#[test]
fn a_watch_is_read_line_by_line() {
    let sandbox = sandbox();
    create(&sandbox, "one");
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = watch(&sandbox, query);
    assert!(watch.allows_bookmarks());
    assert_eq!(lines(&mut watch), [(LineKind::Added, "one".to_owned()), (LineKind::Bookmark, String::new())]);
    create(&sandbox, "two");
    sandbox.delete(&CONFIG_MAPS, &ObjectKey::namespaced("default", "one")).expect("it exists");
    assert_eq!(lines(&mut watch), [(LineKind::Added, "two".to_owned()), (LineKind::Deleted, "one".to_owned())]);
    assert_eq!(watch.bookmark().kind, LineKind::Bookmark);
    assert!(matches!(watch.step(), WatchStep::Waiting));
}

#[test]
fn a_watch_from_a_compacted_version_sends_an_error_and_ends() {
    let sandbox = sandbox();
    let version = sandbox.version();
    create(&sandbox, "one");
    sandbox.compact();
    let mut watch = watch(&sandbox, &format!("resourceVersion={version}"));
    assert_eq!(lines(&mut watch), [(LineKind::Error, String::new())]);
    assert!(matches!(watch.step(), WatchStep::Ended));
}
