//! Deployments: the fields that are read, and edits of the document.

use kcm_api::views::{Deployment, DeploymentStrategy, DeploymentView, ReplicaSet, ReplicaSetView};
use kcm_api::{
    Condition, ConditionStatus, Document, IntOrPercent, InvalidSelector, KnownView, OwnerReference, POD_TEMPLATE_HASH,
    Selector, View, same_template,
};
use serde_json::{Value, json};

fn deployment(object: &Value) -> Deployment {
    Deployment::decode(&object.to_string()).expect("the case must be a deployment")
}

fn web() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "a", "uid": "u", "resourceVersion": "7", "generation": 3,
            "annotations": {"deployment.kubernetes.io/revision": "2", "note": "two\nlines", "deprecated.deployment.rollback.to": "1"},
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "replicas": 10, "minReadySeconds": 5, "revisionHistoryLimit": 4, "progressDeadlineSeconds": 60, "paused": true,
            "selector": {"matchLabels": {"app": "web"}, "futureSelector": 1},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"creationTimestamp": null, "labels": {"app": "web", "tier": "front"}},
                "spec": {"containers": [{"name": "c", "image": "i", "futureContainer": 1.0}]},
            },
        },
        "status": {
            "observedGeneration": 2, "replicas": 13, "updatedReplicas": 5, "readyReplicas": 9, "availableReplicas": 8,
            "unavailableReplicas": 5, "terminatingReplicas": 1, "collisionCount": 2, "futureStatus": 1.50,
            "conditions": [{
                "type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": "m", "futureCondition": true,
                "lastUpdateTime": "2026-01-01T00:00:01Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        },
    })
}

#[test]
fn a_deployment_is_read() {
    let deployment = deployment(&web());
    assert_eq!(deployment.meta().key.to_string(), "a/web");
    assert_eq!((deployment.replicas, deployment.min_ready_seconds, deployment.paused), (10, 5, true));
    assert_eq!((deployment.revision_history_limit, deployment.progress_deadline_seconds), (Some(4), Some(60)));
    assert_eq!(deployment.selector, "app=web".parse());
    assert_eq!(deployment.template_labels, [("app", "web"), ("tier", "front")].into_iter().collect());
    assert_eq!(
        deployment.strategy,
        DeploymentStrategy::RollingUpdate {
            max_unavailable: Some(IntOrPercent::Percent(25)),
            max_surge: Some(IntOrPercent::Int(3)),
        }
    );
    let status = &deployment.status;
    assert_eq!((status.observed_generation, status.replicas, status.updated_replicas), (2, 13, 5));
    assert_eq!((status.ready_replicas, status.available_replicas, status.unavailable_replicas), (9, 8, 5));
    assert_eq!((status.terminating_replicas, status.collision_count), (Some(1), Some(2)));
    let progressing = &status.conditions[0];
    assert_eq!((&*progressing.type_, progressing.status), ("Progressing", ConditionStatus::True));
    assert_eq!(progressing.last_update_time, Some("2026-01-01T00:00:01Z".parse().unwrap()));
    assert_eq!(progressing.last_transition_time, Some("2026-01-01T00:00:00Z".parse().unwrap()));
    assert_eq!(Deployment::RESOURCE.to_string(), "deployments.apps");
}

#[test]
fn what_a_deployment_leaves_out_has_upstreams_defaults() {
    let view = DeploymentView::decode(r#"{"metadata":{},"spec":{}}"#).unwrap();
    assert_eq!((view.replicas, view.min_ready_seconds, view.paused), (1, 0, false));
    assert_eq!((view.revision_history_limit, view.progress_deadline_seconds), (None, None));
    assert_eq!(view.selector, Ok(Selector::nothing()));
    assert_eq!((view.status.terminating_replicas, view.status.collision_count), (None, None));
}

#[test]
fn an_invalid_selector_does_not_keep_the_object_from_being_read() {
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    let deployment = deployment(&json!({"metadata": {"name": "a"}, "spec": {"selector": selector}}));
    assert_eq!(deployment.selector, Err(InvalidSelector::Operator { operator: "Near".to_owned() }));
}

#[test]
fn the_strategy_is_known_or_kept_as_text() {
    let rolling = |max_unavailable, max_surge| DeploymentStrategy::RollingUpdate { max_unavailable, max_surge };
    for (json, strategy) in [
        (Value::Null, DeploymentStrategy::Other("".into())),
        (json!({"type": "Recreate"}), DeploymentStrategy::Recreate),
        (json!({"type": "Recreate", "rollingUpdate": null}), DeploymentStrategy::Recreate),
        (json!({"type": "BlueGreen"}), DeploymentStrategy::Other("BlueGreen".into())),
        (json!({"type": "RollingUpdate"}), rolling(None, None)),
        (
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "x"}}),
            rolling(Some(IntOrPercent::Int(0)), Some(IntOrPercent::Invalid("x".into()))),
        ),
    ] {
        let view = deployment(&json!({"metadata": {}, "spec": {"strategy": json}}));
        assert_eq!(view.strategy, strategy, "{json}");
    }
}

