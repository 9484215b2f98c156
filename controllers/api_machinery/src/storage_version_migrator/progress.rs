//! The position of a migration in the list of its objects.

use std::collections::HashMap;

use kcm_framework::api::{ObjectKey, Uid};
use parking_lot::Mutex;

use super::text::Counts;

/// The position of a migration: everything up to it is migrated.
///
/// API servers list objects in the order of their keys. What is read again, after an error or because a token has expired, is
/// skipped up to the last object that was passed. If the list was in another order, nothing is skipped, which costs patches
/// without effect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// The `continue` token of the page; absent for the first page.
    pub(super) token: Option<String>,
    /// The objects on pages before this one.
    before: u64,
    /// The objects that were passed, on this page and before it.
    passed: u64,
    /// All objects, as far as they are known.
    total: u64,
    /// The path of the last object that was passed.
    last: Option<String>,
    is_unordered: bool,
    /// The path up to which objects are skipped.
    skip_to: Option<String>,
    /// Whether the pages before the position are read again, and not only its own.
    skips_pages: bool,
    /// Whether every object was passed.
    pub(super) is_finished: bool,
}

/// The path of an object in the storage, by which lists are ordered.
fn path(key: &ObjectKey) -> String {
    match key.namespace() {
        Some(namespace) => format!("{namespace}/{}", key.name()),
        None => key.name().to_owned(),
    }
}

impl Progress {
    /// Begins a page of so many objects, which `remaining` objects follow.
    pub(super) fn begin_page(&mut self, objects: usize, remaining: u64) {
        self.passed = self.before;
        self.total = self.before + objects as u64 + remaining;
    }

    /// Returns `true` if the object was passed before, and is read again.
    pub(super) fn has_passed(&self, key: &ObjectKey) -> bool {
        self.skip_to.as_ref().is_some_and(|last| path(key) <= *last)
    }

    /// Passes an object.
    pub(super) fn pass(&mut self, key: &ObjectKey) {
        self.passed += 1;
        if self.has_passed(key) {
            return;
        }
        let path = path(key);
        self.is_unordered |= self.last.as_ref().is_some_and(|last| path < *last);
        self.last = Some(path);
    }

    /// Ends a page. `next` is the token of the next one.
    pub(super) fn end_page(&mut self, next: Option<String>) {
        self.before = self.passed;
        self.is_finished = next.is_none();
        self.token = next;
        if !self.skips_pages {
            self.skip_to = None;
        }
    }

    /// Stops on a page, which is read again.
    pub(super) fn interrupt(&mut self) {
        self.skip_to = if self.is_unordered { None } else { self.last.clone() };
    }

    /// Begins with the first page again, because the token has expired.
    pub(super) fn restart(&mut self) {
        self.interrupt();
        self.skips_pages = true;
        self.token = None;
        self.before = 0;
        self.passed = 0;
    }

    pub(super) fn counts(&self) -> Counts {
        Counts { left: self.total.saturating_sub(self.passed), total: self.total }
    }
}

/// The positions of migrations, which a change of the leader loses.
#[derive(Debug, Default)]
pub(super) struct Positions(Mutex<HashMap<ObjectKey, (Uid, Progress)>>);

impl Positions {
    /// Takes the position of a migration. A migration that was recreated begins anew.
    pub(super) fn take(&self, key: &ObjectKey, uid: &Uid) -> Progress {
        let taken = self.0.lock().remove(key).filter(|(of, _)| of == uid);
        taken.map(|(_, progress)| progress).unwrap_or_default()
    }

    pub(super) fn put(&self, key: &ObjectKey, uid: &Uid, progress: Progress) {
        self.0.lock().insert(key.clone(), (uid.clone(), progress));
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}
