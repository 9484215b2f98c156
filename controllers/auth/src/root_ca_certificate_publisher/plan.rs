//! The plan for the config map of a namespace.

use std::collections::BTreeMap;

use kcm_framework::api::{Documented, EditError, InternedStr, Resource};
use serde_json::{Value, json};

use super::CONFIG_MAP;

const DESCRIPTION: &str = "kubernetes.io/description";

/// As upstream.
const DESCRIPTION_TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                                endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                                guaranteed across distributions of Kubernetes clusters.";

const CA_KEY: &str = "ca.crt";

kcm_framework::api::view! {
    /// A config map; its values are interned, as those of all namespaces are equal.
    pub(super) struct ConfigMapView {
        resource: Resource::namespaced("", "v1", "configmaps", "ConfigMap");
        annotations: ["kubernetes.io/description"];

        /// `data`.
        pub(super) data: BTreeMap<InternedStr, InternedStr> = "data";
    }
}

/// A config map with its document, so that an update keeps all other fields.
pub(super) type ConfigMap = Documented<ConfigMapView>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    None,
    Create(Value),
    Update(Box<ConfigMap>),
}

/// Plans for a namespace that has this config map.
pub(super) fn plan(namespace: &str, existing: Option<&ConfigMap>, root_ca: &str) -> Result<Action, EditError> {
    let data = json!({ CA_KEY: root_ca });
    let Some(existing) = existing else {
        let annotations = json!({ DESCRIPTION: DESCRIPTION_TEXT });
        let metadata = json!({ "namespace": namespace, "name": CONFIG_MAP, "annotations": annotations });
        return Ok(Action::Create(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data,
        })));
    };
    let has_data = existing.data.len() == 1 && existing.data.get(CA_KEY).is_some_and(|ca| ca == root_ca);
    let has_description = existing.metadata.annotations.get(DESCRIPTION).is_some_and(|text| !text.is_empty());
    if has_data && has_description {
        return Ok(Action::None);
    }
    let mut updated = existing.clone();
    updated.document.set(&["data"], &data)?;
    updated.document.set(&["metadata", "annotations", DESCRIPTION], DESCRIPTION_TEXT)?;
    Ok(Action::Update(Box::new(updated)))
}
