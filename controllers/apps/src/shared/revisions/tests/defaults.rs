//! Defaults of templates that earlier releases recorded.

use serde_json::{Value, json};

use super::data;

/// The template of `recorded` after the defaults.
fn defaulted(recorded: &Value) -> Value {
    let data = data(&recorded.to_string()).with_defaults().expect("the data must have a template");
    let mut data: Value = serde_json::from_str(data.as_str()).unwrap();
    let template = &mut data["spec"]["template"];
    template.as_object_mut().unwrap().remove("$patch").expect("it stays a patch");
    template.take()
}

fn pod_spec(more: Value) -> Value {
    let mut spec = json!({
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
    });
    let Value::Object(more) = more else { unreachable!("cases are objects") };
    spec.as_object_mut().unwrap().extend(more);
    spec
}

fn container(more: Value) -> Value {
    let mut container = json!({
        "image": "a:1",
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    });
    let Value::Object(more) = more else { unreachable!("cases are objects") };
    container.as_object_mut().unwrap().extend(more);
    container
}

#[test]
fn fields_that_were_not_recorded_have_the_defaults_of_today() {
    let probe = json!({ "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3 });
    let probe = |more: Value| {
        let mut probe = probe.clone();
        let Value::Object(more) = more else { unreachable!("cases are objects") };
        probe.as_object_mut().unwrap().extend(more);
        probe
    };
    for (name, recorded, expected) in [
        ("a pod", json!({}), json!({})),
        (
            "what is set stays",
            json!({ "dnsPolicy": "Default", "terminationGracePeriodSeconds": 0 }),
            json!({ "dnsPolicy": "Default", "terminationGracePeriodSeconds": 0 }),
        ),
        (
            "a service account",
            json!({ "serviceAccountName": "a" }),
            json!({ "serviceAccountName": "a", "serviceAccount": "a" }),
        ),
        (
            "a service account by its deprecated name",
            json!({ "serviceAccount": "a" }),
            json!({ "serviceAccountName": "a", "serviceAccount": "a" }),
        ),
        (
            "two names of a service account",
            json!({ "serviceAccountName": "a", "serviceAccount": "b" }),
            json!({ "serviceAccountName": "a", "serviceAccount": "a" }),
        ),
        ("a container", json!({ "containers": [{ "image": "a:1" }] }), json!({ "containers": [container(json!({}))] })),
        (
            "an init container",
            json!({ "initContainers": [{ "image": "a:1", "ports": [{}] }] }),
            json!({ "initContainers": [container(json!({ "ports": [{ "protocol": "TCP" }] }))] }),
        ),
        (
            "an image without a tag",
            json!({ "containers": [{ "image": "a.b:80/c" }] }),
            json!({ "containers": [container(json!({ "image": "a.b:80/c", "imagePullPolicy": "Always" }))] }),
        ),
        (
            "an image with a digest",
            json!({ "containers": [{ "image": "a@sha256:0" }] }),
            json!({ "containers": [container(json!({ "image": "a@sha256:0" }))] }),
        ),
        (
            "a probe",
            json!({ "containers": [{ "image": "a:1", "livenessProbe": { "httpGet": { "port": 1 } } }] }),
            json!({ "containers": [container(json!({
                "livenessProbe": probe(json!({ "httpGet": { "port": 1, "path": "/", "scheme": "HTTP" } })),
            }))] }),
        ),
        (
            "a grpc probe",
            json!({ "containers": [{ "image": "a:1", "startupProbe": { "grpc": { "port": 1 } } }] }),
            json!({ "containers": [container(json!({
                "startupProbe": probe(json!({ "grpc": { "port": 1, "service": "" } })),
            }))] }),
        ),
        (
            "a field",
            json!({ "containers": [{ "image": "a:1", "env": [{ "valueFrom": { "fieldRef": {} } }] }] }),
            json!({ "containers": [container(json!({
                "env": [{ "valueFrom": { "fieldRef": { "apiVersion": "v1" } } }],
            }))] }),
        ),
        (
            "a volume without a source",
            json!({ "volumes": [{ "name": "a" }] }),
            json!({ "volumes": [{ "name": "a", "emptyDir": {} }] }),
        ),
        (
            "volumes",
            json!({ "volumes": [{ "secret": {} }, { "hostPath": { "path": "/" } }, { "azureDisk": {} }] }),
            json!({ "volumes": [
                { "secret": { "defaultMode": 420 } },
                { "hostPath": { "path": "/", "type": "" } },
                { "azureDisk": { "cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": false } },
            ] }),
        ),
        (
            "a projected token",
            json!({ "volumes": [{ "projected": { "sources": [{ "serviceAccountToken": {} }] } }] }),
            json!({ "volumes": [{ "projected": {
                "defaultMode": 420,
                "sources": [{ "serviceAccountToken": { "expirationSeconds": 3600 } }],
            } }] }),
        ),
    ] {
        let recorded = json!({ "metadata": { "labels": { "app": "web" } }, "spec": recorded });
        let expected = json!({ "metadata": { "labels": { "app": "web" } }, "spec": pod_spec(expected) });
        assert_eq!(defaulted(&recorded), expected, "{name}");
        assert_eq!(defaulted(&expected), expected, "{name}: they are set once");
    }
}

#[test]
fn the_api_server_of_the_sandbox_sets_the_same_defaults() {
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": {
            "containers": [{
                "name": "main",
                "image": "a",
                "ports": [{ "containerPort": 80 }],
                "env": [{ "name": "A", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
                "readinessProbe": { "httpGet": { "port": 80 } },
                "lifecycle": { "preStop": { "httpGet": { "port": 80 } } },
            }],
            "volumes": [
                { "name": "a" },
                { "name": "b", "configMap": { "name": "b" } },
                { "name": "c", "downwardAPI": { "items": [{ "path": "a", "fieldRef": { "fieldPath": "metadata.name" } }] } },
                { "name": "d", "hostPath": { "path": "/d" } },
            ],
        },
    });
    let sandbox = kcm_sandbox_apiserver::Sandbox::new(kcm_sandbox_apiserver::SandboxOptions::default());
    sandbox.create_namespace("shop").unwrap();
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": { "namespace": "shop", "name": "web" },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": template },
    });
    let created = sandbox.create(&kcm_sandbox_apiserver::REPLICA_SETS, set).unwrap();
    // The served template has `resources: {}` in every container, which is no default.
    let mut served = created["spec"]["template"].clone();
    served["spec"]["containers"][0].as_object_mut().unwrap().remove("resources");
    assert_eq!(defaulted(&template), served);
}
