//! Runner of rows over a client.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::compare::{Mismatch, compare};
use crate::rows::{self, Action, Expected, Scenario, Step};
use crate::values::Values;

/// Timeout of a response or an event.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum attempts of an `eventually` step.
const POLL: Duration = Duration::from_millis(100);
/// User agent of the requests; the API server derives the field manager from it.
const USER_AGENT: &str = "scenarios/1";

/// The API server under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The real API server.
    Upstream,
    /// The sandbox, whose differences in a row are expected.
    Sandbox,
}

/// The step at which a row failed, and its mismatches.
#[derive(Debug)]
pub struct Failure {
    /// Name of the failed row.
    pub scenario: String,
    /// Number of the failed step, from 1.
    pub step: usize,
    /// Action of the failed step.
    pub action: String,
    /// Values that differ from the expected ones.
    pub mismatches: Vec<Mismatch>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.scenario)?;
        write!(f, "  step {}: {}", self.step, self.action)?;
        self.mismatches.iter().try_for_each(|mismatch| write!(f, "\n    {mismatch}"))
    }
}

/// Runs a row in a namespace that it creates, which must not exist.
///
/// # Errors
///
/// The first step that did not go as expected. Later steps do not run.
pub async fn run(scenario: &Scenario, client: &kube::Client, namespace: &str, side: Side) -> Result<(), Box<Failure>> {
    let mut play = Play { client, side, values: Values::of_namespace(namespace), watches: BTreeMap::new() };
    let at = |step, action: &str, mismatches| {
        Box::new(Failure { scenario: scenario.name.clone(), step, action: action.to_owned(), mismatches })
    };
    play.make_namespace(namespace).await.map_err(|mismatch| at(0, "making the namespace", vec![mismatch]))?;
    for (index, step) in scenario.steps.iter().enumerate() {
        if side == Side::Sandbox && step.differs.as_ref().is_some_and(|differs| differs.skip) {
            break;
        }
        let action = step.action.to_string();
        let mismatches = play.take(step).await.unwrap_or_else(|mismatch| vec![mismatch]);
        if !mismatches.is_empty() {
            return Err(at(index + 1, &action, mismatches));
        }
    }
    Ok(())
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(send) => f.write_str(&send.line),
            Self::Watch { path, .. } => write!(f, "watch {path}"),
            Self::Events { .. } => f.write_str("events"),
        }
    }
}

struct Play<'a> {
    client: &'a kube::Client,
    side: Side,
    values: Values,
    watches: BTreeMap<String, Events>,
}

/// A response with its whole body.
struct RowResponse {
    code: u16,
    headers: HeaderMap,
    text: String,
}

/// The lines of a watch.
struct Events {
    body: Body,
    buffer: Vec<u8>,
}

/// An error that prevented a step.
fn problem(what: &str, got: impl fmt::Display) -> Mismatch {
    Mismatch { path: what.to_owned(), expected: Value::Null, got: Some(Value::String(got.to_string())) }
}

