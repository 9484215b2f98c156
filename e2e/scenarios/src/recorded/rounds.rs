//! Changes to several objects at a time: all of a round are made, and then recorded when they have had their effect.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use jiff::SignedDuration;
use kcm_e2e_harness::clock;
use kcm_e2e_harness::control_plane::ControlPlane;
use kcm_e2e_harness::kubectl::Kubectl;
use serde_json::{Value, json};

use super::{Names, Objects, Record, at_rest};

/// What happens in one namespace.
///
/// A change is a command of kubectl, or one of these, of which the scenario is the kubelet or the job controller:
///
/// | command | meaning |
/// | --- | --- |
/// | `ready POD` | the pod runs and is ready |
/// | `exit CODE POD` | its container has ended an hour ago, and so has the pod |
/// | `finish JOB CONDITION` | a job of another controller is `Complete` or `Failed`, since an hour ago |
/// | `due CRONJOB` | its last start was 400 days ago |
/// | `bind POD NODE` | the pod is scheduled to the node |
///
/// `NAME.json` stands for the manifest of that name, and `CONTROLLER[KEY]` for an active pod or job of a controller: see
/// [`Objects::dependent`].
pub(crate) struct Script {
    pub(crate) namespace: &'static str,
    pub(crate) manifests: fn() -> Vec<Value>,
    /// In a round no object is changed twice: what a controller does between two changes is not determined.
    pub(crate) rounds: &'static [&'static [&'static str]],
}

/// A control plane on which scripts are played.
pub(crate) struct Stage<'a> {
    plane: &'a ControlPlane,
    names: Names,
}

impl<'a> Stage<'a> {
    pub(crate) fn on(plane: &'a ControlPlane) -> Self {
        Self { plane, names: Names::default() }
    }

    /// Makes the changes of a round of all scripts, side by side.
    pub(crate) async fn play(&self, scripts: &[&Script], round: usize) -> Result<()> {
        let objects = Objects::read(&self.plane.client()).await?;
        try_join_all(scripts.iter().map(|script| play_round(self.plane, script, round, &objects))).await.map(drop)
    }

    /// What there is when the changes have had their effect.
    pub(crate) async fn record(&mut self) -> Result<Record> {
        let (client, mut reads) = (self.plane.client(), 0);
        let read = async || {
            let objects = Objects::read(&client).await?;
            let mut record = self.names.record(&objects);
            if objects.are_behind() {
                // It is not at rest, however long nothing changes.
                reads += 1;
                record.insert(format!("read {reads}"));
            }
            Ok(record)
        };
        at_rest(read).await
    }
}

/// Plays the rounds of all scripts side by side, and returns what there is after each.
pub(crate) async fn play_rounds(plane: &ControlPlane, scripts: &[&Script]) -> Result<Vec<Record>> {
    let (mut stage, mut records) = (Stage::on(plane), Vec::new());
    for round in 0..scripts.iter().map(|script| script.rounds.len()).max().unwrap_or(0) {
        stage.play(scripts, round).await?;
        records.push(stage.record().await.with_context(|| format!("after round {round}"))?);
    }
    Ok(records)
}

/// Creates the namespace of a script, where there is no controller that does.
pub(crate) async fn prepare(plane: &ControlPlane, script: &Script) -> Result<()> {
    kubectl(plane, script).run(&format!("create namespace {}", script.namespace)).await.map(drop)
}

fn kubectl<'a>(plane: &'a ControlPlane, script: &Script) -> Kubectl<'a> {
    Kubectl { kubeconfig: plane.kubeconfig(), namespace: script.namespace, folder: plane.logs() }
}

