//! The cluster's settings of authentication: the config map `extension-apiserver-authentication`, kept up to date.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::{DecodeError, KnownView, Meta, ObjectKey, PartialObjectMeta, Resource, View};
use kcm_framework::client::{ApiClient, ApiError};
use kcm_framework::informers::{Change, Factory, HandlerOptions, Informer, ListOptions};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::request_header::HeaderNames;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Time for which the API server may be unreachable at the start, and the pause between two attempts.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

/// The settings in the config map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClusterConfig {
    /// The CAs of clients, PEM; empty if there are none.
    pub(super) client_ca: String,
    /// The CAs of front proxies, PEM; empty if there are none.
    pub(super) request_header_ca: String,
    /// The headers in which front proxies name users.
    pub(super) headers: HeaderNames,
}

impl ClusterConfig {
    /// Reads the data of the config map.
    ///
    /// # Errors
    /// If a list of headers is malformed.
    fn of(data: &BTreeMap<String, String>) -> Result<Self, serde_json::Error> {
        let text = |key: &str| data.get(key).cloned().unwrap_or_default();
        let list = |key: &str| match data.get(key).map(String::as_str) {
            None | Some("") => Ok(Vec::new()),
            Some(json) => serde_json::from_str::<Vec<String>>(json),
        };
        Ok(Self {
            client_ca: text("client-ca-file"),
            request_header_ca: text("requestheader-client-ca-file"),
            headers: HeaderNames {
                username: list("requestheader-username-headers")?,
                uid: list("requestheader-uid-headers")?,
                group: list("requestheader-group-headers")?,
                extra_prefixes: list("requestheader-extra-headers-prefix")?,
                allowed_names: list("requestheader-allowed-names")?,
            },
        })
    }
}

/// The `ConfigMap` with the cluster's settings.
#[derive(Debug, Clone)]
pub(super) struct ConfigMap {
    meta: Meta,
    config: ClusterConfig,
}

impl View for ConfigMap {
    fn decode(text: &str) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Body {
            #[serde(default)]
            data: BTreeMap<String, String>,
        }
        let PartialObjectMeta { metadata: meta } = serde_json::from_str(text)?;
        let Body { data } = serde_json::from_str(text)?;
        Ok(Self { meta, config: ClusterConfig::of(&data)? })
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl KnownView for ConfigMap {
    const RESOURCE: Resource = Resource::namespaced("", "v1", "configmaps", "ConfigMap");
}

/// An error while reading the settings from the cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The user may not read the config map.
    #[error(
        "cannot read the client CAs from the cluster: grant its user the role \
         extension-apiserver-authentication-reader in kube-system, or give --requestheader-client-ca-file, \
         --authentication-skip-lookup or --authentication-tolerate-lookup-failure"
    )]
    Forbidden(#[source] ApiError),
    /// The request to read it failed.
    #[error(
        "cannot read the client CAs from the cluster; --authentication-tolerate-lookup-failure starts \
         without them"
    )]
    Failed(#[source] ApiError),
}

/// Reads the settings once. Returns `None` if the cluster has none.
///
/// # Errors
/// If the user may not read them, or the API server cannot be reached within ten seconds.
pub(super) async fn look_up(api: &ApiClient) -> Result<Option<ClusterConfig>, LookupError> {
    let key = ObjectKey::namespaced(NAMESPACE, NAME);
    let end = Instant::now() + PATIENCE;
    loop {
        match api.get::<ConfigMap>(const { &ConfigMap::RESOURCE }, &key).await {
            Ok(map) => return Ok(Some(map.config)),
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) if error.status().is_some_and(|status| status.code == 403) => {
                return Err(LookupError::Forbidden(error));
            }
            Err(error) if Instant::now() + PAUSE > end => return Err(LookupError::Failed(error)),
            Err(error) => {
                tracing::debug!(error = %error.message(), "Cannot read the client CAs yet");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Watches the settings. The informer is returned with the receiver, as the watch ends with its last user.
pub(super) fn watch_config(factory: &Factory) -> (Informer<ConfigMap>, watch::Receiver<Option<Arc<ConfigMap>>>) {
    let options = ListOptions {
        namespace: Some(NAMESPACE.to_owned()),
        field_selector: Some(format!("metadata.name={NAME}")),
        ..ListOptions::default()
    };
    let informer = factory.informer::<ConfigMap>(options);
    let (sender, receiver) = watch::channel(None);
    informer.add_event_handler(HandlerOptions::named("authentication"), move |change, _| {
        match change {
            Change::Added(map) | Change::Updated { new: map, .. } => drop(sender.send(Some(Arc::clone(map)))),
            // The last settings stay, as upstream.
            Change::Undecodable { .. } | Change::Deleted { .. } => {}
        }
    });
    (informer, receiver)
}

impl ConfigMap {
    pub(super) const fn config(&self) -> &ClusterConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_map_of_an_api_server_is_read() {
        let text = r#"{
            "metadata": { "name": "extension-apiserver-authentication", "namespace": "kube-system", "resourceVersion": "7" },
            "data": {
                "client-ca-file": "clients",
                "requestheader-allowed-names": "[\"front-proxy-client\"]",
                "requestheader-client-ca-file": "proxies",
                "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
                "requestheader-group-headers": "[\"X-Remote-Group\"]",
                "requestheader-uid-headers": "[\"X-Remote-Uid\"]",
                "requestheader-username-headers": "[\"X-Remote-User\"]"
            }
        }"#;
        let one = |text: &str| vec![text.to_owned()];
        let expected = ClusterConfig {
            client_ca: "clients".to_owned(),
            request_header_ca: "proxies".to_owned(),
            headers: HeaderNames {
                username: one("X-Remote-User"),
                uid: one("X-Remote-Uid"),
                group: one("X-Remote-Group"),
                extra_prefixes: one("X-Remote-Extra-"),
                allowed_names: one("front-proxy-client"),
            },
        };
        assert_eq!(*ConfigMap::decode(text).expect("it is valid").config(), expected);
        let empty = ConfigMap::decode(r#"{"metadata":{"name":"a"},"data":{"requestheader-allowed-names":""}}"#);
        assert_eq!(*empty.expect("it is valid").config(), ClusterConfig::default());
        assert!(ConfigMap::decode(r#"{"metadata":{"name":"a"},"data":{"requestheader-allowed-names":"x"}}"#).is_err());
    }
}
