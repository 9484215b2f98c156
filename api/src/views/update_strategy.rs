//! The update strategy that deployments and daemon sets have in the same fields.

use crate::int_or_percent::IntOrPercent;
use crate::intern::InternedStr;

crate::message! {
    /// How a workload replaces its pods, as its object says it.
    pub(super) struct RawUpdateStrategy {
        pub(super) type_: InternedStr = "type" @ 1;
        "rollingUpdate" @ 2 {
            pub(super) max_unavailable: Option<IntOrPercent> = "maxUnavailable" @ 1;
            pub(super) max_surge: Option<IntOrPercent> = "maxSurge" @ 2;
        }
    }
}
