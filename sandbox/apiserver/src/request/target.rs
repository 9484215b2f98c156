//! The verb and target of a request.

use kcm_api::{ObjectKey, Resource};

/// The verb of a request, as in RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object by its name.
    Get,
    /// Lists the objects of a collection.
    List,
    /// Watches the objects of a collection.
    Watch,
    /// Creates an object with POST.
    Create,
    /// Replaces an object with PUT.
    Update,
    /// Changes an object with PATCH.
    Patch,
    /// Deletes one object by its name.
    Delete,
    /// Deletes the objects of a collection.
    DeleteCollection,
}

impl Verb {
    /// Reports whether the verb writes.
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// The object or collection of a request, and the verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Verb of the API request.
    pub verb: Verb,
    /// Resource that the path names.
    pub resource: Resource,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path; for a create the name of the object, if it has one.
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
