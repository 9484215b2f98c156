//! An operator with a kind of its own: it keeps a Deployment and a Service for each `Website`, and its host name outside
//! of the cluster.
//!
//! Reads websites, and the Deployments and Services that they own. Applies Deployments and Services (server-side), sets
//! and removes the finalizer, and writes the status of websites.
//!
//! # Guarantees
//! - What somebody else changes in the fields that the operator applies is applied again.
//! - A website is deleted after its host name is free.
//! - The operator waits for its `CustomResourceDefinition`, however often that is deleted and installed.
//!
//! `website.rs` has the decisions, `hosts.rs` the effects outside of the cluster; `manifests/` installs it.

pub mod hosts;
mod owned;
mod reconcile;
pub mod website;

use kcm_framework::api::{Resource, Typed};
use kcm_framework::config::{Initial, Row};
use kcm_framework::{
    BoxError, ControllerContext, ControllerDescriptor, Running, SettingsSection, Source, prometheus_client,
};
use prometheus_client::metrics::counter::Counter;
use serde::Deserialize;

use hosts::Hosts;
use owned::{OwnedDeployment, OwnedService};
use reconcile::Operator;
use website::Website;

/// Websites.
pub const WEBSITES: Resource = Resource::namespaced("example.com", "v1", "websites", "Website");

/// The controller.
pub const WEBSITE: ControllerDescriptor =
    ControllerDescriptor::new("website-controller", |context| Box::pin(async { init(context) })).settings(&[
        Row::new("website-hosts-dir", "Website", Initial::String("/var/lib/website-hosts"))
            .path("WebsiteController.HostsDir")
            .help("The directory of host names: the operator keeps a file for each website in it."),
        Row::new("concurrent-website-syncs", "Website", Initial::Int32(5))
            .path("WebsiteController.ConcurrentSyncs")
            .help("How many websites are reconciled at once."),
    ]);

kcm_framework::inventory::submit! { WEBSITE }

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Settings {
    hosts_dir: String,
    concurrent_syncs: u16,
}

impl SettingsSection for Settings {
    const SECTION: &str = "WebsiteController";
}

fn init(context: &ControllerContext) -> Result<Option<Running>, BoxError> {
    let Settings { hosts_dir, concurrent_syncs } = context.settings_of()?;
    if !context.discovery().is_available(&WEBSITES) {
        return Ok(None);
    }
    let published = context.metrics().register(|registry| {
        let published = Counter::default();
        registry.register("website_published_hosts", "Number of host names that were published", published.clone());
        published
    });
    let mut websites = context.control_loop("website").workers(concurrent_syncs.into());
    let operator = Operator {
        websites: websites.primary_for(Source::<Typed<Website>>::of(WEBSITES)),
        deployments: websites.owns::<OwnedDeployment>(),
        services: websites.owns::<OwnedService>(),
        hosts: Hosts::new(hosts_dir),
        published,
    };
    Ok(Some(Running::new().with(websites.reconcile(operator))))
}
