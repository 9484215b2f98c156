//! Objects of any view, as far as their metadata.

use kcm_api::{Meta, View};

/// An object of a cache of any view.
pub trait ObjectMeta: Send + Sync + 'static {
    /// Metadata of the object.
    fn metadata(&self) -> &Meta;
}

impl<V: View> ObjectMeta for V {
    fn metadata(&self) -> &Meta {
        self.meta()
    }
}
