//! What happens to daemon sets in the comparison. Upstream takes nodes in a random order, so that a step of a rollout
//! concerns one node or all of them.

use serde_json::{Value, json};

use super::super::daemonset::daemon_set;
use super::super::recorded::Script;

pub(super) const SCRIPT: Script = Script {
    namespace: "daemon-sets",
    manifests,
    rounds: &[
        &["create -f alpha.json", "create -f beta.json", "create -f gamma.json"],
        &["create -f agent.json", "create -f surge.json", "create -f solo.json"],
        &[
            "ready agent[alpha]",
            "ready agent[beta]",
            "ready agent[gamma]",
            "ready surge[alpha]",
            "ready surge[beta]",
            "ready surge[gamma]",
            "label node beta disk=ssd",
        ],
        &[
            "set image ds/agent main=example/main:2",
            "set image ds/surge main=example/main:2",
            "ready solo[beta]",
            "set image ds/solo main=example/main:2",
        ],
        &[
            "ready agent[alpha]",
            "ready agent[beta]",
            "ready agent[gamma]",
            "ready surge[alpha]",
            "ready surge[beta]",
            "ready surge[gamma]",
            "delete pod solo[beta]",
        ],
        &["rollout undo ds/agent", r#"patch ds surge -p {"spec":{"minReadySeconds":7200}}"#, "ready solo[beta]"],
        &[
            r#"patch pod agent[alpha] --subresource=status -p {"status":{"phase":"Failed"}}"#,
            r#"patch node beta -p {"spec":{"taints":[{"key":"gpu","effect":"NoSchedule"}]}}"#,
            "bind agent[gamma] gamma",
            "bind surge[beta] beta",
            "bind surge[gamma] gamma",
            "bind solo[beta] beta",
        ],
        &[
            "label pod agent[alpha] app=other --overwrite",
            r#"patch node gamma -p {"spec":{"taints":[{"key":"gpu","effect":"NoExecute"}]}}"#,
            "label node beta disk=hdd --overwrite",
        ],
        &[
            r#"patch node gamma -p {"spec":{"unschedulable":true,"taints":null}}"#,
            r#"patch ds solo -p {"spec":{"updateStrategy":{"type":"RollingUpdate"}}}"#,
            r#"patch ds surge -p {"spec":{"minReadySeconds":0}}"#,
        ],
        &[
            r#"patch ds agent -p {"spec":{"revisionHistoryLimit":0}}"#,
            "label node alpha disk=ssd",
            "annotate ds surge example.com/note=1",
        ],
    ],
};

fn manifests() -> Vec<Value> {
    let node = |name: &str| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } } });
    let set = |name: &str, strategy: Value| {
        let mut set = daemon_set(name, &["alpha", "beta", "gamma"], &strategy);
        set["spec"]["template"]["spec"]["schedulerName"] = json!("no-scheduler");
        set
    };
    let mut solo = set("solo", json!({}));
    solo["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
    solo["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "ssd" });
    vec![
        node("alpha"),
        node("beta"),
        node("gamma"),
        set("agent", json!({ "maxUnavailable": "100%" })),
        set("surge", json!({ "maxSurge": "100%", "maxUnavailable": 0 })),
        solo,
    ]
}
