//! Fields that security contexts of pods and of containers share.

use super::field_path::{Errors, FieldPath};

const IDS: &str = "must be between 0 and 2147483647, inclusive";

/// The id of a user or of a group.
pub(super) fn user_id(id: &FieldPath<'_, '_>, errors: &mut Errors) {
    id.refuse_number(|id| !(0..=i64::from(i32::MAX)).contains(&id), IDS, errors);
}

pub(super) fn seccomp(profile: &FieldPath<'_, '_>, errors: &mut Errors) {
    if profile.is_absent() {
        return;
    }
    let kind = profile.get("type");
    let file = profile.get("localhostProfile");
    match kind.text() {
        "Localhost" if file.is_empty() => {
            errors.push(file.required("must be set when seccomp type is Localhost "));
        }
        "Localhost" => {}
        "RuntimeDefault" | "Unconfined" => {
            if file.is_given() {
                errors.push(file.invalid("can only be set when seccomp type is Localhost"));
            }
        }
        "" => errors.push(kind.required("type is required when seccompProfile is set")),
        _ => errors.push(kind.unsupported(&["Localhost", "RuntimeDefault", "Unconfined"])),
    }
}
