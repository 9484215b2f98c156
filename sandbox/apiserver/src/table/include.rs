//! The part of the object that a row has beside its cells.

use crate::status::Status;

/// The part of the object in a table row (`includeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    Metadata,
    Object,
}

impl IncludeObject {
    /// Returns the part that the query parameter `includeObject` requests; never `None`, because this build prints
    /// tables.
    pub(crate) fn parse(requested: Option<&str>) -> Result<Option<Self>, Status> {
        match requested {
            None | Some("Metadata") => Ok(Some(Self::Metadata)),
            Some("None") => Ok(Some(Self::None)),
            Some("Object") => Ok(Some(Self::Object)),
            Some(other) => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}
