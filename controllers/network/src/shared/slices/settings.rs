//! The checks of settings that both controllers of slices share.
//!
//! # Upstream
//! `ValidateEndpointSliceControllerConfiguration` and its twin for mirroring, in `cmd/kube-controller-manager/app/options`.

use kcm_framework::config::{Setting, Value, checks};
use kcm_framework::{BoxError, ControllerContext};

/// Checks the number of keys that are reconciled at the same time.
pub(crate) fn slice_syncs(value: &Value) -> Result<(), String> {
    checks::between(value, 1, 50)
}

/// Checks the maximum number of endpoints in a slice or a subset.
pub(crate) fn slice_size(value: &Value) -> Result<(), String> {
    checks::between(value, 1, 1000)
}

/// Reads a maximum number of endpoints, which [`slice_size`] has checked.
pub(crate) fn max_endpoints(context: &ControllerContext, setting: &Setting<i32>) -> Result<usize, BoxError> {
    Ok(usize::try_from(context.get(setting)?)?)
}
