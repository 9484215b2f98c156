//! The view of a `HorizontalPodAutoscaler`.

use crate::documented::Documented;
use crate::intern::InternedStr;
use crate::resource::Resource;

/// A `HorizontalPodAutoscaler` with its JSON. The controller updates its status.
pub type HorizontalPodAutoscaler = Documented<HorizontalPodAutoscalerView>;

crate::view! {
    /// The target and the bounds of a horizontal pod autoscaler. Metrics, behavior and status are read from the document.
    pub struct HorizontalPodAutoscalerView {
        resource: Resource::namespaced("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler");

        "spec" @ 2 {
            "scaleTargetRef" @ 1 {
                /// `spec.scaleTargetRef.kind`, empty if it is absent.
                pub target_kind: InternedStr = "kind" @ 1;
                /// `spec.scaleTargetRef.name`, empty if it is absent.
                pub target_name: Box<str> = "name" @ 2;
                /// `spec.scaleTargetRef.apiVersion`, empty for the core group.
                pub target_api_version: InternedStr = "apiVersion" @ 3;
            }
            let min_replicas: Option<i32> = "minReplicas" @ 2;
            /// `spec.minReplicas`, 1 if it is absent.
            pub min_replicas: i32 = min_replicas.unwrap_or(1);
            /// `spec.maxReplicas`, 0 if it is absent.
            pub max_replicas: i32 = "maxReplicas" @ 3;
        }
    }
}
