//! Tables of the pure parts, and whole reconciles on an API server in the process.

mod apply;
mod claims;
mod error;
mod event_mapping;
mod events;
mod explain;
mod faults;
mod fixtures;
mod gates;
mod identity;
mod invariants;
mod life;
mod new_objects;
mod plan;
mod recovery;
mod recreate;
mod retention;
mod revisions;
mod rollout;
mod simulation;
mod status;
mod updates;
