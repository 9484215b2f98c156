//! The API client of one reconcile, which remembers what it wrote.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kcm_api::{ObjectKey, PartialObjectMeta, Resource, Uid, View as _};
use kcm_informers::{Cache, ListOptions};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::NameGenerator;
use crate::client::{
    ApiClient, ApiError, DeleteOptions, Deleted, ErrorClass, Patch, Payload, REQUEST_TIMEOUT, Subresource, Written,
};
use crate::consistency::pending_writes::{CacheIndex, PendingWrite};

/// Writes on behalf of one reconcile of one key.
///
/// Each write leaves a mark, and the key is not reconciled again until all marks are settled: see
/// [`consistency`](crate::consistency). Reads leave none.
///
/// # Guarantees
/// A write whose connection broke is sent again as it is, at once and twice more within half a second, where that
/// cannot do more than sending it once: creations have names of ours, objects that are put a version, deletions
/// preconditions. A JSON patch and a deletion without preconditions are sent once. An object that a repeated creation
/// finds in its place is [`ApiError::is_probably_created`].
///
/// The body of an answer is the object's metadata alone; who needs more takes it from [`api`](Self::api) or a cache.
///
/// # Cancellation
/// A write whose future is dropped before the answer counts as one whose answer was lost.
pub struct Session {
    api: ApiClient,
    /// For the writes: marks need the metadata of an answer, and nobody has asked for more.
    writer: ApiClient,
    caches: Arc<[Arc<dyn Cache>]>,
    names: NameGenerator,
    /// The object that the key names, and the cache that holds it.
    object: Option<(CacheIndex, ObjectKey)>,
    /// Which object of that name the cache showed at the first write.
    acts_for: OnceLock<Option<Uid>>,
    marks: Mutex<Vec<PendingWrite>>,
}

impl Session {
    /// A session over `api` for a loop that reads `caches`.
    pub(crate) fn new(api: ApiClient, caches: Arc<[Arc<dyn Cache>]>, names: NameGenerator) -> Self {
        let writer = api.clone().answered_with_metadata();
        Self { api, writer, caches, names, object: None, acts_for: OnceLock::new(), marks: Mutex::new(Vec::new()) }
    }

    /// Says which object the key names, and which cache holds it.
    pub(crate) fn act_for(&mut self, object: Option<(CacheIndex, ObjectKey)>) {
        self.object = object;
    }

    /// The client, for reads and for writes that need not come back through a cache.
    #[must_use]
    pub const fn api(&self) -> &ApiClient {
        &self.api
    }

    /// The marks left so far, and none from then on.
    pub(crate) fn take_pending_writes(&self) -> Vec<PendingWrite> {
        std::mem::take(&mut self.marks.lock())
    }

    /// The identity of the object on whose behalf was written.
    ///
    /// What the reconcile saw is this object or an earlier one of that name, never a later one: it looked before it
    /// wrote. So marks are never taken for those of a predecessor, and at worst a recreated object waits for some.
    pub(crate) fn acted_for(&self) -> Option<&Uid> {
        self.acts_for.get()?.as_ref()
    }

    /// A name for a new object: `base` and five random letters, cut to fit.
    ///
    /// NameGenerator are made here and not by the API server (`generateName`), so that what became of a request whose
    /// answer was lost can be asked for by name. Put the same `base` into `generateName` where people look for it.
    #[must_use]
    pub fn generate_name(&self, base: &str) -> String {
        self.names.generate(base)
    }

    /// Creates the object `key`, whose name `object` carries.
    pub async fn create(&self, resource: &Resource, key: &ObjectKey, object: Payload) -> Result<Written, ApiError> {
        let mut write = self.begin(resource, key, None);
        let answer = write.send(true, || self.writer.create(resource, key.namespace(), object.clone())).await;
        write.written(answer)
    }

    /// Replaces the object, or a part of it; `object` carries the resource version that it is based on.
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

    /// Changes the object, or a part of it.
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

    /// Deletes the object with that uid; one that is gone already is no error.
    pub async fn delete(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        uid: &Uid,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let mut write = self.begin(resource, key, Some(uid.clone()));
        let spares_namesakes = options.uid.is_some() || options.resource_version.is_some();
        let answer = write.send(spares_namesakes, || self.writer.delete(resource, key, options)).await;
        write.deleted(answer)
    }

    fn begin<'a>(&'a self, resource: &'a Resource, object: &ObjectKey, deleted: Option<Uid>) -> Write<'a> {
        self.acts_for.get_or_init(|| {
            let (cache, key) = self.object.as_ref()?;
            self.caches[*cache].object_state(key).map(|identity| identity.uid)
        });
        let fate = WriteOutcome::Unknown { deadline: None };
        Write { session: self, resource, object: object.clone(), deleted, fate, was_lost: false }
    }
}

/// A request that was dropped, maybe before it was even sent, has ended by then: twice the time that one is given.
const ANSWER_BY: Duration = Duration::from_secs(2 * REQUEST_TIMEOUT.as_secs());

/// How long to wait before each repeat of a write whose connection broke. A new connection is mostly there at once.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_millis(100), Duration::from_millis(400)];

