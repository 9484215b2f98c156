//! Live reads: whether an object exists, and its metadata now.

use kcm_api::{InternedStr, Meta, ObjectKey, PartialObjectMeta, Resource};
use kcm_framework::client::{ApiClient, ApiError};
use kcm_framework::discovery::Discovery;
use kcm_framework::{Class, ReconcileError};

use super::graph::Identity;

/// Reads objects by the identities that informers and owner references give them.
pub(super) struct LiveReader<'a> {
    pub(super) api: &'a ApiClient,
    pub(super) discovery: &'a Discovery,
}

/// The result of a live read.
#[derive(Debug)]
pub(super) enum Live {
    /// The object exists.
    Found {
        /// Its resource, in the version of the identity.
        resource: Resource,
        /// Its metadata.
        meta: Box<Meta>,
    },
    /// No object has the identity. `resource` is that of its kind.
    Absent {
        /// The resource of its kind.
        resource: Resource,
    },
}

/// Why it is not known whether an object exists.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookupError {
    /// Discovery does not have the kind.
    #[error("no resource of kind {kind} is served in {api_version}")]
    NotServed {
        /// The kind.
        kind: InternedStr,
        /// Its group and version.
        api_version: InternedStr,
    },
    /// A cluster-scoped object names a namespaced owner, which cannot be.
    #[error("a cluster-scoped object cannot have a namespaced owner")]
    NamespacedOwner,
    /// A request failed.
    #[error("cannot read an object")]
    Request(#[source] ApiError),
}

impl From<LookupError> for ReconcileError {
    fn from(error: LookupError) -> Self {
        let class = match &error {
            // Discovery may be behind, and the reference may be wrong for good: neither is worth a warning at first.
            LookupError::NotServed { .. } | LookupError::NamespacedOwner => Class::Conflict,
            LookupError::Request(error) => Class::from(error),
        };
        Self::new(class, error)
    }
}

impl LiveReader<'_> {
    /// Reads the object of an identity, by its kind, name and namespace; the uid must match.
    ///
    /// The namespace of an owner that a dependent names is that of the dependent, and does not count where the kind is
    /// cluster-scoped.
    pub(super) async fn read(&self, identity: &Identity) -> Result<Live, LookupError> {
        let resource = self.resource(identity)?;
        let key = match (&identity.namespace, resource.namespaced) {
            (Some(_), true) => identity.key(),
            (None, true) => return Err(LookupError::NamespacedOwner),
            (_, false) => ObjectKey::cluster_scoped(&*identity.name),
        };
        match self.api.get::<PartialObjectMeta>(&resource, &key).await {
            Ok(object) if object.metadata.uid == identity.uid => {
                Ok(Live::Found { resource, meta: Box::new(object.metadata) })
            }
            Ok(_) => Ok(Live::Absent { resource }),
            Err(error)
                if error.status().is_some_and(|status| status.code == 404 && status.details.name == key.name()) =>
            {
                Ok(Live::Absent { resource })
            }
            Err(error) if error.is_not_found() => {
                // The answer names no object: the resource itself may not be served any more, or not yet again.
                self.discovery.fresh().await.map_err(LookupError::Request)?;
                let resource = self.resource(identity)?;
                if self.is_broken(&resource) { Err(LookupError::Request(error)) } else { Ok(Live::Absent { resource }) }
            }
            Err(error) => Err(LookupError::Request(error)),
        }
    }

    /// The resource of the kind of an identity, in its version.
    pub(super) fn resource(&self, identity: &Identity) -> Result<Resource, LookupError> {
        let resources = self.discovery.resources();
        resources.resource_of(&identity.api_version, &identity.kind).cloned().ok_or_else(|| LookupError::NotServed {
            kind: identity.kind.clone(),
            api_version: identity.api_version.clone(),
        })
    }

    /// Whether discovery of the group of a resource fails, so that it only shows what was served before.
    fn is_broken(&self, resource: &Resource) -> bool {
        self.discovery.resources().broken().contains_key(&format!("{}/{}", resource.group, resource.version))
    }
}
