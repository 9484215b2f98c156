//! The profiler of this process.

use std::sync::Arc;

use kcm_config::Effective;

use crate::pprof::Helper;
use kcm_serving::Profiler;

/// Returns the profiler of this process if the settings allow profiles.
pub(super) fn profiler(settings: &Effective) -> Option<Arc<dyn Profiler>> {
    let is_on: bool = settings.get("profiling").unwrap_or(false);
    is_on.then(|| Arc::new(Helper::new()) as Arc<dyn Profiler>)
}
