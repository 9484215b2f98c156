//! The pods that a job creates.

use serde_json::{Value, json};

use super::fixtures::{indexed, job, pod, pods};
use crate::job::assess::assess;
use crate::job::backoff::BackoffRecord;
use crate::job::pod_template::PodTemplate;
use crate::tests::cluster::now;

#[test]
fn a_pod_is_the_template_with_the_finalizer_and_the_owner() {
    let mut built = job();
    built.0["spec"]["template"]["metadata"]["annotations"] = json!({ "example.com/note": "kept" });
    built.0["spec"]["template"]["metadata"]["finalizers"] = json!(["example.com/finalizer"]);
    built.0["spec"]["template"]["metadata"]["name"] = json!("not-copied");
    built.0["spec"]["template"]["spec"]["ofAnotherRelease"] = json!([1]);
    let job = built.build();
    let assessment = assess(&job, &[], BackoffRecord::default(), now());
    let template = PodTemplate::of(&job);
    assert_eq!(template.generate_name(None), "sum-");
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "sum-abcde",
            "generateName": "sum-",
            "namespace": "shop",
            "labels": built.0["spec"]["template"]["metadata"]["labels"],
            "annotations": { "example.com/note": "kept" },
            "finalizers": ["example.com/finalizer", "batch.kubernetes.io/job-tracking"],
            "ownerReferences": [{
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "sum",
                "uid": "uid-of-sum",
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": built.0["spec"]["template"]["spec"],
    });
    assert_eq!(serde_json::to_value(template.pod("sum-abcde", "sum-", None, &assessment)).unwrap(), expected);
}

#[test]
fn a_pod_of_an_index_has_it_as_annotation_label_variable_and_host_name() {
    let mut built = indexed(3);
    built.0["spec"]["template"]["spec"] = json!({
        "restartPolicy": "Never",
        "hostname": "overwritten",
        "initContainers": [{ "name": "setup", "image": "image" }],
        "containers": [
            { "name": "main", "image": "image", "env": [{ "name": "A", "value": "1" }] },
            { "name": "own", "image": "image", "env": [{ "name": "JOB_COMPLETION_INDEX", "value": "7" }] },
        ],
    });
    let job = built.build();
    let assessment = assess(&job, &[], BackoffRecord::default(), now());
    let pod = serde_json::to_value(PodTemplate::of(&job).pod("sum-2-abcde", "sum-2-", Some(2), &assessment)).unwrap();
    let variable = json!({
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": { "fieldRef": { "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']" } },
    });
    assert_eq!(
        pod["spec"],
        json!({
            "restartPolicy": "Never",
            "hostname": "sum-2",
            "initContainers": [{ "name": "setup", "image": "image", "env": [variable] }],
            "containers": [
                { "name": "main", "image": "image", "env": [{ "name": "A", "value": "1" }, variable] },
                { "name": "own", "image": "image", "env": [{ "name": "JOB_COMPLETION_INDEX", "value": "7" }] },
            ],
        })
    );
    let metadata = &pod["metadata"];
    assert_eq!(metadata["generateName"], "sum-2-");
    assert_eq!(metadata["labels"]["batch.kubernetes.io/job-completion-index"], "2");
    assert_eq!(metadata["annotations"], json!({ "batch.kubernetes.io/job-completion-index": "2" }));
}

#[test]
fn a_pod_of_an_index_with_a_limit_of_its_own_carries_the_failures_before_it() {
    let job = indexed(3).spec("backoffLimitPerIndex", json!(3)).build();
    let pods = pods(&[pod("a").failed(60).index(0).failures_before(1, 2)]);
    let assessment = assess(&job, &pods, BackoffRecord::default(), now());
    let annotations = |index| -> Value {
        let template = PodTemplate::of(&job);
        serde_json::to_value(template.pod("x", "x-", Some(index), &assessment)).unwrap()["metadata"]["annotations"]
            .clone()
    };
    let (index, failures) = ("batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-index-failure-count");
    let ignored = "batch.kubernetes.io/job-index-ignored-failure-count";
    assert_eq!(annotations(0), json!({ (index): "0", (failures): "2", (ignored): "2" }));
    assert_eq!(annotations(1), json!({ (index): "1", (failures): "0" }));
}

#[test]
fn a_long_name_is_cut_before_the_index() {
    let mut built = indexed(200);
    built.0["metadata"]["name"] = json!("a".repeat(63));
    let job = built.build();
    let name = PodTemplate::of(&job).generate_name(Some(123));
    assert_eq!(name, format!("{}-123-", "a".repeat(53)));
}
