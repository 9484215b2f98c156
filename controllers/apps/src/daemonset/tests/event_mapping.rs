//! The daemon sets that a change of a pod enqueues.

use std::time::Duration;

use kcm_framework::Enqueue;
use kcm_framework::informers::Change;

use crate::daemonset::event_mapping::{keys_for_pod, owners};
use crate::daemonset::tests::fixtures::{NEW, daemon_pod, daemon_set, key};
use crate::tests::fixtures::PodBuilder;

#[test]
fn a_pod_that_became_ready_enqueues_its_daemon_set_again_when_it_is_available() {
    let pod = || daemon_pod("agent-a", "n1", NEW);
    let ready = |pod: PodBuilder| pod.ready(1);
    let now = || Enqueue::from(key("agent"));
    let later = || Enqueue::after(key("agent"), Duration::from_secs(30));
    for (name, period, old, new, expected) in [
        ("became ready", 30, pod(), ready(pod()), vec![now(), later()]),
        ("became ready without a period", 0, pod(), ready(pod()), vec![now()]),
        ("is ready still", 30, ready(pod()), ready(pod()), vec![now()]),
        ("is not ready any more", 30, ready(pod()), pod(), vec![now()]),
        ("terminates", 30, pod(), ready(pod()).terminating(), vec![now()]),
    ] {
        let sets = vec![daemon_set("agent").min_ready_seconds(period).build()];
        let change = Change::Updated { old: old.build(), new: new.build() };
        assert_eq!(keys_for_pod(&change, &owners(sets)), expected, "{name}");
    }
}
