//! Where custom resources keep their scale.

/// Where a custom resource keeps what its scale shows: paths like `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// How many replicas are wanted.
    pub wanted: String,
    /// How many there are.
    pub present: String,
    /// Their label selector as text, where the object tells it.
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
