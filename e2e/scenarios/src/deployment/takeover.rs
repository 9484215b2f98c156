//! One manager replaces another, at rest and amid rollouts.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{PATIENCE, eventually};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::state::State;
use super::watch::{follow, now};
use super::{Objects, condition, deployment, held, image, is_ready, is_waiting, reports, revision};

/// For how long objects at rest must not be written.
const REST: Duration = Duration::from_secs(30);

const AT_REST: [&str; 8] = [
    "rest-numbers",
    "rest-percentages",
    "rest-recreate",
    "rest-paused",
    "rest-min-ready",
    "rest-stuck",
    "rest-zero",
    // Paused amid its rollout, where it rests until it is resumed.
    "amid-paused",
];
const AMID: [&str; 7] = [
    "amid-numbers",
    "amid-percentages",
    "amid-old-pods-going",
    "amid-new-pods-coming",
    "amid-min-ready",
    "amid-stuck",
    "amid-paused",
];
/// The replicas of each.
const REPLICAS: usize = 4;

/// Ours continues what upstream's manager has begun.
pub(super) async fn takes_over(case: Case) -> Result<()> {
    is_handed_over(&case, Subject::Peer, case.subject()).await
}

/// Upstream's continues what our manager has begun.
pub(super) async fn gives_back(case: Case) -> Result<()> {
    is_handed_over(&case, case.subject(), Subject::Peer).await
}

async fn is_handed_over(case: &Case, from: Subject, to: Subject) -> Result<()> {
    let objects = Objects::of(case);
    let made = RefCell::new(Made::default());
    let since = now(&objects.pods).await?;
    tokio::select! {
        broken = follow(&objects.pods, since, |pod, _| { made.borrow_mut().see(pod); Ok(()) }) => broken,
        done = hand_over(case, &objects, &made, from, to) => done,
    }
}

async fn hand_over(case: &Case, objects: &Objects, made: &RefCell<Made>, from: Subject, to: Subject) -> Result<()> {
    let mut manager = case.start(from, &[])?;
    begin(objects).await.with_context(|| format!("{from} is to begin"))?;
    // One ends before the next begins, as leader election would have it.
    manager.terminate()?;
    manager.wait(PATIENCE).await?;
    let before = State::read(objects).await?;

    let mut manager = case.start(to, &[])?;
    let started = Instant::now();
    go_on(objects).await.with_context(|| format!("{to} is to go on"))?;
    tokio::time::sleep_until(started + REST).await;
    let after = State::read(objects).await?;
    for name in AT_REST {
        let (before, after) = (before.versions_of(name)?, after.versions_of(name)?);
        ensure!(before == after, "{to} wrote {name}, which is at rest: before {before:#?}, after {after:#?}");
    }

    objects.patch("amid-paused", &json!({ "spec": { "paused": false } })).await?;
    for name in AMID {
        let web = objects.complete_held(name).await.with_context(|| format!("{to} is to end {name}"))?;
        reports(objects, name, "Progressing", ("True", "NewReplicaSetAvailable")).await?;
        ensure!(revision(&web) == 2, "{name} has revision {}", revision(&web));
        let sets = objects.sets_of(&web).await?;
        let asked: Vec<_> = sets.iter().map(|set| set.spec.replicas.unwrap_or(1)).collect();
        ensure!(asked == [0, 4], "the sets of {name} ask for {asked:?}");
        for set in &sets {
            // Four pods were ever created for each set: no pod that one manager had created was replaced by the other.
            let pods = made.borrow().of(&set.name_any());
            ensure!(pods == REPLICAS, "set {} of {name} has had {pods} pods", set.name_any());
        }
    }
    manager.must_run()
}

