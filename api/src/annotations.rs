//! The annotations that are kept while this thread decodes metadata.
//!
//! `Deserialize` has no context parameter; a thread-local variable has its context instead.

use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

#[derive(Clone, Default)]
struct Kept {
    of_view: &'static [&'static str],
    needed: Option<Arc<[&'static str]>>,
}

/// Returns `true` if the annotation is kept.
pub(crate) fn is_kept(key: &str) -> bool {
    KEPT.with_borrow(|kept| {
        kept.of_view.contains(&key) || kept.needed.as_ref().is_some_and(|needed| needed.contains(&key))
    })
}

/// Runs `decode`, which keeps the annotations of a view.
pub(crate) fn keeping<R>(of_view: &'static [&'static str], decode: impl FnOnce() -> R) -> R {
    with(|kept| kept.of_view = of_view, decode)
}

/// Runs `decode`, which keeps the annotations that controllers need in addition to the annotations of views.
pub(crate) fn keeping_needed<R>(needed: &Arc<[&'static str]>, decode: impl FnOnce() -> R) -> R {
    with(|kept| kept.needed = Some(Arc::clone(needed)), decode)
}

fn with<R>(change: impl FnOnce(&mut Kept), decode: impl FnOnce() -> R) -> R {
    struct Restore(Kept);
    impl Drop for Restore {
        fn drop(&mut self) {
            KEPT.set(std::mem::take(&mut self.0));
        }
    }
    let _restore = Restore(KEPT.with_borrow_mut(|kept| {
        let before = kept.clone();
        change(kept);
        before
    }));
    decode()
}
