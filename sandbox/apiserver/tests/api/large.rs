//! Bodies as large as they may be, in the shapes that take longest: each takes as long as it is large.
//!
//! Nothing is timed. What compares each item with all others would take minutes here, not a moment.

use kcm_sandbox_apiserver::Sandbox;
use serde_json::{Value, json};

use crate::rows::{JSON_PATCH, MAPS, PODS, SET, SETS, WEB};
use crate::support::{
    TestRequest, call, delete, done, get, merge, patch, pod, post, put, replica_set, strategic, with,
};

const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

fn many<T>(count: usize, item: impl Fn(usize) -> T) -> Vec<T> {
    (0..count).map(item).collect()
}

fn map_of(count: usize, entry: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..count).map(entry).collect())
}

fn set_with_variables(count: usize, value: &str) -> Value {
    let variables = many(count, |at| json!({ "name": format!("V{at}"), "value": value }));
    let container = json!({ "name": "main", "image": "web:1", "env": variables });
    with(replica_set("web"), &json!({ "spec": { "template": { "spec": { "containers": [container] } } } }))
}

fn applied(path: &str, manager: &str, body: &Value) -> TestRequest {
    patch("application/apply-patch+yaml", &format!("{path}?fieldManager={manager}"), body)
}

async fn answers(sandbox: &Sandbox, name: &str, ask: &TestRequest, code: u16) -> String {
    let answer = call(sandbox, ask).await.expect("no fault is at work");
    let start: String = answer.text.chars().take(300).collect();
    assert_eq!(answer.code, code, "{name}: {start}");
    answer.text
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_merged_are_walked_once() {
    const COUNT: usize = 10_000;
    let sandbox = Sandbox::default();
    done(&sandbox, &post(SETS, &set_with_variables(COUNT, "a"))).await;
    let order = many(COUNT, |at| json!({ "name": format!("V{}", COUNT - 1 - at) }));
    let variables = many(COUNT, |at| json!({ "name": format!("V{}", COUNT - 1 - at), "value": "b" }));
    let container = json!({ "name": "main", "$setElementOrder/env": order, "env": variables });
    let in_order = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
    let answer = done(&sandbox, &strategic(SET, &in_order)).await;
    assert_eq!(answer.text_at("/spec/template/spec/containers/0/env/0/name"), format!("V{}", COUNT - 1));
    let deleted = many(COUNT, |at| json!({ "name": format!("V{at}"), "$patch": "delete" }));
    let container = json!({ "name": "main", "env": deleted });
    let without = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
    done(&sandbox, &strategic(SET, &without)).await;
    let finalizers = |word: &str| many(20_000, |at| format!("{word}.io/f{at}"));
    done(&sandbox, &strategic(SET, &json!({ "metadata": { "finalizers": finalizers("a") } }))).await;
    done(&sandbox, &strategic(SET, &json!({ "metadata": { "finalizers": finalizers("b") } }))).await;
    let fewer = json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": finalizers("a") } });
    let answer = done(&sandbox, &strategic(SET, &fewer)).await;
    assert_eq!(answer.json["metadata"]["finalizers"], json!(finalizers("b")));
    let answer = done(&sandbox, &delete(SET)).await;
    assert_eq!(answer.text_at("/metadata/finalizers/0"), "b.io/f0");
    let later = [finalizers("c"), finalizers("b")].concat();
    let later = json!({ "metadata": { "finalizers": later } });
    answers(&sandbox, "finalizers of what is being deleted", &merge(SET, &later), 422).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_applied_is_walked_once() {
    const COUNT: usize = 5_000;
    let sandbox = Sandbox::default();
    answers(&sandbox, "new", &applied(SET, "one", &set_with_variables(COUNT, "a")), 201).await;
    answers(&sandbox, "the same", &applied(SET, "two", &set_with_variables(COUNT, "a")), 200).await;
    answers(&sandbox, "other values", &applied(SET, "two", &set_with_variables(COUNT, "b")), 409).await;
    answers(&sandbox, "fewer", &applied(SET, "two", &set_with_variables(1, "a")), 200).await;

    sandbox.register(kcm_api::Resource::namespaced("example.com", "v1", "things", "Thing"));
    let key = "k".repeat(900);
    let thing = |value: usize| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "t" },
            "spec": { &key: map_of(10_000, |at| (format!("f{at}"), json!(value))) },
        })
    };
    let path = format!("{THINGS}/t");
    let longer = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "longer" },
        "spec": { "k".repeat(1_000_000): map_of(50_000, |at| (format!("f{at}"), json!(1))) },
    });
    answers(&sandbox, "a key of a megabyte", &post(THINGS, &longer), 201).await;
    answers(&sandbox, "a long key", &applied(&path, "one", &thing(1)), 201).await;
    let conflicts = answers(&sandbox, "conflicts below a long key", &applied(&path, "two", &thing(2)), 409).await;
    assert!(conflicts.contains("Apply failed with 10000 conflicts"));
    assert!(conflicts.len() < 8 * 1024 * 1024, "{}", conflicts.len());
}