/// Creates the deployments: some at rest, the others amid a rollout.
async fn begin(objects: &Objects) -> Result<()> {
    for made in manifests() {
        objects.create(made).await?;
    }
    for name in AT_REST.iter().chain(&AMID) {
        objects.complete_held(name).await?;
    }

    let old = objects.pods_of("amid-old-pods-going").await?;
    // The nodes of a sandbox stop containers that nodes of kwok leave running while there is a finalizer.
    let going = json!({ "metadata": { "finalizers": [HOLD], "annotations": { "sandbox/pod": "stop=stuck" } } });
    objects.pods.patch(&old[0].name_any(), &PatchParams::default(), &Patch::Merge(going)).await?;
    objects.patch("rest-paused", &json!({ "spec": { "paused": true } })).await?;
    for name in ["rest-stuck", "amid-stuck"] {
        let hold = json!({ "spec": { "template": { "spec": { "schedulerName": "no-scheduler" } } } });
        objects.patch(name, &json!({ "spec": { "progressDeadlineSeconds": 2 } })).await?;
        objects.patch(name, &hold).await?;
    }
    let rolled = AT_REST.iter().chain(&AMID).filter(|name| !name.ends_with("stuck") && !name.ends_with("min-ready"));
    for name in rolled.collect::<BTreeSet<_>>() {
        objects.patch(name, &image(2)).await?;
    }
    objects.patch("rest-min-ready", &image(2)).await?;
    objects.patch("rest-zero", &json!({ "spec": { "replicas": 0 } })).await?;
    for name in ["rest-numbers", "rest-percentages", "rest-recreate", "rest-min-ready", "rest-zero"] {
        objects.complete_held(name).await?;
    }
    let state = State::quiet(objects).await?;
    // One step on, so that both revisions have ready pods.
    for name in ["amid-numbers", "amid-percentages", "amid-paused"] {
        let pods = state.pods.iter().filter(|pod| pod.labels().get("app").is_some_and(|app| app == name));
        let waiting = pods.into_iter().find(|pod| is_waiting(pod));
        objects.run(waiting.with_context(|| format!("no pod of {name} waits"))?).await?;
    }
    State::quiet(objects).await?;
    objects.patch("amid-paused", &json!({ "spec": { "paused": true } })).await?;
    for name in ["rest-stuck", "amid-stuck"] {
        reports(objects, name, "Progressing", ("False", "ProgressDeadlineExceeded")).await?;
    }
    State::quiet(objects).await?;
    objects.patch("amid-min-ready", &image(2)).await?;
    eventually("new pods that are ready and not yet available", async || {
        let web = objects.deployments.get("amid-min-ready").await?;
        let status = web.status.clone().unwrap_or_default();
        let ready = (status.updated_replicas, status.ready_replicas, status.available_replicas);
        ensure!(ready == (Some(4), Some(8), Some(4)), "updated, ready, available: {ready:?}");
        Ok(())
    })
    .await?;
    is_amid(objects).await
}

/// Fails unless the deployments that must be amid a rollout are.
async fn is_amid(objects: &Objects) -> Result<()> {
    let state = State::read(objects).await?;
    for (name, expected) in [
        // The replica sets by revision: replicas of the spec, and ready pods.
        ("amid-numbers", &[(2, 2), (3, 1)][..]),
        ("amid-percentages", &[(2, 2), (3, 1)]),
        ("amid-paused", &[(2, 2), (3, 1)]),
        ("amid-old-pods-going", &[(0, 1)]),
        ("amid-new-pods-coming", &[(0, 0), (4, 0)]),
        ("amid-min-ready", &[(4, 4), (4, 4)]),
        ("amid-stuck", &[(3, 3), (2, 0)]),
    ] {
        let web = state.deployment(name)?;
        let found: Vec<_> = state
            .sets_of(web)
            .iter()
            .map(|set| {
                let ready = state.pods_of(set).into_iter().filter(|pod| is_ready(pod)).count();
                (set.spec.replicas.unwrap_or(1), ready)
            })
            .collect();
        ensure!(found == expected, "{name} has {found:?}, {:?}", condition(web, "Progressing"));
    }
    Ok(())
}

