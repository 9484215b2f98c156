//! The session of one reconcile: an API client that records its writes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kcm_api::{ObjectKey, PartialObjectMeta, Resource, Uid, View as _};
use kcm_client::{ApiClient, ApiError, Attempts, Call, Deleted, REQUEST_TIMEOUT, RequestOrigin, WriteOutcome, Written};
use kcm_informers::{Cache, ListOptions, UndecodableObject};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::LoopContext;
use crate::consistency::pending_writes::{CacheIndex, PendingWrite};
use crate::explain::{self, Notes, Seen};

/// Time after which a key is reconciled again that waits for an undecodable object of a cache that its loop does not read.
const UNWATCHED_RECHECK: Duration = Duration::from_secs(30);

/// An undecodable object for which a key waits, and the position of its cache.
pub(super) type AwaitedObject = (CacheIndex, Arc<UndecodableObject>);

/// The API client of one reconcile of one key.
///
/// Each write is pending until the caches show it, and the key is not reconciled again while a write is pending: see
/// [`consistency`](crate::consistency).
///
/// # Guarantees
/// A write whose response is 429 or 5xx is repeated as [`ApiClient`] describes. An idempotent write whose connection
/// broke is repeated too, at once and twice more within half a second: a creation under a name chosen here, an update
/// with a resource version, a deletion with preconditions. A JSON patch and a deletion without preconditions are not
/// repeated. A repeated creation that finds an object of its name compares it with what was sent: see
/// [`create`](Self::create).
///
/// A write to a resource that the loop neither reads nor declares to write is not sent and fails: its key would not wait
/// for it.
///
/// The body of a response is the metadata of the object; [`api`](Self::api) and the caches have the whole object.
///
/// # Cancellation
/// A write whose future is dropped before the response counts as one whose response was lost.
pub struct Session {
    api: ApiClient,
    /// The client of the writes: its responses carry metadata alone, which pending writes need.
    writer: ApiClient,
    /// The client of the manager, which may list everything.
    live: ApiClient,
    caches: Arc<[Arc<dyn Cache>]>,
    context: Arc<LoopContext>,
    /// The object that the key names, and the cache that holds it.
    object: Option<(CacheIndex, ObjectKey)>,
    /// The uid of the object that the cache showed at the first write.
    acts_for: OnceLock<Option<Uid>>,
    pending_writes: Mutex<Vec<PendingWrite>>,
    /// The time at which the key is reconciled again whatever happens.
    requeue_at: Mutex<Option<Instant>>,
    /// The undecodable objects whose change reconciles the key again.
    awaited: Mutex<Vec<AwaitedObject>>,
    /// Notes that explain this reconcile.
    notes: Notes,
}

impl Session {
    /// A session over `api` for a loop that reads `caches`, which notes what it does in `notes`.
    pub(crate) fn new(
        api: ApiClient,
        live: ApiClient,
        caches: Arc<[Arc<dyn Cache>]>,
        context: Arc<LoopContext>,
        notes: Notes,
    ) -> Self {
        let writer = api.clone().returning_metadata();
        Self {
            api,
            writer,
            live,
            caches,
            context,
            object: None,
            acts_for: OnceLock::new(),
            pending_writes: Mutex::new(Vec::new()),
            requeue_at: Mutex::new(None),
            awaited: Mutex::new(Vec::new()),
            notes,
        }
    }

    /// Sets the object that the key names and the cache that holds it.
    pub(crate) fn act_for(&mut self, object: Option<(CacheIndex, ObjectKey)>) {
        self.object = object;
    }

    /// Has the requests carry the reconcile that sends them.
    pub(super) fn sent_by(&mut self, origin: &RequestOrigin) {
        for client in [&mut self.api, &mut self.writer, &mut self.live] {
            client.set_origin(origin.clone());
        }
    }

    /// The object that the key names, as the cache shows it now. `None` if the loop has no such cache.
    pub(super) fn seen(&self) -> Option<Seen> {
        let (cache, key) = self.object.as_ref()?;
        Some(match self.caches[*cache].object_state(key) {
            None => Seen::Missing,
            Some(state) if state.terminating => Seen::Terminating(state.resource_version),
            Some(state) => Seen::Version(state.resource_version),
        })
    }

    /// The notes of this reconcile.
    pub(super) const fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The context that the sessions of the loop share.
    pub(super) fn context(&self) -> &LoopContext {
        &self.context
    }

    /// The client for reads, and for writes that no cache of the loop shows.
    #[must_use]
    pub const fn api(&self) -> &ApiClient {
        &self.api
    }

