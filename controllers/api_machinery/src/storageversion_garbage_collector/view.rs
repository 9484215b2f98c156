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
            /// `status.storageVersions`.
            pub(super) entries: Vec<Entry> = "storageVersions";
            /// `status.commonEncodingVersion`.
            pub(super) common: Option<InternedStr> = "commonEncodingVersion";
        }
    }
}

kcm_framework::api::message! {
    /// The entry of an API server.
    pub(super) struct Entry {
        /// `apiServerID`, the name of its Lease.
        pub(super) server: InternedStr = "apiServerID";
        /// `encodingVersion`.
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
