//! One line of a script: a command of kubectl, or a verb that stands for one.

use std::collections::BTreeMap;

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

    /// The words of the command of kubectl, in a namespace, where `names` says what words stand for.
    pub(super) fn command(
        &self,
        now: Timestamp,
        namespace: &str,
        names: &BTreeMap<String, String>,
        manifest: impl Fn(&Value) -> anyhow::Result<String>,
    ) -> anyhow::Result<Vec<String>> {
        let words: Vec<&str> =
            self.text.split_whitespace().map(|word| names.get(word).map_or(word, String::as_str)).collect();
        let to_strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        if let ["bind", pod, node] = words[..] {
            let target = json!({ "kind": "Node", "name": node });
            let binding =
                json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": pod }, "target": target });
            let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/binding");
            return Ok(to_strings(&["create", "--raw", &path, "-f", &manifest(&binding)?]));
        }
        if let ["evict" | "keep", pod] = words[..] {
            let metadata = json!({ "name": pod, "namespace": namespace });
            let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata });
            let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
            return Ok(to_strings(&["create", "--raw", &path, "-f", &manifest(&eviction)?]));
        }
        if let ["own", kind, name, ..] = words[..] {
            let owner: Value = serde_json::from_str(names.get(OWNER).map_or("null", String::as_str))?;
            let reference = json!({
                "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "controller": true,
            });
            let patch = json!({ "metadata": { "ownerReferences": [reference] } }).to_string();
            return Ok(to_strings(&["patch", kind, name, "--type=merge", "-p", &patch]));
        }
        if let ["reserve", volume, ..] = words[..] {
            let claim: Value = serde_json::from_str(names.get(OWNER).map_or("null", String::as_str))?;
            let metadata = &claim["metadata"];
            let reference = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": metadata["namespace"],
                "name": metadata["name"], "uid": metadata["uid"],
            });
            let patch = json!({ "spec": { "claimRef": reference } }).to_string();
            return Ok(to_strings(&["patch", "pv", volume, "--type=merge", "-p", &patch]));
        }
        Ok(match change(&words, now) {
            Some((kind, name, subresource, patch)) => {
                let patch = patch.to_string();
                let mut command = to_strings(&["patch", kind, name, "--type=merge", "-p", &patch]);
                command.extend(subresource.then(|| "--subresource=status".to_owned()));
                command
            }
            None => to_strings(&words),
        })
    }
}

/// Name and key of `CONTROLLER[KEY]`.
fn selector(word: &str) -> Option<(&str, &str)> {
    let (name, key) = word.strip_suffix(']')?.split_once('[')?;
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '-';
    (!name.is_empty() && name.chars().all(is_name) && key.chars().all(is_name)).then_some((name, key))
}

/// The kind, the name, and the merge patch of a verb, which may be one of the status.
fn change<'a>(words: &[&'a str], now: Timestamp) -> Option<(&'a str, &'a str, bool, Value)> {
    let hour_ago = (now - SignedDuration::from_hours(1)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |type_: &str, reason: &str| json!({ "type": type_, "status": "True", "reason": reason, "lastTransitionTime": hour_ago });
    let status = |status: Value| json!({ "status": status });
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
            ("pod", pod, true, status(running))
        }
        ["exit", code, pod] => {
            let phase = if code == "0" { "Succeeded" } else { "Failed" };
            let ended = json!({ "exitCode": code.parse::<i32>().unwrap_or(1), "finishedAt": hour_ago });
            let container = json!({
                "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": ended },
            });
            ("pod", pod, true, status(json!({ "phase": phase, "containerStatuses": [container] })))
        }
        ["finish", job, "Complete"] => {
            let conditions = ["SuccessCriteriaMet", "Complete"].map(|type_| condition(type_, "CompletionsReached"));
            let times = json!({
                "startTime": hour_ago, "completionTime": hour_ago, "succeeded": 1, "conditions": conditions,
            });
            ("job", job, true, status(times))
        }
        ["finish", job, _] => {
            let conditions = ["FailureTarget", "Failed"].map(|type_| condition(type_, "BackoffLimitExceeded"));
            ("job", job, true, status(json!({ "startTime": hour_ago, "conditions": conditions })))
        }
        ["due", cron_job] => {
            let long_ago = (now - SignedDuration::from_hours(24 * 400)).strftime("%Y-%m-%dT00:00:00Z").to_string();
            ("cronjob", cron_job, true, status(json!({ "lastScheduleTime": long_ago })))
        }
        ["hold", kind, name] => (kind, name, false, json!({ "metadata": { "finalizers": [HOLD] } })),
        ["release", kind, name] => (kind, name, false, json!({ "metadata": { "finalizers": null } })),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::{read, selector};

    fn command(text: &str) -> Vec<String> {
        let line = read(text, &BTreeMap::new()).expect("the line is sound");
        let names = BTreeMap::from([("sum[1]".to_owned(), "sum-1-x".to_owned())]);
        let manifest = |object: &serde_json::Value| Ok(object["kind"].to_string());
        line.command(Timestamp::UNIX_EPOCH, "jobs", &names, manifest).expect("it is a command")
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
    fn a_verb_is_a_command_of_kubectl() {
        assert_eq!(command("exit 3 sum[1]")[..4], ["patch", "pod", "sum-1-x", "--type=merge"]);
        assert_eq!(command("bind a n-1")[2], "/api/v1/namespaces/jobs/pods/a/binding");
        assert_eq!(command("hold pod a")[5], r#"{"metadata":{"finalizers":["example.com/hold"]}}"#);
        assert!(command("unready a 10.0.0.1,fd00::1")[5].contains(r#""podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]"#));
        assert_eq!(command("evict a")[2], "/api/v1/namespaces/jobs/pods/a/eviction");
        assert_eq!(command("delete pod sum[1]"), ["delete", "pod", "sum-1-x"]);
    }
}
