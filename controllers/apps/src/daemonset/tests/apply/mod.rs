//! Whole reconciles on an API server in the process.

mod faults;
mod life;
mod revisions;
mod rollouts;
