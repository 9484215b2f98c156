//! An operator with a kind of its own: it keeps a Deployment and a Service for each `Website`, and its host name
//! outside of the cluster.
//!
//! Reads websites, and the Deployments and Services that they own. Applies Deployments and Services (server-side), sets
//! and removes the finalizer, and writes the status of websites.
//!
//! # Guarantees
//! - If another client changes a field that the operator applies, the operator applies it again.
//! - A website is deleted after its host name is free.
//! - The operator waits for its `CustomResourceDefinition`, even if it is deleted and installed again.
//!
//! `website.rs` has the decisions, `hosts.rs` the effects outside of the cluster; `manifests/` installs it.

pub mod hosts;
mod reconcile;
#[cfg(test)]
mod tests;
pub mod website;

use kcm_framework::api::Resource;
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::metrics::Stability;
use kcm_framework::{BoxError, ControlLoopBuilder, ControllerContext, ControllerDescriptor, Loops, Source};

use hosts::Hosts;
use reconcile::Operator;

/// The resource of websites.
pub const WEBSITES: Resource = Resource::namespaced("example.com", "v1", "websites", "Website");

const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");

const SECTION: Section = Section::new("Website", "WebsiteController");
const SYNCS: Setting<Workers> = SECTION.workers("concurrent-website-syncs", "ConcurrentSyncs", "Websites", 5);
const HOSTS_DIR: Setting<String> = SECTION
    .string("website-hosts-dir", "HostsDir", "/var/lib/website-hosts")
    .help("Directory of host names: a file for each Website.");

/// The controller of websites.
pub const WEBSITE: ControllerDescriptor =
    ControllerDescriptor::new("website-controller", init).settings(const { &[HOSTS_DIR.row(), SYNCS.row()] });

kcm_framework::inventory::submit! { WEBSITE }

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    if !context.discovery().is_available(&WEBSITES) {
        return Ok(Loops::none("the CustomResourceDefinition of Websites is not installed"));
    }
    let mut control_loop = context.control_loop("website").workers(&SYNCS);
    let websites = control_loop.primary_for(Source::of(WEBSITES));
    let operator = operator(context, &mut control_loop)?;
    Ok(control_loop.reconcile_objects(websites, operator).into())
}

fn operator(context: &ControllerContext, control_loop: &mut ControlLoopBuilder) -> Result<Operator, BoxError> {
    let hosts = match context.extension::<Hosts>() {
        Some(hosts) => Hosts::clone(&hosts),
        None => Hosts::new(context.get(&HOSTS_DIR)?),
    };
    let (metrics, name) = (context.metrics(), "website_published_hosts_total");
    Ok(Operator {
        deployments: control_loop.owns(),
        services: control_loop.owns_for(Source::of(SERVICES)),
        hosts,
        published: metrics.counter(Stability::Unstated, name, "Published hosts")?,
    })
}
