//! The API of the sandbox as clients see it, over its service.

mod client;
mod creates;
mod definitions;
mod deletions;
mod describe;
mod event_view;
mod faults;
mod large;
mod owners;
mod patches;
mod programs;
mod reads;
mod recorded;
mod reviews;
mod rows;
mod simulated;
mod strategies;
mod subresources;
mod support;
#[cfg(feature = "kubectl")]
mod tables;
mod updates;
mod validation;
mod watches;
#[cfg(not(feature = "kubectl"))]
mod without_kubectl;
