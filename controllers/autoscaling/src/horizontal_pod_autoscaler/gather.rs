//! The scales and metrics of syncs, which are read beside the queue: no worker waits for the API of a target or of metrics.
//!
//! A sync that needs one of them starts a job and ends. The job sends its requests, each within the limit of its API, and
//! enqueues the key when it has all responses, which the next sync takes. So an API that hangs delays the autoscalers that
//! need it, and no others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt as _};
use kcm_framework::api::views::HorizontalPodAutoscaler;
use kcm_framework::api::{InternedStr, ObjectKey, Resource, Uid};
use kcm_framework::workqueue::{Priority, Queue};
use kcm_framework::{Step, Steps};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::backends::Backends;
use super::evaluate::{Answered, Responses};
use super::requests::Request;
use super::scale::{FoundScale, ScaleError, Scales};

/// The jobs of all autoscalers.
pub(super) struct Gathering {
    backends: Backends,
    scales: Arc<Scales>,
    /// How old what was read may be when the sync takes it.
    period: Duration,
    queue: Queue<ObjectKey>,
    state: Mutex<HashMap<ObjectKey, Progress>>,
    /// Each with the step of the task that ends with it.
    started: Mutex<Vec<(Job, Step)>>,
    notify: Notify,
    steps: Steps,
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

/// An autoscaler and its target: what a job gathers is used for no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    uid: Uid,
    api_version: InternedStr,
    kind: InternedStr,
    name: Box<str>,
}

impl Subject {
    pub(super) fn of(autoscaler: &HorizontalPodAutoscaler) -> Self {
        Self {
            uid: autoscaler.metadata.uid.clone(),
            api_version: autoscaler.target_api_version.clone(),
            kind: autoscaler.target_kind.clone(),
            name: autoscaler.target_name.clone(),
        }
    }
}

/// The scale of a target, and the responses of the metrics APIs.
pub(super) struct Gathered {
    pub(super) subject: Subject,
    pub(super) scale: Result<FoundScale, ScaleError>,
    pub(super) responses: Responses,
    /// When the sync started.
    pub(super) started: Instant,
}

/// What is read for a sync.
pub(super) struct Job {
    /// The autoscaler.
    pub(super) key: ObjectKey,
    pub(super) subject: Subject,
    pub(super) work: Work,
    pub(super) started: Instant,
}

/// What a job reads.
pub(super) enum Work {
    /// The scale of the target, of the first of these resources that has it.
    Scale(Vec<Resource>),
    /// Metrics, for a target with this scale.
    Metrics {
        /// The scale.
        found: FoundScale,
        /// Without repetition.
        requests: Vec<Request>,
    },
}

impl Gathering {
    pub(super) fn new(backends: Backends, scales: Arc<Scales>, period: Duration, queue: Queue<ObjectKey>) -> Arc<Self> {
        let (state, started, notify) = (Mutex::default(), Mutex::default(), Notify::new());
        Arc::new(Self { backends, scales, period, queue, state, started, notify, steps: Steps::default() })
    }

    /// The steps of [`run`](Self::run): a job is a step from its start to its end.
    pub(super) const fn steps(&self) -> &Steps {
        &self.steps
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
        let step = self.steps.begin(job.key.to_string());
        self.started.lock().push((job, step));
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
            running.extend(started.into_iter().map(async |(job, _step)| self.perform(job).await));
            tokio::select! {
                biased;
                () = self.notify.notified() => {}
                Some(()) = running.next() => {}
            }
        }
    }

    /// Performs a job. While it waits for its turn it takes little memory, however many wait for an API that is slow.
    pub(super) async fn perform(&self, job: Job) {
        let Job { key, subject, work, started } = job;
        let unfinished = Unfinished { gathering: self, key: &key };
        let target = ObjectKey::namespaced(key.namespace().unwrap_or_default(), &*subject.name);
        let (scale, responses) = match work {
            Work::Scale(resources) => (self.scales.read(resources, &target).await, Responses::new()),
            Work::Metrics { found, requests } => self.measure(found, requests, &target).await,
        };
        std::mem::forget(unfinished);
        // An autoscaler that was deleted meanwhile has no entry.
        if let Some(progress) = self.state.lock().get_mut(&key) {
            *progress = Progress::Done(Box::new(Gathered { subject, scale, responses, started }));
        }
        self.queue.add(key, Priority::Live);
    }

    /// Reads metrics. While one API is waited for, what the others returned gets old, and somebody else may scale the
    /// target: what is older than a sync period at the end is read again, once.
    async fn measure(
        &self,
        found: FoundScale,
        requests: Vec<Request>,
        target: &ObjectKey,
    ) -> (Result<FoundScale, ScaleError>, Responses) {
        let is_old = |read: Instant| read.elapsed() > self.period;
        let mut responses = Responses::new();
        let mut old = Vec::new();
        for (request, answered, read) in self.send(requests).await {
            if answered.response.is_ok() && is_old(read) {
                old.push(request);
            } else {
                responses.insert(request, answered);
            }
        }
        if !old.is_empty() {
            let again = Box::pin(self.send(old)).await;
            responses.extend(again.into_iter().map(|(request, answered, _)| (request, answered)));
        }
        if is_old(found.read) {
            return (Box::pin(self.scales.read(vec![found.resource], target)).await, responses);
        }
        (Ok(found), responses)
    }

    /// Sends requests, and returns the responses with when they came.
    async fn send(&self, requests: Vec<Request>) -> Vec<(Request, Answered, Instant)> {
        let send = async |request: Request| {
            let answered = self.backends.send(&request).await;
            (request, answered, Instant::now())
        };
        join_all(requests.into_iter().map(send)).await
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
