//! Event mapping.

use kcm_framework::api::views::Job;
use kcm_framework::informers::Change;
use serde_json::{Value, json};

use super::{completed, view_of, with};
use crate::tests::cluster::key;
use crate::tests::fixtures::ago;
use crate::ttl_after_finished::event_mapping::keys_for_job;

#[test]
fn finished_jobs_with_a_time_to_live_are_enqueued() {
    let finished = || completed("a", 0);
    let running = || with(finished(), "/status", "conditions", json!([]));
    let endless = || with(finished(), "/spec", "ttlSecondsAfterFinished", Value::Null);
    let terminating = || with(finished(), "/metadata", "deletionTimestamp", json!(ago(1)));
    let added = |job: Value| Change::Added(view_of(&job));
    let updated = |old: Value, new: Value| Change::Updated { old: view_of(&old), new: view_of(&new) };
    let deleted = |job: Value| Change::<Job>::Deleted { last: view_of(&job), final_state_known: true };
    for (name, change, is_enqueued) in [
        ("added, finished", added(finished()), true),
        ("added, running", added(running()), false),
        ("added, without a time to live", added(endless()), false),
        ("added, terminating", added(terminating()), false),
        ("updated, has finished", updated(running(), finished()), true),
        ("updated, has a time to live now", updated(endless(), finished()), true),
        ("updated, has none any more", updated(finished(), endless()), false),
        ("updated, begins to terminate", updated(finished(), terminating()), false),
        ("resynced", updated(finished(), finished()), true),
        ("deleted", deleted(finished()), false),
    ] {
        assert_eq!(keys_for_job(&change), is_enqueued.then(|| key("a")), "{name}");
    }
}
