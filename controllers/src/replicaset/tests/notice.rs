//! Events, by the words that people grep for.

use crate::replicaset::notice::Notice;

#[test]
fn events_read_as_upstreams_do() {
    let (name, message) = (|| "web-1".to_owned(), || "quota".to_owned());
    for (notice, warning, reason, text) in [
        (Notice::CreatedPod { name: name() }, false, "SuccessfulCreate", "Created pod: web-1"),
        (Notice::CreateFailed { message: message() }, true, "FailedCreate", "Error creating: quota"),
        (Notice::DeletedPod { name: name() }, false, "SuccessfulDelete", "Deleted pod: web-1"),
        (Notice::DeleteFailed { message: message() }, true, "FailedDelete", "Error deleting: quota"),
    ] {
        assert_eq!((notice.is_warning(), notice.reason(), notice.message().as_str()), (warning, reason, text));
    }
}
