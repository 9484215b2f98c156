//! The record of all writes of a manager: the versions that a successor must see, and the writes without an outcome.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use kcm_api::{Resource, ResourceVersion};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::write_outcome::WriteOutcome;

/// The record of the writes of all clients of a [`ClientBuilder`](crate::ClientBuilder) that pass its fence. Cheap to clone;
/// all clones are one record.
///
/// A manager that gives up its lease waits until all writes are [settled](Self::settled), and tells its successor the
/// versions of its writes.
///
/// It holds two words and a list of at most 256 deletions for each written resource.
#[derive(Debug, Clone, Default)]
pub struct WriteRecord {
    state: Arc<Mutex<State>>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of writes and responses so far, which orders them.
    ticks: u64,
    /// Number of writes that have been sent and not ended.
    open: usize,
    /// The times until which writes without an outcome may take effect.
    deadlines: Vec<Instant>,
    resources: HashMap<Resource, Writes>,
}

/// The writes of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Writes {
    /// The greatest version in a response.
    version: Option<ResourceVersion>,
    /// The time until which writes without an outcome may take effect, if there are any.
    unknown_until: Option<Instant>,
    /// Writes whose versions are not known, each with the tick of its response, oldest first.
    unversioned: VecDeque<(u64, Unversioned)>,
}

/// A write that took effect under a version that its response does not carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unversioned {
    /// The object of this namespace and name was deleted.
    Deleted(Option<String>, String),
    /// The objects of a namespace, or of all, were deleted.
    DeletedAll(Option<String>),
    /// A write of another kind.
    Other,
}

/// The writes of one resource, as a successor must see them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenTo {
    /// The greatest version of a write, if there was one.
    pub version: Option<ResourceVersion>,
    /// `true` if a write may have taken effect under a version that is not known.
    pub has_unknown: bool,
    /// Writes whose versions are not known, if no later write has a greater version.
    pub unversioned: Vec<Unversioned>,
}

/// Number of latest writes without a version that are kept for each resource.
///
/// If the caches show all of them, they show earlier deletions too: at least one of so many was sent after the response
/// to the earlier deletion, because fewer requests are under way at a time.
const LATEST: usize = 256;

impl WriteRecord {
    /// Waits until the outcome of each write is known, or can no longer change.
    pub async fn settled(&self) {
        let mut changes = self.changes.subscribe();
        loop {
            let (open, latest) = {
                let state = self.state.lock();
                (state.open, state.deadlines.iter().max().copied().filter(|latest| *latest > Instant::now()))
            };
            let passed = async {
                match latest {
                    Some(latest) if open == 0 => sleep_until(latest).await,
                    Some(_) | None => std::future::pending().await,
                }
            };
            if open == 0 && latest.is_none() {
                return;
            }
            // The sender lives as long as this value.
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = passed => {}
            }
        }
    }

    /// The writes of `resource`.
    #[must_use]
    pub fn written_to(&self, resource: &Resource) -> WrittenTo {
        let state = self.state.lock();
        let writes = state.resources.get(resource).cloned().unwrap_or_default();
        WrittenTo {
            version: writes.version,
            has_unknown: writes.unknown_until.is_some(),
            unversioned: writes.unversioned.into_iter().map(|(_, write)| write).collect(),
        }
    }

    /// Records a write that is about to be sent.
    pub(crate) fn sent(&self, resource: &Resource) -> SentWrite {
        let mut state = self.state.lock();
        state.open += 1;
        state.ticks += 1;
        SentWrite {
            record: self.clone(),
            resource: resource.clone(),
            sent: state.ticks,
            sent_at: Instant::now(),
            has_landed: false,
        }
    }
}

/// A write that was sent. It ends with its attempts.
#[derive(Debug)]
pub(crate) struct SentWrite {
    record: WriteRecord,
    resource: Resource,
    /// The tick of its first attempt.
    sent: u64,
    sent_at: Instant,
    has_landed: bool,
}

impl SentWrite {
    /// Returns `true` if the record has the effect of the write.
    pub(crate) const fn has_landed(&self) -> bool {
        self.has_landed
    }

    /// The write took effect under that version; unset, if the response does not carry one.
    pub(crate) fn landed(&mut self, version: &ResourceVersion, otherwise: Unversioned) {
        self.has_landed = true;
        let state = &mut *self.record.state.lock();
        state.ticks += 1;
        let tick = state.ticks;
        let writes = state.resources.entry(self.resource.clone()).or_default();
        if version.is_unset() {
            writes.note(tick, otherwise);
        } else {
            writes.landed(version, self.sent, self.sent_at);
        }
    }

    /// The write ends with that outcome.
    pub(crate) fn ended(self, outcome: WriteOutcome, sent_until: Instant) {
        let state = &mut *self.record.state.lock();
        state.open -= 1;
        if let WriteOutcome::Unknown { deadline } = outcome {
            let deadline = deadline.map_or(sent_until, |deadline| deadline.max(sent_until));
            let now = Instant::now();
            state.deadlines.retain(|deadline| *deadline > now);
            state.deadlines.push(deadline);
            let writes = state.resources.entry(self.resource.clone()).or_default();
            writes.unknown_until = writes.unknown_until.max(Some(deadline));
        }
        self.record.changes.send_replace(());
    }
}

impl Writes {
    fn note(&mut self, tick: u64, write: Unversioned) {
        if self.unversioned.len() == LATEST {
            self.unversioned.pop_front();
        }
        self.unversioned.push_back((tick, write));
    }

