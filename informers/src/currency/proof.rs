//! The decision whether a cache is current, and what to ask next. Pure.

use std::time::Duration;

use kcm_api::ResourceVersion;

/// The version of a resource that a predecessor handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandedOver {
    /// A cache that has reached this version has seen everything that the predecessor saw and wrote.
    Version(ResourceVersion),
    /// The predecessor handed no version over.
    Nothing,
}

/// The evidence that a cache is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// It was listed after the takeover, and no proof was needed.
    Listed,
    /// It has reached the version that the predecessor handed over.
    Reached,
    /// A second watch has shown that it lacks nothing.
    Watched,
    /// It was listed again, because nothing else proved it in time.
    Relisted,
}

impl Evidence {
    /// The evidence as a label of metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Reached => "reached",
            Self::Watched => "watched",
            Self::Relisted => "relisted",
        }
    }
}

/// The proof that a cache holds everything that was written before it began.
#[derive(Debug)]
pub(crate) struct Proof {
    handed_over: HandedOver,
    /// The version of the cache.
    cache: ResourceVersion,
    /// A version that the API server returned after the beginning. It is at least the version of each earlier write.
    floor: Option<ResourceVersion>,
    /// The events after the version of the cache, as second watches have shown them.
    history: History,
    /// Set if the API server has no events from the version of the cache on.
    is_expired: bool,
    began: Duration,
    relist_at: Duration,
}

/// The events of a resource that second watches have shown.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The version up to which they have shown all events.
    up_to: ResourceVersion,
    last: Option<ResourceVersion>,
}

impl History {
    /// A watch has shown an event.
    pub(crate) fn event(&mut self, version: ResourceVersion) {
        if self.last.as_ref().is_none_or(|last| !reaches(last, &version)) {
            self.last = Some(version.clone());
        }
        self.bookmark(version);
    }

    /// A watch has shown a bookmark. Watches overlap, so that an older version may follow a newer one.
    pub(crate) fn bookmark(&mut self, version: ResourceVersion) {
        if !reaches(&self.up_to, &version) {
            self.up_to = version;
        }
    }
}

/// The next step of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The cache is current.
    Current(Evidence),
    /// Wait for the cache until this time.
    Wait(Duration),
    /// Read the floor and watch from this version, until this time.
    Watch(ResourceVersion, Duration),
    /// List the objects again.
    Relist,
}

impl Proof {
    /// Time for which a cache may take to reach the version that was handed over before a second watch begins.
    pub(crate) const PATIENCE: Duration = Duration::from_millis(250);
    /// Time after which the objects are listed again.
    pub(crate) const BOUND: Duration = Duration::from_secs(5);

    /// The proof about a cache at that version. `history` is what watches from an earlier version of the cache have shown.
    pub(crate) fn new(handed_over: HandedOver, cache: ResourceVersion, mut history: History, now: Duration) -> Self {
        history.bookmark(cache.clone());
        Self { handed_over, floor: None, cache, history, is_expired: false, began: now, relist_at: now + Self::BOUND }
    }

    /// The cache has reached that version.
    pub(crate) fn cache_reached(&mut self, version: ResourceVersion) {
        self.cache = version;
    }

    /// The API server has returned that version.
    pub(crate) fn floor_read(&mut self, version: ResourceVersion) {
        self.floor.get_or_insert(version);
    }

    /// The second watch has shown an event.
    pub(crate) fn saw_event(&mut self, version: ResourceVersion) {
        self.history.event(version);
    }

    /// The second watch has shown a bookmark.
    pub(crate) fn saw_bookmark(&mut self, version: ResourceVersion) {
        self.history.bookmark(version);
    }

    /// The API server has no events from the version of the cache on: only a list proves anything.
    pub(crate) const fn expired(&mut self, now: Duration) {
        self.is_expired = true;
        self.relist_at = now;
    }

    /// Returns the next step.
    pub(crate) fn next(&mut self, now: Duration) -> Step {
        if let HandedOver::Version(version) = &self.handed_over
            && reaches(&self.cache, version)
        {
            return Step::Current(Evidence::Reached);
        }
        if self.lacks_nothing() {
            return Step::Current(Evidence::Watched);
        }
        if now >= self.relist_at {
            self.relist_at = now + Self::BOUND;
            return Step::Relist;
        }
        let patience = self.began + Self::PATIENCE;
        match self.handed_over {
            HandedOver::Version(_) if now < patience => Step::Wait(patience),
            HandedOver::Version(_) | HandedOver::Nothing if self.is_expired => Step::Wait(self.relist_at),
            HandedOver::Version(_) | HandedOver::Nothing => Step::Watch(self.history.up_to.clone(), self.relist_at),
        }
    }

    /// Returns `true` if the cache has every event up to the floor.
    fn lacks_nothing(&self) -> bool {
        let Some(floor) = &self.floor else { return false };
        if reaches(&self.cache, floor) {
            return true;
        }
        reaches(&self.history.up_to, floor)
            && self.history.last.as_ref().is_none_or(|event| reaches(&self.cache, event))
    }
}

