//! Realistic requests: the requests of the scenarios, and objects of all kinds.

use std::sync::OnceLock;

use kcm_sandbox_apiserver::Sandbox;
use kcm_sandbox_conformance::{self as scenarios, Side};
use serde_json::Value;

/// A request, written down.
#[derive(Debug, Clone)]
pub(crate) struct RawRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl RawRequest {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
        Self { method, path, query, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn with_body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.set_header("content-type", content_type);
        self.body = body.into();
        self
    }

    pub(crate) fn set_header(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.into()));
    }
}

/// Returns the requests of each row of the scenarios, the namespace `row` first, with uids and versions of a fresh
/// sandbox.
pub(crate) fn rows() -> &'static [Vec<RawRequest>] {
    static ROWS: OnceLock<Vec<Vec<RawRequest>>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime can be built").block_on(async {
            let mut rows = Vec::new();
            for scenario in scenarios::all() {
                let sandbox = Sandbox::default();
                // The expectation is checked by the scenario tests.
                drop(scenarios::run(&scenario, &sandbox.client(), "row", Side::Sandbox).await);
                rows.push(sandbox.requests().into_iter().map(from_log).collect());
            }
            rows
        })
    })
}

fn from_log(request: kcm_sandbox_apiserver::Request) -> RawRequest {
    let headers = request.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
    RawRequest {
        headers: headers.collect(),
        method: request.method,
        path: request.path,
        query: request.query,
        body: request.body.into_bytes(),
    }
}

/// Returns a path and a valid object for each kind; the namespace is `cases`.
pub(crate) fn objects() -> &'static [(String, Value)] {
    static OBJECTS: OnceLock<Vec<(String, Value)>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let rows = include_str!("../../../../apiserver/tests/recorded/defaults.jsonl").lines();
        let rows = rows.map(|row| serde_json::from_str::<Value>(row).expect("a row is JSON"));
        let valid = rows.filter(|row| row["code"] == 201 && row.get("given").is_none());
        valid.map(|row| (row["path"].as_str().unwrap_or_default().to_owned(), row["body"].clone())).collect()
    })
}
