//! The task that proves the caches of takeovers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kcm_api::Resource;
use kcm_informers::{CurrentCache, Evidence, Factory, LookAhead};
use tokio::sync::watch;
use tokio::time::Instant;

use super::Takeover;
use crate::metrics::TakeoverMetrics;

/// Proves that the caches are current for each takeover, until its loops stop; never returns.
///
/// A proof is not kept waiting by the proofs of another takeover. While a takeover is `expected`, watches are opened for
/// its proofs.
pub(crate) async fn prove_takeovers(
    informers: &Factory,
    mut takeovers: watch::Receiver<Vec<Arc<Takeover>>>,
    mut expected: watch::Receiver<bool>,
    metrics: &TakeoverMetrics,
) {
    let mut known = BTreeSet::new();
    let mut proofs = FuturesUnordered::new();
    let mut was_expected = false;
    let mut ahead: Option<LookAhead> = None;
    loop {
        let current = takeovers.borrow_and_update().clone();
        known.retain(|since| current.iter().any(|takeover| takeover.since == *since));
        for takeover in current {
            if known.insert(takeover.since) {
                let ahead = ahead.take().unwrap_or_default();
                proofs.push(async move {
                    let proving = prove(informers, &takeover, ahead, metrics);
                    takeover.ended.run_until_cancelled(proving).await;
                });
            }
        }
        // A takeover that begins at the same time has taken the watches.
        let is_expected = *expected.borrow_and_update();
        if is_expected != std::mem::replace(&mut was_expected, is_expected) {
            ahead = is_expected.then(|| informers.look_ahead());
        }
        let looking = async {
            match &mut ahead {
                Some(ahead) => match ahead.run().await {},
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = takeovers.changed() => if changed.is_err() {
                return std::future::pending().await;
            },
            Ok(()) = expected.changed() => {}
            () = looking => {}
            Some(()) = proofs.next() => {}
        }
    }
}

async fn prove(informers: &Factory, takeover: &Takeover, ahead: LookAhead, metrics: &TakeoverMetrics) {
    let began = Instant::now();
    let handed_over = |resource: &Resource| takeover.handed_over(resource);
    let caches = informers.prove_current_after(ahead, takeover.since, handed_over).await;
    for CurrentCache { evidence, took, .. } in &caches {
        metrics.observe(evidence.label(), *took);
    }
    let took = began.elapsed();
    let Summary { by_evidence, waited_for } = Summary::of(&caches);
    tracing::info!(
        ?took,
        caches = caches.len(),
        ?by_evidence,
        ?waited_for,
        "Caches show all writes of the last leader"
    );
}

/// The proofs of a takeover, for the log.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    /// Number of caches by evidence.
    by_evidence: BTreeMap<&'static str, usize>,
    /// The caches that were waited for, the longest first.
    waited_for: Vec<String>,
}

impl Summary {
    /// Time after which a cache counts as waited for.
    const WAITED: Duration = Duration::from_millis(10);
    /// Number of caches that are named.
    const NAMED: usize = 5;

    fn of(caches: &[CurrentCache]) -> Self {
        let mut by_evidence = BTreeMap::new();
        for cache in caches {
            *by_evidence.entry(cache.evidence.label()).or_default() += 1;
        }
        let waited_for = |cache: &&CurrentCache| cache.took > Self::WAITED && cache.evidence != Evidence::Listed;
        let mut waited_for: Vec<_> = caches.iter().filter(waited_for).collect();
        waited_for.sort_by_key(|cache| std::cmp::Reverse(cache.took));
        let named = waited_for.iter().take(Self::NAMED);
        let waited_for = named.map(|cache| format!("{} {:.0?} {}", cache.resource, cache.took, cache.evidence.label()));
        Self { by_evidence, waited_for: waited_for.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_the_caches_that_were_waited_for_longest_first() {
        let cache = |plural: &'static str, evidence, millis| CurrentCache {
            resource: Resource::namespaced("", "v1", plural, "X"),
            evidence,
            took: Duration::from_millis(millis),
        };
        let caches = [
            cache("pods", Evidence::Reached, 900),
            cache("nodes", Evidence::Reached, 0),
            cache("jobs", Evidence::Watched, 1200),
            cache("secrets", Evidence::Listed, 3000),
        ];
        let summary = Summary::of(&caches);
        assert_eq!(summary.by_evidence, [("listed", 1), ("reached", 2), ("watched", 1)].into());
        assert_eq!(summary.waited_for, ["jobs 1s watched", "pods 900ms reached"]);
        let many: Vec<_> = (0..9).map(|_| cache("pods", Evidence::Relisted, 5_000)).collect();
        assert_eq!(Summary::of(&many).waited_for.len(), Summary::NAMED);
    }
}
