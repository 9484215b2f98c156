//! The data that the routes show.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_config::Effective;
use kcm_framework::{ManagerHandle, Metrics};
use serde_json::Value;

use super::health::Check;
use super::profiler::Profiler;

/// Data that the routes show.
pub struct ServingState {
    /// The settings of the start.
    pub settings: Effective,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
    /// The controllers, their loops and caches.
    pub manager: ManagerHandle,
    /// Health checks in addition to the controllers' checks, in the order of the list. They check for problems that
    /// only a restart cures.
    pub live: Vec<Check>,
    /// The checks that only readiness has.
    pub ready: Vec<Check>,
    /// Returns the status of each lease that this process competes for, as the status page reads it: a list.
    pub leases: Box<dyn Fn() -> Value + Send + Sync>,
    /// Makes the profiles under `/debug/pprof/`; `None` if the program was built without a profiler.
    pub profiler: Option<Arc<dyn Profiler>>,
    /// Time at which the process was started.
    pub started: Timestamp,
    /// Sets the verbosity of the logs.
    pub set_verbosity: Box<dyn Fn(i32) + Send + Sync>,
}
