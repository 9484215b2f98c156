//! What happens to stateful sets in the comparison.

use serde_json::{Value, json};

use super::super::recorded::Script;
use super::super::statefulset::set;

pub(super) const SCRIPT: Script = Script {
    namespace: "stateful-sets",
    manifests,
    rounds: &[
        &["create -f web.json", "create -f wide.json", "create -f data.json"],
        &["ready web-0", "ready wide-0", "ready wide-1", "ready wide-2", "ready data-0"],
        &["ready web-1", "ready data-1", "set image sts/wide main=example/main:2"],
        &["set image sts/web main=example/main:2", "ready wide-2", "set image sts/data main=example/main:2"],
        &["ready web-1", "ready wide-1", "delete pod data-1"],
        &[
            "ready web-0",
            r#"patch sts wide -p {"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}"#,
            "ready data-1",
        ],
        &["rollout undo sts/web", "scale sts wide --replicas=1", "scale sts data --replicas=1"],
        &[
            "ready web-1",
            r#"patch pod wide-0 --subresource=status -p {"status":{"phase":"Failed"}}"#,
            r#"patch sts data -p {"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Retain"}}}"#,
        ],
        &[
            "ready web-0",
            r#"patch sts wide -p {"spec":{"minReadySeconds":7200}}"#,
            r#"patch sts data -p {"spec":{"ordinals":{"start":1}}}"#,
        ],
        &[
            r#"patch sts web -p {"spec":{"revisionHistoryLimit":0}}"#,
            "ready wide-0",
            "annotate sts data example.com/note=1",
        ],
    ],
};

fn manifests() -> Vec<Value> {
    let mut wide = set("wide", 3);
    wide["spec"]["podManagementPolicy"] = json!("Parallel");
    wide["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": 1 } });
    let mut data = set("data", 2);
    data["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
    data["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({ "whenDeleted": "Delete", "whenScaled": "Delete" });
    data["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    vec![set("web", 2), wide, data]
}
