//! Settings that are read and checked, and that nothing here acts on yet.
//!
//! Each row of [`GENERIC`] leaves with the feature that it waits for; the settings of a controller leave
//! `kcm_config::absent` with the controller. A warning at start names each that is set explicitly.

use kcm_config::{Effective, Origin, absent};
use kcm_framework::Registry;

/// Why settings have no effect, and the settings: flags without dashes, or paths of the file.
const GENERIC: &[(&str, &[&str])] = &[
    ("waits for locks are not profiled", &["contention-profiling"]),
    (
        "the controllers that read them are not part of this program",
        &[
            "allocate-node-cidrs",
            "allow-untagged-cloud",
            "cidr-allocator-type",
            "cloud-config",
            "cloud-provider",
            "cluster-cidr",
            "cluster-name",
            "configure-cloud-routes",
            "external-cloud-volume-plugin",
            "node-monitor-period",
            "route-reconciliation-period",
        ],
    ),
    (
        "they have none in Kubernetes either",
        &[
            "node-sync-period",
            "Generic.Address",
            "Generic.Port",
            "Generic.ClientConnection.acceptContentTypes",
            "DeprecatedController",
        ],
    ),
];

/// A warning for each reason why settings that were given have no effect.
pub(crate) fn warnings(settings: &Effective, registry: &Registry) -> Vec<String> {
    let generic = GENERIC.iter().map(|(reason, names)| (*reason, given(settings, names)));
    let absent = absent::controllers().filter(|controller| registry.find(controller.controller).is_none());
    let names: Vec<&str> = absent.flat_map(|controller| controller.rows.iter().map(|row| row.name)).collect();
    let of_controllers = ("their controllers are not part of this program", given(settings, &names));
    let reasons = generic.chain([of_controllers]).filter(|(_, names)| !names.is_empty());
    reasons.map(|(reason, names)| format!("Settings without effect, as {reason}: {}", names.join(", "))).collect()
}

/// Those of `names` that some source sets, each with the source.
fn given(settings: &Effective, names: &[&str]) -> Vec<String> {
    let origins = names.iter().filter_map(|name| settings.origin(name)).filter(|origin| **origin != Origin::Default);
    origins.map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::GENERIC;

    /// The generic settings that the program acts on.
    const WITH_EFFECT: &[&str] = &[
        "Generic.LeaderMigration.controllerLeaders",
        "Generic.LeaderMigration.leaderName",
        "Generic.LeaderMigration.resourceLock",
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
    fn every_generic_setting_has_an_effect_or_a_reason() {
        let without = GENERIC.iter().flat_map(|(_, names)| names.iter().copied());
        let listed: Vec<&str> = without.chain(WITH_EFFECT.iter().copied()).collect();
        let rows: BTreeSet<&str> = kcm_config::generic::rows().map(|row| row.name).collect();
        assert_eq!(listed.len(), rows.len(), "none twice");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), rows);
    }
}
