//! Bytes per cached object, counted by the allocator.

use std::alloc::System;
use std::sync::Arc;

use kcm_api::views::{
    AutoscaledPod, ChargedPod, ClaimDevices, ControllerRevision, CronJob, DaemonSet, Deployment, EndpointSlice,
    Endpoints, HorizontalPodAutoscaler, Job, Lease, Namespace, Node, NodeHealth, NodePodCidrs, PersistentVolumeClaim,
    Pod, PodAddresses, PodClaims, PodDisruptionBudget, PodSelinux, PodTolerations, PodVolumes, ReplicaSet,
    ReplicationController, ResourceClaim, ResourceQuota, Service, ServiceCidr, StatefulSet,
};
use kcm_api::{DecodeContext, Need, Needs, PartialObjectMeta, View};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const POD: &str = include_str!("../fixtures/pod.json");
const REPLICA_SET: &str = include_str!("../fixtures/replica_set.json");
const DEPLOYMENT: &str = include_str!("../fixtures/deployment.json");

/// An object as API servers return it, except for the fields of its kind.
fn object(kind: &str, rest: Value) -> String {
    let mut object = rest;
    object["apiVersion"] = json!("v1");
    object["kind"] = json!(kind);
    object["metadata"] = json!({
        "name": "web-7c5b9d7b4-x2k8p",
        "namespace": "shop",
        "uid": "0f0e7c58-4d0e-4c5a-9c60-1b9a9b5f4d11",
        "resourceVersion": "4711",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": { "app": "web" },
        "managedFields": [{ "manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1" }],
    });
    object.to_string()
}

/// A pod that mounts the volume of a claim with an `SELinux` level.
fn labelled_pod() -> String {
    let mut pod: Value = serde_json::from_str(POD).expect("the fixture is JSON");
    pod["spec"]["securityContext"] = json!({ "seLinuxOptions": { "level": "s0:c1,c2" } });
    pod["spec"]["volumes"][0] = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "data" } });
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    pod.to_string()
}

/// Objects that quotas read beside pods.
fn charged() -> [String; 4] {
    let namespace = json!({ "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" } });
    let service = json!({ "spec": {
        "type": "NodePort", "clusterIP": "10.0.0.1", "selector": { "app": "web" },
        "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30080 }],
    } });
    let claim = json!({
        "spec": {
            "storageClassName": "gold", "accessModes": ["ReadWriteOnce"], "volumeName": "pv-1",
            "resources": { "requests": { "storage": "10Gi" } },
        },
        "status": { "phase": "Bound", "capacity": { "storage": "10Gi" } },
    });
    let hard = json!({ "pods": "10", "requests.cpu": "4", "requests.memory": "8Gi" });
    let quota = json!({
        "spec": { "hard": hard },
        "status": { "hard": hard, "used": { "pods": "2", "requests.cpu": "1500m", "requests.memory": "3Gi" } },
    });
    [
        object("Namespace", namespace),
        object("Service", service),
        object("PersistentVolumeClaim", claim),
        object("ResourceQuota", quota),
    ]
}

/// A node that is ready, with the images that it holds.
fn node() -> String {
    let image =
        |number: usize| json!({ "names": [format!("registry.example.com/image-{number}:1.0")], "sizeBytes": 1 });
    let conditions = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(|type_| {
        let status = if type_ == "Ready" { "True" } else { "False" };
        json!({ "type": type_, "status": status, "reason": "Kubelet", "lastHeartbeatTime": "2026-01-01T00:00:00Z" })
    });
    let resources = json!({ "cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110" });
    object(
        "Node",
        json!({
            "spec": { "podCIDR": "10.244.1.0/24", "taints": [{ "key": "example.com/gpu", "value": "true", "effect": "NoSchedule" }] },
            "status": {
                "capacity": resources, "allocatable": resources, "conditions": conditions,
                "addresses": [{ "type": "InternalIP", "address": "192.168.0.17" }],
                "images": (0..50).map(image).collect::<Vec<_>>(),
            },
        }),
    )
}

