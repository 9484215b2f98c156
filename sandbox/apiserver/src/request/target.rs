//! What a request does, and to what.

use kcm_api::{ObjectKey, Resource};

/// What a request does, as authorization names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection.
    Watch,
    /// Makes an object.
    Create,
    /// Puts an object whole.
    Update,
    /// Changes an object by a patch.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

impl Verb {
    /// Whether the verb changes objects.
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// The object or collection that a request is about, and what it does with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What is done.
    pub verb: Verb,
    /// The resource.
    pub resource: Resource,
    /// The namespace of the path.
    pub namespace: Option<String>,
    /// The name of the path; for a create that of the object, where it has one.
    pub name: Option<String>,
    /// The subresource, for example `status`.
    pub subresource: Option<String>,
}

impl Target {
    /// An object, or a subresource of it.
    pub(crate) fn of(verb: Verb, resource: &Resource, key: &ObjectKey, subresource: Option<&str>) -> Self {
        Self::new(verb, resource, key.namespace().map(str::to_owned), Some(key.name().to_owned()), subresource)
    }

    /// An object, a subresource of it, or a collection; cluster-scoped resources ignore the namespace.
    pub(crate) fn new(
        verb: Verb,
        resource: &Resource,
        namespace: Option<String>,
        name: Option<String>,
        subresource: Option<&str>,
    ) -> Self {
        let namespace = namespace.filter(|_| resource.namespaced);
        Self { verb, resource: resource.clone(), namespace, name, subresource: subresource.map(str::to_owned) }
    }
}
