//! The API client of one reconcile, which remembers what it wrote.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kcm_api::{ObjectKey, PartialObjectMeta, Resource, Uid, View as _};
use kcm_informers::{Cache, Scope};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Names;
use crate::client::{ApiClient, ApiError, DeleteOptions, Deleted, Part, Patch, Payload, REQUEST_TIMEOUT, Written};
use crate::consistency::marks::{CacheIndex, Mark};

/// Writes on behalf of one reconcile of one key.
///
/// Each write leaves a mark, and the key is not reconciled again until all marks are settled: see
/// [`consistency`](crate::consistency). Reads leave none.
///
/// # Cancellation
/// A write whose future is dropped before the answer counts as one whose answer was lost.
pub struct Session {
    api: ApiClient,
    caches: Arc<[Arc<dyn Cache>]>,
    names: Names,
    /// The object that the key names, and the cache that holds it.
    object: Option<(CacheIndex, ObjectKey)>,
    /// Which object of that name the cache showed at the first write.
    acts_for: OnceLock<Option<Uid>>,
    marks: Mutex<Vec<Mark>>,
}

impl Session {
    /// A session over `api` for a loop that reads `caches`.
    pub(crate) const fn new(api: ApiClient, caches: Arc<[Arc<dyn Cache>]>, names: Names) -> Self {
        Self { api, caches, names, object: None, acts_for: OnceLock::new(), marks: Mutex::new(Vec::new()) }
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
    pub(crate) fn take_marks(&self) -> Vec<Mark> {
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
    /// Names are made here and not by the API server (`generateName`), so that what became of a request whose
    /// answer was lost can be asked for by name. Put the same `base` into `generateName` where people look for it.
    #[must_use]
    pub fn generate_name(&self, base: &str) -> String {
        self.names.generate(base)
    }

    /// Creates the object `key`, whose name `object` carries.
    pub async fn create(&self, resource: &Resource, key: &ObjectKey, object: Payload) -> Result<Written, ApiError> {
        let write = self.begin(resource, key, None);
        let answer = self.api.create(resource, key.namespace(), object).await;
        write.written(answer)
    }

    /// Replaces the object, or a part of it; `object` carries the resource version that it is based on.
    pub async fn put(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        part: Part,
        object: Payload,
    ) -> Result<Written, ApiError> {
        let write = self.begin(resource, key, None);
        let answer = self.api.put(resource, key, part, object).await;
        write.written(answer)
    }

    /// Changes the object, or a part of it.
    pub async fn patch(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        part: Part,
        patch: Patch,
    ) -> Result<Written, ApiError> {
        let write = self.begin(resource, key, None);
        let answer = self.api.patch(resource, key, part, patch).await;
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
        let write = self.begin(resource, key, Some(uid.clone()));
        let answer = self.api.delete(resource, key, options).await;
        write.deleted(answer)
    }

    fn begin<'a>(&'a self, resource: &'a Resource, object: &ObjectKey, deleted: Option<Uid>) -> Write<'a> {
        self.acts_for.get_or_init(|| {
            let (cache, key) = self.object.as_ref()?;
            self.caches[*cache].identity(key).map(|identity| identity.uid)
        });
        Write { session: self, resource, object: object.clone(), deleted, fate: Fate::Unknown { deadline: None } }
    }
}

/// A request that was dropped, maybe before it was even sent, has ended by then: twice the time that one is given.
const ANSWER_BY: Duration = Duration::from_secs(2 * REQUEST_TIMEOUT.as_secs());

/// A write that is under way. Dropped without an answer, it counts as one whose answer was lost.
struct Write<'a> {
    session: &'a Session,
    resource: &'a Resource,
    object: ObjectKey,
    deleted: Option<Uid>,
    fate: Fate,
}

/// What is known of a write.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It took effect, or it never will.
    Known,
    /// It may take effect until `deadline`, where that is known.
    Unknown { deadline: Option<Instant> },
}

impl Fate {
    fn of<T>(answer: &Result<T, ApiError>) -> Self {
        match answer {
            Err(error) if error.answer_lost() => Self::Unknown { deadline: error.deadline() },
            Ok(_) | Err(_) => Self::Known,
        }
    }
}

impl Write<'_> {
    fn written(mut self, answer: Result<Written, ApiError>) -> Result<Written, ApiError> {
        self.fate = Fate::of(&answer);
        if let Ok(written) = &answer {
            for (cache, _) in self.caches().filter(|(_, cache)| covers(*cache, written)) {
                let version = written.resource_version.clone();
                self.leave(Mark::Version { cache, object: self.object.clone(), version });
            }
        }
        answer
    }

    fn deleted(mut self, answer: Result<Deleted, ApiError>) -> Result<Deleted, ApiError> {
        self.fate = Fate::of(&answer);
        if let (Ok(Deleted::Accepted), Some(uid)) = (&answer, &self.deleted) {
            for (cache, _) in self.caches() {
                self.leave(Mark::Deletion { cache, object: self.object.clone(), uid: uid.clone() });
            }
        }
        answer
    }

    /// All caches of the resource: a loop may read it through several views or scopes.
    fn caches(&self) -> impl Iterator<Item = (CacheIndex, &dyn Cache)> {
        let caches = self.session.caches.iter().enumerate().map(|(index, cache)| (index, cache.as_ref()));
        caches.filter(|(_, cache)| cache.resource() == self.resource)
    }

    fn leave(&self, mark: Mark) {
        self.session.marks.lock().push(mark);
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        if let Fate::Unknown { deadline } = self.fate {
            let deadline = deadline.unwrap_or_else(|| Instant::now() + ANSWER_BY);
            for (cache, _) in self.caches() {
                let (object, deleted) = (self.object.clone(), self.deleted.clone());
                self.leave(Mark::Unsettled { cache, object, deleted, deadline });
            }
        }
    }
}

fn covers(cache: &dyn Cache, written: &Written) -> bool {
    // Nearly every cache holds everything; only for others the answer is read once more.
    *cache.scope() == Scope::default()
        || std::str::from_utf8(&written.body)
            .ok()
            .and_then(|json| PartialObjectMeta::decode(json).ok())
            .is_some_and(|object| cache.covers(&object.metadata))
}
