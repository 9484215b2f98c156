//! Rows and their parser.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The files of rows by subject.
const FILES: &[(&str, &str)] = &[
    ("apply", include_str!("../scenarios/apply.yaml")),
    ("custom", include_str!("../scenarios/custom.yaml")),
    ("defaults", include_str!("../scenarios/defaults.yaml")),
    ("deletions", include_str!("../scenarios/deletions.yaml")),
    ("discovery", include_str!("../scenarios/discovery.yaml")),
    ("forms", include_str!("../scenarios/forms.yaml")),
    ("namespaces", include_str!("../scenarios/namespaces.yaml")),
    ("patches", include_str!("../scenarios/patches.yaml")),
    ("reads", include_str!("../scenarios/reads.yaml")),
    ("strictness", include_str!("../scenarios/strictness.yaml")),
    ("subresources", include_str!("../scenarios/subresources.yaml")),
    ("validation", include_str!("../scenarios/validation.yaml")),
    ("watches", include_str!("../scenarios/watches.yaml")),
    ("writes", include_str!("../scenarios/writes.yaml")),
];
/// The files of rows that need the garbage collector and the namespace controller to run.
const COLLECTED: &[(&str, &str)] = &[("collected", include_str!("../scenarios/collected.yaml"))];
const FIXTURES: &str = include_str!("../scenarios/fixtures.yaml");

/// A claim about the API, and the requests that show it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its file and its claim, as in `writes: a taken name is refused`.
    pub name: String,
    /// The sandbox does not implement it yet: the row must fail on it.
    pub pending: bool,
    pub(crate) steps: Vec<Step>,
}

/// One step, and its expected response on either side.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) save: BTreeMap<String, String>,
    /// Whether it is repeated until it meets the expectation.
    pub(crate) eventually: bool,
    pub(crate) expected: Expected,
    pub(crate) differs: Option<Differs>,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    Send(Send),
    Watch { id: String, path: String, headers: BTreeMap<String, String> },
    Events { of: String },
}

#[derive(Debug, Clone)]
pub(crate) struct Send {
    pub(crate) line: String,
    pub(crate) content_type: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Option<Body>,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Json(Value),
    Text(String),
}

/// The expected response; see the format.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expected {
    pub(crate) code: Option<u16>,
    pub(crate) answer: Option<Value>,
    pub(crate) plain: Option<String>,
    pub(crate) answered: BTreeMap<String, String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) events: Vec<Map<String, Value>>,
}

/// The sandbox's different response, and the reason.
#[derive(Debug, Clone)]
pub(crate) struct Differs {
    pub(crate) why: String,
    pub(crate) skip: bool,
    pub(crate) expected: Expected,
}

/// The keys of a step that make its request. The other keys are expectations.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Request {
    send: Option<String>,
    watch: Option<String>,
    id: String,
    of: String,
    r#as: Option<String>,
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    text: Option<String>,
    save: BTreeMap<String, String>,
    eventually: bool,
}

const REQUEST_KEYS: [&str; 10] = ["eventually", "send", "watch", "id", "of", "as", "headers", "body", "text", "save"];

/// Returns all rows, by file and in the order of the file.
///
/// # Panics
///
/// If a file does not follow the format: the files are part of the program.
#[must_use]
pub fn all() -> Vec<Scenario> {
    read(FILES)
}

/// Returns the rows about controllers. They need the garbage collector and the namespace controller.
///
/// # Panics
///
/// As [`all`].
#[must_use]
pub fn collected() -> Vec<Scenario> {
    read(COLLECTED)
}

fn read(files: &[(&str, &str)]) -> Vec<Scenario> {
    let fixtures: Value = yaml("fixtures", FIXTURES);
    let mut scenarios = Vec::new();
    for (file, text) in files {
        for row in yaml::<Vec<RawRow>>(file, text) {
            let name = format!("{file}: {}", row.name);
            let steps = row.steps.into_iter().enumerate().map(|(at, step)| {
                parse(step, &fixtures).unwrap_or_else(|problem| panic!("{name}, step {}: {problem}", at + 1))
            });
            let steps = steps.collect();
            scenarios.push(Scenario { name, pending: row.pending, steps });
        }
    }
    scenarios
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    name: String,
    #[serde(default)]
    pending: bool,
    steps: Vec<Map<String, Value>>,
}

/// Reads YAML whose mistakes have positions; the reader keeps the positions of values.
///
/// # Errors
///
/// If it is no YAML, or has another shape.
pub fn read_yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

pub(crate) fn yaml<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> T {
    // By way of JSON, so that the types of values are YAML's and not guessed from Rust's.
    let value: Value = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("scenarios/{file}.yaml: {error}"));
    serde_json::from_value(value).unwrap_or_else(|error| panic!("scenarios/{file}.yaml: {error}"))
}

fn parse(mut step: Map<String, Value>, fixtures: &Value) -> Result<Step, String> {
    let differs = step.remove("differs").map(differs).transpose()?;
    let (request, expected): (Map<_, _>, Map<_, _>) =
        step.into_iter().partition(|(key, _)| REQUEST_KEYS.contains(&key.as_str()));
    let request: Request = from(request)?;
    let is_events = expected.contains_key("events");
    let expected: Expected = from(expected)?;
    let action = match (request.send, request.watch, is_events) {
        (Some(line), None, false) => Action::Send(Send {
            line,
            content_type: content_type(request.r#as.as_deref()),
            headers: request.headers,
            body: match (request.body, request.text) {
                (Some(body), None) => Some(Body::Json(from_fixture(body, fixtures)?)),
                (None, text) => text.map(Body::Text),
                (Some(_), Some(_)) => return Err("a request has a `body` or a `text`".to_owned()),
            },
        }),
        (None, Some(path), false) => Action::Watch { id: request.id, path, headers: request.headers },
        (None, None, true) => Action::Events { of: request.of },
        (_, _, _) => return Err("a step is one of `send`, `watch`, `events`".to_owned()),
    };
    Ok(Step { action, save: request.save, eventually: request.eventually, expected, differs })
}

fn differs(value: Value) -> Result<Differs, String> {
    let Value::Object(mut fields) = value else { return Err("`differs` is an object".to_owned()) };
    let Some(Value::String(why)) = fields.remove("why") else { return Err("`differs` has a `why`".to_owned()) };
    let skip = fields.remove("skip") == Some(Value::Bool(true));
    Ok(Differs { why, skip, expected: from(fields)? })
}

fn from<T: serde::de::DeserializeOwned>(fields: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

fn content_type(short: Option<&str>) -> String {
    match short {
        None => "application/json",
        Some("json") => "application/json-patch+json",
        Some("merge") => "application/merge-patch+json",
        Some("strategic") => "application/strategic-merge-patch+json",
        Some("apply") => "application/apply-patch+yaml",
        Some(full) => full,
    }
    .to_owned()
}

/// Lays a body over the fixture that it names by `<use>`, as a JSON merge patch.
///
/// # Errors
///
/// If there is no such fixture.
pub fn from_fixture(body: Value, fixtures: &Value) -> Result<Value, String> {
    let Value::Object(mut fields) = body else { return Ok(body) };
    let Some(name) = fields.remove("<use>") else { return Ok(Value::Object(fields)) };
    let fixture = name.as_str().and_then(|name| fixtures.get(name));
    let mut object = fixture.cloned().ok_or_else(|| format!("there is no fixture {name}"))?;
    lay(&mut object, Value::Object(fields));
    Ok(object)
}

/// Lays a JSON merge patch over a value.
fn lay(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(&key);
        } else {
            lay(fields.entry(key).or_insert(Value::Null), value);
        }
    }
}
