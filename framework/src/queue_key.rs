//! The keys of a reconcile loop's queue.

use std::fmt;
use std::hash::Hash;

use kcm_api::ObjectKey;

/// A key in the queue of a reconcile loop, which names an object.
///
/// A string is no key: it does not say which object it names.
///
/// ```compile_fail
/// use kcm_framework::ControllerContext;
///
/// fn keyed_by_strings(context: &ControllerContext) {
///     let _ = context.control_loop::<String>("greeter");
/// }
/// ```
pub trait QueueKey: Clone + Ord + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// The object that the key names, if any.
    fn object(&self) -> Option<&ObjectKey>;
}

impl QueueKey for ObjectKey {
    fn object(&self) -> Option<&ObjectKey> {
        Some(self)
    }
}
