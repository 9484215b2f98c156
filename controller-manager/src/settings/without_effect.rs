//! Warnings about settings that were given and have no effect.
//!
//! A setting that waits for a feature says so in its row.

use kcm_config::{Effective, Origin, Row};

/// Settings that have no effect in upstream either: flags without dashes, or paths of the file.
const UNUSED: &[&str] = &[
    "node-sync-period",
    "ServiceController.ConcurrentServiceSyncs",
    "Generic.Address",
    "Generic.Port",
    "Generic.ClientConnection.acceptContentTypes",
    "DeprecatedController",
    "NodeLifecycleController.PodEvictionTimeout",
];

/// Returns a warning for the given settings that have no effect yet, and a warning for settings that upstream does not
/// use either.
pub(crate) fn warnings(settings: &Effective) -> Vec<String> {
    let is_unused = |row: &Row| UNUSED.contains(&row.name);
    let kinds = [
        ("These settings have no effect yet", given(settings, |row| row.is_without_effect)),
        ("These settings have no effect, as in upstream", given(settings, is_unused)),
    ];
    let kinds = kinds.into_iter().filter(|(_, origins)| !origins.is_empty());
    kinds.map(|(text, origins)| format!("{text}: {}", origins.join(", "))).collect()
}

/// Settings of clouds that have no effect in upstream either. Setup tools set some of them for each cluster, so a warning
/// would say nothing.
#[cfg(test)]
const SILENT: &[&str] = &[
    "allow-untagged-cloud",
    "cidr-allocator-type",
    "cloud-config",
    "cloud-provider",
    "cluster-name",
    "configure-cloud-routes",
    "external-cloud-volume-plugin",
    "route-reconciliation-period",
];

/// The origins of the selected settings that some source sets.
fn given(settings: &Effective, is_selected: impl Fn(&Row) -> bool) -> Vec<String> {
    let origins = settings.rows().iter().filter(|row| is_selected(row)).filter_map(|row| settings.origin(row.name));
    origins.filter(|origin| **origin != Origin::Default).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kcm_config::generic;

    use super::{SILENT, UNUSED};

    /// The generic settings that the program acts on.
    const WITH_EFFECT: &[&str] = &[
        "Generic.LeaderMigration.controllerLeaders",
        "Generic.LeaderMigration.leaderName",
        "Generic.LeaderMigration.resourceLock",
        "allocate-node-cidrs",
        "allow-metric-labels",
        "allow-metric-labels-manifest",
        "allow-missing-controllers",
        "authentication-kubeconfig",
        "authentication-skip-lookup",
        "authentication-token-webhook-cache-ttl",
        "authentication-tolerate-lookup-failure",
        "authorization-always-allow-paths",
        "authorization-kubeconfig",
        "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
        "bind-address",
        "cert-dir",
        "client-ca-file",
        "cluster-cidr",
        "config",
        "controller-shutdown-timeout",
        "controller-start-interval",
        "controllers",
        "debug-ui",
        "disable-http2-serving",
        "disabled-metrics",
        "emulated-version",
        "enable-leader-migration",
        "exit-on-controller-failure",
        "exit-on-lost-lease",
        "explain-memory",
        "feature-gates",
        "http2-max-streams-per-connection",
        "kube-api-burst",
        "kube-api-content-type",
        "kube-api-qps",
        "kubeconfig",
        "leader-elect",
        "leader-elect-lease-duration",
        "leader-elect-renew-deadline",
        "leader-elect-resource-lock",
        "leader-elect-resource-name",
        "leader-elect-resource-namespace",
        "leader-elect-retry-period",
        "leader-elect-warm-standby",
        "leader-migration-config",
        "log-flush-frequency",
        "log-json-info-buffer-size",
        "log-json-split-stream",
        "log-text-info-buffer-size",
        "log-text-split-stream",
        "logging-format",
        "master",
        "min-compatibility-version",
        "min-resync-period",
        "permit-address-sharing",
        "permit-port-sharing",
        "profiling",
        "requestheader-allowed-names",
        "requestheader-client-ca-file",
        "requestheader-extra-headers-prefix",
        "requestheader-group-headers",
        "requestheader-uid-headers",
        "requestheader-username-headers",
        "secure-port",
        "show-hidden-metrics-for-version",
        "tls-cert-file",
        "tls-cipher-suites",
        "tls-curve-preferences",
        "tls-min-version",
        "tls-private-key-file",
        "tls-sni-cert-key",
        "use-service-account-credentials",
        "v",
        "vmodule",
    ];

    #[test]
    fn every_generic_setting_has_an_effect_or_says_that_it_has_none() {
        let rows: BTreeSet<&str> = generic::rows().map(|row| row.name).collect();
        let waiting = generic::rows().filter(|row| row.is_without_effect).map(|row| row.name);
        let unused = UNUSED.iter().copied().filter(|name| rows.contains(name));
        let listed: Vec<&str> = waiting.chain(unused).chain(SILENT.iter().chain(WITH_EFFECT).copied()).collect();
        assert_eq!(listed.len(), rows.len(), "none twice");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), rows);
    }
}