/// Returns `true` if `version` is certainly not before `other`.
fn reaches(version: &ResourceVersion, other: &ResourceVersion) -> bool {
    version.is_at_least(other) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(100);
    const END: Duration = Duration::from_secs(105);

    fn version(number: u64) -> ResourceVersion {
        number.into()
    }

    fn watch(from: u64) -> Step {
        Step::Watch(version(from), END)
    }

    #[test]
    fn a_cache_that_has_reached_what_was_handed_over_is_current_at_once() {
        let handed_over = HandedOver::Version(version(7));
        let mut proof = Proof::new(handed_over.clone(), version(7), History::default(), START);
        assert_eq!(proof.next(START), Step::Current(Evidence::Reached));
        let mut late = Proof::new(handed_over, version(6), History::default(), START);
        assert_eq!(late.next(START), Step::Wait(START + Proof::PATIENCE));
        assert_eq!(late.next(START + Proof::PATIENCE), watch(6), "it may be the version of a list");
        late.cache_reached(version(8));
        assert_eq!(late.next(START + Proof::PATIENCE), Step::Current(Evidence::Reached));
    }

    #[test]
    fn a_second_watch_without_an_event_up_to_the_floor_proves_a_quiet_cache() {
        let mut proof = Proof::new(HandedOver::Nothing, version(5), History::default(), START);
        assert_eq!(proof.next(START), watch(5));
        proof.floor_read(version(9));
        proof.saw_bookmark(version(8));
        assert_eq!(proof.next(START), watch(8), "the API server that serves the watch is behind");
        proof.saw_bookmark(version(9));
        assert_eq!(proof.next(START), Step::Current(Evidence::Watched));
    }

    #[test]
    fn an_event_of_the_second_watch_is_waited_for() {
        let mut proof = Proof::new(HandedOver::Nothing, version(5), History::default(), START);
        for event in [6, 8] {
            proof.saw_event(version(event));
        }
        proof.saw_bookmark(version(12));
        assert_eq!(proof.next(START), watch(12), "nothing says what was written before");
        proof.floor_read(version(9));
        proof.floor_read(version(20));
        assert_eq!(proof.next(START), watch(12), "the cache lacks the events");
        proof.cache_reached(version(7));
        assert_eq!(proof.next(START), watch(12));
        proof.cache_reached(version(8));
        assert_eq!(proof.next(START), Step::Current(Evidence::Watched));
    }

    #[test]
    fn an_event_beyond_the_floor_ends_the_wait_for_a_bookmark() {
        let mut proof = Proof::new(HandedOver::Nothing, version(5), History::default(), START);
        proof.floor_read(version(9));
        proof.saw_event(version(10));
        assert_eq!(proof.next(START), watch(10));
        proof.cache_reached(version(10));
        assert_eq!(proof.next(START), Step::Current(Evidence::Watched));
    }

    #[test]
    fn a_late_cache_is_listed_again_every_five_seconds() {
        for handed_over in [HandedOver::Nothing, HandedOver::Version(version(7))] {
            let mut proof = Proof::new(handed_over, version(5), History::default(), START);
            assert_eq!(proof.next(START + Proof::PATIENCE), watch(5));
            assert_eq!(proof.next(END), Step::Relist);
            assert_eq!(proof.next(END), Step::Watch(version(5), END + Proof::BOUND));
            assert_eq!(proof.next(END + Proof::BOUND), Step::Relist);
        }
    }

    #[test]
    fn a_cache_whose_version_has_expired_is_listed_again_at_once() {
        let mut proof = Proof::new(HandedOver::Nothing, version(5), History::default(), START);
        proof.expired(START);
        assert_eq!(proof.next(START), Step::Relist);
        assert_eq!(proof.next(START), Step::Wait(END), "an expired watch is not requested again");
        assert_eq!(proof.next(END), Step::Relist);
    }

    #[test]
    fn what_watches_have_shown_before_the_takeover_counts_from_the_floor_that_is_read_after_it() {
        let mut history = History::default();
        for shown in [version(8), version(6)] {
            history.bookmark(shown);
        }
        let mut proof = Proof::new(HandedOver::Nothing, version(5), history, START);
        assert_eq!(proof.next(START), watch(8), "the last leader may have written since");
        proof.floor_read(version(8));
        assert_eq!(proof.next(START), Step::Current(Evidence::Watched));

        let mut history = History::default();
        for shown in [version(7), version(6)] {
            history.event(shown);
        }
        let mut proof = Proof::new(HandedOver::Nothing, version(6), history, START);
        proof.floor_read(version(7));
        assert_eq!(proof.next(START), watch(7), "the cache lacks the event");
        proof.cache_reached(version(7));
        assert_eq!(proof.next(START), Step::Current(Evidence::Watched));
    }

    #[test]
    fn versions_that_do_not_compare_prove_nothing() {
        let mut proof = Proof::new(HandedOver::Version("a".into()), "b".into(), History::default(), START);
        proof.floor_read("c".into());
        proof.saw_bookmark("c".into());
        assert_eq!(proof.next(START), Step::Wait(START + Proof::PATIENCE));
        assert_eq!(proof.next(END), Step::Relist);
    }
}
