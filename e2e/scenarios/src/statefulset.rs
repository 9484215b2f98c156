//! Stateful sets, as a person with kubectl has them.

use std::time::Duration;

use anyhow::{Result, ensure};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{eventually, throughout};
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("statefulset") => {
        "statefulset/is_made_scaled_rolled_and_rolled_back": lives,
        "statefulset/gives_each_pod_its_claim": gives_claims,
        "statefulset/leaves_a_broken_rollout_to_a_person": leaves_to_a_person,
    }
    Setup::of("statefulset").ours().with_own_managers() => {
        "statefulset/recovers_a_broken_rollout_with_its_gate": recovers,
    }
}

/// A stateful set of pods that are not scheduled; the scenario makes them ready.
pub(super) fn set(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "serviceName": "governing",
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "schedulerName": "no-scheduler",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{ "name": "main", "image": "example/main:1", "command": ["sh", "-c", "true < /dev/null && true"] }],
                },
            },
        },
    })
}

async fn create(kubectl: &Kubectl<'_>, object: &Value) -> Result<()> {
    let manifest = kubectl.manifest(object)?;
    kubectl.run(&format!("create -f {manifest}")).await.map(drop)
}

async fn list(kubectl: &Kubectl<'_>, what: &str) -> Result<Vec<Value>> {
    let listed: Value = serde_json::from_str(&kubectl.run(&format!("get {what} -o json")).await?)?;
    Ok(listed["items"].as_array().cloned().unwrap_or_default())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The names and images of the pods of a stateful set, and the uids.
async fn pods(kubectl: &Kubectl<'_>, app: &str) -> Result<(Vec<String>, Vec<String>)> {
    let pods = list(kubectl, &format!("pods -l app={app}")).await?;
    let word =
        |pod: &Value| format!("{} {}", text(&pod["metadata"]["name"]), text(&pod["spec"]["containers"][0]["image"]));
    Ok((pods.iter().map(word).collect(), pods.iter().map(|pod| text(&pod["metadata"]["uid"])).collect()))
}

/// The image that does not run.
const BROKEN: u8 = 9;

/// Makes every pod ready that is not, and whose image runs.
pub(super) async fn run_pods(kubectl: &Kubectl<'_>, app: &str) -> Result<()> {
    for pod in list(kubectl, &format!("pods -l app={app}")).await? {
        let is_broken = pod["spec"]["containers"][0]["image"] == format!("example/main:{BROKEN}");
        if pod["status"]["phase"] == "Pending" && !is_broken {
            let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" });
            let patch = json!({ "status": { "phase": "Running", "conditions": [ready] } });
            kubectl
                .run(&format!("patch pod {} --subresource=status -p {patch}", text(&pod["metadata"]["name"])))
                .await?;
        }
    }
    Ok(())
}

/// Waits until there are exactly these pods, all of them ready and reported. Returns their uids.
async fn has(kubectl: &Kubectl<'_>, name: &str, images: &[u8]) -> Result<Vec<String>> {
    let wanted: Vec<_> =
        images.iter().enumerate().map(|(ordinal, image)| format!("{name}-{ordinal} example/main:{image}")).collect();
    eventually(&format!("{wanted:?}"), async || {
        run_pods(kubectl, name).await?;
        let (pods, uids) = pods(kubectl, name).await?;
        let set: Value = serde_json::from_str(&kubectl.run(&format!("get sts {name} -o json")).await?)?;
        let status = &set["status"];
        ensure!(pods == wanted, "{pods:?}, {status}");
        for field in ["replicas", "readyReplicas", "availableReplicas"] {
            ensure!(status[field].as_u64().unwrap_or(0) == u64::try_from(images.len())?, "{field} of {status}");
        }
        ensure!(status["observedGeneration"] == set["metadata"]["generation"], "{status}");
        Ok(uids)
    })
    .await
}

async fn roll(kubectl: &Kubectl<'_>, name: &str, image: u8, partition: usize) -> Result<()> {
    let patch = json!({ "spec": {
        "updateStrategy": { "rollingUpdate": { "partition": partition } },
        "template": { "spec": { "containers": [{ "name": "main", "image": format!("example/main:{image}") }] } },
    } });
    kubectl.run(&format!("patch sts {name} -p {patch}")).await.map(drop)
}

/// The numbers and names of the revisions.
async fn revisions(kubectl: &Kubectl<'_>, app: &str) -> Result<Vec<(i64, String)>> {
    let listed = list(kubectl, &format!("controllerrevisions -l app={app}")).await?;
    let mut found: Vec<_> = listed
        .iter()
        .map(|revision| (revision["revision"].as_i64().unwrap_or(0), text(&revision["metadata"]["name"])))
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// Pods are created in order, rolled down to the partition, rolled back by `kubectl rollout undo`, and scaled down.
async fn lives(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    create(&kubectl, &set("web", 3)).await?;
    let first = has(&kubectl, "web", &[1, 1, 1]).await?;
    let before = revisions(&kubectl, "web").await?;
    ensure!(before.len() == 1 && before[0].0 == 1, "{before:?}");
    roll(&kubectl, "web", 2, 1).await?;
    let rolled = has(&kubectl, "web", &[1, 2, 2]).await?;
    ensure!(rolled[0] == first[0] && rolled[1] != first[1] && rolled[2] != first[2], "{first:?}, then {rolled:?}");
    kubectl.run("rollout undo sts/web").await?;
    has(&kubectl, "web", &[1, 1, 1]).await?;
    let after = revisions(&kubectl, "web").await?;
    ensure!(
        after.len() == 2 && after[1] == (3, before[0].1.clone()),
        "the first revision is the last again: {after:?}"
    );
    kubectl.run("scale sts web --replicas=1").await?;
    let left = has(&kubectl, "web", &[1]).await?;
    ensure!(left[0] == first[0], "the first pod has stayed: {left:?}");
    eventually("the events", async || {
        let events = list(&kubectl, "events --field-selector=involvedObject.kind=StatefulSet").await?;
        let has = |message: &str| {
            events
                .iter()
                .any(|event| event["message"] == message && event["source"]["component"] == "statefulset-controller")
        };
        ensure!(has("Create Pod web-0 in StatefulSet web successful"), "{events:?}");
        ensure!(has("Delete Pod web-2 in StatefulSet web successful"), "{events:?}");
        Ok(())
    })
    .await
}

/// Rolls out an image that does not run, and then one that does.
async fn breaks_and_repairs(kubectl: &Kubectl<'_>) -> Result<()> {
    create(kubectl, &set("web", 2)).await?;
    has(kubectl, "web", &[1, 1]).await?;
    roll(kubectl, "web", BROKEN, 0).await?;
    eventually("the last pod to have the broken image", async || {
        let (found, _) = pods(kubectl, "web").await?;
        ensure!(found == ["web-0 example/main:1", "web-1 example/main:9"], "{found:?}");
        Ok(())
    })
    .await?;
    roll(kubectl, "web", 3, 0).await
}

/// A pod that can never become ready holds up its repair until a person deletes it.
async fn leaves_to_a_person(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    breaks_and_repairs(&kubectl).await?;
    throughout("nothing is replaced", Duration::from_secs(3), async || {
        let (found, _) = pods(&kubectl, "web").await?;
        ensure!(found == ["web-0 example/main:1", "web-1 example/main:9"], "{found:?}");
        Ok(())
    })
    .await?;
    kubectl.run("delete pod web-1").await?;
    has(&kubectl, "web", &[3, 3]).await.map(drop)
}

/// With the gate it does not.
async fn recovers(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let mut manager = case.start(Subject::Ours, &["--feature-gates=StatefulSetRolloutRecovery=true"])?;
    breaks_and_repairs(&kubectl).await?;
    has(&kubectl, "web", &[3, 3]).await?;
    manager.must_run()
}

/// Each pod has its claim, whose owner is as the retention policy says.
async fn gives_claims(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let mut stateful = set("web", 2);
    stateful["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({ "whenDeleted": "Delete", "whenScaled": "Retain" });
    stateful["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    create(&kubectl, &stateful).await?;
    has(&kubectl, "web", &[1, 1]).await?;
    let owners = async || -> Result<Vec<String>> {
        let claims = list(&kubectl, "pvc -l app=web").await?;
        Ok(claims
            .iter()
            .map(|claim| {
                format!(
                    "{} {}",
                    text(&claim["metadata"]["name"]),
                    text(&claim["metadata"]["ownerReferences"][0]["kind"])
                )
            })
            .collect())
    };
    eventually("the stateful set to own the claims", async || {
        let found = owners().await?;
        ensure!(found == ["data-web-0 StatefulSet", "data-web-1 StatefulSet"], "{found:?}");
        Ok(())
    })
    .await?;
    let retain = json!({ "spec": { "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain" } } });
    kubectl.run(&format!("patch sts web -p {retain}")).await?;
    eventually("nothing to own the claims", async || {
        let found = owners().await?;
        ensure!(found == ["data-web-0 ", "data-web-1 "], "{found:?}");
        Ok(())
    })
    .await
}
