//! All scenarios, by controller; and those of the API itself.

mod alone;
mod api;
mod autoscaling;
mod cron_jobs;
mod daemon_sets;
mod deploy;
mod deployments;
mod disruption;
mod envtest;
mod garbage;
mod host;
mod identities;
mod jobs;
mod kubectl;
mod lease;
mod metrics;
mod metrics_server;
mod namespaces;
mod pod_garbage;
mod quotas;
mod recorded;
mod replica_sets;
mod replication_controllers;
mod security;
mod service_cidrs;
mod services;
mod serving;
mod stateful_sets;
mod takeover;
mod tour;
mod traffic;
mod ttl_after_finished;
mod website;
mod workloads;

use crate::scenario::Scenario;

/// Every scenario there is.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    api::SCENARIOS
        .iter()
        .chain(&autoscaling::SCENARIOS)
        .chain(&cron_jobs::SCENARIOS)
        .chain(&deploy::SCENARIOS)
        .chain(&disruption::SCENARIOS)
        .chain(&envtest::SCENARIOS)
        .chain(&host::SCENARIOS)
        .chain(&identities::SCENARIOS)
        .chain(&kubectl::SCENARIOS)
        .chain(&lease::SCENARIOS)
        .chain(&metrics::SCENARIOS)
        .chain(&metrics_server::SCENARIOS)
        .chain(&namespaces::SCENARIOS)
        .chain(&security::SCENARIOS)
        .chain(&service_cidrs::SCENARIOS)
        .chain(&quotas::SCENARIOS)
        .chain(&services::SCENARIOS)
        .chain(&serving::SCENARIOS)
        .chain(&garbage::SCENARIOS)
        .chain(&tour::SCENARIOS)
        .chain(&traffic::SCENARIOS)
        .chain(&website::SCENARIOS)
        .chain(&workloads::SCENARIOS)
        .chain(&replica_sets::SCENARIOS)
        .chain(&jobs::SCENARIOS)
        .chain(&replication_controllers::SCENARIOS)
        .chain(&stateful_sets::SCENARIOS)
        .chain(&pod_garbage::SCENARIOS)
        .chain(&ttl_after_finished::SCENARIOS)
        .chain(&daemon_sets::SCENARIOS)
        .chain(&deployments::SCENARIOS)
}
