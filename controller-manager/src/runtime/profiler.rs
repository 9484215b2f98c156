//! The profiler of this process.

use std::sync::Arc;

use kcm_config::Effective;
use kcm_serving::Profiler;

/// Returns the profiler of this process if the settings allow profiles.
#[cfg(feature = "pprof")]
pub(super) fn profiler(settings: &Effective) -> Option<Arc<dyn Profiler>> {
    let is_on: bool = settings.get("profiling").unwrap_or(false);
    is_on.then(|| Arc::new(crate::pprof::Helper::new()) as Arc<dyn Profiler>)
}

/// Returns no profiler, because the program is built without one.
#[cfg(not(feature = "pprof"))]
pub(super) const fn profiler(_settings: &Effective) -> Option<Arc<dyn Profiler>> {
    None
}