/// The lease that a kubelet renews.
fn lease() -> String {
    object(
        "Lease",
        json!({
            "spec": {
                "holderIdentity": "node-0001", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z",
            },
        }),
    )
}

/// The other workloads, with a template of one container.
fn workloads() -> [String; 6] {
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler", "securityContext": {},
            "containers": [{
                "name": "main", "image": "registry.example.com/shop/web:1.2.3", "imagePullPolicy": "IfNotPresent",
                "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
        },
    });
    let selector = json!({ "matchLabels": { "app": "web" } });
    let job =
        json!({ "parallelism": 1, "completions": 1, "backoffLimit": 6, "selector": selector, "template": template });
    let ended = json!([{ "type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z" }]);
    [
        object("Job", json!({ "spec": job, "status": { "succeeded": 1, "conditions": ended } })),
        object("CronJob", json!({ "spec": { "schedule": "0 * * * *", "jobTemplate": { "spec": job } } })),
        object(
            "StatefulSet",
            json!({
                "spec": { "replicas": 3, "serviceName": "web", "selector": selector, "template": template },
                "status": { "replicas": 3, "readyReplicas": 3, "currentRevision": "web-1", "updateRevision": "web-1" },
            }),
        ),
        object(
            "DaemonSet",
            json!({
                "spec": { "selector": selector, "template": template }, "status": { "desiredNumberScheduled": 3 },
            }),
        ),
        object(
            "ReplicationController",
            json!({
                "spec": { "replicas": 3, "selector": { "app": "web" }, "template": template }, "status": { "replicas": 3 },
            }),
        ),
        object("ControllerRevision", json!({ "data": { "spec": { "template": template } }, "revision": 3 })),
    ]
}

/// An allocated claim of a device, and a pod that uses it.
fn devices() -> [String; 2] {
    let uid = "0a1b2c3d-1234-5678-9abc-0123456789ab";
    let result = json!({ "request": "gpu", "driver": "gpu.example.com", "pool": "node-0001", "device": "gpu-0" });
    let exactly = json!({ "deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1 });
    let claim = json!({
        "spec": { "devices": { "requests": [{ "name": "gpu", "exactly": exactly }] } },
        "status": {
            "allocation": { "devices": { "results": [result] } },
            "reservedFor": [{ "resource": "pods", "name": "web-7c5b9d7b4-x2k8p", "uid": uid }],
        },
    });
    let mut pod: Value = serde_json::from_str(POD).expect("the fixture must be JSON");
    pod["spec"]["resourceClaims"] = json!([{ "name": "gpu", "resourceClaimTemplateName": "gpu" }]);
    let names = json!([{ "name": "gpu", "resourceClaimName": "web-7c5b9d7b4-x2k8p-gpu-abcde" }]);
    pod["status"]["resourceClaimStatuses"] = names;
    [object("ResourceClaim", claim), pod.to_string()]
}

/// A budget with its status, a service CIDR that is ready, and an address of a service.
fn budget_and_ranges() -> [String; 3] {
    let condition = |type_: &str, reason: &str, message: &str| {
        json!({
            "type": type_, "status": "True", "reason": reason, "message": message, "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let budget = json!({
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } } },
        "status": {
            "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3,
            "conditions": [condition("DisruptionAllowed", "SufficientPods", "")],
        },
    });
    let cidr = json!({
        "spec": { "cidrs": ["10.96.0.0/12", "fd00::/112"] },
        "status": { "conditions": [condition("Ready", "", "Kubernetes Service CIDR is ready")] },
    });
    let address = json!({ "spec": { "parentRef": { "resource": "services", "namespace": "shop", "name": "web" } } });
    [object("PodDisruptionBudget", budget), object("ServiceCIDR", cidr), object("IPAddress", address)]
}

/// The fixture with another name and uid, both as long as before.
fn copy_named(mut object: Value, number: usize) -> String {
    let metadata = &mut object["metadata"];
    let text = |field: &str| metadata[field].as_str().expect("the fixture must have this field").to_owned();
    let (name, uid) = (text("name"), text("uid"));
    metadata["name"] = json!(format!("{}{number:05}", &name[..name.len() - 5]));
    metadata["uid"] = json!(format!("{number:08}{}", &uid[8..]));
    object.to_string()
}

