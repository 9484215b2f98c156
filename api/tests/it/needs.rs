//! Parts and annotations: decoded only if a controller needs them.

use std::sync::Arc;

use kcm_api::views::{
    AutoscaledPod, Deployment, DeploymentView, Pod, PodAddresses, PodDisruption, PodTargetNode, PodTermination,
    PodVolumes, ReplicaSetView,
};
use kcm_api::{DecodeContext, DecodeError, Interner, Need, Needs, PartialObjectMeta, View};
use serde_json::{Value, json};

fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "annotations": {"a": "1", "b": "2", "controller.kubernetes.io/pod-deletion-cost": "3"}},
        "spec": {
            "hostname": "web-0",
            "subdomain": "shop",
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-web"}},
                {"name": "token", "projected": {}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            ],
            "containers": [
                {"name": "a", "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}]},
                {"name": "b"},
                {"name": "c", "ports": [{"containerPort": 81}, {"name": "http", "containerPort": 82, "protocol": "TCP"}]},
            ],
            "initContainers": [
                {"name": "setup", "ports": [{"name": "setup", "containerPort": 83, "protocol": "TCP"}]},
                {"name": "proxy", "restartPolicy": "Always",
                    "ports": [{"name": "http", "containerPort": 84, "protocol": "UDP"}]},
            ],
        },
        "status": {
            "podIPs": [{"ip": "010.1.0.1"}, {"ip": "no address"}, {"ip": "fd00:0::1"}],
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-02T12:00:00Z"}],
        },
    })
}

fn decode<V: View>(needs: &Needs, object: &Value) -> Result<V, DecodeError> {
    let context = Arc::new(DecodeContext::new::<V>(Arc::new(Interner::default()), needs));
    context.scope(|| V::decode(&object.to_string()))
}

fn needs(needs: impl IntoIterator<Item = Need>) -> Needs {
    needs.into_iter().collect()
}

#[test]
fn a_part_that_a_controller_needs_is_decoded() {
    let needs = needs([Need::part::<PodVolumes>(), Need::part::<PodAddresses>()]);
    let pod = decode::<Pod>(&needs, &pod()).unwrap();
    let volumes = &needs.reader::<PodVolumes>().unwrap().of(&pod).volumes;
    let claims: Vec<_> =
        volumes.iter().map(|volume| (&*volume.name, volume.claim_name.as_deref(), volume.is_ephemeral)).collect();
    assert_eq!(claims, [("data", Some("data-web"), false), ("scratch", None, true)]);

    let addresses = needs.reader::<PodAddresses>().unwrap().of(&pod);
    let ports = [("http", "TCP"), ("http", "UDP"), ("http", ""), ("htt", "TCP"), ("setup", "TCP"), ("", "")];
    assert_eq!(
        ports.map(|(name, protocol)| addresses.named_port(name, protocol)),
        [Some(80), Some(84), None, None, None, None]
    );
    assert_eq!([addresses.hostname_in("shop"), addresses.hostname_in("other")], [Some("web-0"), None]);
    assert_eq!(addresses.ips.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.1.0.1", "fd00::1"]);
    assert_eq!(addresses.readiness_changed, Some("2026-01-02T12:00:00Z".parse().unwrap()));
}

#[test]
fn a_part_that_no_controller_needs_is_not_decoded() {
    let volumes = Need::part::<PodVolumes>();
    let one = decode::<Pod>(&needs([volumes]), &pod()).unwrap();
    let none = decode::<Pod>(&Needs::default(), &pod()).unwrap();
    let both = decode::<Pod>(&needs([volumes, Need::part::<PodAddresses>()]), &pod()).unwrap();
    assert!(one != none && one != both && none != both, "a part that is decoded makes another view");
    // A view has no parts of another view.
    assert_eq!(decode::<PartialObjectMeta>(&needs([volumes]), &pod()).unwrap().metadata, {
        let mut metadata = none.metadata.clone();
        metadata.annotations = kcm_api::Labels::default();
        metadata
    });
}

#[test]
fn an_object_without_the_fields_of_a_part_has_an_empty_part() {
    let needs = needs([Need::part::<PodVolumes>(), Need::part::<PodAddresses>()]);
    let pod = decode::<Pod>(&needs, &json!({"metadata": {}})).unwrap();
    assert!(needs.reader::<PodVolumes>().unwrap().of(&pod).volumes.is_empty());
    assert_eq!(*needs.reader::<PodAddresses>().unwrap().of(&pod), PodAddresses::default());
}

#[test]
fn a_part_that_is_not_decoded_cannot_be_read() {
    let error = needs([Need::part::<PodAddresses>()]).reader::<PodVolumes>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "PodVolumes of Pod is not decoded: add `Need::part::<PodVolumes>()` to the needs of the controller's descriptor"
    );
}

#[test]
fn without_a_context_all_parts_are_decoded() {
    let all = needs([
        Need::part::<PodVolumes>(),
        Need::part::<PodAddresses>(),
        Need::part::<AutoscaledPod>(),
        Need::part::<PodDisruption>(),
        Need::part::<PodTargetNode>(),
        Need::part::<PodTermination>(),
    ]);
    let of_informer = decode::<Pod>(&all, &pod()).unwrap();
    assert_eq!(Pod::decode(&pod().to_string()).unwrap(), of_informer);
    // Nor does the context of another view leave them out.
    let context = Arc::new(DecodeContext::new::<ReplicaSetView>(Arc::default(), &Needs::default()));
    assert_eq!(context.scope(|| Pod::decode(&pod().to_string())).unwrap(), of_informer);
}

#[test]
fn an_annotation_that_a_controller_needs_is_kept_beside_those_of_the_view() {
    let annotations = |needs: &Needs| {
        let pod = decode::<Pod>(needs, &pod()).unwrap();
        pod.metadata.annotations.iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>()
    };
    let cost = "controller.kubernetes.io/pod-deletion-cost";
    assert_eq!(annotations(&needs([Need::annotation::<Pod>("b")])), ["b", cost]);
    assert_eq!(annotations(&needs([Need::annotation::<DeploymentView>("b")])), [cost], "another view needs it");
}

#[test]
fn the_needs_of_a_view_are_those_of_its_documented_form() {
    let object = json!({"metadata": {"name": "web", "annotations": {"a": "1", "b": "2"}}});
    let needs = needs([Need::annotation::<DeploymentView>("b"), Need::annotation::<Deployment>("a")]);
    let deployment = decode::<Deployment>(&needs, &object).unwrap();
    assert_eq!(deployment.metadata.annotations.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
}

#[test]
fn a_context_ends_with_its_closure() {
    let context = Arc::new(DecodeContext::new::<Pod>(Arc::default(), &Needs::default()));
    let without = context.scope(|| Pod::decode(&pod().to_string())).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| context.scope(|| panic!("as a test"))));
    assert!(panicked.is_err());
    assert_ne!(Pod::decode(&pod().to_string()).unwrap(), without);
}