    /// Reconciles the key again after `delay` at the latest, even if nothing changes.
    ///
    /// # Guarantees
    /// The earliest of several calls counts. It counts for every result of the reconcile, and also after a panic. So
    /// call it as soon as the time is known, before the first write: a write that fails does not lose it. After a
    /// failure, a time in the past is ignored, because the back-off of the key runs already.
    pub fn requeue_after(&self, delay: Duration) {
        // A time beyond the range of the clock is no time at which anything happens.
        let Some(at) = Instant::now().checked_add(delay) else { return };
        let mut requeue_at = self.requeue_at.lock();
        *requeue_at = Some(requeue_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// The delay after which the key is reconciled again whatever happens; zero if that time is past.
    pub(super) fn requeue_delay(&self) -> Option<Duration> {
        self.requeue_at.lock().map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Reconciles the key again when `object` of `cache` changes: when it can be decoded, and when it is updated or
    /// deleted.
    ///
    /// For a reconcile that leaves something undecided because an object that it looks up
    /// [cannot be decoded](kcm_informers::Lookup::Undecodable). The object of the key, and objects that it controls, need
    /// no call: the key is not reconciled while one of them cannot be decoded.
    ///
    /// # Guarantees
    /// A change between the look-up and this call counts. A call holds until the key is reconciled again. If the loop
    /// does not read `cache`, the key is reconciled again after 30 seconds.
    pub fn requeue_when_decodable(&self, cache: &Arc<dyn Cache>, object: &Arc<UndecodableObject>) {
        let is_that = |known: &Arc<dyn Cache>| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(cache));
        match self.caches.iter().position(is_that) {
            Some(index) => self.awaited.lock().push((index, Arc::clone(object))),
            None => self.requeue_after(UNWATCHED_RECHECK),
        }
    }

    /// Takes the undecodable objects whose change reconciles the key again.
    pub(super) fn take_awaited(&self) -> Vec<AwaitedObject> {
        std::mem::take(&mut self.awaited.lock())
    }

    /// The client of the writes.
    pub(super) const fn writer(&self) -> &ApiClient {
        &self.writer
    }

    /// The client that may list everything.
    pub(super) const fn live_client(&self) -> &ApiClient {
        &self.live
    }

    /// The caches of the loop.
    pub(super) fn caches(&self) -> &[Arc<dyn Cache>] {
        &self.caches
    }

    /// Takes the pending writes recorded so far.
    pub(crate) fn take_pending_writes(&self) -> Vec<PendingWrite> {
        std::mem::take(&mut self.pending_writes.lock())
    }

    /// The uid of the object for which this session wrote.
    ///
    /// The reconcile read this object or an earlier one of that name, never a later one, because it reads before it
    /// writes. So its writes are never attributed to an earlier object; at worst a recreated object waits for writes of
    /// the earlier one.
    pub(crate) fn acted_for(&self) -> Option<&Uid> {
        self.acts_for.get()?.as_ref()
    }

    /// A name for a new object: `base` and five random letters, cut to fit.
    ///
    /// Names are generated here and not by the API server (`generateName`), so that the outcome of a request whose
    /// response was lost can be read by name. Set `generateName` to the same `base`, as users expect to see it.
    ///
    /// The letters depend on the uid of the object that the key names, and on the number of names generated for it before.
    #[must_use]
    pub fn generate_name(&self, base: &str) -> String {
        let owner = self.acts_for.get().cloned().flatten().or_else(|| {
            let (cache, key) = self.object.as_ref()?;
            self.caches[*cache].object_state(key).map(|state| state.uid)
        });
        let owner = owner.map(|uid| uid.to_string()).unwrap_or_default();
        self.context.names.generate(self.context.name, &owner, base)
    }

    /// Sends a call that ends the object with that uid, which the caches show as deleted or terminating then.
    pub(super) async fn end(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        uid: &Uid,
        call: &Call<'_>,
    ) -> Result<Deleted, ApiError> {
        let mut write = self.begin(resource, [(key.clone(), Some(uid.clone()))].into(), call)?;
        let answer = self.writer.delete_with(call, &mut write.attempts).await;
        write.deleted(answer)
    }

    pub(super) async fn write(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        call: Call<'_>,
    ) -> Result<Written, ApiError> {
        let mut write = self.begin(resource, [(key.clone(), None)].into(), &call)?;
        let answer = self.writer.write(&call, &mut write.attempts).await;
        write.written(answer)
    }

    pub(super) fn begin<'a>(
        &'a self,
        resource: &'a Resource,
        objects: Vec<(ObjectKey, Option<Uid>)>,
        call: &Call<'_>,
    ) -> Result<Write<'a>, ApiError> {
        self.context.check_write(resource).map_err(|cause| call.error(cause))?;
        self.acts_for.get_or_init(|| {
            let (cache, key) = self.object.as_ref()?;
            self.caches[*cache].object_state(key).map(|state| state.uid)
        });
        Ok(Write {
            session: self,
            resource,
            verb: call.verb(),
            subresource: call.subresource(),
            objects,
            is_of_object: call.is_of_object(),
            attempts: call.attempts().reconnecting(),
        })
    }
}

/// The time after which a dropped request can no longer take effect: twice the time that a request is given.
const ANSWER_BY: Duration = Duration::from_secs(2 * REQUEST_TIMEOUT.as_secs());

