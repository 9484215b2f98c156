//! One line of a script: a command of kubectl, or a verb that stands for one.

use std::collections::BTreeMap;

use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// Commands of kubectl that change something, or wait.
const COMMANDS: [&str; 19] = [
    "annotate",
    "apply",
    "autoscale",
    "certificate",
    "cordon",
    "create",
    "delete",
    "drain",
    "expose",
    "label",
    "patch",
    "replace",
    "rollout",
    "run",
    "scale",
    "set",
    "taint",
    "uncordon",
    "wait",
];

/// The verbs, with their words.
const VERBS: [&str; 14] = [
    "ready POD [IP]",
    "unready POD [IP]",
    "exit CODE POD",
    "finish JOB CONDITION",
    "due CRONJOB",
    "bind POD NODE",
    "hold KIND NAME",
    "release KIND NAME",
    "own KIND NAME KIND OWNER",
    "reserve VOLUME CLAIM",
    "evict POD",
    "keep POD",
    "serve METRIC VALUE",
    "fail METRIC",
];

/// The finalizer of `hold`.
pub(super) const HOLD: &str = "example.com/hold";

/// The word that stands for the owner, as JSON.
pub(super) const OWNER: &str = "<owner>";

/// A line that was found sound.
#[derive(Debug, Clone)]
pub(super) struct Line {
    text: String,
}

/// Reads a line; the words of a command have no spaces.
pub(super) fn read(text: &str, manifests: &BTreeMap<String, Value>) -> Result<Line, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let verb = words.first().copied().unwrap_or_default();
    let verbs = VERBS.map(|form| form.split(' ').next().unwrap_or(form));
    if let Some(form) = VERBS.iter().find(|form| form.split(' ').next() == Some(verb)) {
        let least = form.split(' ').filter(|word| !word.starts_with('[')).count();
        if !(least..=form.split(' ').count()).contains(&words.len()) {
            return Err(format!("it must be `{form}`"));
        }
        if verb == "exit" && words[1].parse::<u8>().is_err() {
            return Err(format!("`{}` is no exit code", words[1]));
        }
        if verb == "finish" && !["Complete", "Failed"].contains(&words[2]) {
            return Err("a job is `Complete` or `Failed`".to_owned());
        }
    } else if !COMMANDS.contains(&verb) {
        return Err(format!(
            "there is no verb `{verb}`; the nearest is `{}`",
            nearest(verb, COMMANDS.into_iter().chain(verbs))
        ));
    }
    for (before, word) in words.iter().zip(words.iter().skip(1)) {
        if *before == "-f" && !manifests.contains_key(*word) {
            let nearest = nearest(word, manifests.keys().map(String::as_str));
            return Err(format!("there is no manifest `{word}`; the nearest is `{nearest}`"));
        }
        if *before == "-p" && serde_json::from_str::<Value>(word).is_err() {
            return Err(format!("`{word}` is no JSON"));
        }
    }
    Ok(Line { text: text.to_owned() })
}

fn nearest<'a>(word: &str, of: impl Iterator<Item = &'a str>) -> &'a str {
    of.max_by(|one, other| strsim::jaro_winkler(word, one).total_cmp(&strsim::jaro_winkler(word, other)))
        .unwrap_or("none")
}

impl Line {
    /// The line as it stands in the script.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it only waits for something that a manager does.
    pub(super) fn is_wait(&self) -> bool {
        self.text.starts_with("wait ")
    }

    /// The metric that it sets, and its value unless it is withdrawn.
    pub(super) fn metric(&self) -> Option<(&str, Option<&str>)> {
        match self.text.split_whitespace().collect::<Vec<_>>()[..] {
            ["serve", metric, value] => Some((metric, Some(value))),
            ["fail", metric] => Some((metric, None)),
            _ => None,
        }
    }

    /// Kind and name of the owner, or of the claim, that it names.
    pub(super) fn owner(&self) -> Option<(&str, &str)> {
        match self.text.split_whitespace().collect::<Vec<_>>()[..] {
            ["own", _, _, kind, name] => Some((kind, name)),
            ["reserve", _, claim] => Some(("pvc", claim)),
            _ => None,
        }
    }

    /// Whether its command must be refused.
    pub(super) fn is_refused(&self) -> bool {
        self.text.starts_with("keep ")
    }

