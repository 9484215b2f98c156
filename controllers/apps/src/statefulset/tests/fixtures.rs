//! Stateful sets, their pods and their claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use kcm_framework::api::views::{PersistentVolumeClaim, Pod, PodVolumes, StatefulSet};
use kcm_framework::api::{Need, Needs, PartReader, View as _};
use serde_json::{Value, json};

use crate::shared::revisions::RevisionData;
use crate::statefulset::gates::Gates;
use crate::statefulset::observe::ClaimLister;
use crate::statefulset::plan::plan;
use crate::statefulset::revisions::{Revision, Revisions};
use crate::statefulset::steps::{Input, Plan};
use crate::tests::cluster::{NAMESPACE, now};
use crate::tests::fixtures::ago;

/// The gates as they are by default, but for `MaxUnavailableStatefulSet`.
pub(super) const GATES: Gates =
    Gates { semantic_revisions: true, max_unavailable: false, recreate: false, rollout_recovery: false };

/// A stateful set `web` of three pods in order, without claims, as the API serves one, with changes merged into it.
pub(super) fn set(changes: Value) -> Arc<StatefulSet> {
    Arc::new(StatefulSet::decode(&set_json(changes).to_string()).unwrap())
}

pub(super) fn set_json(changes: Value) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "namespace": NAMESPACE, "name": "web", "uid": "uid-of-web", "resourceVersion": "10", "generation": 1 },
        "spec": {
            "replicas": 3,
            "serviceName": "governing",
            "selector": { "matchLabels": { "app": "web" } },
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
            "revisionHistoryLimit": 10,
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "image:1" }] },
            },
        },
        "status": { "replicas": 0 },
    });
    merge(&mut set, changes);
    set
}

/// The changes that make a stateful set have a claim `data`, with a retention policy.
pub(super) fn with_claims(when_deleted: &str, when_scaled: &str) -> Value {
    json!({ "spec": {
        "volumeClaimTemplates": [{
            "metadata": { "name": "data", "labels": { "of": "template" }, "annotations": { "a": "b" } },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
            "status": { "phase": "Pending" },
        }],
        "persistentVolumeClaimRetentionPolicy": { "whenDeleted": when_deleted, "whenScaled": when_scaled },
    } })
}

/// A JSON merge patch.
pub(super) fn merge(target: &mut Value, changes: Value) {
    let Value::Object(changes) = changes else {
        *target = changes;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, change) in changes {
        if change.is_null() {
            target.as_object_mut().unwrap().remove(&name);
        } else {
            merge(&mut target[name.as_str()], change);
        }
    }
}

/// What a pod is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Is {
    /// Ready for an hour, of the update revision.
    Ready,
    /// The same, of the current revision.
    Old,
    /// Ready for an hour, of a revision before both.
    Older,
    /// Running and not ready, of the update revision.
    Unready,
    /// The same, of the current revision.
    OldUnready,
    /// The same, of a revision before both.
    OlderUnready,
    /// Ready for two seconds.
    Young,
    /// The same, of the current revision.
    OldYoung,
    Pending,
    Failed,
    Succeeded,
    Terminating,
    /// Terminating, of the current revision.
    OldTerminating,
    /// Failed and terminating.
    FailedTerminating,
}

/// A pod of the stateful set `web`.
pub(super) fn pod(ordinal: i64, is: Is) -> Arc<Pod> {
    pod_with(ordinal, is, json!({}))
}

