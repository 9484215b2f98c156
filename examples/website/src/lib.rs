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
mod reconcile;
pub mod website;

use kcm_framework::api::Resource;
use kcm_framework::config::{Initial, Row};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use hosts::Hosts;
use reconcile::Operator;

/// Websites.
pub const WEBSITES: Resource = Resource::namespaced("example.com", "v1", "websites", "Website");

const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");

/// The controller.
pub const WEBSITE: ControllerDescriptor =
    ControllerDescriptor::new_async("website-controller", |context| Box::pin(async { init(context) })).settings(&[
        Row::new("website-hosts-dir", "Website", Initial::String("/var/lib/website-hosts"))
            .path("WebsiteController.HostsDir")
            .help("The directory of host names: the operator keeps a file for each website in it."),
        Row::new("concurrent-website-syncs", "Website", Initial::Int32(5))
            .path("WebsiteController.ConcurrentSyncs")
            .help("How many websites are reconciled at once.")
            .reloaded(),
    ]);

kcm_framework::inventory::submit! { WEBSITE }

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    if !context.discovery().is_available(&WEBSITES) {
        return Ok(None);
    }
    let mut websites = context.control_loop("website").workers_from("concurrent-website-syncs");
    let operator = Operator {
        websites: websites.primary_for(Source::of(WEBSITES)),
        deployments: websites.owns(),
        services: websites.owns_for(Source::of(SERVICES)),
        hosts: Hosts::new(context.setting::<String>("website-hosts-dir")?),
        published: context.metrics().counter("website_published_hosts", "Number of host names that were published"),
    };
    Ok(Loops::new().with(websites.reconcile(operator)))
}