/// Bytes and allocations for each of 2,000 objects that differ in name and uid, as a cache holds them.
fn cost_of<V: View>(json: &str, needs: &Needs) -> (usize, usize) {
    const OBJECTS: usize = 2000;
    let object: Value = serde_json::from_str(json).expect("the fixture must be JSON");
    let texts: Vec<String> = (0..OBJECTS).map(|number| copy_named(object.clone(), number)).collect();
    let context = Arc::new(DecodeContext::new::<V>(Arc::default(), needs));
    let mut cache = Vec::with_capacity(OBJECTS);
    let region = Region::new(ALLOCATOR);
    context
        .scope(|| cache.extend(texts.iter().map(|json| Arc::new(V::decode(json).expect("the fixture must decode")))));
    let held = region.change();
    ((held.bytes_allocated - held.bytes_deallocated) / OBJECTS, (held.allocations - held.deallocations) / OBJECTS)
}

/// An endpoint slice with a hundred endpoints.
fn endpoint_slice() -> String {
    let uid = "0a1b2c3d-1234-5678-9abc-0123456789ab";
    let endpoint = |number: usize| {
        let name = format!("web-7c5ddbdf54-{number:05}");
        let target = json!({ "kind": "Pod", "namespace": "default", "name": name, "uid": uid });
        json!({
            "addresses": [format!("10.244.1.{number}")], "nodeName": "node-0001", "targetRef": target, "zone": "zone-a",
            "conditions": { "ready": true, "serving": true, "terminating": false },
        })
    };
    let labels = json!({ "kubernetes.io/service-name": "web" });
    let metadata = json!({ "namespace": "default", "name": "web-abcde", "uid": uid, "labels": labels });
    let endpoints: Vec<Value> = (0..100).map(endpoint).collect();
    let ports = json!([{ "name": "http", "port": 8080, "protocol": "TCP" }]);
    json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports }).to_string()
}

/// Endpoints with a hundred addresses.
fn endpoints() -> String {
    let uid = "0a1b2c3d-1234-5678-9abc-0123456789ab";
    let address = |number: usize| {
        let name = format!("web-7c5ddbdf54-{number:05}");
        let target = json!({ "kind": "Pod", "namespace": "default", "name": name, "uid": uid });
        json!({ "ip": format!("10.244.1.{number}"), "nodeName": "node-0001", "targetRef": target })
    };
    let addresses: Vec<Value> = (0..100).map(address).collect();
    let ports = json!([{ "name": "http", "port": 8080, "protocol": "TCP" }]);
    object("Endpoints", json!({ "subsets": [{ "addresses": addresses, "ports": ports }] }))
}

/// An autoscaler with a metric and the status of a sync.
fn autoscaler() -> String {
    let target = json!({ "type": "Utilization", "averageUtilization": 50 });
    let current = json!({ "averageUtilization": 40, "averageValue": "40m" });
    let condition = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "Reason", "lastTransitionTime": "2026-01-01T00:00:00Z",
            "message": "the HPA controller was able to get the target's current scale",
        })
    };
    let conditions = ["AbleToScale", "ScalingActive", "ScalingLimited"].map(condition);
    object(
        "HorizontalPodAutoscaler",
        json!({
            "spec": {
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
                "minReplicas": 1, "maxReplicas": 10,
                "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": target } }],
            },
            "status": {
                "currentReplicas": 2, "desiredReplicas": 2, "conditions": conditions,
                "currentMetrics": [{ "type": "Resource", "resource": { "name": "cpu", "current": current } }],
            },
        }),
    )
}

