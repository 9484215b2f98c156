//! The Kubernetes API as controllers see it.
//!
//! Being built.

mod intern;
mod key;
mod labels;
mod meta;
mod owner;
mod resource;
mod version;
mod view;

pub use intern::{Interner, Istr};
pub use key::{ObjectKey, Uid};
pub use labels::Labels;
pub use meta::{KEPT_ANNOTATIONS, Meta};
pub use owner::OwnerReference;
pub use resource::Resource;
pub use version::ResourceVersion;
pub use view::{DecodeError, KnownView, PartialObjectMeta, Typed, View};
