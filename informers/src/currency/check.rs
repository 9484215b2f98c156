//! Carries a proof out: reads the floor, watches, and has the objects listed again.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kcm_api::ResourceVersion;
use kube::Client;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Currency;
use super::floor::read_floor;
use super::look_ahead::Ahead;
use super::proof::{Evidence, HandedOver, Proof, Step};
use super::second_watch::{PAUSE, SecondWatch, Shown};
use crate::cache::Cache;
use crate::connection::Connection;
use crate::moments::Moment;

/// Proves that `cache` holds everything that was written before `since`, once it has synced, and returns when it does.
/// `None` if its informer stops. Continues with the watches of `ahead`.
pub(crate) async fn prove(
    client: &Client,
    connection: &Connection,
    (cache, currency): (&Arc<dyn Cache>, &Currency),
    versions: watch::Receiver<ResourceVersion>,
    since: (Moment, HandedOver),
    ahead: Option<Ahead>,
) -> Option<Evidence> {
    let proving = async {
        Arc::clone(cache).wait_synced().await;
        prove_synced(client, connection, (cache, currency), versions, since, ahead).await
    };
    tokio::select! {
        biased;
        () = currency.stopped() => None,
        evidence = proving => Some(evidence),
    }
}

async fn prove_synced(
    client: &Client,
    connection: &Connection,
    (cache, currency): (&Arc<dyn Cache>, &Currency),
    mut versions: watch::Receiver<ResourceVersion>,
    (since, handed_over): (Moment, HandedOver),
    ahead: Option<Ahead>,
) -> Evidence {
    let mut as_of = currency.as_of();
    let (resource, list_options) = (cache.resource(), cache.list_options());
    let started = Instant::now();
    let (mut watches, history) = ahead.map(|ahead| (ahead.watches, ahead.history)).unwrap_or_default();
    let mut proof = Proof::new(handed_over, versions.borrow_and_update().clone(), history, Duration::ZERO);
    let mut open_at = Duration::ZERO;
    let mut floor = std::pin::pin!(read_floor(client, resource, list_options).fuse());
    let mut wants_floor = false;
    let mut is_relisted = false;
    loop {
        // A list also brings the version that the proof waits for.
        if *as_of.borrow() >= since {
            return if is_relisted { Evidence::Relisted } else { Evidence::Listed };
        }
        let now = started.elapsed();
        let until = match proof.next(now) {
            Step::Current(evidence) => {
                currency.is_proven(since);
                return evidence;
            }
            Step::Wait(until) => until,
            Step::Watch(from, until) => {
                wants_floor = true;
                if watches.is_empty() && now >= open_at {
                    watches.add(SecondWatch::open(client, resource, list_options, &from));
                    open_at = now + PAUSE;
                }
                if watches.is_empty() { until.min(open_at) } else { until }
            }
            Step::Relist => {
                // In an outage no cache can be current, and its informer resumes after it.
                connection.reachable().await;
                tracing::info!(%resource, %list_options, "Cache is not proven to be current in time; listing again");
                currency.relist.notify_one();
                is_relisted = true;
                continue;
            }
        };
        tokio::select! {
            biased;
            // The sender lives as long as the cache.
            () = async { drop(as_of.wait_for(|as_of| *as_of >= since).await) } => {}
            Ok(()) = versions.changed() => proof.cache_reached(versions.borrow_and_update().clone()),
            version = &mut floor, if wants_floor => proof.floor_read(version),
            shown = watches.next() => match shown {
                Shown::Event(version) => proof.saw_event(version),
                Shown::Bookmark { version, .. } => proof.saw_bookmark(version),
                Shown::Ended { is_expired } => {
                    open_at = started.elapsed() + PAUSE;
                    if is_expired {
                        proof.expired(started.elapsed());
                    }
                }
            },
            () = sleep_until(started + until) => {}
        }
    }
}
