//! The hooks that are called after each step of a cache.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use kcm_api::{ObjectKey, ResourceVersion, Uid};
use parking_lot::RwLock;

use crate::event_handlers::Report;
use crate::panic_message::panic_message;

/// A function that is called after each step of a cache.
pub type ProgressHook = Box<dyn Fn(&Progress<'_>) + Send + Sync>;

/// The result of a step of a cache.
#[derive(Debug)]
pub struct Progress<'a> {
    /// The last sync resource version after the step; unset if the resource has disappeared and the cache is empty.
    pub resource_version: &'a ResourceVersion,
    /// An object that was deleted, or that is terminating for the first time.
    pub ended: Option<&'a Uid>,
    /// Keys of the objects that became undecodable, changed while they were, or are undecodable no more. The first call
    /// of a step has them.
    pub undecodable_changed: &'a [ObjectKey],
}

/// The registration of a progress hook. Dropping it removes the hook.
#[must_use = "the hook is removed when its registration is dropped"]
pub struct HookRegistration {
    hooks: Weak<ProgressHooks>,
    id: u64,
}

#[derive(Default)]
pub(crate) struct ProgressHooks(RwLock<Registered>);

#[derive(Default)]
struct Registered {
    /// Replaced as a whole, so that no lock is held while hooks run.
    hooks: Arc<[(u64, Arc<ProgressHook>)]>,
    next_id: u64,
}

impl ProgressHooks {
    pub(crate) fn add(self: &Arc<Self>, hook: ProgressHook) -> HookRegistration {
        let registered = &mut *self.0.write();
        let id = registered.next_id;
        registered.next_id += 1;
        registered.hooks = registered.hooks.iter().cloned().chain([(id, Arc::new(hook))]).collect();
        HookRegistration { hooks: Arc::downgrade(self), id }
    }

    fn remove(&self, id: u64) {
        let mut registered = self.0.write();
        let kept = registered.hooks.iter().filter(|(known, _)| *known != id).cloned().collect();
        let before = std::mem::replace(&mut registered.hooks, kept);
        // What the hook owns is dropped without the lock: it may own other registrations.
        drop(registered);
        drop(before);
    }

    /// Calls all hooks, once for each deleted object, and once if no object was deleted.
    pub(crate) fn call(
        &self,
        resource_version: impl FnOnce() -> ResourceVersion,
        ended: &[Uid],
        undecodable_changed: &[ObjectKey],
        report: &Report<'_>,
    ) {
        let hooks = Arc::clone(&self.0.read().hooks);
        if hooks.is_empty() {
            return;
        }
        let resource_version = &resource_version();
        let mut undecodable_changed = undecodable_changed;
        for ended in ended.iter().map(Some).chain(ended.is_empty().then_some(None)) {
            let progress =
                Progress { resource_version, ended, undecodable_changed: std::mem::take(&mut undecodable_changed) };
            for (_, hook) in hooks.iter() {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(&progress))) {
                    report.metrics.panicked("progress hook");
                    let panic = panic_message(&*panic);
                    tracing::error!(resource = %report.resource, panic, "Progress hook panicked");
                }
            }
        }
    }
}

impl Drop for HookRegistration {
    fn drop(&mut self) {
        if let Some(hooks) = self.hooks.upgrade() {
            hooks.remove(self.id);
        }
    }
}

impl fmt::Debug for HookRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookRegistration").field("id", &self.id).finish_non_exhaustive()
    }
}
