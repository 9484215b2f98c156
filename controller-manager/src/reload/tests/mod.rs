//! Reloads of a manager with the built-in controllers.

mod enabled;
mod soak;

use kcm_config::{Effective, Loaded, Sources};
use kcm_framework::clock::SimulatedClock;
use kcm_framework::{Extensions, Manager, Registry};
use kcm_sandbox_apiserver::Sandbox;

use crate::settings;

/// The settings of these sources, and a manager with them on a sandbox.
fn configured(registry: &Registry, sources: &Sources, sandbox: &Sandbox) -> (Effective, Manager) {
    let table = settings::table(registry, &[]).expect("the rows make a table");
    let Ok(Loaded::Settings(start)) = table.load(sources) else { panic!("the configuration is valid") };
    let configured = settings::configure(registry.clone(), (*start).clone(), Extensions::default());
    let manager = configured.unwrap_or_else(|reasons| panic!("{reasons:?}")).manager;
    let manager = manager.clock(SimulatedClock::starting_at(sandbox.now())).seed(1);
    (*start, manager.build(sandbox.client(), "sandbox:443"))
}
