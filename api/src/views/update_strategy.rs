//! The update strategy that deployments and daemon sets have in the same fields.

use crate::int_or_percent::IntOrPercent;
use crate::intern::InternedStr;

crate::message! {
    /// Replacement of a workload's pods, in the form of its object.
    pub(super) struct RawUpdateStrategy {
        pub(super) type_: InternedStr = "type" @ 1;
        "rollingUpdate" @ 2 {
            pub(super) max_unavailable: Option<IntOrPercent> = "maxUnavailable" @ 1;
            pub(super) max_surge: Option<IntOrPercent> = "maxSurge" @ 2;
        }
    }
}