/// Lets the rollouts run to their end.
async fn go_on(objects: &Objects) -> Result<()> {
    let held = objects.pods_of("amid-old-pods-going").await?;
    let going = held.iter().find(|pod| pod.metadata.deletion_timestamp.is_some()).context("no old pod is held")?;
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null, "annotations": { "sandbox/pod": null } } }));
    objects.pods.patch(&going.name_any(), &PatchParams::default(), &free).await?;
    for name in AMID.iter().filter(|name| **name != "amid-paused") {
        objects.complete_held(name).await?;
    }
    Ok(())
}

const HOLD: &str = "example.com/hold";

fn manifests() -> Vec<Value> {
    let with = |name: &str, spec: Value| {
        let waits = name.starts_with("amid") && !name.ends_with("stuck") && !name.ends_with("min-ready");
        let mut made = if waits { held(name, REPLICAS) } else { deployment(name, REPLICAS) };
        for (field, value) in spec.as_object().into_iter().flatten() {
            made["spec"][field] = value.clone();
        }
        made
    };
    let numbers = json!({ "strategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 1 } } });
    let percentages = json!({ "strategy": { "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "30%" } } });
    let recreate = json!({ "strategy": { "type": "Recreate" } });
    let min_ready = |seconds: u32| {
        json!({
            "minReadySeconds": seconds,
            "strategy": { "rollingUpdate": { "maxSurge": "100%", "maxUnavailable": 0 } },
        })
    };
    let mut rich = with("rest-numbers", numbers.clone());
    rich["spec"]["template"] = rich_template("rest-numbers");
    vec![
        rich,
        with("rest-percentages", percentages.clone()),
        with("rest-recreate", recreate.clone()),
        with("rest-paused", numbers.clone()),
        with("rest-min-ready", min_ready(1)),
        with("rest-stuck", percentages.clone()),
        with("rest-zero", json!({ "revisionHistoryLimit": 0 })),
        with("amid-numbers", numbers.clone()),
        with("amid-percentages", percentages.clone()),
        with("amid-old-pods-going", recreate.clone()),
        with("amid-new-pods-coming", recreate),
        with("amid-min-ready", min_ready(6)),
        with("amid-stuck", percentages),
        with("amid-paused", numbers),
    ]
}

/// A template with fields that the API server converts, defaults or escapes.
fn rich_template(app: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app }, "annotations": { "example.com/note": "a < b && c > d, \u{e9}\u{2028}" } },
        "spec": {
            "containers": [{
                "name": "main",
                "image": "example/main:1",
                "args": ["--less=<", "--and=&"],
                "env": [
                    { "name": "EMPTY", "value": "" },
                    { "name": "NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
                ],
                "ports": [{ "containerPort": 80 }],
                "resources": { "requests": { "cpu": "1000m", "memory": "0.5Gi" }, "limits": { "cpu": 1.5 } },
                "livenessProbe": { "httpGet": { "port": 80 } },
                "securityContext": {},
                "volumeMounts": [{ "name": "scratch", "mountPath": "/scratch" }],
            }],
            "volumes": [{ "name": "scratch", "emptyDir": {} }],
            "tolerations": [{ "key": "example.com/some", "operator": "Exists" }],
            "topologySpreadConstraints": [{
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": { "matchLabels": { "app": app } },
            }],
        },
    })
}

/// The names of all pods that ever existed, by the set that controls them.
#[derive(Default)]
struct Made(BTreeMap<String, BTreeSet<String>>);

impl Made {
    fn see(&mut self, pod: &corev1::Pod) {
        for owner in pod.owner_references() {
            self.0.entry(owner.name.clone()).or_default().insert(pod.name_any());
        }
    }

    fn of(&self, set: &str) -> usize {
        self.0.get(set).map_or(0, BTreeSet::len)
    }
}
