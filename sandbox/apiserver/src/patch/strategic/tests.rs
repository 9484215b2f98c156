use serde_json::json;

use super::*;

fn patched(object: &Value, patch: &Value, kind: &str) -> Result<Value, Status> {
    let mut object = object.as_object().expect("an object is a map").clone();
    let patch = patch.as_object().expect("a patch is a map").clone();
    merge(&mut object, patch, types().named(kind))?;
    Ok(Value::Object(object))
}

const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const POD: &str = "io.k8s.api.core.v1.Pod";
const SERVICE: &str = "io.k8s.api.core.v1.Service";

fn pod() -> Value {
    json!({
        "metadata": {
            "labels": { "a": "b" },
            "ownerReferences": [{ "uid": "a", "name": "a" }, { "uid": "b", "name": "b" }],
            "finalizers": ["x", "y"],
        },
        "spec": {
            "containers": [
                { "name": "main", "image": "1", "env": [{ "name": "A", "value": "1" }],
                  "ports": [{ "containerPort": 80, "name": "http" }], "args": ["-a"] },
                { "name": "side", "image": "1" },
            ],
            "tolerations": [{ "key": "k" }],
            "volumes": [{ "name": "v", "emptyDir": {} }],
            "nodeSelector": { "disk": "ssd" },
        },
        "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "r" }] },
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
fn lists_and_maps_are_merged_as_their_types_say() {
    let owners = "/metadata/ownerReferences";
    for (name, patch, pointer, expected) in [
        (
            "an item is merged by its key, in its place",
            json!({ "metadata": { "ownerReferences": [{ "uid": "b", "controller": true }] } }),
            owners,
            json!([{ "uid": "a", "name": "a" }, { "uid": "b", "name": "b", "controller": true }]),
        ),
        (
            "an unknown item comes first",
            json!({ "metadata": { "ownerReferences": [{ "uid": "c" }] } }),
            "/metadata/ownerReferences/0",
            json!({ "uid": "c" }),
        ),
        (
            "an item is deleted",
            json!({ "metadata": { "ownerReferences": [{ "$patch": "delete", "uid": "a" }] } }),
            owners,
            json!([{ "uid": "b", "name": "b" }]),
        ),
        (
            "an absent item is deleted in vain",
            json!({ "metadata": { "ownerReferences": [{ "$patch": "delete", "uid": "z" }] } }),
            "/metadata/ownerReferences/1/uid",
            json!("b"),
        ),
        (
            "a list is replaced",
            json!({ "metadata": { "ownerReferences": [{ "$patch": "replace" }, { "uid": "c" }] } }),
            owners,
            json!([{ "uid": "c" }]),
        ),
        (
            "a set takes each value once, in the order of the patch",
            json!({ "metadata": { "finalizers": ["z", "x"] } }),
            "/metadata/finalizers",
            json!(["z", "x", "y"]),
        ),
        (
            "a set loses values",
            json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["x"] } }),
            "/metadata/finalizers",
            json!(["y"]),
        ),
        (
            "a set is put in order",
            json!({ "metadata": { "$setElementOrder/finalizers": ["y", "x"] } }),
            "/metadata/finalizers",
            json!(["y", "x"]),
        ),
        (
            "items are put in order as they are merged",
            json!({ "spec": {
                "$setElementOrder/containers": [{ "name": "side" }, { "name": "new" }, { "name": "main" }],
                "containers": [{ "name": "new", "image": "2" }],
            } }),
            "/spec/containers",
            json!([
                { "name": "side", "image": "1" },
                { "name": "new", "image": "2" },
                { "name": "main", "image": "1", "env": [{ "name": "A", "value": "1" }],
                  "ports": [{ "containerPort": 80, "name": "http" }], "args": ["-a"] },
            ]),
        ),
        (
            "lists within items are merged too",
            json!({ "spec": { "containers": [{ "name": "main", "env": [{ "name": "B", "value": "2" }] }] } }),
            "/spec/containers/0/env",
            json!([{ "name": "B", "value": "2" }, { "name": "A", "value": "1" }]),
        ),
        (
            "ports of containers by their number",
            json!({ "spec": { "containers": [
                { "name": "main", "ports": [{ "containerPort": 80, "name": "web" }, { "containerPort": 81 }] },
            ] } }),
            "/spec/containers/0/ports",
            json!([{ "containerPort": 80, "name": "web" }, { "containerPort": 81 }]),
        ),
        (
            "lists without a strategy are replaced",
            json!({ "spec": { "containers": [{ "name": "main", "args": ["-b"] }], "tolerations": [{ "key": "l" }] } }),
            "/spec/tolerations",
            json!([{ "key": "l" }]),
        ),
        (
            "a map is merged",
            json!({ "spec": { "nodeSelector": { "zone": "a", "disk": null } } }),
            "/spec/nodeSelector",
            json!({ "zone": "a" }),
        ),
        (
            "only named fields are kept",
            json!({ "spec": { "volumes": [{ "$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {} }] } }),
            "/spec/volumes",
            json!([{ "name": "v", "hostPath": {} }]),
        ),
        (
            "a map is replaced",
            json!({ "metadata": { "labels": { "$patch": "replace", "c": "d" } } }),
            "/metadata/labels",
            json!({ "c": "d" }),
        ),
        (
            "a map is emptied",
            json!({ "metadata": { "labels": { "$patch": "delete" } } }),
            "/metadata/labels",
            json!({}),
        ),
        (
            "a condition is merged by its type, and null removes",
            json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": null }] } }),
            "/status/conditions",
            json!([{ "type": "Ready", "status": "True" }]),
        ),
        (
            "nulls of what is new mean nothing",
            json!({ "spec": { "affinity": { "nodeAffinity": null, "podAffinity": {} } } }),
            "/spec/affinity",
            json!({ "podAffinity": {} }),
        ),
    ] {
        let found = patched(&pod(), &patch, POD).expect("the patch is well formed");
        assert_eq!(found.pointer(pointer), Some(&expected), "{name}");
    }
}

#[test]
fn one_field_name_is_merged_by_different_keys_in_different_types() {
    let service = json!({ "spec": { "ports": [{ "port": 80, "name": "http" }, { "port": 443, "name": "https" }] } });
    let patch = json!({ "spec": { "ports": [{ "port": 443, "nodePort": 30443 }] } });
    let found = patched(&service, &patch, SERVICE).expect("the patch is well formed");
    let expected = json!([{ "port": 80, "name": "http" }, { "port": 443, "name": "https", "nodePort": 30443 }]);
    assert_eq!(found["spec"]["ports"], expected);

    let deployment = json!({ "spec": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } } });
    let patch = json!({ "spec": { "strategy": { "$retainKeys": ["type"], "type": "Recreate" } } });
    let found = patched(&deployment, &patch, DEPLOYMENT).expect("the patch is well formed");
    assert_eq!(found["spec"]["strategy"], json!({ "type": "Recreate" }));
}

#[test]
fn without_a_type_only_metadata_is_understood() {
    let object = json!({ "metadata": { "finalizers": ["a"] }, "spec": { "list": [{ "name": "a" }] } });
    let patch = json!({ "metadata": { "finalizers": ["b"] }, "spec": { "list": [{ "name": "b" }] } });
    let found = patched(&object, &patch, "none").expect("the patch is well formed");
    assert_eq!(found, json!({ "metadata": { "finalizers": ["b", "a"] }, "spec": { "list": [{ "name": "b" }] } }));
}

#[test]
fn ill_formed_directives_are_refused_as_upstream_words_it() {
    for (patch, code, message) in [
        (
            json!({ "metadata": { "ownerReferences": [{ "name": "x" }] } }),
            500,
            "map: map[name:x] does not contain declared merge key: uid",
        ),
        (
            json!({ "spec": { "$patch": "invert", "a": [1, null] } }),
            500,
            "unknown patch type: invert in map: map[$patch:invert a:[1 <nil>]]",
        ),
        (json!({ "spec": { "$patch": 5 } }), 500, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        (
            json!({ "spec": { "containers": [{ "$patch": "merge", "name": "main" }] } }),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({ "metadata": { "$setElementOrder/finalizers": ["y", "x"], "finalizers": ["x", "y"] } }),
            500,
            "The order in patch list:\n[x y]\n doesn't match $setElementOrder list:\n[y x]\n",
        ),
        (
            json!({ "metadata": { "$setElementOrder/finalizers": "x" } }),
            500,
            "expected a []interface {}, but received a string",
        ),
        (json!({ "metadata": { "$setElementOrder": ["x"] } }), 400, "invalid patch format of setElementOrder list"),
        (json!({ "metadata": { "$deleteFromPrimitiveList": ["x"] } }), 400, "invalid patch format of primitive list"),
        (json!({ "metadata": { "labels": { "$retainKeys": "a" } } }), 400, "invalid patch format of retainKeys"),
        (
            json!({ "metadata": { "labels": { "$retainKeys": ["a"], "c": "d" } } }),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({ "metadata": { "$setElementOrder/none": ["x"] } }),
            500,
            "unable to find api field in struct ObjectMeta for the json field \"none\"",
        ),
    ] {
        let refused = patched(&pod(), &patch, POD).expect_err("it is refused");
        assert_eq!((refused.code, refused.message.as_str()), (code, message), "{patch}");
    }
}
