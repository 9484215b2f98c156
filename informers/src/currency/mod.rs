//! Proofs that a cache is current: that it holds everything that was written before some moment.
//!
//! A watch may lag behind the API server without a bound, and nothing in it says so. A manager that takes over from another
//! manager must see all writes of its predecessor before it acts. Three things prove that a cache does:
//!
//! - It was listed after the moment: a list is consistent.
//! - It has reached the version of the last write, which the predecessor handed over.
//! - A second watch from the version of the cache shows no event that the cache does not have, up to a version that the
//!   API server returned after the moment. That watch ends after three seconds, because the API server sends a bookmark two
//!   seconds before the end of a watch, and only once a minute otherwise.
//!
//! A manager that expects a takeover opens second watches before it, with [`LookAhead`].
//!
//! [`Proof`](proof::Proof) decides, [`prove`](check::prove) is its shell.

pub(crate) mod check;
mod floor;
pub(crate) mod look_ahead;
pub(crate) mod proof;
mod second_watch;

use std::time::Duration;

use kcm_api::ResourceVersion;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub use look_ahead::LookAhead;
pub use proof::{Evidence, HandedOver};

use crate::moments::{Moment, Moments};
use crate::protocol::Protocol;

/// The proofs that one cache is current, and what a successor must see of it.
pub(crate) struct Currency {
    moments: Moments,
    /// The cache holds everything that was written before this moment.
    as_of: watch::Sender<Moment>,
    /// Notified when the objects must be listed again.
    pub(crate) relist: Notify,
    seen: Mutex<Seen>,
    /// Set when the informer stops.
    stopped: watch::Sender<bool>,
}

/// The versions that a cache has seen.
#[derive(Debug, Default)]
struct Seen {
    /// The greatest version of an object or an event.
    latest: ResourceVersion,
    /// Version and time of the last list.
    listed: Option<(ResourceVersion, Instant)>,
}

/// Age of a list from which no watch is older: a watch without data for as long is closed.
const OLD_LIST: Duration = Protocol::SILENCE;

impl Currency {
    pub(crate) fn new(moments: Moments) -> Self {
        Self {
            moments,
            as_of: watch::Sender::default(),
            relist: Notify::new(),
            seen: Mutex::default(),
            stopped: watch::Sender::default(),
        }
    }

    /// The informer stops: nothing is proven about its cache any more.
    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// Resolves when the informer has stopped.
    pub(crate) async fn stopped(&self) {
        // The sender lives as long as this value.
        drop(self.stopped.subscribe().wait_for(|stopped| *stopped).await);
    }

    /// The last moment, which a list takes that is about to be requested.
    pub(crate) fn now(&self) -> Moment {
        self.moments.last()
    }

    /// The cache holds everything that was written before `moment`.
    pub(crate) fn is_proven(&self, moment: Moment) {
        self.as_of.send_if_modified(|as_of| {
            let is_later = moment > *as_of;
            *as_of = (*as_of).max(moment);
            is_later
        });
    }

    /// The cache was emptied.
    pub(crate) fn emptied(&self) {
        self.as_of.send_replace(Moment::default());
        *self.seen.lock() = Seen::default();
    }

    /// The cache has applied an event of that version.
    pub(crate) fn saw(&self, version: &ResourceVersion) {
        self.seen.lock().saw(version);
    }

    /// The cache has taken a list.
    pub(crate) fn saw_list<'a>(&self, version: &ResourceVersion, objects: impl Iterator<Item = &'a ResourceVersion>) {
        let mut seen = self.seen.lock();
        objects.for_each(|object| seen.saw(object));
        seen.listed = Some((version.clone(), Instant::now()));
    }

    /// The version that the cache of a successor must reach, to have seen what this cache has seen.
    ///
    /// It is the version of an event, if it can be: a cache of a kind that does not change reaches the version of a list
    /// with its next bookmark only. A deletion before the last list is no object of it, so the version of a young list
    /// counts.
    pub(crate) fn handed_over(&self) -> ResourceVersion {
        let seen = self.seen.lock();
        match &seen.listed {
            Some((version, at)) if at.elapsed() < OLD_LIST && seen.latest.is_at_least(version) != Some(true) => {
                version.clone()
            }
            Some(_) | None => seen.latest.clone(),
        }
    }

    /// The moment before which everything that was written is in the cache.
    pub(crate) fn as_of(&self) -> watch::Receiver<Moment> {
        self.as_of.subscribe()
    }
}

impl Seen {
    fn saw(&mut self, version: &ResourceVersion) {
        if self.latest.is_unset() || version.is_at_least(&self.latest) == Some(true) {
            self.latest.clone_from(version);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_successor_must_see_the_last_event_or_a_young_list() {
        let currency = Currency::new(Moments::default());
        let listed = |versions: &[&str], list: &str| {
            let versions: Vec<_> = versions.iter().map(|version| ResourceVersion::from(*version)).collect();
            currency.saw_list(&list.into(), versions.iter());
        };
        assert!(currency.handed_over().is_unset());
        listed(&["9", "12", "10"], "20");
        assert_eq!(currency.handed_over(), "20".into(), "an object may have been deleted before the list");
        tokio::time::advance(OLD_LIST).await;
        assert_eq!(currency.handed_over(), "12".into(), "each watch has passed the list by now");
        listed(&["12"], "30");
        currency.saw(&"31".into());
        currency.saw(&"29".into());
        assert_eq!(currency.handed_over(), "31".into());
        currency.emptied();
        assert!(currency.handed_over().is_unset());
    }

    #[test]
    fn a_list_proves_nothing_about_a_later_moment() {
        let moments = Moments::default();
        let currency = Currency::new(moments.clone());
        let (before, takeover) = (currency.now(), moments.next());
        currency.is_proven(before);
        assert!(*currency.as_of().borrow() < takeover);
        currency.is_proven(currency.now());
        assert!(*currency.as_of().borrow() >= takeover);
        currency.is_proven(before);
        assert!(*currency.as_of().borrow() >= takeover, "what is proven stays so");
        currency.emptied();
        assert!(*currency.as_of().borrow() < takeover);
    }
}
