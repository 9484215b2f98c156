//! Identities of objects, as owner references and informers know them.

use std::cmp::Ordering;
use std::fmt;

use kcm_framework::api::{InternedStr, Meta, ObjectKey, OwnerReference, Resource, Uid};

/// An object as someone names it: what owner references say, and the namespace.
///
/// An owner reference does not say whether its owner is namespaced: of an owner that was only named, the namespace is that
/// of the dependent.
///
/// Ordered by kind, version, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Kind of the object.
    pub(crate) kind: InternedStr,
    /// `apiVersion` of the object.
    pub(crate) api_version: InternedStr,
    /// Namespace; absent for cluster-scoped objects.
    pub(crate) namespace: Option<InternedStr>,
    /// Name.
    pub(crate) name: InternedStr,
    /// The uid.
    pub(crate) uid: Uid,
}

impl Identity {
    /// The identity of an object of an informer.
    pub(crate) fn observed(resource: &Resource, meta: &Meta) -> Self {
        Self {
            kind: InternedStr::from(&*resource.kind),
            api_version: InternedStr::from(resource.api_version()),
            namespace: meta.key.shared_namespace().cloned(),
            name: InternedStr::from(meta.key.name()),
            uid: meta.uid.clone(),
        }
    }

    /// The identity that a reference of a dependent in `namespace` gives its owner.
    pub(crate) fn named(reference: &OwnerReference, namespace: Option<&InternedStr>) -> Self {
        Self {
            kind: reference.kind.clone(),
            api_version: reference.api_version.clone(),
            namespace: namespace.cloned(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
        }
    }

    /// The same identity of a cluster-scoped object.
    pub(crate) fn cluster_scoped(self) -> Self {
        Self { namespace: None, ..self }
    }

    /// The key of the object.
    pub(crate) fn key(&self) -> ObjectKey {
        match &self.namespace {
            Some(namespace) => ObjectKey::namespaced(namespace.clone(), &*self.name),
            None => ObjectKey::cluster_scoped(&*self.name),
        }
    }

    /// Whether a reference names this object by uid, kind, version and name; the namespace is not compared.
    pub(crate) fn has_coordinates_of(&self, reference: &OwnerReference) -> bool {
        self.uid == reference.uid
            && self.name == reference.name
            && self.kind == reference.kind
            && self.api_version == reference.api_version
    }

    /// How the references of a dependent to this uid name this object.
    ///
    /// A dependent with several references to it may do both.
    pub(crate) fn named_by(&self, dependent: &Meta) -> Naming {
        if self.namespace.is_some() && self.namespace.as_ref() != dependent.key.shared_namespace() {
            return Naming { rightly: false, wrongly: true };
        }
        let references = dependent.owner_references.iter().filter(|reference| reference.uid == self.uid);
        references.fold(Naming::default(), |naming, reference| {
            let rightly = self.has_coordinates_of(reference);
            Naming { rightly: naming.rightly || rightly, wrongly: naming.wrongly || !rightly }
        })
    }
}

/// How a dependent names an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Naming {
    /// A reference has all coordinates of the owner.
    pub(crate) rightly: bool,
    /// A reference has the uid of the owner, and another kind, version, name or namespace.
    pub(crate) wrongly: bool,
}

impl Ord for Identity {
    fn cmp(&self, other: &Self) -> Ordering {
        fn parts(it: &Identity) -> (&str, &str, Option<&str>, &str, &Uid) {
            (&it.kind, &it.api_version, it.namespace.as_deref(), &it.name, &it.uid)
        }
        parts(self).cmp(&parts(other))
    }
}

impl PartialOrd for Identity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Identity {
    /// As upstream writes it into events.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, api_version, namespace, name, uid } = self;
        let namespace = namespace.as_deref().unwrap_or_default();
        write!(f, "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]")
    }
}
