//! Creates the objects that controllers and the API server create in new namespaces.
//!
//! # Upstream
//! `pkg/controller/serviceaccount`, `pkg/controller/certificates/rootcacertpublisher`

use std::collections::BTreeSet;
use std::time::Duration;

use kcm_api::Resource;
use serde_json::json;

use crate::change::Change;
use kcm_sandbox_apiserver::direct::DirectClient;
use kcm_sandbox_apiserver::json;
use kcm_sandbox_apiserver::{CONFIG_MAPS, NAMESPACES};

const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "serviceaccounts", "ServiceAccount");

/// The new namespaces, which have no default objects yet.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    new: BTreeSet<String>,
}

impl Namespaces {
    pub(crate) fn observe(&mut self, change: &Change) {
        if *change.resource == NAMESPACES
            && change.old.is_none()
            && change.new.is_some_and(|new| !json::is_terminating(new))
        {
            self.new.insert(change.key.name().to_owned());
        }
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        (!self.new.is_empty()).then_some(Duration::ZERO)
    }

    pub(crate) fn act(&mut self, api: &DirectClient) {
        while let Some(name) = self.new.pop_first() {
            furnish(api, &name);
        }
    }
}

/// Creates the objects that other controllers create in every namespace; already exists is ignored.
fn furnish(api: &DirectClient, namespace: &str) {
    if api.serves(&SERVICE_ACCOUNTS) {
        let account = json!({ "metadata": { "name": "default", "namespace": namespace } });
        drop(api.create(&SERVICE_ACCOUNTS, account));
    }
    let authority = json!({
        "metadata": { "name": "kube-root-ca.crt", "namespace": namespace, "annotations": {
            "kubernetes.io/description": "The authority of this sandbox is in the kubeconfig that it writes.",
        } },
        "data": { "ca.crt": "" },
    });
    drop(api.create(&CONFIG_MAPS, authority));
    if namespace == "kube-system" {
        note_the_start_of_tracking(api);
    }
}

/// Creates the config map in which API servers note since which day they track the use of legacy tokens.
///
/// # Upstream
/// `pkg/controlplane/controller/legacytokentracking`
fn note_the_start_of_tracking(api: &DirectClient) {
    let today = api.now().time.strftime("%Y-%m-%d").to_string();
    let tracking = json!({
        "metadata": { "name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": "kube-system" },
        "data": { "since": today },
    });
    drop(api.create(&CONFIG_MAPS, tracking));
}
