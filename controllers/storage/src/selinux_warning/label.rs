//! Conflicts of `SELinux` labels. Pure.

/// Returns `true` if two labels, `user:role:type:level` or empty, conflict.
///
/// A node completes user, role and type, so an empty one equals any. Levels are never completed.
///
/// # Upstream
/// `ControllerSELinuxTranslator.Conflicts`.
pub(super) fn conflict(label: &str, other: &str) -> bool {
    let ([parts @ .., level], [other_parts @ .., other_level]) = (parts(label), parts(other));
    let differ = |(part, other): (&str, &str)| part != other && !part.is_empty() && !other.is_empty();
    level != other_level || parts.into_iter().zip(other_parts).any(differ)
}

/// Splits a label at its first three colons. A level has colons of its own.
fn parts(label: &str) -> [&str; 4] {
    let mut parts = label.splitn(4, ':');
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}
