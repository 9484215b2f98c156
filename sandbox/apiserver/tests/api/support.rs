//! Requests to a sandbox over its service, and what comes back.

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use kcm_sandbox_apiserver::{ConnectionLost, ResponseBody, Sandbox};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A request, written down.
#[derive(Debug, Clone)]
pub(crate) struct TestRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

fn ask(method: Method, path: &str, body: String) -> TestRequest {
    TestRequest { method, path: path.to_owned(), headers: Vec::new(), body }
}

pub(crate) fn get(path: &str) -> TestRequest {
    ask(Method::GET, path, String::new())
}

pub(crate) fn post(path: &str, body: &Value) -> TestRequest {
    ask(Method::POST, path, body.to_string())
}

pub(crate) fn put(path: &str, body: &Value) -> TestRequest {
    ask(Method::PUT, path, body.to_string())
}

pub(crate) fn patch(content_type: &'static str, path: &str, body: &Value) -> TestRequest {
    ask(Method::PATCH, path, body.to_string()).header("content-type", content_type)
}

pub(crate) fn merge(path: &str, body: &Value) -> TestRequest {
    patch("application/merge-patch+json", path, body)
}

pub(crate) fn strategic(path: &str, body: &Value) -> TestRequest {
    patch("application/strategic-merge-patch+json", path, body)
}

pub(crate) fn delete(path: &str) -> TestRequest {
    ask(Method::DELETE, path, String::new())
}

pub(crate) fn delete_with(path: &str, options: &Value) -> TestRequest {
    ask(Method::DELETE, path, options.to_string())
}

impl TestRequest {
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same request with `{name}` replaced wherever it stands.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        let placeholder = format!("{{{name}}}");
        self.path = self.path.replace(&placeholder, value);
        self.body = self.body.replace(&placeholder, value);
        self
    }
}

/// A response with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Answer {
    pub(crate) fn text_at(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

pub(crate) async fn open(sandbox: &Sandbox, ask: &TestRequest) -> Result<http::Response<ResponseBody>, ConnectionLost> {
    let mut request = Request::builder().method(ask.method.clone()).uri(&ask.path);
    for (name, value) in &ask.headers {
        request = request.header(*name, value);
    }
    let body = Full::new(Bytes::from(ask.body.clone()));
    sandbox.service().oneshot(request.body(body).expect("a test asks well-formed requests")).await
}

pub(crate) async fn call(sandbox: &Sandbox, ask: &TestRequest) -> Result<Answer, ConnectionLost> {
    let (parts, body) = open(sandbox, ask).await?.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let text = String::from_utf8(bytes.to_vec()).expect("answers are text");
    let json = serde_json::from_str(&text).unwrap_or_default();
    Ok(Answer { code: parts.status.as_u16(), headers: parts.headers, text, json })
}

/// A call that must succeed.
pub(crate) async fn done(sandbox: &Sandbox, ask: &TestRequest) -> Answer {
    let answer = call(sandbox, ask).await.expect("no fault is at work");
    assert!(answer.code < 300, "{} {} {}: {}", ask.method, ask.path, ask.body, answer.text);
    answer
}

pub(crate) struct Watching {
    body: ResponseBody,
}

pub(crate) async fn watch(sandbox: &Sandbox, path: &str) -> Watching {
    watch_with(sandbox, &get(path)).await
}

/// A watch that a request with headers of its own opens.
pub(crate) async fn watch_with(sandbox: &Sandbox, ask: &TestRequest) -> Watching {
    let response = open(sandbox, ask).await.expect("the watch is not refused");
    assert_eq!(response.status(), 200, "a watch of {}", ask.path);
    Watching { body: response.into_body() }
}

impl Watching {
    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Result<Value, ConnectionLost>> {
        let frame = self.body.frame().await?;
        Some(frame.map(|frame| {
            let data = frame.into_data().expect("a watch sends data");
            assert!(data.ends_with(b"\n"), "an event is a line");
            serde_json::from_slice(&data).expect("an event is JSON")
        }))
    }

    /// The next event in short, see [`brief`].
    pub(crate) async fn brief(&mut self) -> String {
        match self.next().await {
            Some(Ok(event)) => brief(&event),
            Some(Err(lost)) => lost.to_string(),
            None => "end".to_owned(),
        }
    }

    /// All that comes until the stream ends.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(Ok(event)) = self.next().await {
            events.push(event);
        }
        events
    }

    /// Returns `true` if no event comes for 59 seconds, which is before the next bookmark.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        tokio::time::timeout(std::time::Duration::from_secs(59), self.next()).await.is_err()
    }
}

/// `ADDED web-1`, `BOOKMARK`, or `ERROR 410`.
pub(crate) fn brief(event: &Value) -> String {
    let kind = event["type"].as_str().unwrap_or_default();
    match kind {
        "ERROR" => format!("ERROR {}", event["object"]["code"]),
        "BOOKMARK" => "BOOKMARK".to_owned(),
        _ => format!("{kind} {}", event["object"]["metadata"]["name"].as_str().unwrap_or_default()),
    }
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
    })
}

pub(crate) fn replica_set(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
            },
        },
    })
}

/// `object` with a JSON merge patch laid over it.
pub(crate) fn with(mut object: Value, patch: &Value) -> Value {
    fn lay(target: &mut Value, patch: &Value) {
        let Some(patch) = patch.as_object() else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        for (field, value) in patch {
            if value.is_null() {
                target.as_object_mut().expect("just made a map").remove(field);
            } else {
                lay(&mut target[field], value);
            }
        }
    }
    lay(&mut object, patch);
    object
}
