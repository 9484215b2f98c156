//! One request, and the checks of every response.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kcm_api::Resource;
use kcm_sandbox_apiserver::{Sandbox, SandboxOptions};
use serde_json::Value;
use tower::ServiceExt;

use crate::fuzz::corpus::RawRequest;
use crate::fuzz::{fields, known};

const DEFINITIONS: Resource =
    Resource::cluster_scoped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");
/// Time limit of a response, and of following a watch: the server waits three seconds for a version.
const PATIENCE: Duration = Duration::from_secs(10);
/// Highest number of events that are read from a watch.
const MOST_FRAMES: usize = 1000;

/// Everything that is stored, by resource, namespace and name.
type Stored = BTreeMap<(String, String, String), Value>;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) text: String,
    pub(crate) json: Value,
}

/// A sandbox under test.
pub(crate) struct Probe {
    pub(crate) sandbox: Sandbox,
    resources: Vec<Resource>,
    stored: Stored,
}

impl Probe {
    pub(crate) async fn new(options: SandboxOptions) -> Self {
        let mut probe = Self { sandbox: Sandbox::new(options), resources: Vec::new(), stored: Stored::new() };
        probe.resources = probe.discover().await;
        assert!(probe.resources.len() > 40, "only {:?} are served", probe.resources);
        probe.stored = probe.snapshot();
        probe
    }

    pub(crate) fn resources(&self) -> &[Resource] {
        &self.resources
    }

    async fn discover(&self) -> Vec<Resource> {
        let mut versions = vec!["/api/v1".to_owned()];
        let groups = self.get("/apis").await;
        for group in groups["groups"].as_array().expect("groups are listed") {
            versions.push(format!("/apis/{}", group["preferredVersion"]["groupVersion"].as_str().unwrap_or_default()));
        }
        let mut resources = Vec::new();
        for path in versions {
            let listed = self.get(&path).await;
            let served = listed["groupVersion"].as_str().unwrap_or_default();
            let (group, version) = served.split_once('/').unwrap_or(("", served));
            for resource in listed["resources"].as_array().expect("resources are listed") {
                let name = resource["name"].as_str().unwrap_or_default();
                if !name.contains('/') {
                    let kind = resource["kind"].as_str().unwrap_or_default();
                    resources.push(resource_of(group, version, name, kind, resource["namespaced"] == true));
                }
            }
        }
        resources
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.send(&RawRequest::new("GET", path)).await.expect("a plain request is sent");
        assert_eq!(answer.code, 200, "{path}: {}", answer.text);
        answer.json
    }

    fn snapshot(&self) -> Stored {
        let mut resources = self.resources.clone();
        for definition in self.sandbox.list(&DEFINITIONS, None) {
            let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
                resources.push(resource_of(
                    text("/spec/group"),
                    version["name"].as_str().unwrap_or_default(),
                    text("/spec/names/plural"),
                    text("/spec/names/kind"),
                    text("/spec/scope") == "Namespaced",
                ));
            }
        }
        let mut stored = Stored::new();
        for resource in &resources {
            for object in self.sandbox.list(resource, None) {
                let part = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                stored.insert((resource.to_string(), part("namespace"), part("name")), object);
            }
        }
        stored
    }

    /// Sends a request, and checks the response and the store. `None` if no HTTP client can send it.
    pub(crate) async fn ask(&mut self, ask: &RawRequest) -> Option<Answer> {
        let version = self.sandbox.version();
        let answer = self.send(ask).await?;
        let shown = || format!("{}\nanswered {} {}", shown(ask), answer.code, cut(&answer.text));
        check_form(&ask.path, &answer).unwrap_or_else(|problem| panic!("{problem}\n{}", shown()));
        let stored = self.snapshot();
        let tried = ask.query.split('&').any(|part| part == "dryRun=All");
        let reads = matches!(ask.method.as_str(), "GET" | "HEAD" | "OPTIONS");
        if answer.code >= 400 || tried || reads {
            assert!(stored == self.stored, "changed the store: {}\n{}", difference(&self.stored, &stored), shown());
            assert_eq!(self.sandbox.version(), version, "took a version\n{}", shown());
        }
        check_changes(&self.stored, &stored, version).unwrap_or_else(|problem| panic!("{problem}\n{}", shown()));
        self.stored = stored;
        Some(answer)
    }

    async fn send(&self, ask: &RawRequest) -> Option<Answer> {
        let uri = if ask.query.is_empty() { ask.path.clone() } else { format!("{}?{}", ask.path, ask.query) };
        let mut request = http::Request::builder().method(ask.method.as_str()).uri(uri);
        for (name, value) in &ask.headers {
            request = request.header(name, value.as_slice());
        }
        let request = request.body(Full::new(Bytes::from(ask.body.clone()))).ok()?;
        let answered = tokio::time::timeout(PATIENCE, self.sandbox.service().oneshot(request)).await;
        let answered = answered.unwrap_or_else(|_| panic!("no answer\n{}", shown(ask)));
        let (parts, mut body) = answered.unwrap_or_else(|error| panic!("{error}\n{}", shown(ask))).into_parts();
        let mut bytes = Vec::new();
        let read = async {
            for _ in 0..MOST_FRAMES {
                let Some(frame) = body.frame().await else { break };
                let frame = frame.unwrap_or_else(|error| panic!("{error}\n{}", shown(ask)));
                bytes.extend(frame.into_data().unwrap_or_default());
            }
        };
        // A watch has no end.
        drop(tokio::time::timeout(PATIENCE, read).await);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let json = serde_json::from_str(&text).unwrap_or_default();
        Some(Answer { code: parts.status.as_u16(), text, json })
    }

    /// Asserts that the sandbox still serves requests.
    pub(crate) async fn still_serves(&mut self) {
        let listed = self.get("/api/v1/namespaces").await;
        assert_eq!(listed["kind"], "NamespaceList");
        let map = r#"{"metadata":{"generateName":"after-all-"}}"#;
        let ask =
            RawRequest::new("POST", "/api/v1/namespaces/kube-public/configmaps").with_body("application/json", map);
        let made = self.ask(&ask).await.expect("a plain request is sent");
        assert!(matches!(made.code, 201 | 403 | 404), "{} {}", made.code, made.text);
    }
}

