//! The keys of a reconcile loop's queue.

use std::fmt;
use std::hash::Hash;

use kcm_api::ObjectKey;

/// What a queue of a reconcile loop may hold.
///
/// A plain name does not do: the key says which object it means.
///
/// ```compile_fail
/// use kcm_framework::workqueue::Queue;
/// use kcm_framework::ControllerContext;
///
/// fn queue(context: &ControllerContext) -> Queue<String> {
///     context.queue("greeter")
/// }
/// ```
pub trait QueueKey: Clone + Ord + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// The object that the key names, where it names one.
    fn object(&self) -> Option<&ObjectKey>;
}

impl QueueKey for ObjectKey {
    fn object(&self) -> Option<&ObjectKey> {
        Some(self)
    }
}
