//! The checks of settings that both controllers of slices have.
//!
//! # Upstream
//! `ValidateEndpointSliceControllerConfiguration` and its twin for mirroring, in `cmd/kube-controller-manager/app/options`.

use kcm_config::{Value, checks};

/// Checks how many keys are processed at once.
pub(crate) fn slice_syncs(value: &Value) -> Result<(), String> {
    checks::between(value, 1, 50)
}

/// Checks how many endpoints a slice or a subset may have.
pub(crate) fn slice_size(value: &Value) -> Result<(), String> {
    checks::between(value, 1, 1000)
}