    /// A write that was sent at that tick took effect under `version`, which is greater than the versions of all writes
    /// that ended before.
    fn landed(&mut self, version: &ResourceVersion, sent: u64, sent_at: Instant) {
        self.unversioned.retain(|(ended, _)| *ended > sent);
        self.unknown_until = self.unknown_until.filter(|until| *until >= sent_at);
        let is_greater = self.version.as_ref().is_none_or(|known| version.is_at_least(known) != Some(false));
        if is_greater {
            self.version = Some(version.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::super::answer::{RequestKind, ResponseKind};
    use super::super::attempts::Attempts;
    use super::*;

    const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

    fn deleted(name: &str) -> Unversioned {
        Unversioned::Deleted(Some("a".to_owned()), name.to_owned())
    }

    fn land(record: &WriteRecord, version: &str, otherwise: Unversioned) {
        let mut write = record.sent(&PODS);
        write.landed(&version.into(), otherwise);
        write.ended(WriteOutcome::Known, Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn the_greatest_version_counts_however_responses_overtake_each_other() {
        let record = WriteRecord::default();
        for version in ["9", "12", "10"] {
            land(&record, version, Unversioned::Other);
        }
        let written = record.written_to(&PODS);
        assert_eq!(written, WrittenTo { version: Some("12".into()), ..WrittenTo::default() });
        assert_eq!(record.written_to(&Resource { plural: "x".into(), ..PODS }), WrittenTo::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_covers_the_writes_that_ended_before_it_was_sent() {
        let record = WriteRecord::default();
        land(&record, "", deleted("before"));
        let mut later = record.sent(&PODS);
        land(&record, "", deleted("meanwhile"));
        later.landed(&"7".into(), Unversioned::Other);
        later.ended(WriteOutcome::Known, Instant::now());
        assert_eq!(record.written_to(&PODS).unversioned, [deleted("meanwhile")]);
        land(&record, "8", Unversioned::Other);
        assert_eq!(record.written_to(&PODS).unversioned, []);
        for number in 0..=LATEST {
            land(&record, "", deleted(&number.to_string()));
        }
        let latest = record.written_to(&PODS).unversioned;
        assert_eq!((latest.len(), &latest[0]), (LATEST, &deleted("1")), "the list is bounded");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_an_outcome_settles_at_its_deadline_and_stays_unknown_until_a_later_write_lands() {
        let record = WriteRecord::default();
        assert!(record.settled().now_or_never().is_some());
        let write = record.sent(&PODS);
        assert!(record.settled().now_or_never().is_none(), "it waits for its response");
        let deadline = Instant::now() + Duration::from_secs(34);
        let mut overlapping = record.sent(&PODS);
        write.ended(WriteOutcome::Unknown { deadline: Some(deadline) }, Instant::now());
        overlapping.landed(&"7".into(), Unversioned::Other);
        overlapping.ended(WriteOutcome::Known, Instant::now());
        assert!(record.written_to(&PODS).has_unknown);
        let began = Instant::now();
        record.settled().await;
        assert_eq!(began.elapsed(), Duration::from_secs(34));
        assert!(record.written_to(&PODS).has_unknown, "it may have taken effect");
        tokio::time::advance(Duration::from_millis(1)).await;
        land(&record, "8", Unversioned::Other);
        assert!(!record.written_to(&PODS).has_unknown, "a later version is greater");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_whose_version_nobody_knows_is_unknown() {
        use ResponseKind::{Aborted, Broken, Denied, NotSent, Refused, ServerError};

        for (kind, answers, is_unknown) in [
            (RequestKind::Create, &[Broken][..], true),
            (RequestKind::Create, &[Denied], false),
            (RequestKind::Create, &[NotSent], false),
            (RequestKind::Create, &[Broken, Refused], true),
            (RequestKind::Guarded, &[ServerError(None)], true),
            (RequestKind::Guarded, &[Broken, Refused], true),
            (RequestKind::Guarded, &[Refused], false),
            (RequestKind::Idempotent, &[Aborted], true),
        ] {
            let record = WriteRecord::default();
            let mut attempts = Attempts::of(kind);
            attempts.record_in(&record, &PODS);
            for answer in answers {
                attempts.begin(Instant::now() + Duration::from_secs(34));
                attempts.answered(*answer, Instant::now());
            }
            assert!(!record.written_to(&PODS).has_unknown, "it has not ended");
            drop(attempts);
            assert_eq!(record.written_to(&PODS).has_unknown, is_unknown, "{kind:?} {answers:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_is_dropped_may_take_effect_until_its_deadline() {
        let record = WriteRecord::default();
        let mut attempts = Attempts::of(RequestKind::Create);
        attempts.record_in(&record, &PODS);
        drop(attempts);
        assert!(record.settled().now_or_never().is_some(), "it was not sent");
        let mut attempts = Attempts::of(RequestKind::Create);
        attempts.record_in(&record, &PODS);
        attempts.begin(Instant::now() + Duration::from_secs(34));
        drop(attempts);
        let began = Instant::now();
        record.settled().await;
        assert_eq!(began.elapsed(), Duration::from_secs(34));
    }

    #[tokio::test(start_paused = true)]
    async fn a_creation_that_was_found_later_has_an_unknown_version() {
        let record = WriteRecord::default();
        let mut attempts = Attempts::of(RequestKind::Create);
        attempts.record_in(&record, &PODS);
        attempts.begin(Instant::now());
        attempts.answered(ResponseKind::Broken, Instant::now());
        attempts.settle();
        drop(attempts);
        assert!(record.settled().now_or_never().is_some());
        assert_eq!(record.written_to(&PODS).unversioned, [Unversioned::Other]);
    }
}