/// A write that is under way. Dropped without an answer, it counts as one whose answer was lost.
struct Write<'a> {
    session: &'a Session,
    resource: &'a Resource,
    object: ObjectKey,
    deleted: Option<Uid>,
    fate: WriteOutcome,
    /// Whether an attempt before the last got no answer.
    was_lost: bool,
}

/// What is known of a write.
#[derive(Debug, Clone, Copy)]
enum WriteOutcome {
    /// It took effect, or it never will.
    Known,
    /// It may take effect until `deadline`, where that is known.
    Unknown { deadline: Option<Instant> },
}

impl WriteOutcome {
    /// What is known after one more attempt, which was answered at `now`.
    fn after<T>(self, answer: &Result<T, ApiError>, now: Instant) -> Self {
        let Err(error) = answer else { return Self::Known };
        match self {
            Self::Known if error.answer_lost() => Self::Unknown { deadline: error.deadline() },
            Self::Unknown { deadline } if error.answer_lost() => {
                Self::Unknown { deadline: deadline.max(error.deadline()) }
            }
            // It may be an earlier attempt that is in the way. None can take effect any more, so a look tells.
            Self::Unknown { .. } if is_final(error) => Self::Unknown { deadline: Some(now) },
            Self::Known | Self::Unknown { .. } => self,
        }
    }
}

/// Whether what refused this attempt of a write refuses every other, one that is still under way included.
///
/// A missing permission, an exhausted quota or too many requests may have met this attempt and not the other.
fn is_final(error: &ApiError) -> bool {
    match error.class() {
        ErrorClass::Conflict | ErrorClass::NotFound | ErrorClass::Terminal => true,
        ErrorClass::Transient | ErrorClass::Forbidden | ErrorClass::Gone => false,
    }
}

impl Write<'_> {
    /// Sends the request; one that `may_repeat` again while the connection breaks, until its time is over.
    async fn send<T, F>(&mut self, may_repeat: bool, request: impl Fn() -> F) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, ApiError>>,
    {
        let mut answer = request().await;
        let mut fate = WriteOutcome::Known.after(&answer, Instant::now());
        // Of the first attempt: a repeat has a time of its own, and is not to prolong the whole.
        let until = match fate {
            WriteOutcome::Known => None,
            WriteOutcome::Unknown { deadline } => deadline,
        };
        for pause in PAUSES {
            self.fate = fate;
            let (Err(error), Some(until)) = (&answer, until) else { break };
            if !may_repeat || !error.is_connection_failure() || Instant::now() + pause >= until {
                break;
            }
            tracing::debug!(resource = %self.resource, object = %self.object, error = error as &dyn std::error::Error,
                "The connection broke before a write was answered; it is repeated");
            tokio::time::sleep(pause).await;
            self.was_lost = true;
            self.fate = WriteOutcome::Unknown { deadline: None };
            answer = request().await;
            fate = fate.after(&answer, Instant::now());
        }
        self.fate = fate;
        if self.was_lost { answer.map_err(ApiError::after_lost_answer) } else { answer }
    }

    fn written(self, answer: Result<Written, ApiError>) -> Result<Written, ApiError> {
        if let Ok(written) = &answer {
            for (cache, _) in self.caches().filter(|(_, cache)| covers(*cache, written)) {
                let version = written.resource_version.clone();
                self.leave(PendingWrite::Version { cache, object: self.object.clone(), version });
            }
        }
        answer
    }

    fn deleted(self, answer: Result<Deleted, ApiError>) -> Result<Deleted, ApiError> {
        // What is gone when the request is repeated went by the attempt before, and caches may still show it.
        let is_ours = match &answer {
            Ok(Deleted::Accepted) => true,
            Ok(Deleted::Gone) => self.was_lost,
            Err(_) => false,
        };
        if let (true, Some(uid)) = (is_ours, &self.deleted) {
            for (cache, _) in self.caches() {
                self.leave(PendingWrite::Deletion { cache, object: self.object.clone(), uid: uid.clone() });
            }
        }
        answer
    }

    /// All caches of the resource: a loop may read it through several views or list options.
    fn caches(&self) -> impl Iterator<Item = (CacheIndex, &dyn Cache)> {
        let caches = self.session.caches.iter().enumerate().map(|(index, cache)| (index, cache.as_ref()));
        caches.filter(|(_, cache)| cache.resource() == self.resource)
    }

    fn leave(&self, mark: PendingWrite) {
        self.session.marks.lock().push(mark);
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        if let WriteOutcome::Unknown { deadline } = self.fate {
            let deadline = deadline.unwrap_or_else(|| Instant::now() + ANSWER_BY);
            for (cache, _) in self.caches() {
                let (object, deleted) = (self.object.clone(), self.deleted.clone());
                self.leave(PendingWrite::OutcomeUnknown { cache, object, deleted, deadline });
            }
        }
    }
}

fn covers(cache: &dyn Cache, written: &Written) -> bool {
    // Nearly every cache holds everything; only for others the answer is read once more.
    *cache.list_options() == ListOptions::default()
        || std::str::from_utf8(&written.body)
            .ok()
            .and_then(|json| PartialObjectMeta::decode(json).ok())
            .is_some_and(|object| cache.covers(&object.metadata))
}
