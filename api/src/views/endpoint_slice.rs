//! The view of an `EndpointSlice`.

use serde::Deserialize;

use crate::documented::Documented;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;

/// An `EndpointSlice` with its JSON. The controller updates the whole object, and reads endpoints and ports from the
/// JSON to compare them.
pub type EndpointSlice = Documented<EndpointSliceView>;

crate::view! {
    /// Fields of an `EndpointSlice` that event mapping reads.
    pub struct EndpointSliceView {
        resource: Resource::namespaced("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice");

        /// Type of the addresses: `addressType`.
        pub address_type: AddressType = "addressType" @ 4;
    }
}

/// The type of the addresses of an endpoint slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
pub enum AddressType {
    /// Addresses of type `IPv4`.
    IPv4,
    /// Addresses of type `IPv6`.
    IPv6,
    /// Domain names, or a type that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

impl AddressType {
    /// The value of `addressType`; empty for other types.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IPv4 => "IPv4",
            Self::IPv6 => "IPv6",
            Self::Other => "",
        }
    }
}

impl ProtobufType for AddressType {
    const KIND: Kind = Kind::Text;
}
