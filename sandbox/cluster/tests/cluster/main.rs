//! The simulated cluster, observed through the API, on a paused clock.

mod commands;
mod nodes;
mod pods;
mod scheduling;
mod support;