    /// The controllers and keys of `CONTROLLER[KEY]`.
    pub(super) fn selectors(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.text.split_whitespace().filter_map(|word| selector(word).map(|(name, key)| (word, name, key)))
    }

    /// Whether it creates one manifest, and says no more.
    pub(super) fn is_create(&self) -> bool {
        self.text.strip_prefix("create -f ").is_some_and(|manifest| !manifest.contains(' '))
    }

    /// The words, each replaced by what `names` says it stands for.
    fn words<'a>(&'a self, names: &'a BTreeMap<String, String>) -> Vec<&'a str> {
        self.text.split_whitespace().map(|word| names.get(word).map_or(word, String::as_str)).collect()
    }

    /// The request of a verb that changes a pod or a job, which needs no kubectl.
    pub(super) fn change(&self, now: Timestamp, namespace: &str, names: &BTreeMap<String, String>) -> Option<Change> {
        let words = self.words(names);
        if let ["bind", pod, node] = words[..] {
            let target = json!({ "kind": "Node", "name": node });
            let binding =
                json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": pod }, "target": target });
            let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/binding");
            return Some(Change { method: Method::POST, path, body: binding });
        }
        if let ["evict" | "keep", pod] = words[..] {
            let metadata = json!({ "name": pod, "namespace": namespace });
            let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata });
            let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
            return Some(Change { method: Method::POST, path, body: eviction });
        }
        let (group, plural, name, status) = status(&words, now)?;
        let path = format!("/{group}/namespaces/{namespace}/{plural}/{name}/status");
        Some(Change { method: Method::PATCH, path, body: json!({ "status": status }) })
    }

    /// The words of the command of kubectl, if the line is no [`Self::change`].
    pub(super) fn command(&self, names: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
        let words = self.words(names);
        let merge = |kind: &str, name: &str, patch: &Value| {
            ["patch", kind, name, "--type=merge", "-p", &patch.to_string()].map(str::to_owned).to_vec()
        };
        let owner: Value = serde_json::from_str(names.get(OWNER).map_or("null", String::as_str))?;
        let metadata = &owner["metadata"];
        Ok(match words[..] {
            ["hold", kind, name] => merge(kind, name, &json!({ "metadata": { "finalizers": [HOLD] } })),
            ["release", kind, name] => merge(kind, name, &json!({ "metadata": { "finalizers": null } })),
            ["own", kind, name, ..] => {
                let reference = json!({
                    "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"],
                    "uid": metadata["uid"], "controller": true,
                });
                merge(kind, name, &json!({ "metadata": { "ownerReferences": [reference] } }))
            }
            ["reserve", volume, ..] => {
                let reference = json!({
                    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": metadata["namespace"],
                    "name": metadata["name"], "uid": metadata["uid"],
                });
                merge("pv", volume, &json!({ "spec": { "claimRef": reference } }))
            }
            _ => words.into_iter().map(str::to_owned).collect(),
        })
    }
}

/// A change that is made without kubectl.
pub(super) struct Change {
    method: Method,
    path: String,
    body: Value,
}

impl Change {
    /// The request; a patch is a merge patch.
    pub(super) fn request(&self) -> anyhow::Result<Request<Vec<u8>>> {
        let type_ = if self.method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(&self.method).uri(&self.path).header("content-type", type_);
        Ok(request.body(serde_json::to_vec(&self.body)?)?)
    }
}

/// Name and key of `CONTROLLER[KEY]`.
fn selector(word: &str) -> Option<(&str, &str)> {
    let (name, key) = word.strip_suffix(']')?.split_once('[')?;
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '-';
    (!name.is_empty() && name.chars().all(is_name) && key.chars().all(is_name)).then_some((name, key))
}