pub(super) fn pod_with(ordinal: i64, is: Is, changes: Value) -> Arc<Pod> {
    let name = format!("web-{ordinal}");
    let revision = match is {
        Is::Old | Is::OldUnready | Is::OldYoung | Is::OldTerminating => "web-old",
        Is::Older | Is::OlderUnready => "web-older",
        Is::Ready
        | Is::Unready
        | Is::Young
        | Is::Pending
        | Is::Failed
        | Is::Succeeded
        | Is::Terminating
        | Is::FailedTerminating => "web-new",
    };
    let phase = match is {
        Is::Pending => "Pending",
        Is::Failed | Is::FailedTerminating => "Failed",
        Is::Succeeded => "Succeeded",
        Is::Ready
        | Is::Old
        | Is::Older
        | Is::Unready
        | Is::OldUnready
        | Is::OlderUnready
        | Is::Young
        | Is::OldYoung
        | Is::Terminating
        | Is::OldTerminating => "Running",
    };
    let ready = match is {
        Is::Ready | Is::Old | Is::Older | Is::Terminating | Is::OldTerminating => Some(3600),
        Is::Young | Is::OldYoung => Some(2),
        Is::Unready
        | Is::OldUnready
        | Is::OlderUnready
        | Is::Pending
        | Is::Failed
        | Is::Succeeded
        | Is::FailedTerminating => None,
    };
    let condition = ready.map(|since| json!({ "type": "Ready", "status": "True", "lastTransitionTime": ago(since) }));
    let mut pod = json!({
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "uid": format!("uid-of-{name}"),
            "resourceVersion": "20",
            "labels": {
                "app": "web",
                "statefulset.kubernetes.io/pod-name": name,
                "apps.kubernetes.io/pod-index": ordinal.to_string(),
                "controller-revision-hash": revision,
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "uid-of-web",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": { "volumes": [
            { "name": "data", "persistentVolumeClaim": { "claimName": format!("data-web-{ordinal}") } },
        ] },
        "status": { "phase": phase, "conditions": condition.into_iter().collect::<Vec<_>>() },
    });
    if matches!(is, Is::Terminating | Is::OldTerminating | Is::FailedTerminating) {
        pod["metadata"]["deletionTimestamp"] = json!(ago(1));
    }
    merge(&mut pod, changes);
    Arc::new(Pod::decode(&pod.to_string()).unwrap())
}

/// A claim of that name with these owner references.
#[expect(clippy::needless_pass_by_value, reason = "cases are literals")]
pub(super) fn claim(name: &str, owners: Value) -> Arc<PersistentVolumeClaim> {
    claim_with(name, json!({ "metadata": { "ownerReferences": owners } }))
}

pub(super) fn claim_with(name: &str, changes: Value) -> Arc<PersistentVolumeClaim> {
    let mut claim = json!({ "metadata": { "namespace": NAMESPACE, "name": name, "uid": format!("uid-of-{name}") } });
    merge(&mut claim, changes);
    Arc::new(PersistentVolumeClaim::decode(&claim.to_string()).unwrap())
}

/// Claims by name.
#[derive(Default)]
pub(super) struct Claims(pub(super) BTreeMap<String, Arc<PersistentVolumeClaim>>);

impl Claims {
    pub(super) fn of(claims: impl IntoIterator<Item = Arc<PersistentVolumeClaim>>) -> Self {
        Self(claims.into_iter().map(|claim| (claim.metadata.key.name().to_owned(), claim)).collect())
    }
}

impl ClaimLister for Claims {
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        assert_eq!(namespace, NAMESPACE);
        self.0.get(name).cloned()
    }

    fn is_undecodable(&self, _namespace: &str, _name: &str) -> bool {
        false
    }
}

/// The revision of that name for an image.
pub(super) fn revision(name: &str, image: &str) -> Revision {
    let template = json!({
        "metadata": { "labels": { "app": "web" }, "annotations": { "a": "b" } },
        "spec": { "containers": [{ "name": "main", "image": image }] },
    });
    let template = serde_json::value::to_raw_value(&template).unwrap();
    Revision { name: name.to_owned(), data: RevisionData::of(Some(&template)).unwrap() }
}

/// The revisions in the middle of a rollout: `web-old` of `image:1`, and `web-new` of `image:2`.
pub(super) fn revisions() -> Revisions {
    Revisions { current: revision("web-old", "image:1"), update: revision("web-new", "image:2"), collision_count: 0 }
}

/// Reads the volumes of pods.
pub(super) fn volumes() -> PartReader<PodVolumes> {
    [Need::part::<PodVolumes>()].into_iter().collect::<Needs>().reader().unwrap()
}

/// The plan in the middle of a rollout.
pub(super) fn planned(set: &StatefulSet, pods: &[Arc<Pod>], claims: &Claims, gates: Gates) -> Plan {
    plan(Input { set, pods, revisions: &revisions(), claims, volumes: volumes(), gates, now: now() })
}
