//! The session of one reconcile: an API client that records its writes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kcm_api::{ObjectKey, PartialObjectMeta, Resource, Uid, View as _};
use kcm_informers::{Cache, ListOptions};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::LoopContext;
use crate::client::{
    ApiClient, ApiError, DeleteOptions, Deleted, ErrorClass, Patch, Payload, REQUEST_TIMEOUT, Subresource, Written,
};
use crate::consistency::pending_writes::{CacheIndex, PendingWrite};

/// The API client of one reconcile of one key.
///
/// Each write is pending until the caches show it, and the key is not reconciled again while a write is pending: see
/// [`consistency`](crate::consistency).
///
/// # Guarantees
/// An idempotent write whose connection broke is repeated, at once and twice more within half a second: a creation
/// under a name chosen here, an update with a resource version, a deletion with preconditions. A JSON patch and a
/// deletion without preconditions are sent once. A repeated creation that finds an object of its name fails with
/// [`ApiError::is_probably_created`].
///
/// The body of a response is the metadata of the object; [`api`](Self::api) and the caches have the whole object.
///
/// # Cancellation
/// A write whose future is dropped before the response counts as one whose response was lost.
pub struct Session {
    api: ApiClient,
    /// The client of the writes: its responses carry metadata alone, which pending writes need.
    writer: ApiClient,
    caches: Arc<[Arc<dyn Cache>]>,
    context: Arc<LoopContext>,
    /// The object that the key names, and the cache that holds it.
    object: Option<(CacheIndex, ObjectKey)>,
    /// The uid of the object that the cache showed at the first write.
    acts_for: OnceLock<Option<Uid>>,
    pending_writes: Mutex<Vec<PendingWrite>>,
}

impl Session {
    /// A session over `api` for a loop that reads `caches`.
    pub(crate) fn new(api: ApiClient, caches: Arc<[Arc<dyn Cache>]>, context: Arc<LoopContext>) -> Self {
        let writer = api.clone().returning_metadata();
        Self {
            api,
            writer,
            caches,
            context,
            object: None,
            acts_for: OnceLock::new(),
            pending_writes: Mutex::new(Vec::new()),
        }
    }

    /// Sets the object that the key names and the cache that holds it.
    pub(crate) fn act_for(&mut self, object: Option<(CacheIndex, ObjectKey)>) {
        self.object = object;
    }

    /// What the sessions of the loop share.
    pub(super) fn context(&self) -> &LoopContext {
        &self.context
    }

    /// The client for reads, and for writes that no cache of the loop shows.
    #[must_use]
    pub const fn api(&self) -> &ApiClient {
        &self.api
    }

    /// Takes the pending writes recorded so far.
    pub(crate) fn take_pending_writes(&self) -> Vec<PendingWrite> {
        std::mem::take(&mut self.pending_writes.lock())
    }

    /// The uid of the object for which this session wrote.
    ///
    /// The reconcile read this object or an earlier one of that name, never a later one, as it reads before it writes.
    /// So its writes are never attributed to an earlier object; at worst a recreated object waits for writes of the
    /// earlier one.
    pub(crate) fn acted_for(&self) -> Option<&Uid> {
        self.acts_for.get()?.as_ref()
    }

    /// A name for a new object: `base` and five random letters, cut to fit.
    ///
    /// Names are generated here and not by the API server (`generateName`), so that the outcome of a request whose
    /// response was lost can be read by name. Set `generateName` to the same `base`, as users expect to see it.
    #[must_use]
    pub fn generate_name(&self, base: &str) -> String {
        self.context.names.generate(base)
    }

    /// Creates the object `key`, whose name `object` carries.
    pub async fn create(&self, resource: &Resource, key: &ObjectKey, object: Payload) -> Result<Written, ApiError> {
        let mut write = self.begin(resource, key, None);
        let answer = write.send(true, || self.writer.create(resource, key.namespace(), object.clone())).await;
        write.written(answer)
    }

    /// Updates the object or a subresource; `object` carries the resource version that it is based on.
    pub async fn put(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Subresource,
        object: Payload,
    ) -> Result<Written, ApiError> {
        let mut write = self.begin(resource, key, None);
        let answer = write.send(true, || self.writer.put(resource, key, subresource, object.clone())).await;
        write.written(answer)
    }

    /// Patches the object or a subresource.
    pub async fn patch(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Subresource,
        patch: Patch,
    ) -> Result<Written, ApiError> {
        let mut write = self.begin(resource, key, None);
        let answer =
            write.send(patch.is_idempotent(), || self.writer.patch(resource, key, subresource, patch.clone())).await;
        write.written(answer)
    }

    /// Deletes the object with that uid; an object that is gone already is no error.
    pub async fn delete(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        uid: &Uid,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let mut write = self.begin(resource, key, Some(uid.clone()));
        let has_preconditions = options.uid.is_some() || options.resource_version.is_some();
        let answer = write.send(has_preconditions, || self.writer.delete(resource, key, options)).await;
        write.deleted(answer)
    }

    fn begin<'a>(&'a self, resource: &'a Resource, object: &ObjectKey, deleted: Option<Uid>) -> Write<'a> {
        self.acts_for.get_or_init(|| {
            let (cache, key) = self.object.as_ref()?;
            self.caches[*cache].object_state(key).map(|state| state.uid)
        });
        let outcome = WriteOutcome::Unknown { deadline: None };
        Write { session: self, resource, object: object.clone(), deleted, outcome, was_lost: false }
    }
}

