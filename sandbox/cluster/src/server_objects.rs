//! The objects that an API server creates for itself, and that a sandbox alone does not have.

use kcm_api::Resource;
use kcm_sandbox_apiserver::CONFIG_MAPS;
use kcm_sandbox_apiserver::direct::DirectClient;
use serde_json::{Value, json};

const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");

/// Creates them; that one exists already is success.
pub(crate) fn create(api: &DirectClient) {
    if api.serves(&SERVICES) {
        drop(api.create(&SERVICES, kubernetes_service()));
    }
    let today = api.now().time.strftime("%Y-%m-%d").to_string();
    drop(api.create(&CONFIG_MAPS, token_tracking(&today)));
}

fn kubernetes_service() -> Value {
    json!({
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 }],
        },
    })
}

/// The day since which API servers track the use of legacy tokens.
///
/// # Upstream
/// `pkg/controlplane/controller/legacytokentracking`
fn token_tracking(since: &str) -> Value {
    json!({
        "metadata": { "name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": "kube-system" },
        "data": { "since": since },
    })
}
