use kcm_framework::api::View as _;
use serde_json::{Value, json};

use super::super::plan::Attachment;
use super::super::view::{VolumeAttachment, needs_attachment};
use crate::shared::csi_driver::CsiDriver;

fn attachment(object: &Value) -> VolumeAttachment {
    VolumeAttachment::decode(&object.to_string()).unwrap()
}

#[test]
fn ad_21_attachments_hold_the_state_of_the_operation() {
    let metadata = json!({ "name": "csi-1", "deletionTimestamp": "2026-01-01T00:00:00Z" });
    let spec = json!({ "attacher": "d", "nodeName": "n", "source": { "persistentVolumeName": "pv" } });
    let status = json!({
        "attached": true, "attachError": { "message": "no disk" }, "detachError": { "message": "busy" },
        "attachmentMetadata": { "a": "b" },
    });
    let deleting = attachment(&json!({ "metadata": metadata, "spec": spec, "status": status }));
    assert_eq!((&*deleting.attacher, &*deleting.node_name), ("d", "n"));
    assert_eq!(deleting.volume_name.as_deref(), Some("pv"));
    let expected =
        Attachment { is_attached: true, is_deleting: true, attach_error: Some("no disk"), detach_error: Some("busy") };
    assert_eq!(deleting.state(), expected);

    let source = json!({ "inlineVolumeSpec": { "csi": { "driver": "d", "volumeHandle": "h" } } });
    let spec = json!({ "attacher": "d", "nodeName": "n", "source": source });
    let created = attachment(&json!({ "metadata": { "name": "csi-2" }, "spec": spec }));
    assert_eq!((created.volume_name.as_deref(), created.state()), (None, Attachment::default()), "AD-13: of a pod");
}

#[test]
fn pl_8_drivers_need_attachments_unless_they_say_no() {
    for (name, spec, expected) in [
        ("default", json!({}), true),
        ("required", json!({ "attachRequired": true }), true),
        ("not required", json!({ "attachRequired": false }), false),
    ] {
        let driver = json!({ "metadata": { "name": "d" }, "spec": spec });
        let driver = CsiDriver::decode(&driver.to_string()).unwrap();
        assert_eq!(needs_attachment(Some(&driver)), expected, "{name}");
    }
    assert!(needs_attachment(None), "a missing driver");
}
