//! Service CIDRs within a larger one: made ready, then let go after their grace period.
//!
//! No service has an address in them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use kcm_e2e_harness::clock;
use kube::api::WatchEvent;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::objects::WHOLE;
use super::size::Size;
use super::testbed::Testbed;

/// What the managers run.
pub(super) const CONTROLLERS: &str = "service-cidr-controller";
/// What they send requests about; the benchmark creates and deletes service CIDRs.
pub(super) const REQUESTS: &[&str] = &["PATCH servicecidrs", "APPLY servicecidrs/status"];

const CIDRS: &str = "/apis/networking.k8s.io/v1/servicecidrs";
/// Contains all others.
const PARENT: &str = "172.16.0.0/12";
/// How many addresses each of the others has, a power of two.
const ADDRESSES_EACH: u32 = 16;
/// How long a service CIDR stays at least after its deletion.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

/// Service CIDRs, made and deleted.
pub(super) async fn made_and_deleted(testbed: &mut Testbed, size: Size) -> Result<()> {
    let count = testbed.scaled(size.pick(50, 200));
    let times = RefCell::new(Times::default());
    testbed
        .phase("made", async |it| {
            let make = async {
                it.post(CIDRS, &service_cidr("parent", PARENT)).await?;
                it.many(count, async |number| it.post(CIDRS, &child(number)?).await.map(drop)).await
            };
            let ready = it.watch_until(CIDRS, WHOLE, |event| {
                times.borrow_mut().see_ready(&event, Instant::now());
                times.borrow().latencies.len() == count
            });
            tokio::try_join!(make, ready).map(drop)
        })
        .await?;
    testbed.latencies(&times.take().latencies);
    // Times of deletion are whole seconds. From the beginning of one, both managers wait equally long.
    tokio::time::sleep(until_next_second(clock::now())).await;
    testbed
        .phase("deleted", async |it| {
            let delete =
                it.many(count, async |number| it.delete(&format!("{CIDRS}/{}", name_of(number)), "Background").await);
            let gone = it.watch_until(CIDRS, WHOLE, |event| {
                times.borrow_mut().see_gone(&event, clock::now());
                times.borrow().latencies.len() == count
            });
            tokio::try_join!(delete, gone).map(drop)
        })
        .await?;
    testbed.latencies(&times.take().latencies);
    Ok(())
}

fn name_of(number: usize) -> String {
    format!("child-{number}")
}

fn child(number: usize) -> Result<Value> {
    let (parent, _) = PARENT.split_once('/').context("a range has a length")?;
    let first = u32::from(parent.parse::<Ipv4Addr>()?) + u32::try_from(number)? * ADDRESSES_EACH;
    let length = 32 - ADDRESSES_EACH.ilog2();
    Ok(service_cidr(&name_of(number), &format!("{}/{length}", Ipv4Addr::from(first))))
}

fn service_cidr(name: &str, range: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "cidrs": [range] } })
}

fn until_next_second(now: Timestamp) -> Duration {
    let nanos = now.subsec_nanosecond().unsigned_abs();
    Duration::from_secs(1).saturating_sub(Duration::from_nanos(nanos.into()))
}

/// When the service CIDRs within the parent were made, became ready, and went.
#[derive(Debug, Default)]
struct Times {
    /// When those were made that are not ready, by name; none where they were seen to be.
    made: HashMap<String, Option<Instant>>,
    latencies: Vec<Duration>,
}

impl Times {
    /// Times each from its creation until it is ready.
    fn see_ready(&mut self, event: &WatchEvent<Value>, now: Instant) {
        let (WatchEvent::Added(cidr) | WatchEvent::Modified(cidr)) = event else { return };
        let Some(name) = child_in(cidr) else { return };
        let since = self.made.entry(name.to_owned()).or_insert(Some(now));
        let mut conditions = cidr["status"]["conditions"].as_array().into_iter().flatten();
        if conditions.any(|it| it["type"] == "Ready" && it["status"] == "True") {
            self.latencies.extend(since.take().map(|since| now.duration_since(since)));
        }
    }

    /// Times each from the end of its grace period until it is gone.
    fn see_gone(&mut self, event: &WatchEvent<Value>, now: Timestamp) {
        let WatchEvent::Deleted(cidr) = event else { return };
        if child_in(cidr).is_none() {
            return;
        }
        let deleted = cidr["metadata"]["deletionTimestamp"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
        let late = deleted.map(|deleted| now.duration_since(deleted) - GRACE);
        self.latencies.push(late.and_then(|late| late.try_into().ok()).unwrap_or_default());
    }
}

/// The name of a service CIDR within the parent.
fn child_in(cidr: &Value) -> Option<&str> {
    cidr["metadata"]["name"].as_str().filter(|name| name.starts_with("child-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(number: usize) -> Value {
        super::child(number).expect("it is within the parent")
    }

    #[test]
    fn each_service_cidr_has_a_range_of_its_own_within_the_parent() {
        assert_eq!(child(0)["spec"]["cidrs"], json!(["172.16.0.0/28"]));
        assert_eq!(child(17)["spec"]["cidrs"], json!(["172.16.1.16/28"]));
    }

    #[test]
    fn a_service_cidr_is_timed_once_from_its_creation_until_it_is_ready() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let ready = |mut cidr: Value| {
            cidr["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
            WatchEvent::Modified(cidr)
        };
        let mut times = Times::default();
        times.see_ready(&WatchEvent::Added(child(1)), at(1));
        times.see_ready(&WatchEvent::Modified(child(1)), at(2));
        times.see_ready(&ready(service_cidr("parent", PARENT)), at(3));
        assert!(times.latencies.is_empty());
        times.see_ready(&ready(child(1)), at(4));
        times.see_ready(&ready(child(1)), at(5));
        assert_eq!(times.latencies, [Duration::from_secs(3)]);
    }

    #[test]
    fn a_service_cidr_is_timed_from_the_end_of_its_grace_period_until_it_is_gone() {
        let at = |time: &str| time.parse::<Timestamp>().expect("it is a time");
        let deleted = |mut cidr: Value| {
            cidr["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            cidr
        };
        let mut times = Times::default();
        times.see_gone(&WatchEvent::Modified(deleted(child(1))), at("2026-01-01T00:00:01Z"));
        times.see_gone(&WatchEvent::Deleted(deleted(service_cidr("parent", PARENT))), at("2026-01-01T00:00:11Z"));
        assert!(times.latencies.is_empty());
        times.see_gone(&WatchEvent::Deleted(deleted(child(1))), at("2026-01-01T00:00:10.25Z"));
        assert_eq!(times.latencies, [Duration::from_millis(250)]);
    }

    #[test]
    fn the_next_second_begins_when_this_one_ends() {
        let after = |time: &str| until_next_second(time.parse().expect("it is a time"));
        assert_eq!(after("2026-01-01T00:00:01.25Z"), Duration::from_millis(750));
        assert_eq!(after("2026-01-01T00:00:01Z"), Duration::from_secs(1));
    }
}
