//! The hash of a pod template in the names of revisions, equal to upstream's.
//!
//! Revisions are found by their data. The hash decides only the name of a new one, and clients compute it to look the
//! revision of a template up.
//!
//! # Upstream
//! `ComputeHash` of `pkg/controller`: the 32-bit FNV-1a hash of the template as go-spew prints it. All fields of the Go
//! types are printed, those without a value too, so that a release with another field has other hashes.

mod go_print;
mod quantity;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::shared::revisions::safe_encode;

/// The hash of a template, and of the collision count where there is one.
///
/// Absent for a template that the types of Kubernetes 1.37 cannot hold, and for quantities beyond 64 bits.
pub(super) fn template_hash(template: &RawValue, collision_count: Option<i32>) -> Option<String> {
    let template: Value = serde_json::from_str(template.get()).ok()?;
    let printed = go_print::print(&template)?;
    // The count takes eight bytes, of which the last four stay zero.
    let count = collision_count.map(|count| i64::from(count.cast_unsigned()).to_le_bytes());
    let bytes = printed.bytes().chain(count.into_iter().flatten());
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    Some(safe_encode(hash))
}
