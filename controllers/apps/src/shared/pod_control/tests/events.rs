//! Events, compared with those of upstream.

use kcm_framework::events::{Event as _, EventText};

use crate::shared::pod_control::events::PodControlEvent;

#[test]
fn events_read_as_upstreams_do() {
    let (name, message) = (|| "web-1".to_owned(), || "quota".to_owned());
    for (event, expected) in [
        (PodControlEvent::CreatedPod { name: name() }, EventText::normal("SuccessfulCreate", "Created pod: web-1")),
        (
            PodControlEvent::CreateFailed { message: message() },
            EventText::warning("FailedCreate", "Error creating: quota"),
        ),
        (PodControlEvent::DeletedPod { name: name() }, EventText::normal("SuccessfulDelete", "Deleted pod: web-1")),
        (
            PodControlEvent::DeleteFailed { message: message() },
            EventText::warning("FailedDelete", "Error deleting: quota"),
        ),
    ] {
        assert_eq!(event.text(), expected);
    }
}
