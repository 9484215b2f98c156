//! Finalizers that keep an object while something uses it.

use kcm_framework::api::{Document, EditError, Meta};

/// The change of a protection finalizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// The finalizer is as it must be.
    Keep,
    /// The object is terminating, and something uses it.
    InUse,
    /// The object lacks the finalizer.
    Add,
    /// The object is terminating, and nothing uses it.
    Remove,
}

/// Returns `true` if the finalizer may have to change: the object lacks it, or is terminating and has it.
///
/// # Upstream
/// `NeedToAddFinalizer` and `IsDeletionCandidate` of `pkg/controller/volume/protectionutil`.
pub(crate) fn is_candidate(object: &Meta, finalizer: &str) -> bool {
    has(object, finalizer) == object.is_terminating()
}

/// Plans for the finalizer of an object. `is_used` is asked for terminating objects only.
pub(crate) fn plan(object: &Meta, finalizer: &str, is_used: impl FnOnce() -> bool) -> Protection {
    match (is_candidate(object, finalizer), object.is_terminating()) {
        (false, _) => Protection::Keep,
        // The API server refuses a new finalizer on a terminating object, which is no candidate.
        (true, false) => Protection::Add,
        (true, true) if is_used() => Protection::InUse,
        (true, true) => Protection::Remove,
    }
}

/// Returns the document to write; `None` if the finalizer does not change.
///
/// # Errors
/// The metadata of the document is no object.
pub(crate) fn protected(
    document: &Document,
    object: &Meta,
    finalizer: &str,
    protection: Protection,
) -> Result<Option<Document>, EditError> {
    let kept = object.finalizers.iter().map(|name| &**name).filter(|name| *name != finalizer);
    let finalizers: Vec<&str> = match protection {
        Protection::Keep | Protection::InUse => return Ok(None),
        Protection::Add => kept.chain([finalizer]).collect(),
        Protection::Remove => kept.collect(),
    };
    let mut changed = document.clone();
    changed.set(&["metadata", "finalizers"], &finalizers)?;
    Ok(Some(changed))
}

fn has(object: &Meta, finalizer: &str) -> bool {
    object.finalizers.iter().any(|name| &**name == finalizer)
}
