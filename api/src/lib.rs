//! The types of the Kubernetes API for controllers, without I/O, clock or randomness.
//!
//! A cached object is a [`View`]: its [`Meta`] and the fields that controllers read, in [`views`]. Other fields are
//! skipped while decoding. [`view!`] declares one, and a [`Part`] of one is decoded only if a controller has the
//! [`Need`]. Kinds that a controller updates whole are [`Documented`]: the view beside the JSON of the object, which is
//! edited by path, so that unknown fields survive.
//!
//! ```text
//!                    ┌─ Pod ──────────────── patched, deleted: the view alone
//! JSON of the API ───┼─ ReplicaSet ───────── updated whole: view + Document
//!                    ├─ PartialObjectMeta ── kinds known at run time: metadata alone
//!                    └─ Typed<T> ─────────── any serde type, at its full cost
//! ```
//!
//! # Guarantees
//! - No input makes a decoder panic. A missing or `null` optional field is its default, as in Go; a value of the
//!   wrong type is a [`DecodeError`].
//! - A [`Document`] is what the API server sent, byte for byte, without `metadata.managedFields` and whitespace
//!   between tokens. An edit changes the value at its path and nothing else.
//! - Repeated strings ([`InternedStr`]) decoded within one [`Interner::scope`] are held once.
//! - A [`Selector`] is checked once, and matching allocates nothing.
//! - A pod template is carried as raw JSON; [`same_template`] compares two as the API server would serve them, and
//!   [`template_hash`] agrees with it.
//!
//! # What is not here
//! Rules of single controllers (which pod goes first, when a condition is worth writing), and full types of the API:
//! those are `k8s-openapi`'s, through [`Typed`].

mod annotations;
mod condition;
mod configuration;
mod decimal;
#[doc(hidden)]
pub mod declaration;
mod decode;
mod decode_error;
mod document;
mod documented;
mod fnv;
mod int_or_percent;
mod intern;
mod ip;
mod key;
mod labels;
mod meta;
pub mod name;
mod needs;
mod owner;
pub mod protobuf;
mod quantity;
mod resource;
mod resource_list;
mod resource_quantity;
pub mod scheduling;
mod selector;
mod shared;
mod shared_values;
mod status;
mod template;
pub mod time;
mod version;
mod view;
pub mod views;

pub use condition::{Condition, ConditionStatus};
pub use decode_error::DecodeError;
pub use document::{Document, EditError};
pub use documented::Documented;
pub use fnv::Fnv1a;
pub use int_or_percent::{IntOrPercent, InvalidPercent, Rounding};
pub use intern::{InternedStr, Interner};
pub use ip::parse_ip;
pub use key::{ObjectKey, Uid};
pub use labels::Labels;
pub use meta::Meta;
pub use needs::{DecodeContext, Need, Needs, Part, PartReader, UndeclaredPart};
pub use owner::OwnerReference;
pub use quantity::{InvalidQuantity, Quantity};
pub use resource::Resource;
pub use resource_list::ResourceList;
pub use resource_quantity::ResourceQuantity;
pub use selector::{InvalidSelector, LabelSelector, LabelSelectorRequirement, Selector};
pub use shared::Shared;
pub use shared_values::Shareable;
pub use status::{Status, StatusCause, StatusDetails};
pub use template::{POD_TEMPLATE_HASH, same_template, template_hash};
pub use version::ResourceVersion;
pub use view::{KnownView, PartialObjectMeta, Typed, View};
