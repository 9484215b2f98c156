//! What happens to pods that no kubelet deletes, in a comparison of their own: the threshold is for all namespaces, and a
//! round of the controller comes every twenty seconds, or when a manager starts.
//!
//! A missing node is in quarantine for longer than that: see `pod_garbage.rs`.

use anyhow::{Context, Result};
use kcm_e2e_harness::control_plane::{ControlPlane, Options};
use kcm_e2e_harness::manager;
use kcm_e2e_harness::scenario::{Case, LIMITS};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::PATIENCE;
use serde_json::{Value, json};

use super::super::pod_garbage_collector::pod;
use super::super::recorded::{Record, Script, Stage, are_equal, prepare};

/// Changes while no manager runs, and what its first round does last, by turns. All pods are held by a finalizer. They are created in the order of their names, by which those of one second are
/// ordered.
pub(super) const SCRIPT: Script = Script {
    namespace: "pods",
    manifests,
    rounds: &[
        &[
            "create -f ready.json",
            "create -f dead.json",
            "create -f waking.json",
            "create -f silent.json",
            r#"patch node ready --subresource=status -p {"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#,
            r#"patch node waking --subresource=status -p {"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#,
            "create -f a.json",
            "create -f b.json",
            "create -f c.json",
            "create -f d.json",
            "create -f e.json",
            "create -f f.json",
            "create -f g.json",
            "create -f h.json",
            "create -f i.json",
            "create -f j.json",
            "create -f k.json",
            "create -f l.json",
            "exit 0 a",
            "exit 0 b",
            "exit 1 c",
            r#"patch pod d --subresource=status -p {"status":{"phase":"Failed","reason":"Evicted"}}"#,
            "ready e",
            "exit 1 g",
            "exit 0 k",
            "delete pod e f g h i j l --wait=false",
        ],
        &["wait --for=jsonpath={.status.phase}=Failed pod/e pod/l --timeout=60s"],
        &[
            r#"patch node waking --subresource=status -p {"status":{"conditions":[{"type":"Ready","status":"False"}]}}"#,
            r#"patch node silent -p {"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]}}"#,
            r#"patch pod a -p {"metadata":{"finalizers":null}}"#,
            "create -f m.json",
            "create -f n.json",
            "exit 0 m",
            "delete pod n --wait=false",
        ],
        &["wait --for=jsonpath={.status.phase}=Failed pod/h pod/i pod/n --timeout=60s"],
    ],
};

fn manifests() -> Vec<Value> {
    let node = |name: &str, taints: Value| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name }, "spec": { "taints": taints } });
    let out_of_service = json!([{ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute" }]);
    let mut all = vec![
        node("ready", json!([])),
        node("dead", out_of_service.clone()),
        node("waking", out_of_service),
        node("silent", json!([])),
    ];
    for (names, on) in [
        ("abcdfm", Some("ready")),
        ("eg", Some("dead")),
        ("h", Some("waking")),
        ("i", Some("silent")),
        ("jk", Some("gone")),
        ("ln", None),
    ] {
        all.extend(names.chars().map(|name| pod(&name.to_string(), on)));
    }
    all
}

/// Ours does in its first round what the peer did, each time that the manager is started.
pub(super) async fn acts_as_recorded(case: Case) -> Result<()> {
    let (theirs, ours) = tokio::try_join!(under(&case, Subject::Peer), under(&case, case.subject()))?;
    are_equal(&["the second start".to_owned()], &theirs, &ours)
}

async fn under(case: &Case, subject: Subject) -> Result<Vec<Record>> {
    let plane = ControlPlane::start(Options::default()).await?;
    prepare(&plane, &SCRIPT).await?;
    let controllers = format!("--controllers={}", case.controllers());
    let args = [&LIMITS[..], &[controllers.as_str(), "--terminated-pod-gc-threshold=2"]].concat();
    let (mut stage, mut records) = (Stage::on(&plane), Vec::new());
    for round in (0..SCRIPT.rounds.len()).step_by(2) {
        stage.play(&[&SCRIPT], round).await?;
        let mut manager = manager::start(subject, &plane, &format!("{subject}-{round}"), &args)?;
        stage.play(&[&SCRIPT], round + 1).await.with_context(|| format!("{subject} plays"))?;
        records.push(stage.record().await.with_context(|| format!("{subject} plays"))?);
        manager.terminate()?;
        manager.wait(PATIENCE).await?;
    }
    Ok(records)
}
