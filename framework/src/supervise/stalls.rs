//! Loops that make no progress while they have work.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::Instant;

use super::record::Record;
use crate::control_loop::Loop;
use crate::controller::ControllerContext;
use crate::progress::{STALLED_AFTER, Stall};

/// Period between two checks of all loops.
const PERIOD: Duration = Duration::from_secs(10);

/// Looks for a stall of the loop at that place of the record, for ever, and notes and logs what it finds.
///
/// While the API server is unreachable, all keys wait, and no loop is stalled.
pub(super) async fn watch(context: &ControllerContext, record: &Record, at: usize, one: &Loop) -> Infallible {
    let Some(progress) = &one.progress else { return std::future::pending().await };
    let (controller, name) = (context.controller(), one.name);
    let mut reported: Option<(String, Duration)> = None;
    // What happened before the loop ran, or in an outage, is no stall.
    let mut since = Instant::now();
    loop {
        tokio::time::sleep(PERIOD).await;
        if !context.clients().is_reachable() {
            since = Instant::now();
        }
        let ran_for = since.elapsed();
        let stall = if ran_for >= STALLED_AFTER { progress.stall() } else { None };
        let stall = stall.map(|stall| Stall { duration: stall.duration.min(ran_for), ..stall });
        match &stall {
            Some(Stall { key, duration }) if is_worth_a_report(reported.as_ref(), key, *duration) => {
                let waited = Duration::from_secs(duration.as_secs());
                tracing::error!(
                    controller,
                    r#loop = name,
                    key,
                    ?waited,
                    "Loop is stalled: it makes no progress with a key"
                );
                reported = Some((key.clone(), *duration));
            }
            Some(_) => {}
            None => {
                if let Some((key, _)) = reported.take() {
                    tracing::info!(controller, r#loop = name, key, "Loop makes progress again");
                }
            }
        }
        record.loop_stalls(at, stall.map(|stall| (stall.key, before_now(stall.duration))));
    }
}

/// Returns `true` if a stall differs from the reported stall, or has lasted twice as long since.
fn is_worth_a_report(reported: Option<&(String, Duration)>, key: &str, duration: Duration) -> bool {
    reported.is_none_or(|(known, at)| known != key || duration >= *at * 2)
}

fn before_now(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(duration).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_reported_once_and_again_when_it_has_lasted_twice_as_long() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let reported = ("a".to_owned(), minutes(2));
        for (known, key, after, expected) in [
            (None, "a", minutes(2), true),
            (Some(&reported), "a", minutes(3), false),
            (Some(&reported), "a", minutes(4), true),
            (Some(&reported), "b", minutes(2), true),
        ] {
            assert_eq!(is_worth_a_report(known, key, after), expected, "{known:?} {key} {after:?}");
        }
    }
}
