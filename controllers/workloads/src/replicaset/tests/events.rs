//! Events, by the words that people grep for.

use kcm_framework::events::EventType;

use crate::replicaset::events::Notice;

#[test]
fn events_read_as_upstreams_do() {
    let (name, message) = (|| "web-1".to_owned(), || "quota".to_owned());
    for (notice, event_type, reason, text) in [
        (Notice::CreatedPod { name: name() }, EventType::Normal, "SuccessfulCreate", "Created pod: web-1"),
        (Notice::CreateFailed { message: message() }, EventType::Warning, "FailedCreate", "Error creating: quota"),
        (Notice::DeletedPod { name: name() }, EventType::Normal, "SuccessfulDelete", "Deleted pod: web-1"),
        (Notice::DeleteFailed { message: message() }, EventType::Warning, "FailedDelete", "Error deleting: quota"),
    ] {
        assert_eq!((notice.event_type(), notice.reason(), notice.message().as_str()), (event_type, reason, text));
    }
}
