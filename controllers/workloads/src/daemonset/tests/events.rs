//! Events, compared with those of upstream.

use kcm_framework::events::{EventDetails as _, EventType};

use crate::daemonset::events::{EventReason, FinishedPod};

#[test]
fn events_read_as_upstreams_do() {
    let finished = || FinishedPod { pod: "shop/agent-x".to_owned(), node: "n1".to_owned() };
    for (event, event_type, reason, message) in [
        (
            EventReason::SelectingAll,
            EventType::Warning,
            "SelectingAll",
            "This daemon set is selecting all pods. A non-empty selector is required.",
        ),
        (
            EventReason::FailedPod(finished()),
            EventType::Warning,
            "FailedDaemonPod",
            "Found failed daemon pod shop/agent-x on node n1, will try to kill it",
        ),
        (
            EventReason::SucceededPod(finished()),
            EventType::Normal,
            "SucceededDaemonPod",
            "Found succeeded daemon pod shop/agent-x on node n1, will try to delete it",
        ),
    ] {
        assert_eq!((event.event_type(), event.reason(), event.message().as_str()), (event_type, reason, message));
    }
}