/// The time after which a dropped request can no longer take effect: twice the time that a request is given.
const ANSWER_BY: Duration = Duration::from_secs(2 * REQUEST_TIMEOUT.as_secs());

/// The delays before the repetitions of a write whose connection broke. Most reconnect at once.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(100), Duration::from_millis(400)];

/// A write in progress. Dropped without a response, it counts as one whose response was lost.
struct Write<'a> {
    session: &'a Session,
    resource: &'a Resource,
    object: ObjectKey,
    deleted: Option<Uid>,
    outcome: WriteOutcome,
    /// Whether an attempt before the last got no response.
    was_lost: bool,
}

/// The outcome of a write, as far as it is known.
#[derive(Debug, Clone, Copy)]
enum WriteOutcome {
    /// The write took effect, or it never will.
    Known,
    /// The write may take effect until `deadline`, where that is known.
    Unknown { deadline: Option<Instant> },
}

impl WriteOutcome {
    /// The outcome after one more attempt, whose response came at `now`.
    fn after<T>(self, answer: &Result<T, ApiError>, now: Instant) -> Self {
        let Err(error) = answer else { return Self::Known };
        match self {
            Self::Known if error.response_lost() => Self::Unknown { deadline: error.deadline() },
            Self::Unknown { deadline } if error.response_lost() => {
                Self::Unknown { deadline: deadline.max(error.deadline()) }
            }
            // An earlier attempt may have caused the refusal. None can take effect any more, so a live list shows the
            // outcome.
            Self::Unknown { .. } if is_final(error) => Self::Unknown { deadline: Some(now) },
            Self::Known | Self::Unknown { .. } => self,
        }
    }
}

/// Whether the refusal of this attempt of a write applies to every other attempt, including one in progress.
///
/// A missing permission, an exhausted quota or too many requests may apply to this attempt alone.
fn is_final(error: &ApiError) -> bool {
    match error.class() {
        ErrorClass::Conflict | ErrorClass::NotFound | ErrorClass::Terminal => true,
        ErrorClass::Transient | ErrorClass::Unavailable | ErrorClass::Forbidden | ErrorClass::Gone => false,
    }
}

impl Write<'_> {
    /// Sends the request; if it `may_repeat`, sends it again while connections break, until its deadline.
    async fn send<T, F>(&mut self, may_repeat: bool, request: impl Fn() -> F) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let mut answer = request().await;
        let mut outcome = WriteOutcome::Known.after(&answer, Instant::now());
        // The deadline of the first attempt: a repetition has its own, and must not extend the whole.
        let until = match outcome {
            WriteOutcome::Known => None,
            WriteOutcome::Unknown { deadline } => deadline,
        };
        for pause in PAUSES {
            self.outcome = outcome;
            let (Err(error), Some(until)) = (&answer, until) else { break };
            if !may_repeat || !error.is_connection_failure() || Instant::now() + pause >= until {
                break;
            }
            tracing::debug!(resource = %self.resource, object = %self.object, error = error as &dyn std::error::Error,
                "Connection broke before the response of a write; repeating it");
            tokio::time::sleep(pause).await;
            self.was_lost = true;
            self.outcome = WriteOutcome::Unknown { deadline: None };
            answer = request().await;
            outcome = outcome.after(&answer, Instant::now());
        }
        self.outcome = outcome;
        if self.was_lost { answer.map_err(ApiError::after_lost_response) } else { answer }
    }

    fn written(self, answer: Result<Written, ApiError>) -> Result<Written, ApiError> {
        if let Ok(written) = &answer {
            for (cache, _) in self.caches().filter(|(_, cache)| covers(*cache, written)) {
                let version = written.resource_version.clone();
                self.record(PendingWrite::Version { cache, object: self.object.clone(), version });
            }
        }
        answer
    }

    fn deleted(self, answer: Result<Deleted, ApiError>) -> Result<Deleted, ApiError> {
        // An object that a repetition finds gone was deleted by an earlier attempt, and caches may still show it.
        let is_ours = match &answer {
            Ok(Deleted::Accepted) => true,
            Ok(Deleted::Gone) => self.was_lost,
            Err(_) => false,
        };
        if let (true, Some(uid)) = (is_ours, &self.deleted) {
            for (cache, _) in self.caches() {
                self.record(PendingWrite::Deletion { cache, object: self.object.clone(), uid: uid.clone() });
            }
        }
        answer
    }

    /// The caches of the resource: a loop may read it through several views or list options.
    fn caches(&self) -> impl Iterator<Item = (CacheIndex, &dyn Cache)> {
        let caches = self.session.caches.iter().enumerate().map(|(index, cache)| (index, cache.as_ref()));
        caches.filter(|(_, cache)| cache.resource() == self.resource)
    }

    fn record(&self, write: PendingWrite) {
        self.session.pending_writes.lock().push(write);
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        if let WriteOutcome::Unknown { deadline } = self.outcome {
            let deadline = deadline.unwrap_or_else(|| Instant::now() + ANSWER_BY);
            for (cache, _) in self.caches() {
                let (object, deleted) = (self.object.clone(), self.deleted.clone());
                self.record(PendingWrite::OutcomeUnknown { cache, object, deleted, deadline });
            }
        }
    }
}

fn covers(cache: &dyn Cache, written: &Written) -> bool {
    // Nearly every cache holds all objects; only for others the response is decoded again.
    *cache.list_options() == ListOptions::default()
        || std::str::from_utf8(&written.body)
            .ok()
            .and_then(|json| PartialObjectMeta::decode(json).ok())
            .is_some_and(|object| cache.covers(&object.metadata))
}
