//! The state on the status page, as JSON.

use kcm_config::{Effective, KUBERNETES_VERSION, Origin};
use kcm_framework::clock::{Clock as _, SystemClock};
use kcm_framework::explain::QueueStatus;
use serde_json::{Value, json};

use crate::debug;
use crate::health::{caches_check, live};
use crate::state::ServingState;

/// Largest number of keys of each list of a queue that are sent. The page shows only the first ones.
const MOST_KEYS: usize = 10;

/// The state of the manager, with the number of the last sample of its queues.
pub(super) fn state(shown: &ServingState, mut queues: Vec<QueueStatus>, tick: u64) -> Value {
    let manager = &shown.manager;
    for queue in &mut queues {
        queue.processing.truncate(MOST_KEYS);
        queue.waiting_for_writes.truncate(MOST_KEYS);
        queue.delayed.truncate(MOST_KEYS);
        queue.failing.truncate(MOST_KEYS);
    }
    let checks =
        live(manager, &shown.live).into_iter().chain([caches_check(manager)]).chain(shown.ready.iter().cloned());
    let checks: Vec<Value> = checks.map(|check| json!({ "name": check.name(), "error": check.run().err() })).collect();
    let problems = manager.controllers().into_iter().filter_map(|one| Some((one.name, one.problem()?)));
    let problems: Vec<Value> =
        problems.map(|(controller, problem)| json!({ "controller": controller, "problem": problem })).collect();
    let up = SystemClock.now().duration_since(shown.started).as_secs().max(0);
    json!({
        "tick": tick,
        "kubernetes": KUBERNETES_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "started": shown.started.to_string(),
        "upSeconds": up,
        "checks": checks,
        "problems": problems,
        "leases": (shown.leases)(),
        "controllers": debug::controllers(manager)["controllers"],
        "queues": queues,
        "caches": debug::informers(manager)["caches"],
    })
}

/// Every setting with its section, value and origin.
pub(super) fn settings(settings: &Effective) -> Value {
    let rows = settings.rows().iter().filter_map(|row| {
        let (value, origin) = (settings.value(row.name)?, settings.origin(row.name)?);
        Some(json!({
            "name": row.label(),
            "section": row.section,
            "value": value.to_string(),
            "origin": origin.to_string(),
            "isDefault": *origin == Origin::Default,
        }))
    });
    json!({ "settings": rows.collect::<Vec<_>>() })
}
