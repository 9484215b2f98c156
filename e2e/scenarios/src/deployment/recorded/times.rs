//! Times of conditions, compared as orders: two recordings have different clocks, but renew a time in the same turn.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kcm_e2e_harness::clock;
use serde_json::{Value, json};

use super::super::state::State;

const FIELDS: [&str; 2] = ["lastUpdateTime", "lastTransitionTime"];

/// The turn in which each time was last renewed.
///
/// Turns are at least a second apart, which is what the API keeps of a time: see [`next_second`].
#[derive(Default)]
pub(super) struct Times {
    turn: usize,
    renewed: BTreeMap<String, (String, usize)>,
}

impl Times {
    /// Begins the next turn.
    pub(super) fn next_turn(&mut self) {
        self.turn += 1;
    }

    /// The times of an object's condition as turns; a time that went back says so.
    pub(super) fn describe(&mut self, object: &str, condition: &Value) -> String {
        let kind = condition["type"].as_str().unwrap_or_default();
        let described = FIELDS.iter().filter_map(|field| {
            let time = condition[field].as_str()?;
            Some(format!("{field} {}", self.turn_of(&format!("{object} {kind} {field}"), time)))
        });
        described.collect::<Vec<_>>().join(", ")
    }

    fn turn_of(&mut self, what: &str, time: &str) -> String {
        let turn = self.turn;
        let (last, renewed) = self.renewed.entry(what.to_owned()).or_insert_with(|| (time.to_owned(), turn));
        // RFC 3339 in UTC with whole seconds: the order of strings is that of times.
        let went_back = time < last.as_str();
        if time != last {
            time.clone_into(last);
            *renewed = turn;
        }
        if went_back { format!("went back in turn {turn}") } else { format!("of turn {renewed}") }
    }
}

/// Waits until a time written from now on differs from all that the conditions hold.
pub(super) async fn next_second(state: &State) {
    let statuses =
        state.deployments.iter().map(|it| json!(it.status)).chain(state.sets.iter().map(|it| json!(it.status)));
    let latest = statuses.filter_map(|status| latest_of(&status)).max();
    if let Some(latest) = latest {
        let pause = until_after(latest, clock::now());
        tokio::time::sleep(pause).await;
    }
}

/// The latest time of a status' conditions.
fn latest_of(status: &Value) -> Option<Timestamp> {
    let conditions = status["conditions"].as_array()?.iter();
    let times = conditions.flat_map(|condition| FIELDS.map(|field| condition[field].as_str()));
    times.flatten().filter_map(|time| time.parse().ok()).max()
}

/// How long it takes until the second after `time` begins.
fn until_after(time: Timestamp, now: Timestamp) -> Duration {
    let next = time + SignedDuration::from_secs(1);
    Duration::try_from(next.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{Times, latest_of, until_after};

    fn condition(updated: u32, changed: u32) -> serde_json::Value {
        let time = |second| format!("2030-01-02T03:04:{second:02}Z");
        json!({ "type": "Progressing", "lastUpdateTime": time(updated), "lastTransitionTime": time(changed) })
    }

    #[test]
    fn two_recordings_at_other_times_read_alike() {
        let recording = |offset: u32| {
            let mut times = Times::default();
            [(1, 1), (1, 1), (9, 1)].map(|(updated, changed)| {
                times.next_turn();
                times.describe("web", &condition(updated + offset, changed + offset))
            })
        };
        assert_eq!(recording(0), recording(30));
    }

    #[test]
    fn a_renewed_time_is_seen_and_stays_that_of_its_turn() {
        let mut times = Times::default();
        let mut describe = |updated, changed| {
            times.next_turn();
            times.describe("web", &condition(updated, changed))
        };
        assert_eq!(describe(1, 1), "lastUpdateTime of turn 1, lastTransitionTime of turn 1");
        assert_eq!(describe(2, 1), "lastUpdateTime of turn 2, lastTransitionTime of turn 1");
        assert_eq!(describe(2, 1), "lastUpdateTime of turn 2, lastTransitionTime of turn 1");
        assert_eq!(describe(3, 0), "lastUpdateTime of turn 4, lastTransitionTime went back in turn 4");
    }

    #[test]
    fn conditions_of_several_objects_are_told_apart() {
        let mut times = Times::default();
        times.next_turn();
        times.describe("web", &condition(1, 1));
        times.next_turn();
        assert_eq!(times.describe("api", &condition(2, 2)), "lastUpdateTime of turn 2, lastTransitionTime of turn 2");
    }

    #[test]
    fn the_next_turn_waits_for_the_second_after_the_latest_time() {
        let status = json!({ "conditions": [condition(5, 1), condition(3, 4)] });
        let latest = latest_of(&status).expect("there are times");
        assert_eq!(latest.to_string(), "2030-01-02T03:04:05Z");
        let now = |time: &str| time.parse().expect("a time");
        assert_eq!(until_after(latest, now("2030-01-02T03:04:05.75Z")), Duration::from_millis(250));
        assert_eq!(until_after(latest, now("2030-01-02T03:04:06.5Z")), Duration::ZERO);
        assert_eq!(latest_of(&json!({})), None);
    }
}