impl Play<'_> {
    async fn make_namespace(&self, name: &str) -> Result<(), Mismatch> {
        let request = Request::post("/api/v1/namespaces").header("content-type", "application/json");
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        let answer = self.ask(request, body.to_string().into()).await?;
        if answer.code == 201 { Ok(()) } else { Err(problem("POST /api/v1/namespaces", answer.text)) }
    }

    async fn take(&mut self, step: &Step) -> Result<Vec<Mismatch>, Mismatch> {
        let expected = match &step.differs {
            Some(differs) if self.side == Side::Sandbox => &differs.expected,
            Some(_) | None => &step.expected,
        };
        match &step.action {
            Action::Send(send) => {
                let started = Instant::now();
                let (answer, mismatches) = loop {
                    let answer = self.send(send).await?;
                    let mismatches = self.check(expected, &answer)?;
                    if !step.eventually || mismatches.is_empty() || started.elapsed() > PATIENCE {
                        break (answer, mismatches);
                    }
                    tokio::time::sleep(POLL).await;
                };
                if mismatches.is_empty() {
                    self.save(&step.save, &answer)?;
                }
                Ok(mismatches)
            }
            Action::Watch { id, path, headers } => {
                let path = self.fill(path)?;
                let mut request = Request::get(path);
                for (name, value) in headers {
                    request = request.header(name, self.fill(value)?);
                }
                let response = self.open(request, Bytes::new()).await?;
                if response.status() != 200 {
                    let answer = whole(response).await?;
                    return Ok(vec![problem("the watch", answer.text)]);
                }
                self.watches.insert(id.clone(), Events { body: response.into_body(), buffer: Vec::new() });
                Ok(Vec::new())
            }
            Action::Events { of } => self.events(of, &expected.events).await,
        }
    }

    async fn send(&self, send: &rows::Send) -> Result<RowResponse, Mismatch> {
        let line = self.fill(&send.line)?;
        let (method, path) = line.split_once(' ').ok_or_else(|| problem("a method and a path", &line))?;
        let mut request = Request::builder().method(method).uri(path);
        let body = match &send.body {
            None => None,
            Some(rows::Body::Text(text)) => Some(self.fill(text)?),
            Some(rows::Body::Json(body)) => {
                Some(self.values.fill(body).map_err(|name| problem("no value", name))?.to_string())
            }
        };
        if body.is_some() && !send.headers.contains_key("content-type") {
            request = request.header("content-type", &send.content_type);
        }
        for (name, value) in &send.headers {
            request = request.header(name, self.fill(value)?);
        }
        self.ask(request, body.unwrap_or_default().into()).await
    }

    async fn ask(&self, request: http::request::Builder, body: Bytes) -> Result<RowResponse, Mismatch> {
        whole(self.open(request, body).await?).await
    }

    async fn open(&self, mut request: http::request::Builder, body: Bytes) -> Result<Response<Body>, Mismatch> {
        let named = |headers: &HeaderMap| (headers.contains_key("accept"), headers.contains_key("user-agent"));
        let (accepts, agent) = request.headers_ref().map(named).unwrap_or_default();
        if !accepts {
            request = request.header("accept", "application/json");
        }
        if !agent {
            request = request.header("user-agent", USER_AGENT);
        }
        let request = request.body(Body::from(body)).map_err(|error| problem("the request", error))?;
        let answered = tokio::time::timeout(PATIENCE, self.client.send(request)).await;
        answered.map_err(|_| problem("no answer", "in time"))?.map_err(|error| problem("no answer", error))
    }

    fn check(&self, expected: &Expected, answer: &RowResponse) -> Result<Vec<Mismatch>, Mismatch> {
        let json: Option<Value> = serde_json::from_str(&answer.text).ok();
        let body = json.clone().unwrap_or_else(|| Value::String(answer.text.clone()));
        let mut mismatches = Vec::new();
        if let Some(code) = expected.code
            && code != answer.code
        {
            let got = json!({ "code": answer.code, "body": body });
            mismatches.push(Mismatch { path: "code".to_owned(), expected: code.into(), got: Some(got) });
        }
        if answer.code >= 400 && json.is_some() {
            let refusal = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": answer.code });
            mismatches.extend(compare("", &refusal, Some(&body)));
        }
        for (name, value) in &expected.answered {
            let got = answer.headers.get(name).and_then(|value| value.to_str().ok()).map(Value::from);
            mismatches.extend(compare(&format!("header {name}"), &Value::String(self.fill(value)?), got.as_ref()));
        }
        let warnings: Value = expected.warnings.iter().map(|text| self.fill(text)).collect::<Result<_, _>>()?;
        mismatches.extend(compare("warnings", &warnings, Some(&given_warnings(&answer.headers))));
        if let Some(plain) = &expected.plain {
            mismatches.extend(compare("text", &self.fill(plain)?.into(), Some(&answer.text.clone().into())));
        }
        if let Some(wanted) = &expected.answer {
            let wanted = self.values.fill(wanted).map_err(|name| problem("no value", name))?;
            mismatches.extend(compare("", &wanted, Some(&body)));
        }
        Ok(mismatches)
    }

    fn save(&mut self, names: &BTreeMap<String, String>, answer: &RowResponse) -> Result<(), Mismatch> {
        let json: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        for (name, pointer) in names {
            let value = match json.pointer(pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => return Err(problem("nothing to save at", pointer)),
            };
            self.values.save(name, value);
        }
        Ok(())
    }

    async fn events(&mut self, of: &str, expected: &[Map<String, Value>]) -> Result<Vec<Mismatch>, Mismatch> {
        let mut wanted = Vec::new();
        for event in expected {
            let (kind, object) = event.iter().next().ok_or_else(|| problem("an event", "without a type"))?;
            let mut object = self.values.fill(object).map_err(|name| problem("no value", name))?;
            if object.is_string() {
                object = json!({ "metadata": { "name": object } });
            }
            wanted.push(if kind == "END" {
                json!({ "type": kind })
            } else {
                json!({ "type": kind, "object": object })
            });
        }
        let watch = self.watches.get_mut(of).ok_or_else(|| problem("no watch", of))?;
        for (index, event) in wanted.iter().enumerate() {
            let next = watch.next().await?.unwrap_or_else(|| json!({ "type": "END" }));
            let mismatches = compare(&format!("events/{index}"), event, Some(&next));
            if !mismatches.is_empty() {
                return Ok(mismatches);
            }
        }
        Ok(Vec::new())
    }

    fn fill(&self, text: &str) -> Result<String, Mismatch> {
        self.values.fill_text(text).map_err(|name| problem("no value", name))
    }
}

impl Events {
    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Result<Option<Value>, Mismatch> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).map_err(|error| problem("an event", error));
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            match frame.map_err(|_| problem("the next event", "does not come"))? {
                None => return Ok(None),
                Some(Err(error)) => return Err(problem("the stream", error)),
                Some(Ok(frame)) => self.buffer.extend(frame.into_data().unwrap_or_default()),
            }
        }
    }
}

async fn whole(response: Response<Body>) -> Result<RowResponse, Mismatch> {
    let (parts, body) = response.into_parts();
    let body =
        tokio::time::timeout(PATIENCE, body.collect()).await.map_err(|_| problem("the answer", "does not end"))?;
    let bytes = body.map_err(|error| problem("the answer", error))?.to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(RowResponse { code: parts.status.as_u16(), headers: parts.headers, text })
}

/// Returns the messages of the `Warning` headers, as `299 - "text"` carries them.
fn given_warnings(headers: &HeaderMap) -> Value {
    let text = |value: &http::HeaderValue| {
        let value = value.to_str().unwrap_or_default();
        let quoted = value.strip_prefix("299 - \"").and_then(|rest| rest.strip_suffix('"'));
        quoted.map_or_else(|| value.to_owned(), |text| text.replace("\\\"", "\"").replace("\\\\", "\\"))
    };
    headers.get_all("warning").iter().map(text).collect()
}
