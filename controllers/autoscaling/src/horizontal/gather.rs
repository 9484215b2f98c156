//! The requests for metrics, beside the queue: no worker waits for a metrics API.
//!
//! A sync that needs metrics starts a job and ends. The job sends its requests, each within the limit of its API, and
//! enqueues the key when it has all responses, which the next sync takes. So an API that hangs delays the autoscalers that
//! need it, and no others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt as _};
use kcm_api::{ObjectKey, Uid};
use kcm_framework::workqueue::{Priority, Queue};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::backends::Backends;
use super::evaluate::Responses;
use super::requests::Request;
use super::scale::FoundScale;

/// The jobs of all autoscalers.
pub(super) struct Gathering {
    backends: Backends,
    queue: Queue<ObjectKey>,
    state: Mutex<HashMap<ObjectKey, Progress>>,
    started: Mutex<Vec<Job>>,
    notify: Notify,
}

/// How far the job of an autoscaler is.
enum Progress {
    Waiting,
    Done(Box<Gathered>),
}

/// What the next sync of an autoscaler takes.
pub(super) enum Taken {
    /// There is no job.
    Nothing,
    /// The job goes on.
    Waiting,
    /// The job is done.
    Done(Box<Gathered>),
}

/// The scale of a target, and the responses of the metrics APIs.
pub(super) struct Gathered {
    /// The uid of the autoscaler.
    pub(super) uid: Uid,
    pub(super) scale: FoundScale,
    pub(super) responses: Responses,
    /// When the sync started.
    pub(super) started: Instant,
}

/// What a job sends.
pub(super) struct Job {
    pub(super) key: ObjectKey,
    pub(super) uid: Uid,
    pub(super) scale: FoundScale,
    /// Without repetition.
    pub(super) requests: Vec<Request>,
    pub(super) started: Instant,
}

impl Gathering {
    pub(super) fn new(backends: Backends, queue: Queue<ObjectKey>) -> Arc<Self> {
        let (state, started, notify) = (Mutex::default(), Mutex::default(), Notify::new());
        Arc::new(Self { backends, queue, state, started, notify })
    }

    /// Takes what the job of an autoscaler has gathered.
    pub(super) fn take(&self, key: &ObjectKey) -> Taken {
        match self.state.lock().entry(key.clone()) {
            Entry::Vacant(_) => Taken::Nothing,
            Entry::Occupied(entry) => match entry.get() {
                Progress::Waiting => Taken::Waiting,
                Progress::Done(_) => match entry.remove() {
                    Progress::Done(gathered) => Taken::Done(gathered),
                    Progress::Waiting => Taken::Waiting,
                },
            },
        }
    }

    /// Starts the job of an autoscaler that has none.
    pub(super) fn start(&self, job: Job) {
        self.state.lock().insert(job.key.clone(), Progress::Waiting);
        self.started.lock().push(job);
        self.notify.notify_one();
    }

    /// Forgets what was gathered for an autoscaler that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.state.lock().remove(key);
    }

    /// Runs the jobs. Those that are dropped with it are started again by the next syncs of their autoscalers.
    pub(super) async fn run(&self) {
        let mut running = FuturesUnordered::new();
        loop {
            let started = std::mem::take(&mut *self.started.lock());
            running.extend(started.into_iter().map(|job| self.perform(job)));
            tokio::select! {
                () = self.notify.notified() => {}
                Some(()) = running.next() => {}
            }
        }
    }

    async fn perform(&self, job: Job) {
        let Job { key, uid, scale, requests, started } = job;
        let unfinished = Unfinished { gathering: self, key: &key };
        let answered = join_all(requests.iter().map(|request| self.backends.send(request))).await;
        let responses = requests.into_iter().zip(answered).collect();
        std::mem::forget(unfinished);
        // An autoscaler that was deleted meanwhile has no entry.
        if let Some(progress) = self.state.lock().get_mut(&key) {
            *progress = Progress::Done(Box::new(Gathered { uid, scale, responses, started }));
        }
        self.queue.add(key, Priority::Live);
    }
}

/// Forgets a job that is dropped before its end.
struct Unfinished<'a> {
    gathering: &'a Gathering,
    key: &'a ObjectKey,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.gathering.state.lock().remove(self.key);
    }
}
