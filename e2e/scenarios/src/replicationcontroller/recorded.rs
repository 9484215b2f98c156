//! The same changes under the peer and under ours, with a comparison of all that follows from each.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use serde_json::{Value, json};

use super::{controller, create};

/// A change by kubectl, and how many active pods there are after it. `WAITING`, `READY` and `HELD` stand for a pod.
const CHANGES: [(&str, usize); 24] = [
    ("scale rc web --replicas=5", 5),
    ("scale rc web --replicas=2", 2),
    (r#"patch pod WAITING --subresource=status -p {"status":{"phase":"Failed"}}"#, 2),
    (r#"patch pod WAITING --subresource=status -p {"status":{"phase":"Running","conditions":[CONDITION]}}"#, 2),
    (r#"patch rc web -p {"spec":{"minReadySeconds":3600}}"#, 2),
    (r#"patch rc web -p {"spec":{"minReadySeconds":0}}"#, 2),
    ("label pod WAITING app=other --overwrite", 2),
    ("delete pod READY --wait=false", 2),
    (r#"patch pod WAITING -p {"metadata":{"finalizers":["example.com/hold"]}}"#, 2),
    ("delete pod HELD --wait=false", 2),
    (r#"patch pod HELD -p {"metadata":{"finalizers":null}}"#, 2),
    (r#"patch rc web -p {"spec":{"template":{"metadata":{"labels":{"app":"web","tier":"new"}}}}}"#, 2),
    ("scale rc web --replicas=4", 4),
    ("scale rc web --replicas=3", 3),
    ("annotate rc web example.com/note=1", 3),
    ("label rc web example.com/note=1", 3),
    (r#"run extra --image=example/main:1 --labels=app=web --overrides={"spec":{"schedulerName":"no-scheduler"}}"#, 3),
    ("scale rc web --replicas=0", 0),
    ("create quota two --hard=pods=5", 0),
    ("scale rc web --replicas=3", 3),
    ("delete quota two", 3),
    ("delete rc web --cascade=orphan", 0),
    ("create -f MANIFEST", 3),
    ("scale rc web --replicas=1", 1),
];

/// Ours does after each change what the peer did.
pub(super) async fn acts_as_recorded(case: Case) -> Result<()> {
    let theirs = play(&case, Subject::Peer).await.context("the peer plays")?;
    let ours = play(&case, case.subject()).await.context("we play")?;
    for (((change, _), theirs), ours) in CHANGES.iter().zip(theirs).zip(ours) {
        ensure!(theirs == ours, "after {change:?}\n  theirs: {theirs}\n  ours:   {ours}");
    }
    Ok(())
}

/// Makes the changes under one manager, and returns what is there after each.
async fn play(case: &Case, subject: Subject) -> Result<Vec<Value>> {
    let kubectl = Kubectl::of(case);
    let mut manager = case.start(subject, &[])?;
    create(&kubectl, controller("web", 3)).await?;
    Record::settled(&kubectl, 3).await?;
    let manifest = kubectl.manifest(&controller("web", 3))?;
    let mut recorded = Vec::new();
    for (change, active) in CHANGES {
        let before = Record::read(&kubectl).await?;
        let mut line = change.replace("MANIFEST", &manifest).replace("CONDITION", &ready());
        for word in ["WAITING", "READY", "HELD"] {
            if line.contains(word) {
                line =
                    line.replace(word, before.pod(word).with_context(|| format!("no pod is {word} for {change:?}"))?);
            }
        }
        kubectl.run(&line).await?;
        let record = Record::settled(&kubectl, active).await.with_context(|| format!("after {change:?}"))?;
        recorded.push(record.normal());
    }
    manager.must_run()?;
    kubectl.run("delete rc,pods,events --all").await?;
    Ok(recorded)
}

fn ready() -> String {
    json!({ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }).to_string()
}

/// The replication controller, if it is there, and all pods and events.
struct Record {
    controller: Option<Value>,
    pods: Vec<Value>,
    events: Vec<Value>,
}

impl Record {
    async fn read(kubectl: &Kubectl<'_>) -> Result<Self> {
        let listed = kubectl.run("get rc,pods,events -o json").await?;
        let listed: Value = serde_json::from_str(&listed).context("kubectl prints JSON")?;
        let mut record = Self { controller: None, pods: Vec::new(), events: Vec::new() };
        for item in listed["items"].as_array().cloned().unwrap_or_default() {
            match item["kind"].as_str() {
                Some("Pod") => record.pods.push(item),
                Some("Event") => record.events.push(item),
                _ => record.controller = Some(item),
            }
        }
        Ok(record)
    }

    /// Waits until there are that many active pods, which the status reports, and two reads in a row are alike.
    async fn settled(kubectl: &Kubectl<'_>, active: usize) -> Result<Self> {
        let mut last = Value::Null;
        eventually("what follows from the change", async || {
            let record = Self::read(kubectl).await?;
            let now = record.normal();
            let has_settled = std::mem::replace(&mut last, now) == last;
            let found = record.pods.iter().filter(|pod| record.is_own(pod) && is_active(pod)).count();
            ensure!(found == active, "{found} active pods, not {active}");
            if let Some(controller) = &record.controller {
                let (status, metadata) = (&controller["status"], &controller["metadata"]);
                ensure!(status["replicas"] == json!(active), "{status}");
                ensure!(status["observedGeneration"] == metadata["generation"], "{status}");
            }
            ensure!(has_settled, "it goes on");
            Ok(record)
        })
        .await
    }

    fn is_own(&self, pod: &Value) -> bool {
        let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
        self.controller.as_ref().is_some_and(|controller| *owner == controller["metadata"]["uid"])
    }

    fn pod(&self, word: &str) -> Option<&str> {
        let is_meant = |pod: &&Value| {
            let is_held = !pod["metadata"]["finalizers"].is_null();
            match word {
                "HELD" => is_held,
                "READY" => self.is_own(pod) && is_active(pod) && is_ready(pod),
                _ => self.is_own(pod) && is_active(pod) && !is_ready(pod) && !is_held,
            }
        };
        self.pods.iter().find(is_meant)?["metadata"]["name"].as_str()
    }

    /// What both managers are to bring about: no names, times and versions.
    fn normal(&self) -> Value {
        let controller = self.controller.as_ref().map(|controller| {
            json!([controller["spec"]["replicas"], controller["metadata"]["generation"], controller["status"]])
        });
        let pod = |pod: &Value| {
            let (metadata, status) = (&pod["metadata"], &pod["status"]);
            let owners = metadata["ownerReferences"].as_array().map_or(0, Vec::len);
            let is_terminating = metadata["deletionTimestamp"].is_string();
            json!([metadata["labels"], status["phase"], is_ready(pod), self.is_own(pod), owners, is_terminating])
                .to_string()
        };
        let mut pods: Vec<String> = self.pods.iter().map(pod).collect();
        pods.sort_unstable();
        let mut events: BTreeMap<String, i64> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event["involvedObject"]["kind"] == "ReplicationController") {
            let [reason, component] = [&event["reason"], &event["source"]["component"]].map(Value::to_string);
            *events.entry(format!("{reason} from {component}")).or_default() += event["count"].as_i64().unwrap_or(1);
        }
        json!({ "controller": controller, "pods": pods, "events": events })
    }
}

fn is_active(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null() && pod["status"]["phase"] != "Failed"
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}
