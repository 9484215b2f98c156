//! Rows of API behaviour: a request in a situation, its response, and the events of a watch.

use crate::support::{TestRequest, brief, call, done, watch};
use kcm_sandbox_apiserver::{Sandbox, SandboxOptions};
use serde_json::{Value, json};

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const WEB: &str = "/api/v1/namespaces/default/pods/web";
pub(crate) const SET: &str = "/apis/apps/v1/namespaces/default/replicasets/web";
pub(crate) const SET_STATUS: &str = "/apis/apps/v1/namespaces/default/replicasets/web/status";
pub(crate) const MAP: &str = "/api/v1/namespaces/default/configmaps/web";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";

/// A request in a situation, its response, and the events of a watch of `watched`.
///
/// `{version}` and `{uid}` stand for the version and the uid in the last response of `given`.
pub(crate) struct Row {
    name: &'static str,
    given: Vec<TestRequest>,
    ask: TestRequest,
    code: u16,
    body: Vec<(&'static str, Value)>,
    watched: &'static str,
    events: Vec<&'static str>,
}

pub(crate) fn row(
    name: &'static str,
    given: Vec<TestRequest>,
    ask: TestRequest,
    code: u16,
    body: Vec<(&'static str, Value)>,
) -> Row {
    Row { name, given, ask, code, body, watched: PODS, events: Vec::new() }
}

impl Row {
    pub(crate) fn sees(mut self, watched: &'static str, events: Vec<&'static str>) -> Self {
        self.watched = watched;
        self.events = events;
        self
    }
}

pub(crate) async fn check(row: Row) {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let (mut version, mut uid) = (String::new(), String::new());
    for ask in row.given {
        let answer = done(&sandbox, &ask.with("version", &version).with("uid", &uid)).await;
        answer.text_at("/metadata/resourceVersion").clone_into(&mut version);
        answer.text_at("/metadata/uid").clone_into(&mut uid);
    }
    let from = sandbox.version();
    let separator = if row.watched.contains('?') { '&' } else { '?' };
    let path = format!("{}{separator}watch=true&resourceVersion={from}&timeoutSeconds=1", row.watched);
    let mut watching = watch(&sandbox, &path).await;

    let ask = row.ask.with("version", &version).with("uid", &uid);
    let answer = call(&sandbox, &ask).await.expect("no fault is at work");
    assert_eq!(answer.code, row.code, "{}: {}", row.name, answer.text);
    let content_type = if answer.json.is_null() { "text/plain; charset=utf-8" } else { "application/json" };
    assert_eq!(answer.headers["content-type"], content_type, "{}", row.name);
    for (pointer, expected) in row.body {
        let found = answer.json.pointer(pointer).unwrap_or(&Value::Null);
        assert_eq!(*found, expected, "{}: {pointer} of {}", row.name, answer.text);
    }
    if row.code >= 400 && answer.json["kind"] == "Status" {
        assert_eq!(answer.json["code"], row.code, "{}: the status repeats the code", row.name);
        assert_eq!(sandbox.version(), from, "{}: a refused request writes nothing", row.name);
    }
    let events: Vec<String> = watching.rest().await.iter().map(brief).collect();
    assert_eq!(events, row.events, "{}: events", row.name);
}

pub(crate) fn reason(reason: &str, message: &str) -> Vec<(&'static str, Value)> {
    vec![("/status", json!("Failure")), ("/reason", json!(reason)), ("/message", json!(message))]
}
