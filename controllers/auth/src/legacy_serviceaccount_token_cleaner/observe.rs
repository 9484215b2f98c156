//! The reads of a round from the API server.

use std::collections::{BTreeMap, BTreeSet};

use kcm_framework::Session;
use kcm_framework::api::{DecodeError, KnownView as _, ObjectKey, Resource, Uid, View};
use kcm_framework::client::{ApiClient, ApiError, ListQuery, ResponseExt as _, Subresource};
use serde::Deserialize;
use serde_json::Value;

use super::decide::parse_day;
use crate::shared::{ServiceAccount, TOKEN_SECRET_FIELDS};

const CONFIG_MAPS: &Resource = &Resource::namespaced("", "v1", "configmaps", "ConfigMap");
const PODS: &Resource = &Resource::namespaced("", "v1", "pods", "Pod");

/// Objects per page of a list.
const PAGE: u32 = 500;

kcm_framework::api::view! {
    /// The metadata of a secret.
    pub(super) struct SecretMetadata {
        resource: Resource::namespaced("", "v1", "secrets", "Secret");
        annotations: ["kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"];
    }
}

impl SecretMetadata {
    /// The account that the secret names.
    pub(super) fn account(&self) -> Option<ObjectKey> {
        let name =
            self.metadata.annotations.get("kubernetes.io/service-account.name").filter(|name| !name.is_empty())?;
        Some(ObjectKey::namespaced(self.metadata.key.namespace()?, name))
    }

    /// The uid of the account that the secret names; unset if it names none.
    pub(super) fn account_uid(&self) -> Uid {
        Uid::from(self.metadata.annotations.get("kubernetes.io/service-account.uid").unwrap_or_default())
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum RoundError {
    #[error("cannot look for unused tokens of service accounts")]
    Request(#[from] ApiError),
    #[error("cannot read a secret")]
    Decode(#[from] DecodeError),
    #[error(
        "the config map {0} does not say since when tokens are tracked: it must have `since`, a day such as 2006-01-02"
    )]
    NotTracked(ObjectKey),
}

impl RoundError {
    /// Returns `true` if a request has failed, which may succeed later.
    pub(super) const fn is_of_request(&self) -> bool {
        match self {
            Self::Request(_) => true,
            Self::Decode(_) | Self::NotTracked(_) => false,
        }
    }
}

/// Returns the day since which API servers track the use of tokens.
pub(super) async fn tracked_since(session: &Session) -> Result<jiff::civil::Date, RoundError> {
    #[derive(Deserialize)]
    struct Tracking {
        data: Option<BTreeMap<String, String>>,
    }
    let key = ObjectKey::namespaced("kube-system", "kube-apiserver-legacy-service-account-token-tracking");
    let body = session.api().get_raw(CONFIG_MAPS, &key, Subresource::None).await?;
    let tracking: Option<Tracking> = serde_json::from_slice(&body).ok();
    let since = tracking.and_then(|tracking| tracking.data?.get("since").map(|day| parse_day(day)));
    since.flatten().ok_or(RoundError::NotTracked(key))
}

/// Returns the metadata of all secrets that hold a token. Leaves out secrets that cannot be read.
pub(super) async fn token_secrets(reader: &ApiClient) -> Result<Vec<SecretMetadata>, RoundError> {
    let options =
        ListQuery { field_selector: Some(TOKEN_SECRET_FIELDS.to_owned()), metadata_only: true, ..ListQuery::default() };
    let mut secrets = Vec::new();
    each_item(reader, const { &SecretMetadata::RESOURCE }, None, options, |json| {
        match SecretMetadata::decode(json) {
            Ok(secret) => secrets.push(secret),
            Err(error) => {
                let error = &error as &(dyn std::error::Error + 'static);
                tracing::warn!(error, "A token is kept, as its secret cannot be read");
            }
        }
        Ok(())
    })
    .await?;
    Ok(secrets)
}

pub(super) async fn account(reader: &ApiClient, key: &ObjectKey) -> Result<Option<ServiceAccount>, ApiError> {
    reader.get(const { &ServiceAccount::RESOURCE }, key).await.ignore_not_found()
}

/// Returns the names of all secrets that pods of a namespace name.
pub(super) async fn mounted_secrets(reader: &ApiClient, namespace: &str) -> Result<BTreeSet<String>, RoundError> {
    let mut names = BTreeSet::new();
    each_item(reader, PODS, Some(namespace), ListQuery::default(), |json| {
        // A pod is an object of JSON, whatever is in it.
        let pod: Value = serde_json::from_str(json).map_err(DecodeError::from)?;
        collect_secrets(&pod["spec"], &mut names);
        Ok(())
    })
    .await?;
    Ok(names)
}

async fn each_item(
    reader: &ApiClient,
    resource: &Resource,
    namespace: Option<&str>,
    mut options: ListQuery,
    mut read: impl FnMut(&str) -> Result<(), RoundError>,
) -> Result<(), RoundError> {
    options.limit = Some(PAGE);
    loop {
        let page = reader.list(resource, namespace, &options).await?;
        for item in &page.items {
            read(item.get())?;
        }
        match page.continue_token {
            Some(token) => options.continue_token = Some(token),
            None => return Ok(()),
        }
    }
}

/// The fields of a pod that name a secret, or have fields that do.
const NAMING: [&str; 4] = ["secretRef", "secretKeyRef", "nodePublishSecretRef", "secret"];

/// Collects the names of secrets in the spec of a pod, wherever it has a reference to one.
///
/// # Upstream
/// `VisitPodSecretNames` in `pkg/api/v1/pod` lists the same fields one by one. Here every field with the name of such a
/// reference counts, also in volumes and containers that this version does not know.
pub(super) fn collect_secrets(spec: &Value, names: &mut BTreeSet<String>) {
    let mut name = |value: &Value| {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            names.insert(text.to_owned());
        }
    };
    match spec {
        Value::Object(fields) => {
            for (field, value) in fields {
                if NAMING.contains(&field.as_str()) {
                    name(&value["name"]);
                } else if field == "imagePullSecrets" {
                    value.as_array().into_iter().flatten().for_each(|reference| name(&reference["name"]));
                } else if field == "secretName" {
                    name(value);
                }
            }
            for value in fields.values() {
                collect_secrets(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_secrets(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
