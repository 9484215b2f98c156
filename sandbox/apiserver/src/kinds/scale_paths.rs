//! [`ScalePaths`]: the scale subresource of custom resources.

/// JSON paths of the scale of a custom resource, as `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// Path of the desired replicas.
    pub wanted: String,
    /// Path of the current replicas.
    pub present: String,
    /// Path of the label selector as a string, if the object has one.
    pub selector: Option<String>,
}

impl Default for ScalePaths {
    /// `.spec.replicas`, `.status.replicas` and `.status.selector`.
    fn default() -> Self {
        Self {
            wanted: ".spec.replicas".to_owned(),
            present: ".status.replicas".to_owned(),
            selector: Some(".status.selector".to_owned()),
        }
    }
}
