//! Fixtures that the tests of several controllers share.

pub(crate) mod scenarios;

use std::sync::Arc;

use kcm_framework::api::{DecodeContext, KnownView, Needs, ObjectKey, Resource};
use kcm_testing::sandbox::{PODS, Sandbox, SandboxOptions};
use kcm_testing::{START, TestCluster};
use serde_json::{Value, json};

pub(crate) const CLAIMS: Resource = Resource::namespaced("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim");
pub(crate) const TEMPLATES: Resource =
    Resource::namespaced("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate");

/// The API server serves kinds that have no stable version.
pub(crate) fn beta_apis() -> SandboxOptions {
    SandboxOptions { beta_apis: true, start: START, seed: 1, ..SandboxOptions::default() }
}

/// The key of an object in the namespace of the tests.
pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

/// Decodes an object with the parts that a controller needs.
pub(crate) fn view<V: KnownView>(object: &Value, needs: &Needs) -> Arc<V> {
    let context = Arc::new(DecodeContext::new::<V>(Arc::default(), needs));
    Arc::new(context.scope(|| V::decode(&object.to_string())).expect("the fixture must be an object of the kind"))
}

/// A Pod with these claims, in the namespace of the tests.
pub(crate) fn pod(name: &str, claims: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "shop", "name": name },
        "spec": { "containers": [{ "name": "main", "image": "example/main:1" }], "resourceClaims": claims },
    })
}

/// Creates a Pod and returns its uid.
pub(crate) fn create_pod(sandbox: &Sandbox, pod: Value) -> String {
    let created = sandbox.create(&PODS, pod).expect("the pod must be valid");
    created["metadata"]["uid"].as_str().expect("objects have uids").to_owned()
}

/// The spec of a claim with one request.
pub(crate) fn claim_spec() -> Value {
    json!({ "devices": { "requests": [{ "name": "gpu", "exactly": { "deviceClassName": "gpu" } }] } })
}

/// An allocation of one device of the driver `gpu.example.com` and the pool `a`.
pub(crate) fn allocation(device: &str, tolerations: &Value) -> Value {
    let result = json!({
        "request": "gpu", "driver": "gpu.example.com", "pool": "a", "device": device, "tolerations": tolerations,
    });
    json!({ "devices": { "results": [result] } })
}

/// Allocates a claim as the scheduler does: the finalizer, then the status.
pub(crate) fn allocate(sandbox: &Sandbox, claim: &str, device: &str, tolerations: &Value, consumers: &[(&str, &str)]) {
    let finalizers = json!({ "metadata": { "finalizers": ["resource.kubernetes.io/delete-protection"] } });
    sandbox.patch(&CLAIMS, &key(claim), &finalizers).expect("the claim must exist");
    let reserved: Vec<Value> =
        consumers.iter().map(|(name, uid)| json!({ "resource": "pods", "name": name, "uid": uid })).collect();
    let status = json!({ "allocation": allocation(device, tolerations), "reservedFor": reserved });
    sandbox.patch_status(&CLAIMS, &key(claim), &json!({ "status": status })).expect("the status must be valid");
}

const ROLES: [&str; 2] = [
    include_str!("../../../../controller-manager/tests/data/rbac.json"),
    include_str!("../../../../controller-manager/tests/data/rbac-gated.json"),
];

/// The roles by default, and those with all feature gates.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Roles {
    Default = 0,
    Gated = 1,
}

/// Asserts that all requests of an identity fit upstream's role. The manager itself fills caches and sends events.
pub(crate) fn fits_role(cluster: &TestCluster, identity: &str, roles: Roles) {
    let roles: Value = serde_json::from_str(ROLES[roles as usize]).expect("the table is JSON");
    let role = roles["clusterRoles"][format!("system:controller:{identity}")].as_array().expect("the role exists");
    let has = |rule: &Value, field: &str, value: &str| {
        rule[field].as_array().is_some_and(|values| values.iter().any(|allowed| allowed == value))
    };
    let requests = cluster.requests_of(identity);
    assert!(!requests.is_empty(), "something is requested");
    for request in requests {
        let path: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        // api/v1/…, or apis/GROUP/VERSION/…
        let (group, path) = if path[0] == "api" { ("", &path[2..]) } else { (path[1], &path[3..]) };
        let path = if path[0] == "namespaces" { &path[2..] } else { path };
        let verb = match (&*request.method, path.len()) {
            ("GET", 1) => "list",
            ("GET", _) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", _) => "delete",
            other => panic!("{other:?} is no known request"),
        };
        let resource = path.get(2).map_or(path[0].to_owned(), |subresource| format!("{}/{subresource}", path[0]));
        let is_allowed = |rule: &Value| {
            has(rule, "apiGroups", group) && has(rule, "resources", &resource) && has(rule, "verbs", verb)
        };
        assert!(role.iter().any(is_allowed), "{verb} {resource} is forbidden: {} {}", request.method, request.path);
    }
}
