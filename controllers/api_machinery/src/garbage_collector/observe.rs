//! Live reads: whether an object exists, and its current metadata.

use kcm_framework::api::{InternedStr, Meta, ObjectKey, PartialObjectMeta, Resource};
use kcm_framework::client::{ApiClient, ApiError};
use kcm_framework::discovery::Discovery;
use kcm_framework::{Class, ReconcileError};

use super::graph::Identity;

/// Reads objects from the API server, by the identities that informers and owner references give them.
#[derive(Clone, Copy)]
pub(super) struct LiveReader<'a> {
    pub(super) api: &'a ApiClient,
    pub(super) discovery: &'a Discovery,
}

/// The result of a live read.
#[derive(Debug)]
pub(super) enum Live {
    Found {
        /// The resource of the object, in the version of the identity.
        resource: Resource,
        meta: Box<Meta>,
    },
    /// No object has the identity.
    Absent {
        /// The resource of the kind.
        resource: Resource,
    },
}

/// The reason why it is unknown if an object exists.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookupError {
    /// Discovery does not have the kind.
    #[error("no resource of kind {kind} is served in {api_version}")]
    NotServed { kind: InternedStr, api_version: InternedStr },
    /// A cluster-scoped object names a namespaced owner, which cannot be.
    #[error("a cluster-scoped object cannot have a namespaced owner")]
    NamespacedOwner,
    #[error("cannot read an object")]
    Request(#[source] ApiError),
}

impl From<LookupError> for ReconcileError {
    fn from(error: LookupError) -> Self {
        let class = match &error {
            // Discovery may be behind, and the reference may be invalid: neither is worth a warning at first.
            LookupError::NotServed { .. } | LookupError::NamespacedOwner => Class::Conflict,
            LookupError::Request(error) => Class::from(error),
        };
        Self::new(class, error)
    }
}

impl LiveReader<'_> {
    /// Reads the object of an identity, by its kind, name and namespace; the uid must match.
    ///
    /// An owner has the namespace of the dependent that names it, which is ignored if the kind of the owner is
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
                // The response names no object: the resource may not be served any more, or not yet again.
                self.discovery.fresh().await.map_err(LookupError::Request)?;
                let resource = self.resource(identity)?;
                if self.is_doubtful(&resource) {
                    Err(LookupError::Request(error))
                } else {
                    Ok(Live::Absent { resource })
                }
            }
            Err(error) => Err(LookupError::Request(error)),
        }
    }

    /// Returns the resource of the kind of an identity, in its version.
    pub(super) fn resource(&self, identity: &Identity) -> Result<Resource, LookupError> {
        let resources = self.discovery.resources();
        resources.resource_of(&identity.api_version, &identity.kind).cloned().ok_or_else(|| LookupError::NotServed {
            kind: identity.kind.clone(),
            api_version: identity.api_version.clone(),
        })
    }

    /// Returns true if discovery only shows that a resource was served before: its group fails, or the last snapshot
    /// lacks the resource.
    fn is_doubtful(&self, resource: &Resource) -> bool {
        let resources = self.discovery.resources();
        resources.is_departing(resource)
            || resources.broken().contains_key(&format!("{}/{}", resource.group, resource.version))
    }
}