// One test, since the allocator counts for the whole process.
#[test]
fn cached_objects_are_small() {
    let (none, all) = (Needs::default(), [Need::part::<PodVolumes>(), Need::part::<PodAddresses>()]);
    let [namespace, service, claim, quota] = charged();
    let [job, cron_job, stateful_set, daemon_set, replication_controller, revision] = workloads();
    let [budget, cidr, address] = budget_and_ranges();
    let of_quotas = [Need::part::<ChargedPod>()].into_iter().collect();
    let of_evictions = [Need::part::<PodTolerations>()].into_iter().collect();
    let of_nodes = [Need::part::<NodeHealth>(), Need::part::<NodePodCidrs>()].into_iter().collect();
    let of_autoscalers = [Need::part::<AutoscaledPod>()].into_iter().collect();
    let [device_claim, device_pod] = devices();
    let of_devices = [Need::part::<ClaimDevices>()].into_iter().collect();
    let of_claims = [Need::part::<PodClaims>()].into_iter().collect();
    let of_labels = [Need::part::<PodSelinux>()].into_iter().collect();
    let mut larger = Vec::new();
    // Within a tenth of the measured figures, so that a larger object is a deliberate change.
    for (kind, (bytes, allocations), (most_bytes, most_allocations)) in [
        ("pod", cost_of::<Pod>(POD, &none), (340, 2)),
        ("pod with its parts", cost_of::<Pod>(POD, &all.into_iter().collect()), (440, 4)),
        // Less than 290 bytes for each endpoint.
        ("endpoint slice", cost_of::<EndpointSlice>(&endpoint_slice(), &none), (29_000, 6)),
        // Less than 190 bytes for each address.
        ("endpoints", cost_of::<Endpoints>(&endpoints(), &none), (19_000, 4)),
        ("replica set", cost_of::<ReplicaSet>(REPLICA_SET, &none), (3900, 8)),
        ("deployment", cost_of::<Deployment>(DEPLOYMENT, &none), (4300, 10)),
        ("pod that quotas are charged for", cost_of::<Pod>(POD, &of_quotas), (420, 3)),
        ("pod that is autoscaled", cost_of::<Pod>(POD, &of_autoscalers), (420, 3)),
        ("pod that taints may evict", cost_of::<Pod>(POD, &of_evictions), (420, 3)),
        ("node with its health and pod CIDRs", cost_of::<Node>(&node(), &of_nodes), (470, 4)),
        ("lease of a kubelet", cost_of::<Lease>(&lease(), &none), (300, 2)),
        ("namespace", cost_of::<Namespace>(&namespace, &none), (310, 3)),
        ("service", cost_of::<Service>(&service, &none), (520, 6)),
        // With its JSON, as its finalizers and status are updated whole.
        ("claim", cost_of::<PersistentVolumeClaim>(&claim, &none), (1_000, 6)),
        ("node", cost_of::<Node>(&node(), &none), (400, 4)),
        ("job", cost_of::<Job>(&job, &none), (1950, 7)),
        ("cron job", cost_of::<CronJob>(&cron_job, &none), (1390, 4)),
        ("stateful set", cost_of::<StatefulSet>(&stateful_set, &none), (1600, 6)),
        ("daemon set", cost_of::<DaemonSet>(&daemon_set, &none), (1490, 5)),
        ("replication controller", cost_of::<ReplicationController>(&replication_controller, &none), (1400, 6)),
        ("controller revision", cost_of::<ControllerRevision>(&revision, &none), (1130, 4)),
        ("disruption budget", cost_of::<PodDisruptionBudget>(&budget, &none), (1340, 6)),
        ("service CIDR", cost_of::<ServiceCidr>(&cidr, &none), (560, 8)),
        ("metadata of an address", cost_of::<PartialObjectMeta>(&address, &none), (300, 3)),
        ("autoscaler", cost_of::<HorizontalPodAutoscaler>(&autoscaler(), &none), (1700, 6)),
        ("quota", cost_of::<ResourceQuota>(&quota, &none), (1400, 7)),
        ("claim of a device", cost_of::<ResourceClaim>(&device_claim, &of_devices), (580, 7)),
        ("pod with a claim of a device", cost_of::<Pod>(&device_pod, &of_claims), (540, 6)),
        ("pod with the label of a volume", cost_of::<Pod>(&labelled_pod(), &of_labels), (520, 6)),
    ] {
        if bytes > most_bytes || allocations > most_allocations {
            larger.push(format!("{bytes} bytes in {allocations} allocations per {kind}"));
        }
    }
    assert!(larger.is_empty(), "{larger:#?}");
}