/// The group, the plural and the name of an object, and the status that a verb gives it.
fn status<'a>(words: &[&'a str], now: Timestamp) -> Option<(&'static str, &'static str, &'a str, Value)> {
    let hour_ago = (now - SignedDuration::from_hours(1)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |type_: &str, reason: &str| json!({ "type": type_, "status": "True", "reason": reason, "lastTransitionTime": hour_ago });
    Some(match *words {
        [verb @ ("ready" | "unready"), pod, ref addresses @ ..] => {
            let mut ready = condition("Ready", "Runs");
            if verb == "unready" {
                ready["status"] = json!("False");
            }
            let mut running = json!({ "phase": "Running", "conditions": [ready], "startTime": hour_ago });
            if let [addresses] = addresses {
                let all: Vec<Value> = addresses.split(',').map(|ip| json!({ "ip": ip })).collect();
                running["podIP"] = all[0]["ip"].clone();
                running["podIPs"] = json!(all);
            }
            ("api/v1", "pods", pod, running)
        }
        ["exit", code, pod] => {
            let phase = if code == "0" { "Succeeded" } else { "Failed" };
            let ended = json!({ "exitCode": code.parse::<i32>().unwrap_or(1), "finishedAt": hour_ago });
            let container = json!({
                "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": ended },
            });
            ("api/v1", "pods", pod, json!({ "phase": phase, "containerStatuses": [container] }))
        }
        ["finish", job, "Complete"] => {
            let conditions = ["SuccessCriteriaMet", "Complete"].map(|type_| condition(type_, "CompletionsReached"));
            let times = json!({
                "startTime": hour_ago, "completionTime": hour_ago, "succeeded": 1, "conditions": conditions,
            });
            ("apis/batch/v1", "jobs", job, times)
        }
        ["finish", job, _] => {
            let conditions = ["FailureTarget", "Failed"].map(|type_| condition(type_, "BackoffLimitExceeded"));
            ("apis/batch/v1", "jobs", job, json!({ "startTime": hour_ago, "conditions": conditions }))
        }
        ["due", cron_job] => {
            let long_ago = (now - SignedDuration::from_hours(24 * 400)).strftime("%Y-%m-%dT00:00:00Z").to_string();
            ("apis/batch/v1", "cronjobs", cron_job, json!({ "lastScheduleTime": long_ago }))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::{Line, read, selector};

    fn names() -> BTreeMap<String, String> {
        BTreeMap::from([("sum[1]".to_owned(), "sum-1-x".to_owned())])
    }

    fn line(text: &str) -> Line {
        read(text, &BTreeMap::new()).expect("the line is sound")
    }

    fn command(text: &str) -> Vec<String> {
        line(text).command(&names()).expect("it is a command")
    }

    /// Method, path and body.
    fn change(text: &str) -> String {
        let change = line(text).change(Timestamp::UNIX_EPOCH, "jobs", &names()).expect("it needs no kubectl");
        format!("{} {} {}", change.method, change.path, change.body)
    }

    #[test]
    fn a_selector_is_told_from_a_patch() {
        assert_eq!(selector("sum[0]"), Some(("sum", "0")));
        assert_eq!(selector("agent[]"), Some(("agent", "")));
        for word in [r#"[{"op":"remove"}]"#, r#"{"a":["b"]}"#, "--all", "[]"] {
            assert_eq!(selector(word), None, "{word}");
        }
    }

    #[test]
    fn a_verb_is_a_request_or_a_command_of_kubectl() {
        assert!(change("exit 3 sum[1]").starts_with("PATCH /api/v1/namespaces/jobs/pods/sum-1-x/status {"));
        assert!(change("due tick").starts_with("PATCH /apis/batch/v1/namespaces/jobs/cronjobs/tick/status {"));
        assert!(change("bind a n-1").starts_with("POST /api/v1/namespaces/jobs/pods/a/binding {"));
        assert!(change("evict a").starts_with("POST /api/v1/namespaces/jobs/pods/a/eviction {"));
        assert!(change("unready a 10.0.0.1,fd00::1").contains(r#""podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]"#));
        assert_eq!(command("hold pod a")[5], r#"{"metadata":{"finalizers":["example.com/hold"]}}"#);
        assert_eq!(command("delete pod sum[1]"), ["delete", "pod", "sum-1-x"]);
        assert!(line("delete pod a").change(Timestamp::UNIX_EPOCH, "jobs", &names()).is_none());
    }

    #[test]
    fn only_a_creation_without_flags_is_made_with_others() {
        let is_create = |text: &str| Line { text: text.to_owned() }.is_create();
        assert!(is_create("create -f a.yaml"));
        assert!(!is_create("create -f a.yaml --save-config") && !is_create("create namespace a"));
    }
}
