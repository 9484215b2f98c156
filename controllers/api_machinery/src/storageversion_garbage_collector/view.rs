//! The view of storage versions.

use kcm_framework::api::{Documented, InternedStr, Resource};

/// A storage version with its JSON.
pub(super) type StorageVersion = Documented<StorageVersionView>;

kcm_framework::api::view! {
    /// The versions in which the API servers store a resource.
    pub(super) struct StorageVersionView {
        resource: Resource::cluster_scoped(
            "internal.apiserver.k8s.io", "v1alpha1", "storageversions", "StorageVersion"
        );

        "status" {
            /// Entries of API servers, in the order of `status.storageVersions`.
            pub(super) entries: Vec<Entry> = "storageVersions";
            /// Version in which all API servers store the resource: `status.commonEncodingVersion`.
            pub(super) common: Option<InternedStr> = "commonEncodingVersion";
        }
    }
}

kcm_framework::api::message! {
    /// The entry of an API server.
    pub(super) struct Entry {
        /// Name of the Lease of the API server: `apiServerID`.
        pub(super) server: InternedStr = "apiServerID";
        /// Version in which it stores the resource: `encodingVersion`.
        pub(super) encoding: InternedStr = "encodingVersion";
    }
}

impl StorageVersionView {
    /// Returns the API servers with an entry, each once.
    pub(super) fn servers(&self) -> Vec<InternedStr> {
        let mut servers: Vec<InternedStr> = self.entries.iter().map(|entry| entry.server.clone()).collect();
        servers.sort();
        servers.dedup();
        servers
    }
}
