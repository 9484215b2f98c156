//! Events, compared with those of upstream.

use kcm_framework::events::{Event as _, EventText, EventType};

use crate::daemonset::events::{DaemonSetEvent, FinishedPod};

#[test]
fn events_read_as_upstreams_do() {
    let finished = || FinishedPod { pod: "shop/agent-x".to_owned(), node: "n1".to_owned() };
    for (event, type_, reason, message) in [
        (
            DaemonSetEvent::SelectingAll,
            EventType::Warning,
            "SelectingAll",
            "This daemon set is selecting all pods. A non-empty selector is required.",
        ),
        (
            DaemonSetEvent::FailedPod(finished()),
            EventType::Warning,
            "FailedDaemonPod",
            "Found failed daemon pod shop/agent-x on node n1, will try to kill it",
        ),
        (
            DaemonSetEvent::SucceededPod(finished()),
            EventType::Normal,
            "SucceededDaemonPod",
            "Found succeeded daemon pod shop/agent-x on node n1, will try to delete it",
        ),
    ] {
        assert_eq!(event.text(), EventText { type_, reason: reason.into(), message: message.into() });
    }
}
