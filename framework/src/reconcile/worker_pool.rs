//! The workers of a loop: as many as a setting says, which may change while they work.

use std::collections::BTreeMap;

use kcm_client::BoxError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::live_settings::WorkerCount;

/// Runs as many workers as `count` says, until all of them have ended: each does when its token is cancelled, which
/// follows `cancel`, or by itself.
///
/// If the number grows, more workers start at once. If it shrinks, surplus workers end after the key that they process,
/// and no key is aborted.
///
/// # Errors
/// As soon as a worker panics outside of a reconcile.
pub(super) async fn run_workers<F>(
    count: &WorkerCount,
    cancel: &CancellationToken,
    work: impl Fn(CancellationToken) -> F,
) -> Result<(), BoxError>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut workers: BTreeMap<usize, CancellationToken> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut wanted = count.get();
    loop {
        if !cancel.is_cancelled() {
            for number in missing(&workers, wanted) {
                let token = cancel.child_token();
                let worker = work(token.clone());
                tasks.spawn(async move {
                    worker.await;
                    number
                });
                workers.insert(number, token);
            }
        }
        workers.range(wanted..).for_each(|(_, surplus)| surplus.cancel());
        tokio::select! {
            biased;
            ended = tasks.join_next() => {
                let Some(ended) = ended else { return Ok(()) };
                let number = ended?;
                // One that ended by itself has no more keys to expect, and is not started again.
                if workers.get(&number).is_some_and(CancellationToken::is_cancelled) {
                    workers.remove(&number);
                }
            }
            other = count.other_than(wanted) => wanted = other,
        }
    }
}

/// The numbers of the workers to start: the numbers below `wanted` without a worker. A worker that is ending still
/// counts, so that there are never more workers at once than were ever wanted.
fn missing<T>(workers: &BTreeMap<usize, T>, wanted: usize) -> Vec<usize> {
    (0..wanted).filter(|number| !workers.contains_key(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_start_where_none_works() {
        let cases: [(&[usize], usize, &[usize]); 5] = [
            (&[], 3, &[0, 1, 2]),
            (&[0, 1, 2], 3, &[]),
            (&[0, 1, 2], 5, &[3, 4]),
            (&[0, 1, 2, 3, 4], 1, &[]),
            // Worker 1 has ended, and the surplus worker 4 is ending.
            (&[0, 2, 4], 3, &[1]),
        ];
        for (working, wanted, expected) in cases {
            let workers = working.iter().map(|number| (*number, ())).collect();
            assert_eq!(missing(&workers, wanted), expected, "{working:?}, {wanted} wanted");
        }
    }
}
