//! Events, compared with those of upstream.

use kcm_framework::events::{EventDetails as _, EventType};

use crate::shared::pod_control::events::EventReason;

#[test]
fn events_read_as_upstreams_do() {
    let (name, message) = (|| "web-1".to_owned(), || "quota".to_owned());
    for (event, event_type, reason, message) in [
        (EventReason::CreatedPod { name: name() }, EventType::Normal, "SuccessfulCreate", "Created pod: web-1"),
        (EventReason::CreateFailed { message: message() }, EventType::Warning, "FailedCreate", "Error creating: quota"),
        (EventReason::DeletedPod { name: name() }, EventType::Normal, "SuccessfulDelete", "Deleted pod: web-1"),
        (EventReason::DeleteFailed { message: message() }, EventType::Warning, "FailedDelete", "Error deleting: quota"),
    ] {
        assert_eq!((event.event_type(), event.reason(), event.message().as_str()), (event_type, reason, message));
    }
}