async fn play_round(plane: &ControlPlane, script: &Script, round: usize, objects: &Objects) -> Result<()> {
    let kubectl = kubectl(plane, script);
    let mut manifests = BTreeMap::new();
    for object in (script.manifests)() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        manifests.insert(format!("{name}.json"), kubectl.manifest(&object)?);
    }
    for &change in script.rounds.get(round).copied().unwrap_or_default() {
        let words = change.split(' ').map(|word| match (manifests.get(word), controller(word)) {
            (Some(manifest), _) => Ok(manifest.clone()),
            (None, Some((name, key))) => {
                let found = objects.dependent(script.namespace, name, key);
                Ok(found.with_context(|| format!("no {word} for {change:?} in round {round}"))?.to_owned())
            }
            (None, None) => Ok(word.to_owned()),
        });
        let mut words = words.collect::<Result<Vec<_>>>()?;
        if let [bind, pod, node] = &words[..]
            && bind == "bind"
        {
            let target = json!({ "kind": "Node", "name": node });
            let binding =
                json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": pod }, "target": target });
            let path = format!("/api/v1/namespaces/{}/pods/{pod}/binding", script.namespace);
            words = ["create", "--raw", &path, "-f", &kubectl.manifest(&binding)?].map(str::to_owned).to_vec();
        }
        kubectl.run(&command(&words)).await?;
    }
    Ok(())
}

/// Name and key of `CONTROLLER[KEY]`.
fn controller(word: &str) -> Option<(&str, &str)> {
    let (name, key) = word.strip_suffix(']')?.split_once('[')?;
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '-';
    (!name.is_empty() && name.chars().all(is_name) && key.chars().all(is_name)).then_some((name, key))
}

/// The command of kubectl that makes a change.
fn command(words: &[String]) -> String {
    let hour_ago = (clock::now() - SignedDuration::from_hours(1)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = |what: &str, name: &str, status: Value| {
        format!("patch {what} {name} --subresource=status --type=merge -p {}", json!({ "status": status }))
    };
    let condition = |type_: &str, reason: &str| json!({ "type": type_, "status": "True", "reason": reason, "lastTransitionTime": hour_ago });
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ready", pod] => patch("pod", pod, json!({ "phase": "Running", "conditions": [condition("Ready", "Runs")] })),
        ["exit", code, pod] => {
            let phase = if code == "0" { "Succeeded" } else { "Failed" };
            let ended = json!({ "exitCode": code.parse::<i32>().unwrap_or(1), "finishedAt": hour_ago });
            let container = json!({
                "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": ended },
            });
            patch("pod", pod, json!({ "phase": phase, "containerStatuses": [container] }))
        }
        ["finish", job, "Complete"] => {
            let conditions = ["SuccessCriteriaMet", "Complete"].map(|type_| condition(type_, "CompletionsReached"));
            let times = json!({ "startTime": hour_ago, "completionTime": hour_ago, "succeeded": 1 });
            patch("job", job, with(times, "conditions", json!(conditions)))
        }
        ["finish", job, _] => {
            let conditions = ["FailureTarget", "Failed"].map(|type_| condition(type_, "BackoffLimitExceeded"));
            patch("job", job, json!({ "startTime": hour_ago, "conditions": conditions }))
        }
        ["due", cron_job] => {
            let long_ago = clock::now() - SignedDuration::from_hours(24 * 400);
            let long_ago = long_ago.strftime("%Y-%m-%dT00:00:00Z").to_string();
            patch("cronjob", cron_job, json!({ "lastScheduleTime": long_ago }))
        }
        _ => words.join(" "),
    }
}

fn with(mut object: Value, key: &str, value: Value) -> Value {
    object[key] = value;
    object
}

#[cfg(test)]
mod tests {
    use super::{command, controller};

    #[test]
    fn a_controller_is_told_from_a_patch() {
        assert_eq!(controller("sum[0]"), Some(("sum", "0")));
        assert_eq!(controller("agent[]"), Some(("agent", "")));
        for word in [r#"[{"op":"remove"}]"#, r#"{"a":["b"]}"#, "--all", "[]"] {
            assert_eq!(controller(word), None, "{word}");
        }
    }

    #[test]
    fn a_command_has_no_spaces_within_words() {
        for change in ["ready a", "exit 3 a", "finish a Complete", "finish a Failed", "due a"] {
            let words: Vec<String> = change.split(' ').map(str::to_owned).collect();
            let command = command(&words);
            assert!(command.starts_with("patch ") && command.split(' ').count() == 7, "{command}");
        }
        assert_eq!(command(&["delete".to_owned(), "pod".to_owned()]), "delete pod");
    }
}
