//! Event mapping.

use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::informers::Change;
use serde_json::json;

use super::{CronJobBuilder, cron_job, zones};
use crate::cronjob::event_mapping::key_for_cron_job;
use crate::tests::cluster::{key, now};

#[test]
fn a_change_of_the_schedule_waits_for_its_next_start_and_others_do_not() {
    let added = |new: CronJobBuilder| Change::Added(new.build());
    let updated = |old: CronJobBuilder, new: CronJobBuilder| Change::Updated { old: old.build(), new: new.build() };
    let deleted = |last: CronJobBuilder| Change::Deleted { last: last.build(), final_state_known: true };
    let hourly = || cron_job("0 * * * *").last_schedule("2026-01-02T11:59:30Z");
    let every = |text: &str| cron_job(text).last_schedule("2026-01-02T11:59:30Z");
    let zoned = |zone: &str| hourly().spec("timeZone", json!(zone));
    for (name, change, expected) in [
        ("added", added(hourly()), Some(0)),
        ("resynced", updated(hourly(), hourly()), Some(0)),
        ("another field changed", updated(hourly(), hourly().spec("suspend", json!(true))), Some(0)),
        ("sooner", updated(hourly(), every("* * * * *")), Some(60_100)),
        (
            "a start was missed by the new schedule alone",
            updated(cron_job("0 0 * * *"), cron_job("*/7 * * * *")),
            Some(420_100),
        ),
        ("longer period", updated(every("@every 1m"), every("@every 3m")), Some(150_100)),
        ("another time zone", updated(hourly(), zoned("Asia/Kathmandu")), Some(900_100)),
        ("unknown time zone", updated(hourly(), zoned("Mars/Olympus")), Some(3_600_100)),
        ("unparseable", updated(hourly(), every("60 * * * *")), Some(0)),
        ("no start", updated(hourly(), every("0 0 31 2 *")), Some(0)),
        ("deleted", deleted(hourly()), None),
    ] {
        let expected = expected.map(|millis| Enqueue::after(key("report"), Duration::from_millis(millis)));
        assert_eq!(key_for_cron_job(&change, &zones(), now()), expected, "{name}");
    }
}