#[tokio::test(start_paused = true)]
async fn lists_are_validated_in_one_walk() {
    let sandbox = Sandbox::default();
    let owner =
        |at: usize| json!({ "apiVersion": "v1", "kind": "A", "name": "a", "uid": format!("{at}"), "controller": true });
    let possessed = with(pod("owned"), &json!({ "metadata": { "ownerReferences": many(10_000, owner) } }));
    let refused = answers(&sandbox, "owners", &post(PODS, &possessed), 422).await;
    assert!(refused.contains("Only one reference can have Controller set to true"));
    assert!(refused.len() < 1024 * 1024, "{}", refused.len());

    let labels = map_of(30_000, |at| (format!("-{at}"), json!("")));
    let labelled = with(pod("labelled"), &json!({ "metadata": { "labels": labels } }));
    let refused = answers(&sandbox, "labels", &post(PODS, &labelled), 422).await;
    let refused: Value = serde_json::from_str(&refused).expect("a status is JSON");
    assert_eq!(refused["details"]["causes"].as_array().map(Vec::len), Some(10_000));

    let toleration = |at: usize| json!({ "key": format!("k{at}"), "operator": "Exists" });
    let gate = |at: usize| json!({ "name": format!("g{at}") });
    let spread =
        |at: usize| json!({ "maxSkew": 1, "topologyKey": format!("k{at}"), "whenUnsatisfiable": "DoNotSchedule" });
    let tolerant = with(pod("web"), &json!({ "spec": { "tolerations": many(10_000, toleration) } }));
    done(&sandbox, &post(PODS, &tolerant)).await;
    done(
        &sandbox,
        &merge(WEB, &json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "activeDeadlineSeconds": 9 } })),
    )
    .await;
    let gated = with(pod("gated"), &json!({ "spec": { "schedulingGates": many(20_000, gate) } }));
    done(&sandbox, &post(PODS, &gated)).await;
    let open = json!({ "spec": { "schedulingGates": many(10_000, gate) } });
    done(&sandbox, &merge(&format!("{PODS}/gated"), &open)).await;
    let even = with(pod("even"), &json!({ "spec": { "topologySpreadConstraints": many(10_000, spread) } }));
    done(&sandbox, &post(PODS, &even)).await;

    let port = |at: usize| json!({ "name": format!("p{at}"), "port": at + 1 });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "selector": { "app": "web" }, "ports": many(10_000, port) },
    });
    done(&sandbox, &post("/api/v1/namespaces/default/services", &service)).await;
    let path = "/api/v1/namespaces/default/services/web";
    let node_ports =
        answers(&sandbox, "node ports", &merge(path, &json!({ "spec": { "type": "NodePort" } })), 200).await;
    assert!(node_ports.contains("nodePort"));
    done(&sandbox, &merge(path, &json!({ "metadata": { "labels": { "a": "b" } } }))).await;
    done(&sandbox, &merge(path, &json!({ "spec": { "type": "ClusterIP" } }))).await;

    let request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": { "name": "c" },
        "spec": { "request": "LS0tCg==", "signerName": "a.b/c", "usages": ["client auth"] },
    });
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    if call(&sandbox, &post(path, &request)).await.is_ok_and(|answer| answer.code == 201) {
        let conditions = many(10_000, |at| json!({ "type": format!("T{at}"), "status": "True" }));
        let with_conditions = json!({ "status": { "conditions": conditions } });
        for _ in 0..2 {
            done(&sandbox, &merge(&format!("{path}/c/status"), &with_conditions)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn patches_and_unknown_fields_are_read_once() {
    let sandbox = Sandbox::default();
    let map = json!({ "metadata": { "name": "web" }, "data": map_of(30_000, |at| (format!("k{at}"), json!("v"))) });
    done(&sandbox, &post(MAPS, &map)).await;
    let path = format!("{MAPS}/web");
    let moves = many(2_000, |_| {
        [
            json!({ "op": "move", "from": "/data", "path": "/metadata/data" }),
            json!({ "op": "move", "from": "/metadata/data", "path": "/data" }),
        ]
    });
    done(&sandbox, &patch(JSON_PATCH, &path, &json!(moves.concat()))).await;
    let too_many = many(10_001, |_| json!({ "op": "test", "path": "/kind", "value": "ConfigMap" }));
    let refused = answers(&sandbox, "operations", &patch(JSON_PATCH, &path, &json!(too_many)), 413).await;
    assert!(
        refused
            .contains("Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001")
    );
    // In and out: as deep as it was, each time by way of one level more.
    let copies = many(30, |_| json!({ "op": "copy", "from": "/data", "path": "/data/x" }));
    answers(&sandbox, "copies", &patch(JSON_PATCH, &path, &json!(copies)), 422).await;
    let deeper = many(300, |_| {
        [
            json!({ "op": "move", "from": "/data", "path": "/kept" }),
            json!({ "op": "add", "path": "/data", "value": {} }),
            json!({ "op": "move", "from": "/kept", "path": "/data/x" }),
        ]
    });
    answers(&sandbox, "moves inwards", &patch(JSON_PATCH, &path, &json!(deeper.concat())), 422).await;

    let unknown = map_of(50_000, |at| (format!("u{at}"), json!(1)));
    let long = json!({ "k".repeat(1_000_000): { "a": 1 } });
    answers(&sandbox, "unknown fields", &put(&path, &with(with(map.clone(), &unknown), &long)), 200).await;
    let strict = put(&format!("{path}?fieldValidation=Strict"), &with(map, &unknown));
    answers(&sandbox, "unknown fields, strictly", &strict, 400).await;
}

#[tokio::test(start_paused = true)]
async fn selectors_of_many_terms_are_looked_at_once() {
    let sandbox = Sandbox::default();
    for at in 0..200 {
        done(&sandbox, &post(PODS, &pod(&format!("p{at}")))).await;
    }
    let fields = many(1_200, |at| format!("status.phase!=P{at}")).join(",");
    let labels = many(1_200, |at| format!("k{at}!=v")).join(",");
    for path in [
        format!("{PODS}?fieldSelector={fields}"),
        format!("{PODS}?labelSelector={labels}"),
        format!("{PODS}?fieldSelector={fields}&labelSelector={labels}&limit=1"),
    ] {
        done(&sandbox, &get(&path)).await;
    }
    done(&sandbox, &delete(&format!("{PODS}?fieldSelector={fields}&labelSelector={labels}"))).await;
}