/// A write in progress. Dropped without a response, it counts as one whose response was lost.
pub(super) struct Write<'a> {
    session: &'a Session,
    resource: &'a Resource,
    verb: &'static str,
    subresource: Option<&'static str>,
    /// The objects that it changes, with the uids of those that it deletes.
    objects: Vec<(ObjectKey, Option<Uid>)>,
    /// Whether the response carries the metadata of the object itself, and not of a subresource.
    is_of_object: bool,
    pub(super) attempts: Attempts,
}

impl Write<'_> {
    pub(super) fn written(self, answer: Result<Written, ApiError>) -> Result<Written, ApiError> {
        self.note(answer.as_ref().err());
        if let Ok(written) = &answer {
            for (cache, object, _) in
                self.pending().filter(|(cache, object, _)| self.is_covered(*cache, object, written))
            {
                self.check_for_rollback(cache, written);
                // A response such as that to a binding does not tell the version.
                self.record(if written.resource_version.is_unset() {
                    PendingWrite::OutcomeUnknown { cache, object, deleted: None, deadline: Instant::now() }
                } else {
                    let object = if object.name().is_empty() { written.key.clone() } else { object };
                    PendingWrite::Version { cache, object, version: written.resource_version.clone() }
                });
            }
        }
        answer
    }

    pub(super) fn deleted(self, answer: Result<Deleted, ApiError>) -> Result<Deleted, ApiError> {
        self.note(answer.as_ref().err());
        // If a repetition does not find the object, an earlier attempt has deleted it, and caches may still show it.
        let is_ours = match &answer {
            Ok(Deleted::Accepted) => true,
            Ok(Deleted::Gone) => self.attempts.was_lost(),
            Err(_) => false,
        };
        if is_ours {
            for (cache, object, deleted) in self.pending() {
                if let Some(uid) = deleted {
                    self.record(PendingWrite::Deletion { cache, object, uid });
                }
            }
        }
        answer
    }

    /// Notes the write, to explain the reconcile.
    fn note(&self, error: Option<&ApiError>) {
        let object = if let [(object, _)] = &self.objects[..] { Some(object) } else { None };
        let written = explain::WriteNote {
            verb: self.verb,
            cache: self.session.caches.iter().position(|cache| cache.resource() == self.resource),
            resource: self.resource,
            subresource: self.subresource,
            object,
        };
        let message = error.map(ApiError::message);
        self.session.notes.wrote(written, message.as_ref().map(|message| message as &dyn std::fmt::Display));
    }

    /// The objects of the write in each cache of the resource: a loop may read it through several views or list
    /// options.
    fn pending(&self) -> impl Iterator<Item = (CacheIndex, ObjectKey, Option<Uid>)> {
        let caches = self.session.caches.iter().enumerate().filter(|(_, cache)| cache.resource() == self.resource);
        caches.flat_map(|(index, cache)| {
            let objects = self.objects.iter().filter(|(object, _)| cache.list_options().cover_namespace_of(object));
            objects.map(move |(object, deleted)| (index, object.clone(), deleted.clone()))
        })
    }

    /// A new object has a version above the version of a cache that does not know the object, unless the object was
    /// deleted already, or the storage of the API server has gone back.
    fn check_for_rollback(&self, cache: CacheIndex, written: &Written) {
        let cache = &self.session.caches[cache];
        if self.verb == "create"
            && self.is_of_object
            && cache.last_sync_resource_version().is_at_least(&written.resource_version) == Some(true)
            && cache.object_state(&written.key).is_none_or(|state| state.uid != written.uid)
        {
            cache.suspect_rollback();
        }
    }

    /// Returns `true` if the cache will show the write. If list options select by other fields than name and namespace,
    /// this is known only for objects that the cache holds already.
    fn is_covered(&self, cache: CacheIndex, object: &ObjectKey, written: &Written) -> bool {
        let cache = &self.session.caches[cache];
        // Nearly every cache holds all objects; only for others the response is decoded again.
        *cache.list_options() == ListOptions::default()
            // An object that leaves the list options by this write leaves the cache by it.
            || cache.object_state(object).is_some()
            || self.is_of_object && covers(cache.as_ref(), written)
    }

    fn record(&self, write: PendingWrite) {
        self.session.pending_writes.lock().push(write);
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        if let WriteOutcome::Unknown { deadline } = self.attempts.outcome() {
            let deadline = deadline.unwrap_or_else(|| Instant::now() + ANSWER_BY);
            for (cache, object, deleted) in self.pending() {
                self.record(PendingWrite::OutcomeUnknown { cache, object, deleted, deadline });
            }
        }
    }
}

fn covers(cache: &dyn Cache, written: &Written) -> bool {
    let object = std::str::from_utf8(&written.body).ok().and_then(|json| PartialObjectMeta::decode(json).ok());
    object.is_some_and(|object| cache.covers(&object.metadata) == Some(true))
}
