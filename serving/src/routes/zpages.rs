//! `/flagz` and `/statusz`: the flags and the status, as text, or as JSON and YAML of a stated version. Each behind its
//! gate.
//!
//! # Upstream
//! `apiserver/pkg/server/flagz` and `statusz`: kinds, fields and negotiation are the same. The text has a form of our
//! own; `goVersion` is empty.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::any;
use http::header::{HeaderValue, WARNING};
use http::{HeaderMap, Response, StatusCode};
use jiff::Timestamp;
use kcm_config::KUBERNETES_VERSION;
use kcm_framework::clock::{Clock as _, SystemClock};
use serde_json::{Map, Value, json};

use super::negotiation::{Form, Version, negotiate};
use super::responses::{text, typed};
use crate::state::ServingState;

const NAME: &str = "kube-controller-manager";

/// The first segments of the paths that are worth a look.
const PATHS: &[&str] = &["/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"];

pub(super) fn routes(state: &Arc<ServingState>) -> Router {
    let flagz =
        async |State(state): State<Arc<ServingState>>, headers: HeaderMap| answer("Flagz", &flags(&state), &headers);
    let statusz = async |State(state): State<Arc<ServingState>>, headers: HeaderMap| {
        answer("Statusz", &status(&state, SystemClock.now()), &headers)
    };
    let mut router = Router::new();
    if state.settings.gates().is_on("ComponentFlagz") {
        router = router.route("/flagz", any(flagz));
    }
    if state.settings.gates().is_on("ComponentStatusz") {
        router = router.route("/statusz", any(statusz));
    }
    router.with_state(Arc::clone(state))
}

/// Every flag with its value.
fn flags(state: &ServingState) -> Map<String, Value> {
    let settings = &state.settings;
    let of_flags = settings.rows().iter().filter_map(|row| {
        // A setting that only a file can set has the name of a key.
        let is_flag = !row.name.contains(|letter: char| letter == '.' || letter.is_ascii_uppercase());
        let value = settings.value(row.name).filter(|_| is_flag)?;
        Some((row.name.to_owned(), value.to_string().into()))
    });
    Map::from_iter([("flags".to_owned(), Value::Object(of_flags.collect()))])
}

/// Describes the program and its uptime.
fn status(state: &ServingState, now: Timestamp) -> Map<String, Value> {
    let up = now.duration_since(state.started).as_secs().max(0);
    let fields = json!({
        "startTime": format!("{:.0}", state.started),
        "uptimeSeconds": up,
        "goVersion": "",
        "binaryVersion": KUBERNETES_VERSION,
        "emulationVersion": format!("1.{}", state.settings.gates().versions().emulated()),
        "paths": PATHS,
    });
    if let Value::Object(fields) = fields { fields } else { Map::new() }
}

fn answer(kind: &str, fields: &Map<String, Value>, headers: &HeaderMap) -> Response<Body> {
    let structured = |version: Version| {
        let mut object = Map::new();
        object.insert("kind".to_owned(), kind.into());
        object.insert("apiVersion".to_owned(), version.api_version().into());
        object.insert("metadata".to_owned(), json!({ "name": NAME }));
        object.extend(fields.clone());
        Value::Object(object)
    };
    let (version, mut response) = match negotiate(headers, kind) {
        None => return not_acceptable(),
        Some(Form::Text) => return text(StatusCode::OK, for_people(kind, fields)),
        Some(Form::Json(version)) => {
            (version, typed(StatusCode::OK, "application/json", format!("{}\n", structured(version))))
        }
        Some(Form::Yaml(version)) => (version, typed(StatusCode::OK, "application/yaml", yaml(&structured(version)))),
    };
    if version == Version::V1Alpha1 {
        let warning = HeaderValue::from_static("299 - \"config.k8s.io/v1alpha1 is deprecated: ask for v1beta1\"");
        response.headers_mut().insert(WARNING, warning);
    }
    response
}

/// YAML in which every scalar is in JSON, which YAML contains.
fn yaml(object: &Value) -> String {
    let mut out = String::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        // Writing to a string does not fail.
        let _written = match value {
            Value::Object(inner) => {
                let lines: Vec<String> = inner.iter().map(|(key, value)| format!("  {key}: {value}\n")).collect();
                write!(out, "{key}:\n{}", lines.concat())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                writeln!(out, "{key}: {value}")
            }
        };
    }
    out
}

fn for_people(kind: &str, fields: &Map<String, Value>) -> String {
    let fields = fields.get("flags").and_then(Value::as_object).unwrap_or(fields);
    let lines = fields.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}: {text}\n"),
        Value::Array(items) => {
            format!("{name}: {}\n", items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => format!("{name}: {value}\n"),
    });
    let kind = kind.to_ascii_lowercase();
    format!("\n{NAME} {kind}\nWarning: for people; programs ask for JSON or YAML.\n\n{}", lines.collect::<String>())
}

fn not_acceptable() -> Response<Body> {
    let body = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "only the following media types are accepted: application/json, application/yaml, text/plain",
        "reason": "NotAcceptable",
        "code": 406,
    });
    typed(StatusCode::NOT_ACCEPTABLE, "application/json", body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{settings, state};

    #[tokio::test]
    async fn flags_are_shown_with_their_values() {
        let state = state(&settings(&["--kube-api-qps=50", "--tls-min-version=VersionTLS13"]));
        let fields = flags(&state);
        assert_eq!(fields["flags"]["kube-api-qps"], "50");
        assert_eq!(fields["flags"]["tls-min-version"], "VersionTLS13");
        assert!(for_people("Flagz", &fields).contains("\nkube-api-qps: 50\n"));
        let yaml = yaml(&json!({ "kind": "Flagz", "metadata": { "name": "a" }, "flags": { "v": "2" } }));
        assert!(yaml.contains("kind: \"Flagz\"\n") && yaml.contains("metadata:\n  name: \"a\"\n"), "{yaml}");
    }

    #[tokio::test]
    async fn the_status_says_what_runs_since_when() {
        let state = state(&settings(&["--emulated-version=1.35"]));
        let fields =
            status(&state, state.started.saturating_add(jiff::SignedDuration::from_secs(61)).expect("in range"));
        assert_eq!(fields["uptimeSeconds"], 61);
        assert_eq!((&fields["binaryVersion"], &fields["emulationVersion"]), (&json!("1.37.2"), &json!("1.35")));
        assert!(for_people("Statusz", &fields).contains("paths: /configz /flagz"));
    }
}