fn resource_of(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Resource {
    Resource {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        plural: plural.to_owned().into(),
        kind: kind.to_owned().into(),
        namespaced,
    }
}

/// Checks that a failure is a `Status` of the same code, and not an internal error.
fn check_form(path: &str, answer: &Answer) -> Result<(), String> {
    let Answer { code, text, json } = answer;
    if *code < 400 {
        return if matches!(code, 200 | 201 | 202 | 304) { Ok(()) } else { Err(format!("code {code}")) };
    }
    if known::is_plain(*code, path, text) {
        return Ok(());
    }
    for (field, expected) in [("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure")] {
        if json[field] != expected {
            return Err(format!("{field} is {}", json[field]));
        }
    }
    if json["code"] != *code {
        return Err(format!("the code of the status is {}", json["code"]));
    }
    let message = json["message"].as_str().unwrap_or_default();
    let is_known = match code {
        500 => known::is_upstreams_500(message),
        // A documented difference: `sandbox --differences`.
        501 => message.contains("there is no impersonation"),
        504 => message.contains("Too large resource version"),
        _ => *code < 500,
    };
    if is_known { Ok(()) } else { Err(format!("a failure of the server: {message}")) }
}

/// Versions grow, generations do not fall, and managed fields are fields.
fn check_changes(before: &Stored, after: &Stored, version: u64) -> Result<(), String> {
    for (key, object) in after {
        let old = before.get(key);
        if old == Some(object) {
            continue;
        }
        let given: Option<u64> = object["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok());
        if given.is_none_or(|given| given <= version) {
            return Err(format!("{key:?} was changed and has version {given:?}, after {version}"));
        }
        let generation = |object: &Value| object["metadata"]["generation"].as_i64().unwrap_or(0);
        let same = old.filter(|old| old["metadata"]["uid"] == object["metadata"]["uid"]);
        if let Some(old) = same.filter(|old| generation(old) > generation(object)) {
            return Err(format!("the generation of {key:?} fell from {} to {}", generation(old), generation(object)));
        }
        if let Some(problem) = fields::problem(object) {
            return Err(format!("managed fields of {key:?}: {problem}\n{}", cut(&object.to_string())));
        }
    }
    Ok(())
}

fn difference(before: &Stored, after: &Stored) -> String {
    let changed = after.iter().filter(|(key, object)| before.get(*key) != Some(object)).map(|(key, _)| key);
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    format!("{:?}", changed.chain(removed).collect::<Vec<_>>())
}

pub(crate) fn shown(ask: &RawRequest) -> String {
    let headers: Vec<String> =
        ask.headers.iter().map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value))).collect();
    let body = cut(&String::from_utf8_lossy(&ask.body));
    format!("{} {}?{} [{}]\n{body}", ask.method, ask.path, ask.query, headers.join(", "))
}

fn cut(text: &str) -> String {
    text.chars().take(3000).collect()
}