#[test]
fn annotations_are_read_from_the_view_where_decisions_need_them_and_all_from_the_document() {
    let deployment = deployment(&web());
    assert_eq!(deployment.metadata.annotations.get("deployment.kubernetes.io/revision"), Some("2"));
    assert_eq!(deployment.metadata.annotations.get("deprecated.deployment.rollback.to"), Some("1"));
    assert_eq!(deployment.metadata.annotations.get("note"), None);
    assert_eq!(deployment.annotation("note").as_deref(), Some("two\nlines"));
    assert_eq!(deployment.annotation("absent"), None);
    let annotations = deployment.document.annotations();
    let keys: Vec<_> = annotations.keys().map(|key| &**key).collect();
    assert_eq!(keys, ["deployment.kubernetes.io/revision", "deprecated.deployment.rollback.to", "note"]);
}

#[test]
fn no_annotations_are_read_where_there_are_none() {
    for metadata in [json!({}), json!({"annotations": null}), json!({"annotations": {}})] {
        assert!(deployment(&json!({"metadata": metadata})).document.annotations().is_empty(), "{metadata}");
    }
}

#[test]
fn a_new_replica_set_is_made_from_the_parts_of_its_deployment() {
    let owner = deployment(&web());
    let mut document = Document::of_kind(&ReplicaSetView::RESOURCE);
    document.set(&["metadata", "name"], "web-b4").unwrap();
    document.set(&["metadata", "namespace"], "a").unwrap();
    document.set(&["metadata", "labels"], &owner.template_labels).unwrap();
    document.set(&["metadata", "labels", POD_TEMPLATE_HASH], "b4").unwrap();
    document.set(&["metadata", "annotations"], &owner.document.annotations()).unwrap();
    document.set(&["metadata", "annotations", "deployment.kubernetes.io/desired-replicas"], "10").unwrap();
    document
        .set(
            &["metadata", "ownerReferences"],
            &[OwnerReference::controller_of(&Deployment::RESOURCE, owner.meta().key.name(), &owner.meta().uid)],
        )
        .unwrap();
    document.set(&["spec", "replicas"], &5).unwrap();
    document.set(&["spec", "selector"], owner.raw(&["spec", "selector"]).unwrap()).unwrap();
    document.set(&["spec", "selector", "matchLabels", POD_TEMPLATE_HASH], "b4").unwrap();
    document.set(&["spec", "template"], owner.template().unwrap()).unwrap();
    document.set(&["spec", "template", "metadata", "labels", POD_TEMPLATE_HASH], "b4").unwrap();

    let written: Value = serde_json::from_str(document.as_str()).unwrap();
    assert_eq!((&written["apiVersion"], &written["kind"]), (&json!("apps/v1"), &json!("ReplicaSet")));
    let made = ReplicaSet::decode(document.as_str()).unwrap();
    assert!(made.metadata.is_controlled_by(&owner.metadata.uid));
    assert_eq!((made.replicas, &made.metadata.labels), (5, &made.template_labels));
    assert!(made.selector.as_ref().unwrap().matches(&made.template_labels));
    assert_eq!(made.annotation("note").as_deref(), Some("two\nlines"));
    assert!(same_template(made.template().unwrap(), owner.template().unwrap()));
    for unknown in [r#""futureContainer":1.0"#, r#""futureSelector":1"#] {
        assert!(document.as_str().contains(unknown), "{unknown}: {document}");
    }
}

#[test]
fn a_whole_template_is_put_in_the_place_of_another() {
    let current = deployment(&web());
    let template: Box<serde_json::value::RawValue> = serde_json::from_str(r#"{"spec":{"containers":[]}}"#).unwrap();
    let mut document = current.document.clone();
    document.set(&["spec", "template"], &template).unwrap();
    let mut expected = web();
    expected["spec"]["template"] = json!({"spec": {"containers": []}});
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(serde_json::from_str::<Value>(document.as_str()).unwrap(), expected);
}

#[test]
fn a_status_put_loses_nothing_that_we_do_not_know() {
    let mut document = deployment(&web()).document;
    document.set(&["metadata", "annotations", "deployment.kubernetes.io/revision"], "3").unwrap();
    document.set(&["status", "updatedReplicas"], &6).unwrap();
    document.set(&["status", "observedGeneration"], &3).unwrap();
    document.remove(&["status", "terminatingReplicas"]).unwrap();
    let available = Condition { type_: "Available".into(), status: ConditionStatus::True, ..Condition::default() };
    document.put_condition(&available).unwrap();

    let mut expected = web();
    expected["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("3");
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    expected["status"]["updatedReplicas"] = json!(6);
    expected["status"]["observedGeneration"] = json!(3);
    expected["status"].as_object_mut().unwrap().remove("terminatingReplicas");
    expected["status"]["conditions"].as_array_mut().unwrap().push(json!({"type": "Available", "status": "True"}));
    assert_eq!(serde_json::from_str::<Value>(document.as_str()).unwrap(), expected);
}
